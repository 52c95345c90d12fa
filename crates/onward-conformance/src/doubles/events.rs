//! Faults of streams.

use super::{Double, Fault};
use onward_core::{
    Appended, Direction, ErrorKind, EventRead, EventScope, EventSlice, Expected, MessageId, Op, Position,
    ReadFrom, Receipt, Result,
};

impl Double {
    pub(super) fn bend_append(&self, op: Op) -> Op {
        let Op::Append { stream, events, expected, condition } = op else { return op };
        Op::Append {
            stream,
            events,
            expected: if self.is(Fault::IgnoresStreamExpectation) { Expected::Any } else { expected },
            condition: condition.filter(|_| !self.is(Fault::IgnoresAppendCondition)),
        }
    }

    pub(super) async fn append(&self, op: Op) -> Result<Receipt> {
        match (self.fault, self.commit_one(op.clone()).await) {
            (Fault::ForgetsEvents, Ok(Receipt::Appended(appended))) if appended.duplicate => {
                self.commit_one(self.anew(op)?).await
            }
            (Fault::EveryAppendWins, Err(error)) if error.kind() == ErrorKind::Conflict => {
                let revision = error.revision().unwrap_or_default();
                Ok(Receipt::Appended(Appended {
                    first_revision: revision,
                    last_revision: revision,
                    position: Position(0),
                    duplicate: false,
                }))
            }
            (_, answer) => answer,
        }
    }

    /// The same events under new ids.
    fn anew(&self, op: Op) -> Result<Op> {
        let Op::Append { stream, mut events, .. } = op else { return Ok(op) };
        for event in &mut events {
            event.message.id = MessageId::try_from(format!("{}-{}", event.message.id, self.next()))?;
        }
        Ok(Op::Append { stream, events, expected: Expected::Any, condition: None })
    }

    pub(super) async fn read(&self, mut read: EventRead) -> Result<EventSlice> {
        match (self.fault, &mut read.scope) {
            (Fault::ReadsForwardOnly, _) if read.direction == Direction::Backward => {
                read.direction = Direction::Forward;
                read.from = match read.from {
                    ReadFrom::End => ReadFrom::Start,
                    from => from,
                };
            }
            (Fault::IgnoresAsOf, _) => read.as_of = None,
            (Fault::IgnoresTags, EventScope::Query(query)) => query.tags.clear(),
            _ => {}
        }
        let follows = self.is(Fault::SkipsAnEvent) && read.scope == EventScope::All;
        let mut slice = self.inner.read_events(read).await?;
        if follows {
            slice.events.retain(|_| !self.next().is_multiple_of(97));
        }
        Ok(slice)
    }
}
