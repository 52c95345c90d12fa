//! The end of a run: everything is put right and worked off, then looked through and judged.

use std::collections::BTreeMap;
use std::time::Duration;

use onward_core::{Engine, EventRead, EventScope, Inlet, MessageId, MessageQuery, MessageState, Stats};
use onward_sim::Loss;
use onward_sim::history::{History, How, Left, check};

use super::calls::{Ask, Reply, bulk};
use super::parts::Part;
use super::queues::{self, worked_on};
use super::run::{Run, Verdict, short};
use super::{plans, streams, topics};

/// Rounds of work after which a run is given up.
const DRAIN_ROUNDS_MAX: u32 = 400;

impl Run {
    /// Makes a call on behalf of the drain and takes it down.
    pub(super) fn ask(&mut self, ask: Ask) -> Option<Reply> {
        let client = self.clients.len() - 1;
        self.call(client, ask);
        for _ in 0..1_000 {
            let stalled = {
                let folder = &self.folder;
                self.executor.run_some(1_000, &mut || folder.step())
            };
            let call = self.clients[client].1.as_ref()?;
            let ended = call.reply.borrow_mut().take();
            if let Some((ended, reply)) = ended {
                let call = self.clients[client].1.take()?;
                self.trace.note(format_args!("{:?} client {client} answered {}", ended.at, short(&reply)));
                self.look_for_surprises(&reply);
                self.take_down(client, &call, ended, Some(&reply));
                return Some(reply);
            }
            if stalled {
                self.pass(self.env.next_timer().unwrap_or(Duration::from_millis(100)));
            }
        }
        self.surprises.push("a call of the drain was never answered".to_owned());
        None
    }

    /// Ends everything that runs, puts everything right, and works until nothing is left to be worked on.
    pub(crate) fn drain(&mut self) {
        while self.clients.iter().any(|(_, call)| call.is_some()) {
            if self.run_some(1_000) {
                (0..self.clients.len()).for_each(|client| self.lose_answer(client));
            }
        }
        self.env.right_wall();
        self.faults.over();
        let loss = Loss::Random(self.random.number());
        self.crash(loss);
        let process = self.workload.client(true);
        self.clients.push((process, None));
        self.ask(Ask::Commit(plans::remove_all()));
        for name in worked_on() {
            self.ask(Ask::Commit(vec![Part::Resume { inlet: queues::inlet(name) }]));
        }
        for round in 0..DRAIN_ROUNDS_MAX {
            if !self.drain_round(round) {
                return;
            }
        }
        self.surprises.push(format!("not drained after {DRAIN_ROUNDS_MAX} rounds"));
    }

    /// Works on what there is; answers whether anything is unfinished.
    fn drain_round(&mut self, round: u32) -> bool {
        let inlets = worked_on().map(queues::inlet).collect();
        let client = self.clients.len() - 1;
        let request = self.workload.request(&self.clients[client].0, inlets, 100);
        let mut acks = Vec::new();
        if let Some(Reply::Lease(Ok(deliveries))) = self.ask(Ask::Lease(Box::new(request))) {
            acks.extend(deliveries.into_iter().map(|delivery| Part::Settle {
                token: delivery.token,
                how: How::Ack,
                delay: Duration::ZERO,
                not_before: Duration::ZERO,
            }));
        }
        let worked = !acks.is_empty();
        if worked {
            self.ask(Ask::Submit(acks));
        }
        let mut unfinished = false;
        for name in worked_on() {
            if let Some(Reply::Count(Ok(stats))) = self.ask(Ask::Count(queues::inlet(name))) {
                unfinished |= stats.iter().any(|stats| to_come(stats) > 0);
            }
        }
        if unfinished && !worked {
            // What hangs behind a dead head of its key comes only once that is moved back.
            for name in ["wait", "news:wait"].into_iter().filter(|_| round % 4 == 3) {
                let (inlet, bulk) = (queues::inlet(name), bulk(&mut self.workload.random));
                self.ask(Ask::Commit(vec![Part::Redrive { inlet, bulk }]));
            }
            // A due time that was given before the wall clock was put back may come an hour late.
            self.pass(Duration::from_secs(if round < 60 { 5 } else { 60 }));
        }
        unfinished
    }

    /// What is still there, found by looking.
    fn left(&mut self) -> BTreeMap<(Inlet, MessageId), Left> {
        let mut left = BTreeMap::new();
        let states = [
            (MessageState::Dead, Left::Dead),
            (MessageState::Waiting, Left::Unfinished),
            (MessageState::Delayed, Left::Unfinished),
            (MessageState::Leased, Left::Unfinished),
        ];
        for (name, (state, what)) in worked_on().flat_map(|name| states.map(|state| (name, state))) {
            let (inlet, engine) = (queues::inlet(name), self.folder.engine());
            let query = MessageQuery::state(inlet.clone(), state, 1_000);
            match self.complete(async move { engine.find(query).await }) {
                Some(Ok(page)) => {
                    left.extend(page.items.into_iter().map(|view| ((inlet.clone(), view.message.id), what)));
                }
                other => self.surprises.push(format!("find {state} in {name}: {other:?}")),
            }
        }
        left
    }

    pub(crate) fn verdict(mut self) -> Verdict {
        let left = Some(self.left());
        for index in 0..3 {
            self.ask(Ask::Read(queues::record_key(index)));
        }
        for topic in topics::TOPICS {
            self.ask(Ask::Events(Box::new(streams::topic_read(topic))));
        }
        self.ask(Ask::Events(Box::new(EventRead::all_of(EventScope::All))));
        let history = History { left, ..self.recorder.history(queues::contract()) };
        let report = check(&history);
        self.faults.counters.count_up(&history);
        self.trace.note(format_args!("{report}"));
        let (surprises, counters) = (self.surprises, self.faults.counters);
        Verdict { report, surprises, counters, calls: self.calls, trace: self.trace }
    }
}

/// What an inlet has still to do, as its numbers tell.
fn to_come(stats: &Stats) -> u64 {
    let books = &stats.books;
    books.waiting + books.leased + books.delayed + stats.lag.map_or(0, |lag| lag.unreached)
}
