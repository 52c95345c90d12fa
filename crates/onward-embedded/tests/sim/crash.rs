//! The end of the engine's process and its beginning anew.

use std::time::Duration;

use onward_core::Env;
use onward_sim::Loss;
use onward_sim::history::{Answer, Event, Moment, Restart, What};

use super::run::{Call, Run};

impl Run {
    /// The engine's process ends, in the middle of everything; then the folder is opened again.
    pub(crate) fn crash(&mut self, loss: Loss) {
        self.harvest();
        let called = self.moment();
        self.trace.note(format_args!("{:?} crash {loss:?}", called.at));
        let lost: Vec<(usize, Call)> =
            (0..self.clients.len()).filter_map(|at| Some((at, self.clients[at].1.take()?))).collect();
        self.folder.crash(loss);
        self.executor.drop_all();
        for (client, call) in &lost {
            self.take_down(*client, call, called, None);
        }
        self.env.advance(Duration::from_millis(self.random.below(3_000)));
        self.reopen(called, loss != Loss::Nothing);
    }

    /// Opens the folder after its process ended.
    pub(crate) fn reopen(&mut self, called: Moment, mut power_cut: bool) {
        power_cut |= self.folder.open(&mut self.faults, &mut self.random);
        let wall_ahead = self.env.wall_ahead();
        let what = What::Restart(Restart { power_cut, wall_ahead });
        let ended = self.moment();
        let event = Event { process: 0, called, ended, answer: Answer::Ok, commit: None, what };
        self.recorder.add(event);
        self.trace.note(format_args!("{:?} open, wall clock {}", ended.at, self.env.now()));
    }
}
