//! What producers and administrators do: send, send again, cancel, move back, pause, write records.

use std::time::Duration;

use onward_core::{Env, Message};
use onward_sim::history::{RecordExpected, Sent, content_mark};

use super::calls::{Ask, bulk};
use super::parts::Part;
use super::queues::{QUEUES, inlet, record_key, worked_on};
use super::workload::Workload;

/// Messages that are remembered, to be sent again.
const LATELY_MAX: usize = 12;

impl Workload {
    pub(super) fn produce(&mut self) -> Ask {
        match self.random.below(40) {
            20..=29 => self.about_topics(),
            30..=38 => self.about_streams(),
            39 => Ask::Commit(vec![self.change_plan()]),
            0 => Ask::Submit((0..=self.random.below(3)).map(|_| self.send()).collect()),
            1 | 2 => Ask::Commit(self.sends(2)),
            3 => self.cancel(),
            4 => self.administer(),
            5 | 6 => self.put(),
            7 => self.read(),
            8 => Ask::Count(inlet(self.any())),
            9 | 10 => Ask::Commit(vec![self.send_again()]),
            _ => Ask::Commit(vec![self.send()]),
        }
    }

    fn queue(&mut self) -> &'static str {
        QUEUES[self.random.below(QUEUES.len() as u64) as usize]
    }

    fn any(&mut self) -> &'static str {
        let place = self.random.below(worked_on().count() as u64) as usize;
        worked_on().nth(place).expect("a place within")
    }

    /// Something that makes a message as long as this run's are.
    pub(super) fn pad(&mut self) -> String {
        let bytes_max = if self.large || self.random.once_in(15) { 5_500 } else { 300 };
        "x".repeat(self.random.below(bytes_max) as usize)
    }

    fn sends(&mut self, least: u64) -> Vec<Part> {
        (0..least + self.random.below(2)).map(|_| self.send()).collect()
    }

    pub(super) fn send(&mut self) -> Part {
        self.messages += 1;
        let name = self.queue();
        let id = format!("m{}", self.messages);
        let pad = self.pad();
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
        let inlet = inlet(self.any());
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

    pub(super) fn put_part(&mut self) -> Part {
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
}
