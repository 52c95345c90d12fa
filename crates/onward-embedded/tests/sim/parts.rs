//! The parts of a commit: the operation of each, and what the history says of it.

use std::time::Duration;

use onward_core::{
    AppendCondition, BulkId, Event, EventQuery, Failure, Inlet, LeaseToken, Message, MessageId, MessageState,
    Name, Op, Outcome, PurgeWhat, Receipt, RecordExpect, RecordKey, RetryDelay, Schedule, SeekMode, SeekTo,
    Selection, StreamName,
};
use onward_sim::history::{Addition, How, Planned, RecordExpected, Sent, Settled, Sought, What};

use super::calls::{process_id, record_value};
use super::topics;

/// One part of a commit.
#[derive(Clone, Debug)]
pub(crate) enum Part {
    Send(Box<Message>, Sent),
    Settle { token: LeaseToken, how: How, delay: Duration, not_before: Duration },
    Cancel { inlet: Inlet, id: MessageId },
    Redrive { inlet: Inlet, bulk: BulkId },
    Purge { inlet: Inlet, id: MessageId, bulk: BulkId },
    EndProcess { process: u32, died: bool },
    Put { key: RecordKey, value: u64, expected: RecordExpected },
    Publish(Box<Message>, Sent, Name),
    Append(Vec<Event>, Addition),
    Truncate { stream: StreamName, before: u64 },
    Seek { inlet: Inlet, to: SeekTo, again: bool },
    Plan { name: Name, schedule: Option<Box<Schedule>>, planned: Option<Box<Planned>> },
    Pause { inlet: Inlet },
    Resume { inlet: Inlet },
}

impl Part {
    pub(super) fn op(&self) -> Op {
        match self.clone() {
            Self::Send(message, sent) => {
                let Inlet::Queue(queue) = sent.inlet else { unreachable!("only queues are sent to") };
                Op::Enqueue { queue, message }
            }
            Self::Settle { token, how, delay, .. } => Op::Settle { token, outcome: outcome(how, delay) },
            Self::Cancel { inlet, id } => Op::Cancel { inlet, id },
            Self::Redrive { inlet, bulk } => {
                let (selection, spacing) = (Selection::default(), Duration::ZERO);
                Op::Redrive { inlet, selection, spacing, bulk, dry_run: false }
            }
            Self::Purge { inlet, id, bulk } => {
                let selection = Selection { ids: vec![id], ..Selection::default() };
                Op::Purge { inlet, what: PurgeWhat::Dead, selection, bulk, dry_run: false }
            }
            Self::EndProcess { process, died } => Op::EndProcess { process: process_id(process), died },
            Self::Put { key, value, expected } => {
                let expect = match expected {
                    RecordExpected::Any => RecordExpect::Any,
                    RecordExpected::Absent => RecordExpect::Absent,
                    RecordExpected::Revision(revision) => RecordExpect::Revision(revision),
                };
                Op::PutRecord { key, value: record_value(value).into(), expect, ttl: None }
            }
            Self::Publish(message, _, topic) => Op::Publish { topic, message },
            Self::Append(events, addition) => append(events, &addition),
            Self::Truncate { stream, before } => Op::Truncate { stream, before },
            Self::Seek { inlet, to, again } => {
                let mode = if again { SeekMode::Reprocess } else { SeekMode::FillGaps };
                Op::Seek { inlet, to, mode }
            }
            Self::Plan { name, schedule, .. } => Op::PutSchedule { name, schedule },
            Self::Pause { inlet } => Op::Pause { inlet },
            Self::Resume { inlet } => Op::Resume { inlet },
        }
    }

    /// What the history says of it; nothing for what no statement is about.
    pub(super) fn what(&self, receipt: Option<&Receipt>) -> Option<What> {
        Some(match self {
            Self::Send(_, sent) => What::Enqueue(accepted(sent, receipt)),
            Self::Publish(message, sent, topic) => {
                let (topic, takers) = (topic.clone(), topics::takers(topic, message));
                What::Publish { topic, sent: accepted(sent, receipt), takers }
            }
            Self::Append(_, addition) => {
                let mut addition = addition.clone();
                if let Some(Receipt::Appended(answer)) = receipt {
                    addition.answer = Some(*answer);
                }
                What::Append(addition)
            }
            Self::Truncate { stream, before } => {
                What::Truncate { stream: stream.to_string(), before: *before }
            }
            Self::Seek { inlet, again, .. } => {
                let answer = match receipt {
                    Some(Receipt::Sought(sought)) => Some(*sought),
                    _ => None,
                };
                What::Seek(Sought { inlet: inlet.clone(), again: *again, answer })
            }
            Self::Plan { planned, .. } => What::Schedule((**planned.as_ref()?).clone()),
            Self::Settle { token, how, not_before, .. } => {
                let (mut dead, mut already) = (false, false);
                if let Some(Receipt::Settled(settled)) = receipt {
                    (dead, already) = (settled.state == MessageState::Dead, settled.already);
                }
                let (token, how, not_before) = (token.clone(), *how, *not_before);
                What::Settle(Settled { token, how, not_before, dead, already })
            }
            Self::Cancel { inlet, id } => {
                let gone = matches!(receipt, Some(Receipt::Cancelled(onward_core::CancelOutcome::Cancelled)));
                What::Cancel { inlet: inlet.clone(), id: id.clone(), gone }
            }
            Self::Redrive { inlet, .. } => What::Redrive { inlet: inlet.clone(), ids: Vec::new() },
            Self::Purge { inlet, id, .. } => What::Purge { inlet: inlet.clone(), ids: vec![id.clone()] },
            Self::EndProcess { process, .. } => What::EndProcess { process: *process },
            Self::Put { key, value, expected } => {
                let revision = match receipt {
                    Some(Receipt::Recorded { revision }) => Some(*revision),
                    _ => None,
                };
                What::PutRecord { key: key.clone(), value: Some(*value), expected: *expected, revision }
            }
            Self::Pause { .. } | Self::Resume { .. } => return None,
        })
    }
}

fn outcome(how: How, delay: Duration) -> Outcome {
    let failure = Failure::new(onward_core::CauseKind::Transient, "the handler failed");
    match how {
        How::Ack => Outcome::Ack { result: None },
        How::Retry => Outcome::Retry { delay: RetryDelay::After(delay), failure },
        How::Release => Outcome::Release { delay },
        How::Reject => Outcome::Reject { failure },
    }
}

/// What was sent, with what was answered.
fn accepted(sent: &Sent, receipt: Option<&Receipt>) -> Sent {
    let mut sent = sent.clone();
    if let Some(Receipt::Accepted(accepted)) = receipt {
        sent.duplicate_of = accepted.duplicate.then(|| accepted.id.clone());
        sent.position = accepted.position;
    }
    sent
}

fn append(events: Vec<Event>, addition: &Addition) -> Op {
    let condition = addition.absent.as_ref().map(|(tag, after)| {
        let tags = vec![tag.as_str().try_into().expect("a short tag")];
        AppendCondition { query: EventQuery { types: Vec::new(), tags }, after: *after }
    });
    let stream = addition.stream.parse().expect("a constant name");
    Op::Append { stream, events, expected: addition.expected, condition }
}
