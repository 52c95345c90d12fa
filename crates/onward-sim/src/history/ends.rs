//! Judges how it ended: what was lost, what hangs, torn commits, and the books.

use std::collections::BTreeMap;

use onward_core::{Books, Inlet, MessageId};

use super::lives::{Life, Lives};
use super::topics::Evidence;
use super::{Answer, Event, FaultKind, How, Left, Report, What};

pub(super) fn check(life: &Life<'_>, lives: &Lives<'_>, report: &mut Report) {
    if !lives.drained {
        return;
    }
    if life.left.is_some() && life.sends.iter().all(|(event, _)| !event.maybe()) {
        let what = format!("is in {} and was never sent, or refused", life.inlet);
        return report.fault(FaultKind::Phantom, &[life.id], what);
    }
    match life.left {
        None if life.accepted() && !may_be_gone(life, lives) => {
            let seen = match life.deliveries.last() {
                Some((event, last)) => {
                    format!("last seen at {:?} as attempt {}", event.ended.at, last.attempt)
                }
                None => "never handed out".to_owned(),
            };
            report.fault(FaultKind::Lost, &[life.id], format!("accepted by {}, {seen}", life.inlet));
        }
        Some(Left::Unfinished) => {
            let what = format!("is unfinished in {} though everything was drained", life.inlet);
            report.fault(FaultKind::Stuck, &[life.id], what);
        }
        _ => {}
    }
    if let (Some(left), Some(acked)) = (life.left, acked(life))
        && !life.reborn(acked.called, lives.end)
    {
        let what = format!("was acknowledged at {:?} and is still there ({left:?})", acked.ended.at);
        report.fault(FaultKind::AfterSettled, &[life.id], what);
    }
}

fn acked<'a>(life: &Life<'a>) -> Option<&'a Event> {
    let sure = life.settles.iter().find(|(event, s)| event.answer == Answer::Ok && s.how == How::Ack);
    sure.map(|(event, _)| *event)
}

/// Whether something explains that an accepted message is not there any more.
fn may_be_gone(life: &Life<'_>, lives: &Lives<'_>) -> bool {
    let taken_unseen = |(event, inlets): &(&Event, &[Inlet])| event.maybe() && inlets.contains(life.inlet);
    let once = life.rules.at_most_once && lives.lost_leases.iter().any(taken_unseen);
    let gone = life.gone_at_the_earliest();
    once || gone.is_some_and(|gone| gone.at <= lives.end.at)
}

/// What one commit put in and settled: all of it happened, or none.
#[derive(Default)]
struct Commit<'a> {
    there: Vec<&'a MessageId>,
    missing: Vec<&'a MessageId>,
}

/// Judges commits whose answer was lost; of an answered one, each part is judged by itself.
///
/// `evidence` tells of what went into topics and streams whether it is there.
pub(super) fn check_commits(lives: &Lives<'_>, evidence: &Evidence, report: &mut Report) {
    if !lives.drained {
        return;
    }
    let mut commits: BTreeMap<u64, Commit<'_>> = BTreeMap::new();
    for event in lives.events.iter().filter(|event| event.answer == Answer::Unknown) {
        let (Some(number), Some((id, happened))) =
            (event.commit, happened(event, lives).or_else(|| stored(event, evidence)))
        else {
            continue;
        };
        let commit = commits.entry(number).or_default();
        if happened { commit.there.push(id) } else { commit.missing.push(id) }
    }
    for commit in commits.values().filter(|commit| !commit.there.is_empty() && !commit.missing.is_empty()) {
        let ids: Vec<&MessageId> = commit.there.iter().chain(&commit.missing).copied().collect();
        let what = format!("of one commit, {:?} happened and {:?} did not", commit.there, commit.missing);
        report.fault(FaultKind::Torn, &ids, what);
    }
}

/// Whether an unanswered part of a commit happened, where what came later tells.
fn happened<'a>(event: &'a Event, lives: &Lives<'_>) -> Option<(&'a MessageId, bool)> {
    match &event.what {
        What::Enqueue(sent) => {
            let life = lives.get(&sent.inlet, &sent.id)?;
            let only = life.sends.iter().filter(|(send, _)| send.maybe()).count() == 1;
            // Cancelled or expired ones are never seen, and tell nothing.
            let tells = life.seen()
                || (life.cancels.is_empty() && life.purges.is_empty() && sent.not_after.is_none());
            (only && tells).then(|| (&sent.id, life.seen()))
        }
        What::Settle(settled) if settled.how == How::Ack => {
            let life = lives.get(&settled.token.inlet, &settled.token.id)?;
            let only = life.settled(&settled.token).count() == 1;
            let again = life
                .deliveries
                .iter()
                .any(|(other, d)| other.ended > event.called && d.token != settled.token);
            let one_reason = life.cancels.is_empty() && life.purges.is_empty() && life.gone_once();
            (only && one_reason).then(|| (&settled.token.id, !again && life.left.is_none()))
        }
        _ => None,
    }
}

/// The same of a part that went into a topic or a stream.
fn stored<'a>(event: &'a Event, evidence: &Evidence) -> Option<(&'a MessageId, bool)> {
    let id = match &event.what {
        What::Publish { sent, .. } => &sent.id,
        What::Append(addition) => &addition.events.first()?.id,
        _ => return None,
    };
    evidence.get(id).map(|there| (id, *there))
}

impl Life<'_> {
    /// Whether nothing but one acknowledgement can have ended it.
    fn gone_once(&self) -> bool {
        let acks = self.settles.iter().filter(|(event, s)| event.maybe() && s.how == How::Ack);
        let acks: std::collections::BTreeSet<_> = acks.map(|(_, settled)| &settled.token.handle).collect();
        acks.len() == 1 && self.sends.iter().all(|(_, sent)| sent.not_after.is_none())
    }
}

/// Judges each reading of the books, and the last one of each inlet against what was sent.
pub(super) fn check_books(lives: &Lives<'_>, report: &mut Report) {
    let mut last: BTreeMap<&Inlet, (&Event, &Books)> = BTreeMap::new();
    for event in lives.events {
        let What::Count { inlet, books } = &event.what else { continue };
        // What a subscription has not reached yet stands in no book.
        if matches!(inlet, Inlet::Queue(_)) {
            last.insert(inlet, (event, books));
        }
        if !books.balance() {
            let (accepted, accounted) = (books.accepted, books.accounted());
            let what = format!("{inlet} accepted {accepted} and accounts for {accounted}: {books:?}");
            report.fault(FaultKind::Books, &[], what);
        }
    }
    for (inlet, (event, books)) in last {
        let (accepted, accepted_maybe) = sent_before(lives, inlet, event);
        between(report, inlet, "accepted", books.accepted, accepted, accepted_maybe);
        let (acked, acked_maybe) = acked_before(lives, inlet, event);
        between(report, inlet, "done", books.done, acked, acked_maybe);
    }
}

fn between(report: &mut Report, inlet: &Inlet, name: &str, said: u64, least: u64, most: u64) {
    if said < least || said > most {
        let what = format!("{inlet} says that {said} are {name}; it must be {least} to {most}");
        report.fault(FaultKind::Books, &[], what);
    }
}

fn sent_before(lives: &Lives<'_>, inlet: &Inlet, by: &Event) -> (u64, u64) {
    let (mut sure, mut maybe) = (0, 0);
    for life in lives.each().filter(|life| life.inlet == inlet) {
        for (event, sent) in life.sends.iter().filter(|(event, _)| event.called < by.ended) {
            match event.answer {
                Answer::Ok if sent.duplicate_of.is_none() && event.ended < by.called => sure += 1,
                Answer::Ok if sent.duplicate_of.is_some() => {}
                Answer::Refused => {}
                _ => maybe += 1,
            }
        }
    }
    (sure, sure + maybe)
}

fn acked_before(lives: &Lives<'_>, inlet: &Inlet, by: &Event) -> (u64, u64) {
    let (mut sure, mut maybe) = (0, 0);
    for life in lives.each().filter(|life| life.inlet == inlet) {
        let acks = life.settles.iter().filter(|(event, s)| s.how == How::Ack && event.called < by.ended);
        let answered = acks.clone().any(|(event, _)| event.answer == Answer::Ok && event.ended < by.called);
        let possible = acks.clone().any(|(event, _)| event.maybe());
        let taken = life.rules.at_most_once;
        sure += u64::from(answered && !taken);
        maybe += u64::from(
            (possible && !answered) || (taken && life.sends.iter().any(|(event, _)| event.maybe())),
        );
    }
    (sure, sure + maybe)
}
