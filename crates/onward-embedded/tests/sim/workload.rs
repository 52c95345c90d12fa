//! What the clients do next, as the seed says.

use std::time::Duration;

use onward_core::{
    Env, Holder, Inlet, LeaseRequest, LeaseToken, Message, MessageId, RequestId, WeightedInlet,
};
use onward_sim::history::{How, RecordExpected, Sent, content_mark};
use onward_sim::{Random, SimEnv};

use super::calls::{Ask, Part, bulk, process_id};
use super::queues::{LEASE, QUEUES, inlet, record_key};

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
    env: SimEnv,
    messages: u64,
    processes: u32,
    /// What was sent lately, to be sent again.
    lately: Vec<(Message, Sent)>,
    /// Leases that ended, or may have: to be tried nevertheless.
    stale: Vec<LeaseToken>,
    /// Messages that were rejected: dead letters, mostly.
    rejected: Vec<(Inlet, MessageId)>,
    /// Processes that vanished and were not reported yet.
    vanished: Vec<u32>,
    /// The latest revision that was seen of each record.
    pub(crate) revisions: [Option<u64>; 3],
    /// Messages with an expiry are sent only where nobody touches the wall clock.
    pub(crate) expiry: bool,
    /// Messages are large, so that a disk without space is full soon.
    pub(crate) large: bool,
}

const LATELY_MAX: usize = 12;
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

    fn produce(&mut self) -> Ask {
        match self.random.below(20) {
            0 => Ask::Submit((0..=self.random.below(3)).map(|_| self.send()).collect()),
            1 | 2 => Ask::Commit(self.sends(2)),
            3 => self.cancel(),
            4 => self.administer(),
            5 | 6 => self.put(),
            7 => self.read(),
            8 => Ask::Count(inlet(self.queue())),
            9 | 10 => Ask::Commit(vec![self.send_again()]),
            _ => Ask::Commit(vec![self.send()]),
        }
    }

    fn queue(&mut self) -> &'static str {
        QUEUES[self.random.below(QUEUES.len() as u64) as usize]
    }

    fn sends(&mut self, least: u64) -> Vec<Part> {
        (0..least + self.random.below(2)).map(|_| self.send()).collect()
    }

    fn send(&mut self) -> Part {
        self.messages += 1;
        let name = self.queue();
        let id = format!("m{}", self.messages);
        let bytes_max = if self.large || self.random.once_in(15) { 5_500 } else { 300 };
        let pad = "x".repeat(self.random.below(bytes_max) as usize);
        let mut message = Message::builder("sim.work").json(&serde_json::json!({ "of": id, "pad": pad }));
        message = message.id(id.as_str().try_into().expect("a short id"));
        if matches!(name, "wait" | "aside") && !self.random.once_in(5) {
            message = message.order_key(&format!("key-{}", self.random.below(3)));
        }
        if self.random.once_in(4) {
            message = message.priority(self.random.below(10) as u8);
        }
        if self.random.once_in(8) {
            message = message.dedup_key(&format!("dedup-{id}"));
        }
        let (mut not_before, mut not_after) = (Duration::ZERO, None);
        if self.random.once_in(5) {
            let delay = Duration::from_millis(self.random.below(40_000));
            not_before = self.env.elapsed() + delay;
            message = message.delay(delay);
        }
        if self.expiry && self.random.once_in(15) {
            let ttl = Duration::from_millis(41_000 + self.random.below(60_000));
            not_after = Some(self.env.elapsed() + ttl);
            message = message.ttl(ttl);
        }
        let message = message.build(&self.env).expect("a message within the limits");
        let (dedup_key, order_key) = (message.dedup_key.clone(), message.order_key.clone());
        let (id, content) = (message.id.clone(), content_mark(&message));
        let inlet = inlet(name);
        let sent = Sent {
            inlet,
            id,
            content,
            dedup_key,
            order_key,
            not_before,
            not_after,
            duplicate_of: None,
            position: None,
        };
        if self.lately.len() == LATELY_MAX {
            self.lately.remove(0);
        }
        self.lately.push((message.clone(), sent.clone()));
        Part::Send(Box::new(message), sent)
    }

    fn send_again(&mut self) -> Part {
        if self.lately.is_empty() {
            return self.send();
        }
        let (message, mut sent) = self.lately[self.random.below(self.lately.len() as u64) as usize].clone();
        // A due time is one of the wall clock: what it means when it is sent is what the clock shows then.
        let left = message.due.map(|due| due.since(self.env.now()));
        sent.not_before = left.map_or(Duration::ZERO, |left| self.env.elapsed() + left);
        Part::Send(Box::new(message), sent)
    }

    fn cancel(&mut self) -> Ask {
        match self.send_again() {
            Part::Send(message, sent) => {
                Ask::Commit(vec![Part::Cancel { inlet: sent.inlet, id: message.id.clone() }])
            }
            other => Ask::Commit(vec![other]),
        }
    }

    fn administer(&mut self) -> Ask {
        let inlet = inlet(self.queue());
        Ask::Commit(vec![match self.random.below(6) {
            0 => Part::Redrive { inlet, bulk: bulk(&mut self.random) },
            1 => match self.rejected.pop() {
                Some((inlet, id)) => Part::Purge { inlet, id, bulk: bulk(&mut self.random) },
                None => Part::Pause { inlet },
            },
            2 | 3 => Part::Resume { inlet },
            _ => match self.vanished.pop() {
                Some(process) => Part::EndProcess { process, died: self.random.once_in(2) },
                None => Part::Resume { inlet },
            },
        }])
    }

    fn put(&mut self) -> Ask {
        Ask::Commit(vec![self.put_part()])
    }

    fn put_part(&mut self) -> Part {
        let index = self.random.below(3) as usize;
        let expected = match self.revisions[index] {
            _ if self.random.once_in(4) => RecordExpected::Any,
            None => RecordExpected::Absent,
            Some(revision) => RecordExpected::Revision(revision),
        };
        Part::Put { key: record_key(index), value: self.random.number(), expected }
    }

    fn read(&mut self) -> Ask {
        Ask::Read(record_key(self.random.below(3) as usize))
    }

    pub(crate) fn request(&mut self, client: &Client, inlets: Vec<Inlet>, count_max: u32) -> LeaseRequest {
        let request_id = RequestId(u128::from(self.random.number()) << 64 | u128::from(self.random.number()));
        let holder = Holder { worker: "worker".into(), process: process_id(client.process) };
        let inlets = inlets.into_iter().map(|inlet| WeightedInlet { inlet, weight: 1 }).collect();
        let (wait, lease, accepts) = (Duration::ZERO, None, Vec::new());
        LeaseRequest { request_id, inlets, count_max, bytes_max: 1 << 20, wait, lease, holder, accepts }
    }

    fn lease(&mut self, client: &Client) -> Ask {
        let first = self.random.below(QUEUES.len() as u64) as usize;
        let count = 1 + self.random.below(3) as usize;
        let inlets = QUEUES.iter().cycle().skip(first).take(count).map(|name| inlet(name)).collect();
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
                    5 | 6 | 7 => How::Retry,
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
