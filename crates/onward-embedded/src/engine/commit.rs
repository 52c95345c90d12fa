//! Writing: plan, append, apply, wait.

use super::{Bodies, Core, Inner, Matches, core::refused};
use crate::{
    AppendError, Store, Writer,
    plan::{self, Answer, Draft, Refusal, Work},
};
use onward_core::{
    Error, ErrorKind, Op, PAGE_MAX, Prepared, PurgeWhat, Receipt, Result, Selection, TopologyChange,
    TopologyDiff,
};
use std::sync::Arc;

/// One commit, made ready for planning.
struct Commit {
    works: Vec<Work>,
    actor: Option<Box<str>>,
    bodies: Bodies,
    matches: Matches,
    /// Nothing comes right behind it.
    last: bool,
}

/// What came of one try, and how far the store must be synced before it may be answered.
enum Tried {
    Answered(Result<Vec<Receipt>>, u64, Writer),
    NeedsBodies(Vec<u64>),
    Busy,
}

impl<S: Store> Core<S> {
    pub(super) async fn commit(self: &Arc<Self>, prepared: Prepared) -> Result<Vec<Receipt>> {
        let _running = self.enter()?;
        let mut commit = self.ready(prepared, true)?;
        let (answer, end) = self.commit_one(&mut commit).await?;
        // The store has the messages now: they take no memory while the disk works.
        drop(commit);
        match answer {
            Ok(receipts) => self.durable(end).await.map(|()| receipts),
            Err(error) => {
                self.seen(end).await;
                Err(error)
            }
        }
    }

    pub(super) async fn submit(
        self: &Arc<Self>,
        commits: Vec<Prepared>,
    ) -> Result<Vec<Result<Vec<Receipt>>>> {
        let _running = self.enter()?;
        let mut answers = Vec::with_capacity(commits.len());
        let alone = commits.len() == 1;
        for prepared in commits {
            answers.push(match self.ready(prepared, alone) {
                Ok(mut commit) => self.commit_one(&mut commit).await,
                Err(error) => Err(error),
            });
        }
        let mut results = Vec::with_capacity(answers.len());
        for answer in answers {
            results.push(match answer {
                Ok((Ok(receipts), end)) => self.durable(end).await.map(|()| receipts),
                Ok((Err(error), end)) => {
                    self.seen(end).await;
                    Err(error)
                }
                Err(error) => Err(error),
            });
        }
        Ok(results)
    }

    pub(super) async fn declare(self: &Arc<Self>, change: TopologyChange) -> Result<TopologyDiff> {
        let _running = self.enter()?;
        let (diff, end) = loop {
            let waiting = self.waits.room.notified();
            let tried = {
                let mut inner = self.inner.lock();
                let mut draft = Draft::new();
                let planned = plan::declare(&inner.state, &mut draft, &change, self.clock.skew_us());
                match planned {
                    Err(error) => Ok((Err(error), inner.end)),
                    Ok(diff) => {
                        self.append(&mut inner, &draft, self.clock.now()).map(|()| (Ok(diff), inner.end))
                    }
                }
            };
            match tried {
                Ok(done) => break done,
                Err(AppendError::Busy) => waiting.await,
                Err(error) => return Err(refused(error)),
            }
        };
        match diff {
            Ok(diff) => self.durable(end).await.map(|()| diff),
            Err(error) => {
                self.seen(end).await;
                Err(error)
            }
        }
    }

    fn ready(&self, prepared: Prepared, last: bool) -> Result<Commit> {
        let actor = prepared.actor().map(Box::from);
        let works: Vec<Work> =
            prepared.into_ops().into_iter().map(|op| Work::new(op, &self.marker)).collect();
        for inlet in works.iter().filter_map(looked_at) {
            self.look_ahead(inlet)?;
        }
        let matches = self.match_by_bodies(&works)?;
        Ok(Commit { works, actor, bodies: Bodies::new(), matches, last })
    }

    /// Commits and answers, together with how far the store must be synced for the answer to hold.
    async fn commit_one(&self, commit: &mut Commit) -> Result<(Result<Vec<Receipt>>, u64)> {
        let mut missed = None;
        loop {
            let waiting = self.waits.room.notified();
            match self.try_commit(commit)? {
                Tried::Answered(answer, end, writer) => {
                    if writer == Writer::Appender {
                        self.write_alone();
                    }
                    return Ok((answer, end));
                }
                Tried::NeedsBodies(positions) => {
                    for (position, stored) in self.each_body(&positions) {
                        match stored {
                            Ok(stored) => drop(commit.bodies.insert(position, stored)),
                            // It was moved meanwhile: planned again, the commit asks for the new place.
                            Err(error) if error.kind() == ErrorKind::NotFound && missed != Some(position) => {
                                missed = Some(position);
                            }
                            Err(error) => return Err(error),
                        }
                    }
                }
                Tried::Busy => waiting.await,
            }
        }
    }

    fn try_commit(&self, commit: &Commit) -> Result<Tried> {
        let mut inner = self.inner.lock();
        let inner = &mut *inner;
        let mut draft = std::mem::take(&mut inner.draft);
        draft.clear();
        let tried = self.try_with(inner, &mut draft, commit);
        // The commit holds the messages too: it drops them, without the lock.
        draft.facts.clear();
        inner.draft = draft;
        tried
    }

    fn try_with(&self, inner: &mut Inner, draft: &mut Draft, commit: &Commit) -> Result<Tried> {
        let mut random = || self.env.random();
        let mut ctx = self.context(&mut random, commit.actor.as_deref(), &commit.bodies, &commit.matches);
        let now = ctx.now;
        let mut answers: Vec<Answer> = Vec::with_capacity(commit.works.len());
        plan::fetch(&inner.state, &commit.works);
        for (at, work) in commit.works.iter().enumerate() {
            match plan::work(&inner.state, draft, work, at, &mut ctx) {
                Ok(answer) => answers.push(answer),
                Err(Refusal::NeedsBody(position)) => return Ok(Tried::NeedsBodies(vec![position])),
                Err(Refusal::NeedsBodies(positions)) => return Ok(Tried::NeedsBodies(positions)),
                Err(Refusal::Error(error)) => {
                    let error = place(error, at, work, commit.works.len());
                    return Ok(Tried::Answered(Err(error), inner.end, Writer::Store));
                }
            }
        }
        let writer = self.writer(inner, commit.last, now);
        match self.append_by(writer, inner, draft, now) {
            Ok(()) => {}
            Err(AppendError::Busy) => return Ok(Tried::Busy),
            Err(error) => return Err(refused(error)),
        }
        if draft.facts.is_empty() {
            // Nothing was appended, but a repeat was recognised: it is counted all the same.
            self.after(inner, draft);
        }
        let durability = self.capabilities.durability;
        let receipts =
            answers.into_iter().map(|answer| answer.resolve(&inner.positions, durability)).collect();
        Ok(Tried::Answered(Ok(receipts), inner.end, writer))
    }

    /// Finds out which messages a bulk operation means, where only their bodies tell: reads them without the lock.
    fn match_by_bodies(&self, works: &[Work]) -> Result<Matches> {
        let mut matches = Matches::new();
        for (at, work) in works.iter().enumerate() {
            let Some((inlet, selection, dead)) = bulk_selection(work) else { continue };
            let Some(correlation) = &selection.correlation_id else { continue };
            let candidates =
                self.inner.lock().state.find(inlet).map_or(Vec::new(), |queue| queue.bodies(dead));
            let mut found = hashbrown::HashSet::new();
            for some in candidates.chunks(PAGE_MAX) {
                let positions: Vec<u64> = some.iter().map(|(_, position)| *position).collect();
                for ((seq, _), (_, stored)) in some.iter().zip(self.each_body(&positions)) {
                    match stored {
                        Ok(stored) if stored.message.correlation() == &**correlation => {
                            found.insert(*seq);
                        }
                        Ok(_) => {}
                        // It went meanwhile.
                        Err(error) if error.kind() == ErrorKind::NotFound => {}
                        Err(error) => return Err(error),
                    }
                }
            }
            matches.insert(at, found);
        }
        Ok(matches)
    }
}

fn bulk_selection(work: &Work) -> Option<(&onward_core::Inlet, &Selection, bool)> {
    let Work::Other(op) = work else { return None };
    match &**op {
        Op::Redrive { inlet, selection, .. } => Some((inlet, selection, true)),
        Op::Purge { inlet, selection, what, .. } => Some((inlet, selection, *what == PurgeWhat::Dead)),
        _ => None,
    }
}

/// Where an operation means messages by what they are, which a subscription may not have taken over yet.
fn looked_at(work: &Work) -> Option<&onward_core::Inlet> {
    let Work::Other(op) = work else { return None };
    match &**op {
        Op::Cancel { inlet, .. } | Op::Reschedule { inlet, .. } => Some(inlet),
        Op::Purge { inlet, what: PurgeWhat::Waiting, .. } => Some(inlet),
        _ => None,
    }
}

/// Names the operation that failed, where there are several.
fn place(error: Error, at: usize, work: &Work, of: usize) -> Error {
    if of == 1 {
        return error;
    }
    let name = work.name();
    let inner = error.place().map(|place| format!(", {place}")).unwrap_or_default();
    error.at(format!("operation {} ({name}{inner})", at + 1))
}
