//! Commits of many callers in one call of the server: each keeps its own result.

use crate::{core::Core, ops::gather};
use onward_core::{Error, Name, Op, Prepared, Receipt, Result};
use std::{
    collections::BTreeSet,
    sync::{Arc, Weak},
};
use tokio::sync::{Mutex, mpsc, oneshot};

/// Most commits that wait here; beyond it callers wait for room.
const WAITING_MAX: usize = 4_096;
/// Most commits of one call of the server.
const TOGETHER_MAX: usize = 1_000;
/// Most bytes of one call of the server.
const BYTES_MAX: usize = 8 * 1024 * 1024;
/// Calls under way at once: while they wait for the disk, the next ones gather.
const PUMPS: usize = 3;

type Answer = Result<Vec<Receipt>>;

/// A commit and who waits for its result.
#[derive(Debug)]
pub(crate) struct Unit {
    ops: Prepared,
    reply: oneshot::Sender<Answer>,
}

/// Where callers leave their commits.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    units: mpsc::Sender<Unit>,
}

impl Group {
    /// Begins to carry commits to the server.
    pub(crate) fn start(core: &Arc<Core>) -> Self {
        let (units, waiting) = mpsc::channel(WAITING_MAX);
        let waiting = Arc::new(Mutex::new(waiting));
        for _ in 0..PUMPS {
            tokio::spawn(pump(Arc::downgrade(core), waiting.clone()));
        }
        Self { units }
    }

    /// Commits together with whatever others commit now.
    pub(crate) async fn commit(&self, ops: Prepared) -> Answer {
        let (reply, answer) = oneshot::channel();
        let closed = || Error::closed("this engine was closed");
        self.units.send(Unit { ops, reply }).await.map_err(|_| closed())?;
        answer.await.unwrap_or_else(|_| Err(Error::unknown("the engine ended before it had an answer")))
    }
}

/// Whether a commit can share a call with others: a single enqueue or settlement.
pub(crate) fn is_simple(ops: &Prepared) -> bool {
    matches!(ops.ops(), [Op::Enqueue { .. } | Op::Settle { .. }])
}

async fn pump(core: Weak<Core>, waiting: Arc<Mutex<mpsc::Receiver<Unit>>>) {
    loop {
        let mut units = Vec::new();
        {
            let mut waiting = waiting.lock().await;
            let Some(first) = waiting.recv().await else { return };
            let mut bytes = size(&first.ops);
            units.push(first);
            while units.len() < TOGETHER_MAX && bytes < BYTES_MAX {
                let Ok(unit) = waiting.try_recv() else { break };
                bytes += size(&unit.ops);
                units.push(unit);
            }
        }
        let Some(core) = core.upgrade() else { return };
        let (ops, replies): (Vec<_>, Vec<_>) = units.into_iter().map(|unit| (unit.ops, unit.reply)).unzip();
        let answers = core.submit(&ops).await;
        // Who is gone needs no answer.
        replies.into_iter().zip(answers).for_each(|(reply, answer)| drop(reply.send(answer)));
    }
}

fn size(ops: &Prepared) -> usize {
    match ops.ops() {
        [Op::Enqueue { message, .. }] => message.size(),
        _ => 0,
    }
}

impl Core {
    /// Independent commits, in order, those of one kind in one call.
    pub(crate) async fn submit(&self, commits: &[Prepared]) -> Vec<Answer> {
        let mut answers: Vec<Answer> = Vec::with_capacity(commits.len());
        let mut from = 0;
        while from < commits.len() {
            let rest = &commits[from..];
            let got = match rest[0].ops() {
                [Op::Enqueue { queue, .. }] => {
                    self.submit_puts(queue, alike(rest, |op| enqueues_to(op, queue))).await
                }
                [Op::Settle { .. }] => self.submit_settles(&rest[..settles(rest)]).await,
                ops => vec![self.commit(ops).await],
            };
            from += got.len().max(1);
            answers.extend(got);
        }
        answers
    }

    async fn submit_puts(&self, queue: &Name, commits: &[Prepared]) -> Vec<Answer> {
        let ops: Vec<&Op> = commits.iter().flat_map(|c| c.ops()).collect();
        let puts = self.puts(queue, &ops, false);
        spread(self.put(puts).await, commits.len(), Receipt::Accepted)
    }

    async fn submit_settles(&self, commits: &[Prepared]) -> Vec<Answer> {
        let ops: Vec<&Op> = commits.iter().flat_map(|c| c.ops()).collect();
        let answers = match gather(&ops, false) {
            Ok(settles) => self.settle(settles).await,
            // One of the tokens is none: each for itself, so that it spoils no other.
            Err(error) if commits.len() == 1 => Err(error),
            Err(_) => {
                let mut answers = Vec::new();
                for commit in commits {
                    answers.push(self.commit(commit.ops()).await);
                }
                return answers;
            }
        };
        spread(answers, commits.len(), Receipt::Settled)
    }
}

fn spread<T>(answers: Result<Vec<Result<T>>>, count: usize, receipt: fn(T) -> Receipt) -> Vec<Answer> {
    match answers {
        Ok(answers) => answers.into_iter().map(|answer| answer.map(|a| vec![receipt(a)])).collect(),
        Err(error) => vec![Err(error); count],
    }
}

fn enqueues_to(op: &Op, name: &Name) -> bool {
    matches!(op, Op::Enqueue { queue, .. } if queue == name)
}

/// The first commits that are one such operation each, within the bounds of one call.
fn alike(commits: &[Prepared], fits: impl Fn(&Op) -> bool) -> &[Prepared] {
    let mut bytes = 0;
    let count = commits.iter().take(TOGETHER_MAX).take_while(|commit| {
        bytes += size(commit);
        bytes < BYTES_MAX && matches!(commit.ops(), [op] if fits(op))
    });
    &commits[..count.count().max(1)]
}

/// How many of the first commits are one settlement each, of different leases.
fn settles(commits: &[Prepared]) -> usize {
    let mut tokens = BTreeSet::new();
    let count = commits.iter().take(TOGETHER_MAX).take_while(|commit| match commit.ops() {
        [Op::Settle { token, .. }] => tokens.insert(token.handle.clone()),
        _ => false,
    });
    count.count().max(1)
}
