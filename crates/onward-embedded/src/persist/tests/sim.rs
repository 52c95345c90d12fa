//! The whole engine on a simulated disk and clock, in one thread: whoever waits for the disk writes himself.

use crate::persist::folder::Disks;
use crate::{EmbeddedEngine, OpenOptions, Options};
use onward_core::{
    Accepted, Delivery, Durability, Engine, FindBy, Holder, Inlet, InletConfig, LeaseRequest, LeaseToken,
    Message, MessageQuery, MessageState, MessageView, Op, Outcome, Payload, ProcessId, Receipt, RequestId,
    Result, TopologyChange,
};
use onward_sim::{SimDisk, SimEnv};
use std::{
    collections::BTreeSet,
    future::Future,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

pub(super) const SEGMENT_BYTES: u64 = 32 << 10;

/// An engine that is open.
#[derive(Debug)]
pub(super) struct Sim {
    pub(super) engine: EmbeddedEngine,
    pub(super) env: SimEnv,
}

pub(super) fn options(durability: Durability) -> OpenOptions {
    OpenOptions {
        durability,
        segment_bytes: SEGMENT_BYTES,
        reserve_bytes: 3 * SEGMENT_BYTES,
        snapshot_bytes_min: 4 * SEGMENT_BYTES,
        engine: Options { manual_clock: true, ..Options::default() },
        ..OpenOptions::default()
    }
}

pub(super) fn queue() -> Inlet {
    Inlet::queue("q").unwrap()
}

impl Sim {
    pub(super) fn open(disk: &SimDisk, env: &SimEnv) -> Result<Self> {
        Self::open_as(disk, env, Durability::Fsync)
    }

    pub(super) fn open_as(disk: &SimDisk, env: &SimEnv, durability: Durability) -> Result<Self> {
        let (disks, env) = (Disks::one(Arc::new(disk.clone())), env.restarted());
        let engine = EmbeddedEngine::on(disks, options(durability), Arc::new(env.clone()), true)?;
        Ok(Self { engine, env })
    }

    /// Polls once.
    pub(super) fn poll<T>(&self, future: Pin<&mut (impl Future<Output = T> + ?Sized)>) -> Poll<T> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    /// Drives to the end, writing whenever it waits for the disk. When there is nothing to write, it waits in vain.
    pub(super) fn drive<T>(&self, future: impl Future<Output = T>) -> T {
        let mut future = pin!(future);
        for _ in 0..1000 {
            if let Poll::Ready(done) = self.poll(future.as_mut()) {
                return done;
            }
            // A failure is told to whoever waits.
            let _ = self.engine.inner().store().log.step();
        }
        panic!("it waits for ever")
    }

    pub(super) fn message(&self, id: &str, bytes: usize) -> Message {
        let data = Payload::bytes(vec![id.len() as u8; bytes], "application/octet-stream").unwrap();
        Message::builder("sim.thing").id(id.try_into().unwrap()).data(data).build(&self.env).unwrap()
    }

    pub(super) fn enqueue_op(&self, id: &str, bytes: usize) -> Op {
        let Inlet::Queue(queue) = queue() else { unreachable!() };
        Op::Enqueue { queue, message: Box::new(self.message(id, bytes)) }
    }

    pub(super) fn commit(&self, ops: Vec<Op>) -> Result<Vec<Receipt>> {
        self.drive(self.engine.commit(self.engine.prepare(ops)?))
    }

    pub(super) fn enqueue(&self, id: &str) -> Result<Accepted> {
        match self.commit(vec![self.enqueue_op(id, 300)])?.remove(0) {
            Receipt::Accepted(accepted) => Ok(accepted),
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn declare(&self, config: InletConfig) {
        let Inlet::Queue(name) = queue() else { unreachable!() };
        let change = TopologyChange::Queue { name, config: Box::new(config), update: true };
        self.drive(self.engine.declare(change)).unwrap();
    }

    pub(super) fn request(&self) -> LeaseRequest {
        let holder = Holder { worker: "w".into(), process: ProcessId("p".into()) };
        LeaseRequest::one(queue(), holder, RequestId::generate(&self.env))
    }

    /// One delivery, if there is one.
    pub(super) fn lease(&self) -> Result<Option<Delivery>> {
        Ok(self.drive(self.engine.lease(self.request()))?.pop())
    }

    pub(super) fn settle(&self, token: LeaseToken, outcome: Outcome) -> Result<()> {
        self.commit(vec![Op::Settle { token, outcome }]).map(drop)
    }

    pub(super) fn ack(&self, delivery: &Delivery) -> Result<()> {
        self.settle(delivery.token.clone(), Outcome::Ack { result: None })
    }

    /// Moves time on, and lets the engine do what is due.
    pub(super) fn pass(&self, span: Duration) {
        self.env.advance(span);
        self.engine.inner().tick();
        self.flush();
    }

    /// Writes and syncs what was appended.
    pub(super) fn flush(&self) {
        while self.engine.inner().store().log.step().unwrap_or(false) {}
    }

    pub(super) fn views(&self, state: MessageState) -> Vec<MessageView> {
        let query = MessageQuery { inlet: queue(), by: FindBy::State(state), after: None, limit: 1000 };
        // Before the first enqueue there is no queue.
        self.drive(self.engine.find(query)).map_or(Vec::new(), |page| page.items)
    }

    /// Ids of everything unfinished, each read from the disk.
    pub(super) fn there(&self) -> BTreeSet<String> {
        let states = [MessageState::Waiting, MessageState::Delayed, MessageState::Leased, MessageState::Dead];
        states
            .into_iter()
            .flat_map(|state| self.views(state))
            .map(|view| view.message.id.to_string())
            .collect()
    }
}
