//! Judges schedules: each tick gives one message, none before its time, and none is left out that must not be.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use onward_core::{MessageId, tick_id};

use super::{Answer, Event, FaultKind, History, Moment, Planned, Report, Sent, What};

/// Ticks are looked for so far behind the end of a history.
const BEYOND: Duration = Duration::from_secs(60);

/// The history with each tick's message as if somebody had sent it, so that it is judged as a queue's message.
pub(super) fn with_ticks(mut history: History) -> History {
    let end = end(&history);
    let mut sends = Vec::new();
    for planned in planned(&history).cloned().collect::<Vec<_>>() {
        let seen: BTreeSet<&MessageId> = seen(&history, &planned).map(|(id, _)| id).collect();
        let ticks = ticks(&planned, &history);
        sends.extend(ticks.keys().filter(|id| seen.contains(id)).map(|id| Event {
            process: 0,
            called: Moment::default(),
            ended: end,
            answer: Answer::Unknown,
            commit: None,
            what: What::Enqueue(sent(&planned, id)),
        }));
    }
    history.events.splice(0..0, sends);
    history
}

fn sent(planned: &Planned, id: &MessageId) -> Sent {
    Sent {
        inlet: planned.inlet.clone(),
        id: id.clone(),
        content: planned.content,
        dedup_key: None,
        order_key: None,
        not_before: Duration::ZERO,
        not_after: None,
        duplicate_of: None,
        position: None,
    }
}

pub(super) fn check(history: &History, report: &mut Report) {
    for planned in planned(history) {
        let ticks = ticks(planned, history);
        let mut seen: Vec<(u64, &MessageId, Option<Moment>)> =
            seen(history, planned).filter_map(|(id, at)| Some((*ticks.get(id)?, id, at))).collect();
        seen.sort();
        for (number, id, at) in &seen {
            early(history, planned, *number, id, *at, report);
        }
        let numbers: BTreeSet<u64> = seen.iter().map(|(number, ..)| *number).collect();
        let left_out = (0..numbers.last().copied().unwrap_or(0)).find(|number| !numbers.contains(number));
        if let (true, true, Some(number)) = (history.left.is_some(), planned.complete, left_out) {
            let what = format!("{}: tick {number} never came, later ones did", planned.name);
            report.fault(FaultKind::Tick, &[], what);
        }
    }
}

/// No clock has ever shown the tick's time by then.
fn early(
    history: &History,
    planned: &Planned,
    number: u64,
    id: &MessageId,
    at: Option<Moment>,
    report: &mut Report,
) {
    let Some(at) = at else { return };
    let due = planned.first_at + planned.every * number as u32;
    if at.at + most_ahead(history, at) < due {
        let what = format!("tick {number} of {} is due at {due:?} and came at {:?}", planned.name, at.at);
        report.fault(FaultKind::Early, &[id], what);
    }
}

fn planned(history: &History) -> impl Iterator<Item = &Planned> {
    history.events.iter().filter(|event| event.maybe()).filter_map(|event| match &event.what {
        What::Schedule(planned) => Some(planned),
        _ => None,
    })
}

/// Each possible tick's message, with the tick's number.
fn ticks(planned: &Planned, history: &History) -> BTreeMap<MessageId, u64> {
    let end = end(history);
    let last = end.at + most_ahead(history, end) + BEYOND;
    let number = |number: &u64| planned.first_at + planned.every * *number as u32 <= last;
    let each = (0..).take_while(number);
    each.map(|number| (tick_id(&planned.name, planned.first.plus(planned.every * number as u32)), number))
        .collect()
}

/// Every message of the schedule's queue that anybody saw, with the moment at which it was handed out.
fn seen<'a>(
    history: &'a History,
    planned: &'a Planned,
) -> impl Iterator<Item = (&'a MessageId, Option<Moment>)> {
    let delivered = history.events.iter().filter_map(|event| match &event.what {
        What::Deliver(delivered) if delivered.token.inlet == planned.inlet => {
            Some((&delivered.token.id, Some(event.ended)))
        }
        _ => None,
    });
    let left = history.left.iter().flatten().filter(|((inlet, _), _)| *inlet == planned.inlet);
    delivered.chain(left.map(|((_, id), _)| (id, None)))
}

/// How far the wall clock was ever ahead of the truth by then.
fn most_ahead(history: &History, by: Moment) -> Duration {
    let ahead =
        history.events.iter().filter(|event| event.called < by).filter_map(|event| match event.what {
            What::Clock(ahead) => Some(ahead),
            _ => None,
        });
    Duration::from_micros(ahead.max().unwrap_or(0).max(0) as u64)
}

fn end(history: &History) -> Moment {
    history.events.iter().map(|event| event.ended).max().unwrap_or_default()
}
