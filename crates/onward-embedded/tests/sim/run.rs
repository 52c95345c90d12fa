//! One run: clients, an engine that dies and comes back, a drain at the end, and the verdict.

use std::cell::RefCell;
use std::future::Future;
use std::rc::Rc;
use std::time::Duration;

use onward_core::{Engine, Error, ErrorKind, TopologyChange};
use onward_sim::history::{Event, Moment, Recorder, Report, What};
use onward_sim::{Random, SimEnv, SimExecutor, TaskId, Trace};

use super::calls::{Ask, Reply, errors, lines, make};
use super::counters::Counters;
use super::faults::Faults;
use super::folder::Folder;
use super::queues::{self, QUEUES};
use super::workload::{Client, Workload};
use super::{plans, topics};

/// Calls that a run makes before it is drained.
pub(crate) const CALLS: u64 = 210;

/// A call under way.
pub(super) struct Call {
    task: TaskId,
    called: Moment,
    ask: Ask,
    pub(super) reply: Rc<RefCell<Option<(Moment, Reply)>>>,
}

/// Everything of one run.
pub(crate) struct Run {
    pub(crate) env: SimEnv,
    pub(crate) trace: Trace,
    pub(crate) executor: SimExecutor,
    pub(crate) folder: Folder,
    pub(crate) workload: Workload,
    pub(crate) faults: Faults,
    pub(super) recorder: Recorder,
    pub(super) clients: Vec<(Client, Option<Call>)>,
    pub(super) random: Random,
    pub(crate) calls: u64,
    commits: u64,
    /// Errors that no fault explains.
    pub(super) surprises: Vec<String>,
}

/// What a run came to.
pub(crate) struct Verdict {
    pub(crate) report: Report,
    pub(crate) surprises: Vec<String>,
    pub(crate) counters: Counters,
    pub(crate) calls: u64,
    pub(crate) trace: Trace,
}

/// Runs a seed from the founding of a folder to the last message.
pub(crate) fn run(seed: u64) -> Verdict {
    let mut run = Run::new(seed);
    run.start();
    while run.calls < CALLS || run.faults.are_to_come() {
        run.turn();
    }
    run.drain();
    run.verdict()
}

impl Run {
    fn new(seed: u64) -> Run {
        let (env, trace) = (SimEnv::new(seed), Trace::default());
        let mut random = Random::new(seed.wrapping_mul(3));
        let faults = Faults::plan(&mut random);
        let mut workload = Workload::new(seed, env.clone(), !faults.touch_the_clock());
        let clients = [false, false, true, true, true].map(|works| (workload.client(works), None));
        Run {
            executor: SimExecutor::new(env.clone(), seed, trace.clone()),
            folder: Folder::new(env.clone()),
            clients: clients.into_iter().collect(),
            recorder: Recorder::default(),
            calls: 0,
            commits: 0,
            surprises: Vec::new(),
            env,
            trace,
            workload,
            faults,
            random,
        }
    }

    fn start(&mut self) {
        self.folder.open(&mut self.faults, &mut self.random);
        let queues = QUEUES.into_iter().chain([plans::TICKS]).map(|name| {
            let (name, config) = (topics::name(name), Box::new(queues::config(name)));
            TopologyChange::Queue { name, config, update: false }
        });
        for change in queues.chain(topics::declarations()) {
            let engine = self.folder.engine();
            let declared = self.complete(async move { engine.declare(change).await });
            declared.expect("no fault yet").expect("what the runs work with can be declared");
        }
        self.workload.plans = plans::put_all(&self.env);
        self.call(0, Ask::Commit(self.workload.plans.clone()));
        while self.clients[0].1.is_some() {
            self.run_some(100);
        }
    }

    /// One step of the world: somebody calls, something runs, time passes, or something breaks.
    fn turn(&mut self) {
        self.faults_now();
        let client = self.random.below(self.clients.len() as u64) as usize;
        if self.clients[client].1.is_none() {
            let next = self.workload.next(&mut self.clients[client].0);
            next.into_iter().for_each(|ask| self.call(client, ask));
        } else if self.random.once_in(40) {
            self.lose_answer(client);
        }
        let turns = self.random.below(12);
        self.run_some(turns);
        if self.random.once_in(3) {
            self.pass_time();
        }
        if self.random.once_in(12) {
            self.care();
        }
    }

    fn pass_time(&mut self) {
        let span = match self.random.below(12) {
            0 => Duration::from_millis(self.random.below(12_000)),
            1 => self.env.next_timer().unwrap_or_default(),
            _ => Duration::from_millis(self.random.below(400)),
        };
        self.env.advance(span);
        // The engine's own clock may run late.
        if !self.random.once_in(6) {
            self.folder.tick();
        }
    }

    pub(super) fn pass(&mut self, span: Duration) {
        self.env.advance(span);
        self.folder.tick();
    }

    /// Takes down what the wall clock shows now.
    pub(crate) fn note_the_clock(&mut self) {
        self.recorder.note(self.env.elapsed(), What::Clock(self.env.wall_ahead()));
    }

    pub(crate) fn run_some(&mut self, turns: u64) -> bool {
        let folder = &self.folder;
        let stalled = self.executor.run_some(turns, &mut || folder.step());
        self.harvest();
        stalled
    }

    pub(crate) fn moment(&self) -> Moment {
        self.recorder.moment(self.env.elapsed())
    }

    pub(super) fn call(&mut self, client: usize, ask: Ask) {
        self.calls += 1;
        self.trace.note(format_args!("{:?} client {client} {ask:?}", self.env.elapsed()));
        let (called, reply) = (self.moment(), Rc::new(RefCell::new(None)));
        let (engine, recorder, env) = (self.folder.engine(), self.recorder.clone(), self.env.clone());
        let (asked, slot) = (ask.clone(), reply.clone());
        let task = self.executor.spawn(async move {
            let answer = make(&*engine, asked).await;
            *slot.borrow_mut() = Some((recorder.moment(env.elapsed()), answer));
        });
        self.clients[client].1 = Some(Call { task, called, ask, reply });
    }

    /// Takes down what was answered.
    pub(super) fn harvest(&mut self) {
        for client in 0..self.clients.len() {
            let answered = self.clients[client].1.as_ref().is_some_and(|call| call.reply.borrow().is_some());
            let Some(call) = answered.then(|| self.clients[client].1.take()).flatten() else { continue };
            let Some((ended, reply)) = call.reply.borrow_mut().take() else { continue };
            self.trace.note(format_args!("{:?} client {client} answered {}", ended.at, short(&reply)));
            self.look_for_surprises(&reply);
            self.take_down(client, &call, ended, Some(&reply));
            self.learn(client, &call.ask, reply);
        }
    }

    pub(super) fn take_down(&mut self, client: usize, call: &Call, ended: Moment, reply: Option<&Reply>) {
        let commit = matches!(&call.ask, Ask::Commit(parts) if parts.len() > 1).then(|| {
            self.commits += 1;
            self.commits
        });
        let (process, called) = (self.clients[client].0.process, call.called);
        for (answer, what) in lines(&call.ask, reply) {
            self.recorder.add(Event { process, called, ended, answer, commit, what });
        }
    }

    pub(super) fn look_for_surprises(&mut self, reply: &Reply) {
        let full = |error: &&&Error| error.kind() == ErrorKind::Full;
        self.faults.counters.refused_full += errors(reply).iter().filter(full).count() as u64;
        let expected = |error: &&&Error| match error.kind() {
            ErrorKind::LeaseLost | ErrorKind::Conflict | ErrorKind::NotFound => true,
            _ => self.faults.explain(error),
        };
        let found: Vec<String> =
            errors(reply).iter().filter(|error| !expected(error)).map(|error| error.to_string()).collect();
        self.surprises.extend(found);
    }

    /// A caller goes away: whether its call happened, it will never know.
    pub(super) fn lose_answer(&mut self, client: usize) {
        let Some(call) = self.clients[client].1.take() else { return };
        self.executor.drop_task(call.task);
        self.faults.counters.lost_answers += 1;
        self.trace.note(format_args!("{:?} client {client} lost its answer", self.env.elapsed()));
        let ended = self.moment();
        self.take_down(client, &call, ended, None);
    }

    fn faults_now(&mut self) {
        if self.faults.is_due(self.calls) {
            super::strike::strike(self);
        }
        super::strike::look_after(self);
        self.faults.have_enough(self.calls, &mut self.random);
    }

    /// Runs one future to its end, with everything else.
    ///
    /// Nothing when it can't end, since nothing moves any more.
    pub(crate) fn complete<T: 'static>(&mut self, future: impl Future<Output = T> + 'static) -> Option<T> {
        let slot = Rc::new(RefCell::new(None));
        let theirs = slot.clone();
        let task = self.executor.spawn(async move {
            let value = future.await;
            *theirs.borrow_mut() = Some(value);
        });
        let mut rounds = 0;
        while !self.executor.is_over(task) && rounds < 1_000 {
            if self.run_some(1_000) {
                self.pass(self.env.next_timer().unwrap_or(Duration::from_millis(100)));
            }
            rounds += 1;
        }
        self.executor.drop_task(task);
        slot.borrow_mut().take()
    }

    /// Notes something that must not be.
    pub(crate) fn surprise(&mut self, what: String) {
        self.surprises.push(what);
    }
}

/// An answer in one line that is the same in each run of a seed.
pub(super) fn short(reply: &Reply) -> String {
    if let Reply::Lease(Ok(deliveries)) = reply {
        let each = deliveries.iter().map(|delivery| {
            let causes: Vec<_> =
                delivery.causes.iter().map(|cause| (cause.attempt, cause.failure.kind)).collect();
            let (token, attempt, lease) = (&delivery.token, delivery.attempt, delivery.lease);
            format!("{token:?} attempt {attempt} for {lease:?} after {causes:?}")
        });
        return each.collect::<Vec<_>>().join(", ");
    }
    let text = format!("{reply:?}");
    text.chars().take(300).collect()
}
