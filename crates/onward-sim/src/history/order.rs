//! Judges the order within a key: a later message is not handed out before the earlier one is gone.

use std::collections::BTreeMap;

use onward_core::{Inlet, Key, Position};

use super::lives::{Life, Lives};
use super::{Answer, Event, FaultKind, Moment, Report};

/// A message of a key, and when it was put in.
struct Member<'a> {
    life: &'a Life<'a>,
    send: &'a Event,
    position: Option<Position>,
}

pub(super) fn check(lives: &Lives<'_>, report: &mut Report) {
    let mut keys: BTreeMap<(&Inlet, &Key), Vec<Member<'_>>> = BTreeMap::new();
    for life in lives.each().filter(|life| life.rules.ordered) {
        let sure =
            life.sends.iter().find(|(event, sent)| event.answer == Answer::Ok && sent.duplicate_of.is_none());
        let Some((send, sent)) = sure else { continue };
        // What was sent before with a lost answer may have been accepted then: its place is not known.
        let doubtful = life.sends.iter().any(|(event, _)| event.answer == Answer::Unknown);
        if let (Some(key), false) = (&sent.order_key, doubtful) {
            keys.entry((life.inlet, key)).or_default().push(Member { life, send, position: sent.position });
        }
    }
    for ((_, key), members) in &keys {
        check_key(key, members, report);
    }
}

fn check_key(key: &Key, members: &[Member<'_>], report: &mut Report) {
    for earlier in members {
        let gone = earlier.life.gone_at_the_earliest();
        for later in members.iter().filter(|later| before(earlier, later)) {
            if let Some(overtakes) = overtakes(later, gone) {
                let what = format!(
                    "of the key {key}: {} was handed out at {:?} before {} was gone",
                    later.life.id, overtakes.at, earlier.life.id
                );
                report.fault(FaultKind::Reordered, &[later.life.id, earlier.life.id], what);
            }
        }
    }
}

/// Whether one was accepted before the other for sure.
fn before(earlier: &Member<'_>, later: &Member<'_>) -> bool {
    match (earlier.position, later.position) {
        (Some(earlier), Some(later)) => earlier < later,
        _ => earlier.send.ended < later.send.called,
    }
}

fn overtakes(later: &Member<'_>, gone: Option<Moment>) -> Option<Moment> {
    let mut received = later.life.deliveries.iter().map(|(event, _)| event.ended);
    received.find(|at| gone.is_none_or(|gone| *at < gone))
}
