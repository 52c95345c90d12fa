//! Judges appends: revisions follow each other, one winner for each expectation, conditions held, all or none.

use std::collections::BTreeMap;

use onward_core::{Appended, Expected, Position};

use super::streams_read::{Known, check_reads, gone};
use super::{Addition, Answer, Event, FaultKind, History, Report, What};

pub(super) fn check(history: &History, report: &mut Report) {
    let known = check_reads(history, report);
    let mut streams: BTreeMap<&str, Vec<(&Event, &Addition)>> = BTreeMap::new();
    for (event, addition) in additions(history) {
        streams.entry(&addition.stream).or_default().push((event, addition));
    }
    for additions in streams.values() {
        for (event, addition) in additions.iter().filter(|(event, _)| event.answer == Answer::Ok) {
            let Some(answer) = addition.answer else { continue };
            if answer.duplicate {
                repeat(event, addition, additions, report);
            } else {
                expectation(addition, &answer, report);
                condition((event, addition), &answer, &known, history, report);
            }
        }
        winners(additions, report);
    }
    torn(history, &known, report);
}

/// What was appended, or may have been.
pub(super) fn additions(history: &History) -> impl Iterator<Item = (&Event, &Addition)> {
    history.events.iter().filter(|event| event.maybe()).filter_map(|event| match &event.what {
        What::Append(addition) => Some((event, addition)),
        _ => None,
    })
}

/// The receipt has as many revisions as events, at the place that was expected.
fn expectation(addition: &Addition, answer: &Appended, report: &mut Report) {
    let count = answer.last_revision + 1 - answer.first_revision;
    let expected = match addition.expected {
        Expected::NoStream => answer.first_revision == 0,
        Expected::Revision(revision) => answer.first_revision == revision + 1,
        Expected::Exists => answer.first_revision > 0,
        Expected::Any => true,
    };
    if count != addition.events.len() as u64 || !expected {
        let what = format!(
            "{}: {answer:?} answers {} events that expected {:?}",
            addition.stream,
            addition.events.len(),
            addition.expected
        );
        report.fault(FaultKind::Revision, &[], what);
    }
}

/// What is told to be a repeat was appended before.
fn repeat(event: &Event, addition: &Addition, all: &[(&Event, &Addition)], report: &mut Report) {
    let before = all.iter().any(|(first, other)| {
        first.called < event.ended
            && other.answer.is_none_or(|answer| !answer.duplicate)
            && addition.events.iter().all(|event| other.events.contains(event))
    });
    if !before {
        let ids = addition.events.iter().map(|event| &event.id).collect::<Vec<_>>();
        let what = format!("{}: is told to be a repeat and was never appended", addition.stream);
        report.fault(FaultKind::Lost, &ids, what);
    }
}

/// Answered appends of a stream have revisions of their own, which rise with their places.
fn winners(all: &[(&Event, &Addition)], report: &mut Report) {
    let sure = all.iter().filter(|(event, _)| event.answer == Answer::Ok);
    let answers = sure
        .filter_map(|(_, addition)| Some((addition, addition.answer.filter(|answer| !answer.duplicate)?)));
    let mut answers: Vec<_> = answers.collect();
    answers.sort_by_key(|(_, answer)| answer.first_revision);
    for pair in answers.windows(2) {
        let ((first, a), (second, b)) = (&pair[0], &pair[1]);
        let ids = [&first.events[0].id, &second.events[0].id];
        if b.first_revision <= a.last_revision {
            let what = format!("{}: both have the revision {}", first.stream, b.first_revision);
            report.fault(FaultKind::TwoWinners, &ids, what);
        } else if b.position <= a.position {
            let what = format!("{}: {:?} comes behind {:?} and has an earlier place", first.stream, b, a);
            report.fault(FaultKind::Revision, &ids, what);
        }
        if first.events.iter().any(|event| second.events.contains(event)) {
            let what = format!("{}: the same event was appended as {a:?} and as {b:?}", first.stream);
            report.fault(FaultKind::Duplicated, &ids, what);
        }
    }
}

/// Nothing that the condition excludes stood behind its place. What was truncated stands nowhere.
fn condition(
    (event, addition): (&Event, &Addition),
    answer: &Appended,
    known: &Known<'_>,
    history: &History,
    report: &mut Report,
) {
    let Some((tag, after)) = &addition.absent else { return };
    let after = after.unwrap_or(Position(0));
    let bears = |position: &Position| {
        let seen = known.at(*position);
        let own = addition.events.iter().any(|event| event.id == seen.id);
        let mut marks = additions(history).flat_map(|(_, other)| &other.events);
        let gone = || gone(history, event, &seen.stream, seen.revision);
        !own && marks.any(|mark| mark.id == seen.id && mark.tags.contains(tag)) && !gone()
    };
    if let Some(position) = known.between(after, answer.position).find(bears) {
        let id = &known.at(position).id;
        let what = format!("{}: {answer:?} was accepted though {tag} stood at {position:?}", addition.stream);
        report.fault(FaultKind::TwoWinners, &[id, &addition.events[0].id], what);
    }
}

/// Of one append, all is there at the end or nothing.
fn torn(history: &History, known: &Known<'_>, report: &mut Report) {
    let reads = history.events.iter().rev().filter(|event| event.answer == Answer::Ok);
    let last = reads.into_iter().find_map(|event| match &event.what {
        What::ReadEvents(read) if read.covers_all() => Some(read),
        _ => None,
    });
    let (Some(read), true) = (last, history.left.is_some()) else { return };
    for (_, addition) in additions(history) {
        let there = |event: &&super::EventMark| read.events.iter().any(|seen| seen.id == event.id);
        let (here, gone): (Vec<_>, Vec<_>) = addition.events.iter().partition(there);
        let truncated = gone.iter().any(|event| known.may_be_truncated(history, &addition.stream, &event.id));
        if !here.is_empty() && !gone.is_empty() && !truncated {
            let ids = here.iter().chain(&gone).map(|event| &event.id).collect::<Vec<_>>();
            let what = format!("{}: of one append {here:?} is there and {gone:?} is not", addition.stream);
            report.fault(FaultKind::Torn, &ids, what);
        }
    }
}
