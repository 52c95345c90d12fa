//! On the way in: payloads are stored, then the messages that refer to them are committed.

use super::{CLAIM_HEADER, ClaimCheck, Reference, payloads::Owner};
use crate::Destination;
use onward_core::{Error, Message, Op, Payload, Prepared, Receipt, Result, RetryHint};

/// A payload that was stored for one operation of a commit.
struct Aside {
    op: usize,
    owner: Owner,
    serial: String,
}

impl ClaimCheck {
    /// Pure: the operations are checked as the engine will see them, with stand-ins for the references.
    pub(super) fn check(&self, ops: Vec<Op>) -> Result<Prepared> {
        if let Some(message) = ops.iter().filter_map(message).find(|m| m.headers.contains_key(CLAIM_HEADER)) {
            return Err(Error::invalid("has the header of the claim check")
                .at(format!("{}, {CLAIM_HEADER}", message.id))
                .mend("leave it out: give the data itself"));
        }
        if !ops.iter().any(|op| self.goes_aside(op)) {
            return self.inner.prepare(ops);
        }
        let serial = "00000000-0000-7000-8000-000000000000";
        let stand_in = |op: &Op| match self.goes_aside(op) {
            true => {
                replace(op.clone(), |message| Reference::stand_in(&message.data).put_into(message, serial))
            }
            false => Ok(op.clone()),
        };
        self.inner.prepare(ops.iter().map(stand_in).collect::<Result<_>>()?)?;
        let capabilities = onward_core::Engine::capabilities(self);
        Prepared::check(ops, &capabilities, self.env.now())
    }

    fn goes_aside(&self, op: &Op) -> bool {
        message(op).is_some_and(|message| message.data.as_bytes().len() > self.over_bytes)
    }

    pub(super) async fn commit_aside(&self, prepared: Prepared) -> Result<Vec<Receipt>> {
        let (prepared, aside) = self.put_aside(prepared).await?;
        let answer = self.inner.commit(prepared).await;
        self.tidy(aside, &answer).await;
        answer
    }

    pub(super) async fn submit_aside(&self, commits: Vec<Prepared>) -> Result<Vec<Result<Vec<Receipt>>>> {
        let mut ready = Vec::new();
        let mut puts = Vec::new();
        for commit in commits {
            puts.push(self.put_aside(commit).await.map(|(prepared, aside)| {
                ready.push(prepared);
                aside
            }));
        }
        let mut answers = self.inner.submit(ready).await?.into_iter();
        let mut results = Vec::with_capacity(puts.len());
        for put in puts {
            let answer = match put {
                Err(error) => Err(error),
                Ok(aside) => {
                    let none = || Err(Error::unknown("a commit without an answer"));
                    let answer = answers.next().unwrap_or_else(none);
                    self.tidy(aside, &answer).await;
                    answer
                }
            };
            results.push(answer);
        }
        Ok(results)
    }

    /// The commit as the engine takes it, once its large payloads are stored.
    async fn put_aside(&self, prepared: Prepared) -> Result<(Prepared, Vec<Aside>)> {
        if !prepared.ops().iter().any(|op| self.goes_aside(op)) {
            return Ok((prepared, Vec::new()));
        }
        let actor = prepared.actor().map(str::to_owned);
        let (mut ops, mut aside) = (Vec::new(), Vec::new());
        for (index, op) in prepared.into_ops().into_iter().enumerate() {
            let large = self.goes_aside(&op).then(|| owner(&op)).flatten();
            let Some((owner, data)) = large else {
                ops.push(op);
                continue;
            };
            let reference = Reference::to(&data);
            let serial = self.payloads.put(&owner, data.as_bytes().clone(), &*self.env).await?;
            ops.push(replace(op, |message| reference.put_into(message, &serial))?);
            aside.push(Aside { op: index, owner, serial });
        }
        let prepared = self.inner.prepare(ops)?;
        Ok((if let Some(actor) = actor { prepared.by(&actor) } else { prepared }, aside))
    }

    /// Removes what was stored for nothing: the commit was refused, or the message was there already. What fails here,
    /// and what an unknown outcome leaves, is left to the collection.
    async fn tidy(&self, aside: Vec<Aside>, answer: &Result<Vec<Receipt>>) {
        for Aside { op, owner, serial } in aside {
            let unused = match answer {
                Ok(receipts) => matches!(receipts.get(op), Some(Receipt::Accepted(a)) if a.duplicate),
                Err(error) => error.retry_hint() != RetryHint::Unknown,
            };
            if unused {
                let _ = self.payloads.remove_of(&owner, &serial).await;
            }
        }
    }
}

fn message(op: &Op) -> Option<&Message> {
    match op {
        Op::Enqueue { message, .. } | Op::Publish { message, .. } => Some(message),
        _ => None,
    }
}

/// Whose payload it is, and the payload.
fn owner(op: &Op) -> Option<(Owner, Payload)> {
    let to = match op {
        Op::Enqueue { queue, .. } => Destination::Queue(queue.clone()),
        Op::Publish { topic, .. } => Destination::Topic(topic.clone()),
        _ => return None,
    };
    message(op).map(|message| ((to, message.id.clone()), message.data.clone()))
}

fn replace(op: Op, change: impl FnOnce(Message) -> Result<Message>) -> Result<Op> {
    Ok(match op {
        Op::Enqueue { queue, message } => Op::Enqueue { queue, message: Box::new(change(*message)?) },
        Op::Publish { topic, message } => Op::Publish { topic, message: Box::new(change(*message)?) },
        other => other,
    })
}
