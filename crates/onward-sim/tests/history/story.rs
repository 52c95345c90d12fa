//! Histories told step by step.

use std::time::Duration;

use onward_core::{Inlet, LeaseToken, MessageId, RecordKey};
use onward_sim::history::{
    Answer, Contract, Delivered, Event, FaultKind, History, How, InletRules, Left, RecordExpected, Recorder,
    Restart, Sent, Settled, What, check,
};

pub(crate) const LEASE: Duration = Duration::from_secs(10);

pub(crate) fn inlet() -> Inlet {
    Inlet::queue("work").unwrap()
}

pub(crate) fn id(text: &str) -> MessageId {
    MessageId::try_from(text).unwrap()
}

/// A history told step by step; each step takes a millisecond.
pub(crate) struct Story {
    pub(crate) recorder: Recorder,
    pub(crate) now: Duration,
    pub(crate) rules: InletRules,
    pub(crate) survive: bool,
    pub(crate) left: Option<Vec<(&'static str, Left)>>,
}

impl Story {
    pub(crate) fn new() -> Story {
        let rules = InletRules { attempts_max: 3, ..InletRules::default() };
        Story {
            recorder: Recorder::default(),
            now: Duration::ZERO,
            rules,
            survive: true,
            left: Some(Vec::new()),
        }
    }

    pub(crate) fn wait(&mut self, seconds: u64) -> &mut Story {
        self.now += Duration::from_secs(seconds);
        self
    }

    pub(crate) fn add(
        &mut self,
        process: u32,
        answer: Answer,
        commit: Option<u64>,
        what: What,
    ) -> &mut Story {
        let called = self.recorder.moment(self.now);
        self.now += Duration::from_millis(1);
        let ended = self.recorder.moment(self.now);
        self.recorder.add(Event { process, called, ended, answer, commit, what });
        self
    }

    pub(crate) fn sent(name: &str) -> Sent {
        Sent {
            inlet: inlet(),
            id: id(name),
            content: 1,
            dedup_key: None,
            order_key: Some("key".try_into().unwrap()),
            not_before: Duration::ZERO,
            not_after: None,
            duplicate_of: None,
            position: None,
        }
    }

    pub(crate) fn send(&mut self, name: &str, answer: Answer) -> &mut Story {
        self.add(1, answer, None, What::Enqueue(Story::sent(name)))
    }

    pub(crate) fn token(name: &str, lease: u8) -> LeaseToken {
        LeaseToken { inlet: inlet(), id: id(name), handle: vec![lease].into() }
    }

    pub(crate) fn deliver(&mut self, name: &str, lease: u8, attempt: u32) -> &mut Story {
        self.deliver_content(name, lease, attempt, 1)
    }

    pub(crate) fn deliver_content(
        &mut self,
        name: &str,
        lease: u8,
        attempt: u32,
        content: u64,
    ) -> &mut Story {
        let token = Story::token(name, lease);
        let what = Delivered { token, attempt, lease: LEASE, content, replay: 0, suspect: false };
        self.add(2, Answer::Ok, None, What::Deliver(what))
    }

    pub(crate) fn settle(&mut self, name: &str, lease: u8, how: How, answer: Answer) -> &mut Story {
        let not_before = self.now + Duration::from_secs(5);
        let dead = how == How::Reject;
        let token = Story::token(name, lease);
        let settled = Settled { token, how, not_before, dead, already: false };
        self.add(2, answer, None, What::Settle(settled))
    }

    pub(crate) fn ack(&mut self, name: &str, lease: u8) -> &mut Story {
        self.settle(name, lease, How::Ack, Answer::Ok)
    }

    pub(crate) fn restart(&mut self, power_cut: bool) -> &mut Story {
        self.add(0, Answer::Ok, None, What::Restart(Restart { power_cut, wall_ahead: 0 }))
    }

    pub(crate) fn put(&mut self, value: u64, expected: RecordExpected, revision: u64) -> &mut Story {
        let (key, value) = (RecordKey::try_from("a").unwrap(), Some(value));
        self.add(1, Answer::Ok, None, What::PutRecord { key, value, expected, revision: Some(revision) })
    }

    pub(crate) fn kinds(&self) -> Vec<FaultKind> {
        let inlets = [(inlet(), self.rules.clone())].into();
        let contract = Contract {
            leases_survive_death: self.survive,
            ended_is_stale: true,
            inlets,
            ..Contract::default()
        };
        let left =
            self.left.as_ref().map(|left| left.iter().map(|(name, l)| ((inlet(), id(name)), *l)).collect());
        let report = check(&History { left, ..self.recorder.history(contract) });
        assert!(report.is_clean() || !report.faults().is_empty());
        report.kinds()
    }

    pub(crate) fn only(&self, kind: FaultKind) {
        assert_eq!(self.kinds(), [kind]);
    }

    pub(crate) fn clean(&self) {
        assert_eq!(self.kinds(), []);
    }
}
