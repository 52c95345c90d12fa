//! What the clients do next, as the seed says.

use std::time::Duration;

use onward_core::{
    Holder, Inlet, LeaseRequest, LeaseToken, Message, MessageId, Position, RequestId, WeightedInlet,
};
use onward_sim::history::{How, Sent};
use onward_sim::{Random, SimEnv};

use super::calls::{Ask, process_id};
use super::parts::Part;
use super::queues::{LEASE, inlet, worked_on};
use super::streams::Streams;

/// A lease that a worker holds.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) token: LeaseToken,
    pub(crate) message: Message,
    /// It works on longer than its lease lasts.
    pub(crate) stalls: bool,
}

/// One client: what it knows, and whether it waits for an answer is the run's business.
#[derive(Debug)]
pub(crate) struct Client {
    /// The start of its process; a client that vanishes comes back as another process.
    pub(crate) process: u32,
    pub(crate) works: bool,
    pub(crate) held: Vec<Held>,
}

/// What all clients of a run share.
#[derive(Debug)]
pub(crate) struct Workload {
    pub(crate) random: Random,
    pub(super) env: SimEnv,
    pub(super) messages: u64,
    pub(super) processes: u32,
    /// What was sent lately, to be sent again.
    pub(super) lately: Vec<(Message, Sent)>,
    /// What was published lately, and to which topic.
    pub(super) published: Vec<(Message, Sent, &'static str)>,
    /// Places of messages in topics.
    pub(crate) places: Vec<(&'static str, Position)>,
    pub(crate) streams: Streams,
    /// The schedules as they were put first.
    pub(crate) plans: Vec<Part>,
    /// Leases that ended, or may have: to be tried nevertheless.
    pub(super) stale: Vec<LeaseToken>,
    /// Messages that were rejected: dead letters, mostly.
    pub(super) rejected: Vec<(Inlet, MessageId)>,
    /// Processes that vanished and were not reported yet.
    pub(super) vanished: Vec<u32>,
    /// The latest revision that was seen of each record.
    pub(crate) revisions: [Option<u64>; 3],
    /// Messages with an expiry are sent only where nobody touches the wall clock.
    pub(crate) expiry: bool,
    /// Messages are large, so that a disk without space is full soon.
    pub(crate) large: bool,
}

const STALE_MAX: usize = 16;

impl Workload {
    pub(crate) fn new(seed: u64, env: SimEnv, expiry: bool) -> Workload {
        let random = Random::new(seed ^ 0x0057_0AD5);
        let (lately, stale, vanished, rejected) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (messages, processes, revisions) = (0, 0, [None; 3]);
        Workload {
            random,
            env,
            messages,
            processes,
            lately,
            published: Vec::new(),
            places: Vec::new(),
            streams: Streams::default(),
            plans: Vec::new(),
            stale,
            rejected,
            vanished,
            revisions,
            expiry,
            large: false,
        }
    }

    pub(crate) fn client(&mut self, works: bool) -> Client {
        self.processes += 1;
        Client { process: self.processes, works, held: Vec::new() }
    }

    /// The next call of an idle client; nothing when it only changes itself.
    pub(crate) fn next(&mut self, client: &mut Client) -> Option<Ask> {
        match client.works {
            true if client.held.is_empty() || self.random.once_in(5) => Some(self.lease(client)),
            true => self.work(client),
            false => Some(self.produce()),
        }
    }

    pub(crate) fn request(&mut self, client: &Client, inlets: Vec<Inlet>, count_max: u32) -> LeaseRequest {
        let request_id = RequestId(u128::from(self.random.number()) << 64 | u128::from(self.random.number()));
        let holder = Holder { worker: "worker".into(), process: process_id(client.process) };
        let inlets = inlets.into_iter().map(|inlet| WeightedInlet { inlet, weight: 1 }).collect();
        let (wait, lease, accepts) = (Duration::ZERO, None, Vec::new());
        LeaseRequest { request_id, inlets, count_max, bytes_max: 1 << 20, wait, lease, holder, accepts }
    }

    fn lease(&mut self, client: &Client) -> Ask {
        let first = self.random.below(worked_on().count() as u64) as usize;
        let count = 1 + self.random.below(4) as usize;
        let inlets = worked_on().cycle().skip(first).take(count).map(inlet).collect();
        let most = 1 + self.random.below(4) as u32;
        let mut request = self.request(client, inlets, most);
        request.wait = Duration::from_millis(self.random.below(3) * 1_000);
        request.lease =
            self.random.once_in(3).then(|| Duration::from_millis(2_000 + self.random.below(9_000)));
        Ask::Lease(Box::new(request))
    }

    /// Goes on with one of the messages that the worker holds.
    fn work(&mut self, client: &mut Client) -> Option<Ask> {
        let place = self.random.below(client.held.len() as u64) as usize;
        if client.held[place].stalls && !self.random.once_in(12) {
            return None;
        }
        match self.random.below(24) {
            0 => {
                client.held[place].stalls = true;
                None
            }
            1 => {
                self.vanish(client);
                None
            }
            2 | 3 => {
                let tokens = client.held.iter().map(|held| held.token.clone()).collect();
                Some(Ask::Extend(tokens, Duration::from_millis(3_000 + self.random.below(9_000))))
            }
            4 if !self.stale.is_empty() => Some(self.settle_stale()),
            choice => {
                let held = client.held.swap_remove(place);
                self.keep_stale(held.token.clone());
                let how = match choice {
                    5..=7 => How::Retry,
                    8 | 9 => How::Release,
                    10 => How::Reject,
                    _ => How::Ack,
                };
                if how == How::Reject {
                    self.rejected.push((held.token.inlet.clone(), held.message.id.clone()));
                }
                let mut parts = vec![self.settle(held.token, how)];
                if how == How::Ack && self.random.once_in(4) {
                    parts.push(self.follow_up(&held.message));
                }
                if how == How::Ack && self.random.once_in(8) {
                    parts.push(self.put_part());
                }
                if how == How::Ack && self.random.once_in(5) {
                    parts.push(if self.random.once_in(2) { self.append() } else { self.publish() });
                }
                Some(Ask::Commit(parts))
            }
        }
    }

    /// A message that is caused by the one being acknowledged.
    fn follow_up(&mut self, cause: &Message) -> Part {
        match self.send() {
            Part::Send(mut message, sent) => {
                message.causation_id = Some(cause.id.as_str().into());
                Part::Send(message, sent)
            }
            other => other,
        }
    }

    fn settle(&mut self, token: LeaseToken, how: How) -> Part {
        let delay = Duration::from_millis(self.random.below(12_000));
        let not_before = self.env.elapsed() + delay;
        Part::Settle { token, how, delay, not_before }
    }

    fn settle_stale(&mut self) -> Ask {
        let place = self.random.below(self.stale.len() as u64) as usize;
        let token = self.stale[place].clone();
        if self.random.once_in(3) {
            return Ask::Extend(vec![token], LEASE);
        }
        let how = if self.random.once_in(3) { How::Retry } else { How::Ack };
        Ask::Commit(vec![self.settle(token, how)])
    }

    pub(crate) fn keep_stale(&mut self, token: LeaseToken) {
        if self.stale.len() == STALE_MAX {
            self.stale.remove(0);
        }
        self.stale.push(token);
    }

    /// A worker's process goes away without a word, and another one starts.
    fn vanish(&mut self, client: &mut Client) {
        for held in client.held.drain(..) {
            self.keep_stale(held.token);
        }
        self.vanished.push(client.process);
        self.processes += 1;
        client.process = self.processes;
    }
}
