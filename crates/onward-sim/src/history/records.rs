//! Judges records: revisions rise, conditions held, and nothing that was answered is lost.

use std::collections::BTreeMap;

use onward_core::RecordKey;

use super::{Answer, Event, FaultKind, History, RecordExpected, Report, What};

/// A write of one key.
struct Write<'a> {
    event: &'a Event,
    value: Option<u64>,
    expected: RecordExpected,
    revision: Option<u64>,
}

/// A reading of one key.
struct Read<'a> {
    event: &'a Event,
    found: Option<(u64, u64)>,
}

pub(super) fn check(history: &History, report: &mut Report) {
    let mut keys: BTreeMap<&RecordKey, (Vec<Write<'_>>, Vec<Read<'_>>)> = BTreeMap::new();
    for event in history.events.iter().filter(|event| event.maybe()) {
        match &event.what {
            What::PutRecord { key, value, expected, revision } => {
                let write = Write { event, value: *value, expected: *expected, revision: *revision };
                keys.entry(key).or_default().0.push(write);
            }
            What::GetRecord { key, found } if event.answer == Answer::Ok => {
                keys.entry(key).or_default().1.push(Read { event, found: *found });
            }
            _ => {}
        }
    }
    for (key, (writes, reads)) in &keys {
        revisions(key, writes, report);
        conditions(key, writes, report);
        reads.iter().for_each(|read| check_read(key, writes, read, report));
    }
}

fn revisions(key: &RecordKey, writes: &[Write<'_>], report: &mut Report) {
    for later in writes {
        let earlier = writes.iter().find(|earlier| {
            earlier.event.ended < later.event.called
                && earlier.revision.is_some()
                && later.revision.is_some()
                && earlier.revision >= later.revision
        });
        if let Some(earlier) = earlier {
            let (first, second) = (earlier.revision, later.revision);
            let what = format!("{key}: the revision {second:?} came after {first:?}");
            report.fault(FaultKind::Record, &[], what);
        }
    }
}

/// Two writes that expected the same state can't both have happened.
fn conditions(key: &RecordKey, writes: &[Write<'_>], report: &mut Report) {
    let sure = |write: &&Write<'_>| write.event.answer == Answer::Ok;
    for (index, first) in writes.iter().enumerate().filter(|(_, write)| sure(write)) {
        let RecordExpected::Revision(revision) = first.expected else { continue };
        let same = writes[index + 1..].iter().filter(sure).any(|second| second.expected == first.expected);
        if same {
            let what = format!("{key}: two writes were accepted that expected the revision {revision}");
            report.fault(FaultKind::Record, &[], what);
        }
        let skipped = writes.iter().filter(sure).find(|other| {
            other.revision.is_some_and(|other| other > revision && Some(other) < first.revision)
        });
        if let Some(other) = skipped {
            let (between, at) = (other.revision, first.revision);
            let what = format!("{key}: {at:?} was accepted over {revision} though {between:?} stood there");
            report.fault(FaultKind::Record, &[], what);
        }
    }
}

/// A reading shows a write that may have happened, and none that an answered one had replaced.
fn check_read(key: &RecordKey, writes: &[Write<'_>], read: &Read<'_>, report: &mut Report) {
    let settled =
        |write: &&Write<'_>| write.event.answer == Answer::Ok && write.event.ended < read.event.called;
    let last = writes.iter().filter(settled).max_by_key(|write| write.event.ended);
    let Some((value, revision)) = read.found else {
        let removed = |write: &Write<'_>| {
            write.value.is_none() && last.is_none_or(|last| write.event.ended >= last.event.called)
        };
        if last.is_some_and(|last| last.value.is_some()) && !writes.iter().any(removed) {
            report.fault(FaultKind::Record, &[], format!("{key}: an answered write is not there"));
        }
        return;
    };
    let written = writes.iter().any(|write| {
        let matches = write.revision.is_none_or(|written| written == revision);
        write.value == Some(value) && matches && write.event.called < read.event.ended
    });
    if !written {
        let what = format!("{key}: the value at revision {revision} was never written");
        report.fault(FaultKind::Record, &[], what);
    }
    if last.and_then(|last| last.revision).is_some_and(|last| last > revision) {
        let what = format!("{key}: revision {revision} was read after a later one was answered");
        report.fault(FaultKind::Record, &[], what);
    }
}
