//! Judges readings of events: what is shown, in which order, and that nothing is passed over.

use std::collections::BTreeMap;

use onward_core::{MessageId, Position, ReadFrom};

use super::streams::additions;
use super::{Answer, Event, EventsRead, FaultKind, History, Report, SeenEvent, What};

/// Every event that anybody read, by its place.
pub(super) struct Known<'a>(BTreeMap<Position, (&'a SeenEvent, &'a Event)>);

impl Known<'_> {
    pub(super) fn at(&self, position: Position) -> &SeenEvent {
        self.0[&position].0
    }

    /// Places of events between two places, both left out.
    pub(super) fn between(&self, from: Position, to: Position) -> impl Iterator<Item = Position> {
        let from = Position(from.0 + 1);
        let to = to.max(from);
        self.0.range(from..to).map(|(position, _)| *position)
    }

    /// Whether a truncation may have removed an event; of one whose revision nobody knows, any may.
    pub(super) fn may_be_truncated(&self, history: &History, stream: &str, id: &MessageId) -> bool {
        let seen = self.0.values().find(|(seen, _)| seen.id == *id && seen.stream == stream);
        truncations(history, stream).any(|(_, before)| seen.is_none_or(|(seen, _)| seen.revision < before))
    }
}

impl EventsRead {
    /// Whether it began at the beginning of all and went to the end.
    pub(super) fn covers_all(&self) -> bool {
        self.stream.is_none() && self.from == ReadFrom::Start && !self.backward && self.next.is_none()
    }

    /// Whether it went over this place, if anything was there.
    fn covers(&self, position: Position, revision: u64) -> bool {
        let last = self.events.last().filter(|_| self.next.is_some());
        let begun = match (self.from, self.backward) {
            (ReadFrom::Start, backward) => !backward,
            (ReadFrom::End, backward) => backward,
            (ReadFrom::Position(from), false) => position >= from,
            (ReadFrom::Position(from), true) => position <= from,
            (ReadFrom::Revision(from), false) => revision >= from,
            (ReadFrom::Revision(from), true) => revision <= from,
            (ReadFrom::Time(_), _) => false,
        };
        let reached = match (last, self.backward) {
            (None, _) => self.next.is_none(),
            (Some(last), false) => position <= last.position,
            (Some(last), true) => position >= last.position,
        };
        begun && reached
    }
}

fn truncations<'a>(history: &'a History, of: &'a str) -> impl Iterator<Item = (&'a Event, u64)> {
    history.events.iter().filter(|event| event.maybe()).filter_map(move |event| match &event.what {
        What::Truncate { stream, before } if stream == of => Some((event, *before)),
        _ => None,
    })
}

/// Judges every reading; answers what was seen in all of them together.
pub(super) fn check_reads<'a>(history: &'a History, report: &mut Report) -> Known<'a> {
    let mut known = Known(BTreeMap::new());
    let reads = || {
        history.events.iter().filter(|event| event.answer == Answer::Ok).filter_map(|event| {
            match &event.what {
                What::ReadEvents(read) => Some((event, read)),
                _ => None,
            }
        })
    };
    let mut places = BTreeMap::new();
    for (event, read) in reads() {
        order(read, report);
        for seen in &read.events {
            let (first, _) = *known.0.entry(seen.position).or_insert((seen, event));
            let place = *places.entry((&seen.stream, seen.revision)).or_insert(seen.position);
            if first != seen || place != seen.position {
                let what = format!("{seen:?} was read as {first:?} before");
                report.fault(FaultKind::Revision, &[&seen.id], what);
            }
            shown(history, event, seen, report);
        }
    }
    for (event, read) in reads() {
        nothing_skipped(history, &known, event, read, report);
        nothing_lost(history, event, read, report);
    }
    known
}

/// Places rise or fall; a stream's revisions follow each other without a gap.
fn order(read: &EventsRead, report: &mut Report) {
    for pair in read.events.windows(2) {
        let (first, second) = if read.backward { (&pair[1], &pair[0]) } else { (&pair[0], &pair[1]) };
        let follows = read.stream.is_none() || second.revision == first.revision + 1;
        if second.position <= first.position || !follows {
            let what = format!("{second:?} is read behind {first:?}");
            report.fault(FaultKind::Revision, &[&second.id], what);
        }
    }
}

/// Only what was appended is shown, and nothing that was truncated before.
fn shown(history: &History, read: &Event, seen: &SeenEvent, report: &mut Report) {
    let mut written = additions(history)
        .filter(|(event, addition)| addition.stream == seen.stream && event.called < read.ended);
    if !written.any(|(_, a)| a.events.iter().any(|mark| mark.id == seen.id && mark.content == seen.content)) {
        let what = format!("{seen:?} was read and never appended so");
        report.fault(FaultKind::Phantom, &[&seen.id], what);
    }
    let mut gone = truncations(history, &seen.stream).filter(|(event, before)| {
        event.answer == Answer::Ok && event.ended < read.called && seen.revision < *before
    });
    if let Some((event, _)) = gone.next() {
        let what = format!("{seen:?} was read, and truncated at {:?}", event.ended.at);
        report.fault(FaultKind::AfterSettled, &[&seen.id], what);
    }
}

/// A reading shows whatever anybody has read where it passed by: who follows the store never misses one.
fn nothing_skipped(
    history: &History,
    known: &Known<'_>,
    event: &Event,
    read: &EventsRead,
    report: &mut Report,
) {
    let reached = read.events.last().filter(|_| !read.backward).map(|last| last.position);
    for (position, (seen, first)) in &known.0 {
        let of = read.stream.as_ref().is_none_or(|stream| *stream == seen.stream);
        let passed = reached.is_some_and(|reached| *position < reached) || first.ended < event.called;
        let there = || read.events.iter().any(|event| event.position == *position);
        if of
            && passed
            && read.covers(*position, seen.revision)
            && !there()
            && !gone(history, event, &seen.stream, seen.revision)
        {
            let what = format!("{seen:?} was passed over by a reading at {:?}", event.called.at);
            report.fault(FaultKind::Skipped, &[&seen.id], what);
        }
    }
}

/// What an answered append wrote is read from then on.
fn nothing_lost(history: &History, event: &Event, read: &EventsRead, report: &mut Report) {
    let sure =
        additions(history).filter(|(append, _)| append.answer == Answer::Ok && append.ended < event.called);
    for (append, addition) in
        sure.filter(|(_, a)| read.stream.as_ref().is_none_or(|stream| *stream == a.stream))
    {
        let Some(answer) = addition.answer else { continue };
        if !read.covers(answer.position, answer.last_revision)
            || gone(history, event, &addition.stream, answer.last_revision)
        {
            continue;
        }
        let last = addition.events.last();
        if let Some(last) = last.filter(|last| !read.events.iter().any(|seen| seen.id == last.id)) {
            let what = format!(
                "{}: was appended at {:?} as {answer:?} and is not read",
                addition.stream, append.ended.at
            );
            report.fault(FaultKind::Lost, &[&last.id], what);
        }
    }
}

/// Whether a truncation may have removed an event before a call was answered.
pub(super) fn gone(history: &History, read: &Event, stream: &str, revision: u64) -> bool {
    truncations(history, stream).any(|(event, before)| event.called < read.ended && revision < before)
}
