//! A small engine for these tests: it makes facts without planning them, and writes by hand, in one order.

use crate::persist::care::{Care, CareReport, Held};
use crate::persist::folder::Disks;
use crate::persist::recover::{OpenReport, recover};
use crate::persist::snapshot::StorePart;
use crate::persist::snapshot_file;
use crate::persist::{config::log_config, log_store::LogStore};
use crate::test_env::FixedEnv;
use crate::{
    AppendError, At, Class, End, Fact, Given, InletId, Marks, MessageRef, Said, State, Store, Writer,
};
use onward_core::{
    Durability, Env, Holder, Inlet, InletConfig, Message, Payload, Position, ProcessId, RequestId, Result,
    Timestamp,
};
use onward_sim::SimDisk;
use parking_lot::Mutex;
use std::{collections::BTreeSet, sync::Arc};

pub(super) const SECTOR: usize = 512;
/// Small, so that a few messages fill a segment.
pub(super) const SEGMENT_BYTES: u64 = 16 << 10;
pub(super) const INLET: InletId = InletId(0);

/// An open folder on a simulated disk.
#[derive(Debug)]
pub(super) struct Desk {
    pub(super) state: Mutex<State>,
    pub(super) store: Arc<LogStore>,
    pub(super) care: Care,
    pub(super) report: OpenReport,
}

impl Held for Desk {
    fn freeze(&self, beside: &mut dyn FnMut() -> StorePart) -> (State, StorePart) {
        let mut state = self.state.lock();
        (state.frozen(), beside())
    }

    fn write(&self, plan: &mut dyn FnMut(&State) -> Vec<Fact>) -> Result<()> {
        let facts = plan(&self.state.lock());
        if facts.is_empty() { Ok(()) } else { self.put(&facts).map(drop) }
    }
}

/// A message that was enqueued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Sent {
    pub(super) number: u64,
    pub(super) seq: u64,
}

impl Sent {
    pub(super) fn at(self) -> At {
        At { inlet: INLET, message: MessageRef { seq: self.seq, id_hash: self.number } }
    }
}

impl Desk {
    pub(super) fn open(disk: &SimDisk) -> Result<Self> {
        let disks = Disks::one(Arc::new(disk.clone()));
        let env: Arc<dyn Env> = Arc::new(FixedEnv);
        let config = log_config(SEGMENT_BYTES, 0, 7);
        let found = recover(&disks, config, Durability::Fsync, &env, true)?;
        let store = Arc::new(found.store);
        let care = Care::new(disks, store.clone(), SEGMENT_BYTES * 4, found.snapshots);
        let desk = Self { state: Mutex::new(found.state), store, care, report: found.report };
        let opening = desk.state.lock().opening(&mut || 4);
        desk.put(&opening)?;
        if desk.state.lock().next_inlet() == INLET {
            let name = Inlet::queue("desk")?;
            desk.put(&[Fact::Declared { inlet: INLET, name, config: Box::new(InletConfig::default()) }])?;
        }
        desk.sync()?;
        Ok(desk)
    }

    /// Appends and applies; nothing is on the disk yet, unless the log wants to write first. Answers the positions.
    pub(super) fn put(&self, facts: &[Fact]) -> Result<Vec<u64>> {
        match self.append(facts) {
            Err(AppendError::Busy) => {
                self.sync()?;
                self.append(facts)
            }
            done => done,
        }
        .map_err(|refused| onward_core::Error::unavailable(format!("{refused:?}")))
    }

    fn append(&self, facts: &[Fact]) -> std::result::Result<Vec<u64>, AppendError> {
        let mut state = self.state.lock();
        let (time, mut positions) = (self.time(), Vec::new());
        self.store.append(time, Class::Drain, facts, &mut positions, Writer::Store)?;
        facts.iter().zip(&positions).for_each(|(fact, position)| state.apply(fact, *position, time));
        self.store.released(&state.take_freed());
        Ok(positions)
    }

    fn time(&self) -> Timestamp {
        FixedEnv.now()
    }

    /// Writes and syncs everything appended.
    pub(super) fn sync(&self) -> Result<()> {
        while self.store.log.step().map_err(crate::persist::error::log_error)? {}
        Ok(())
    }

    pub(super) fn enqueue(&self, number: u64, bytes: usize) -> Result<Sent> {
        let message = Arc::new(message(number, bytes));
        let marks = Marks { id: number, dedup: number, fingerprint: number };
        let seq = self.put(&[Fact::Enqueued { inlet: INLET, message, marks, skew_us: 0 }])?[0];
        Ok(Sent { number, seq })
    }

    pub(super) fn lease(&self, sent: Sent) -> Result<()> {
        let request = RequestId(u128::from(sent.number));
        let holder = Holder { worker: "w".into(), process: ProcessId("p".into()) };
        let given = vec![Given { at: sent.at(), attempt: 1, nonce: 1 }];
        self.put(&[Fact::Leased { request, holder, terms_us: vec![1_000_000], given }]).map(drop)
    }

    /// Leased and acknowledged, in two units.
    pub(super) fn finish(&self, sent: Sent) -> Result<()> {
        self.lease(sent)?;
        let end = End::Acked { result: None };
        self.put(&[Fact::Settled { at: sent.at(), said: Some(Said::Ack), end }]).map(drop)
    }

    /// The numbers of the messages that are there, each read from the store.
    pub(super) fn there(&self) -> Result<BTreeSet<u64>> {
        let bodies = self.state.lock().bodies_before(u64::MAX);
        bodies.iter().map(|body| Ok(number_of(&self.store.read(body.position)?.message))).collect()
    }

    pub(super) fn step(&self) -> Result<CareReport> {
        self.care.step(self)
    }

    pub(super) fn snapshot(&self) -> Result<Option<u64>> {
        self.care.snapshot_now(self)
    }

    pub(super) fn segments(&self) -> Vec<u32> {
        self.store.log.segments().iter().map(|segment| segment.index).collect()
    }
}

pub(super) fn message(number: u64, bytes: usize) -> Message {
    let data = Payload::bytes(vec![number as u8; bytes], "application/octet-stream").unwrap();
    let id = format!("m{number}").as_str().try_into().unwrap();
    Message::builder("desk.thing").id(id).data(data).build(&FixedEnv).unwrap()
}

fn number_of(message: &Message) -> u64 {
    let number = message.id.as_str()[1..].parse().unwrap();
    assert!(message.data.as_bytes().iter().all(|byte| *byte == number as u8), "a body is another's");
    number
}

/// The snapshots on a disk, newest first.
pub(super) fn snapshots(disk: &SimDisk) -> Vec<Position> {
    snapshot_file::list(disk).unwrap().0
}
