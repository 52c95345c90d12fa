//! Judges what was handed out: phantoms, too early, too late, to two at once, after the end.

use std::time::Duration;

use onward_core::LeaseToken;

use super::lives::{Life, Lives};
use super::{Answer, Delivered, Event, FaultKind, How, Moment, Report, Sent, Settled};

pub(super) fn check(life: &Life<'_>, lives: &Lives<'_>, report: &mut Report) {
    let leases = life.leases();
    for (event, delivered) in &leases {
        phantom(life, event, delivered, report);
        early(life, lives, event, report);
        expired(life, lives, event, report);
        early_after_settling(life, lives, event, delivered, report);
        after_settled(life, event, delivered, report);
    }
    for pair in leases.windows(2) {
        two_at_once(life, lives, pair[0], pair[1], report);
    }
    accepted_twice(life, report);
}

fn sends_before<'a>(life: &'a Life<'_>, by: Moment) -> impl Iterator<Item = &'a Sent> {
    life.sends.iter().filter(move |(event, _)| event.maybe() && event.called < by).map(|(_, sent)| *sent)
}

fn phantom(life: &Life<'_>, event: &Event, delivered: &Delivered, report: &mut Report) {
    let mut sent = sends_before(life, event.ended).peekable();
    let what = if sent.peek().is_none() {
        match life.sends.is_empty() {
            true => "was handed out and never sent",
            false => "was handed out though it was refused",
        }
    } else if sent.any(|sent| sent.content == delivered.content) || life.edits.contains(&delivered.content) {
        return;
    } else {
        "was handed out with other content than it was sent with"
    };
    report.fault(
        FaultKind::Phantom,
        &[life.id],
        format!("{what}, to {} at {:?}", life.inlet, event.ended.at),
    );
}

/// How far a reopening can have moved the engine's time ahead of the truth, or behind it, since the message was
/// sent: what the wall clock showed then is all that a new process knows.
fn wall_error(life: &Life<'_>, lives: &Lives<'_>, by: Moment) -> (Duration, Duration) {
    let first = life.sends.iter().map(|(event, _)| event.called).min().unwrap_or_default();
    wall_error_between(lives, first, by)
}

fn wall_error_between(lives: &Lives<'_>, first: Moment, by: Moment) -> (Duration, Duration) {
    let known = lives.restarts.iter().rfind(|(event, _)| event.ended <= first);
    let known = known.map_or(0, |(_, restart)| restart.wall_ahead);
    let (mut lowest, mut highest, mut ahead, mut behind) = (known, known, 0, 0);
    for (_, restart) in lives.restarts_between(first, by) {
        let error = restart.wall_ahead;
        (ahead, behind) = (ahead.max(error - lowest), behind.max(highest - error));
        (lowest, highest) = (lowest.min(error), highest.max(error));
    }
    (Duration::from_micros(ahead as u64), Duration::from_micros(behind as u64))
}

fn early(life: &Life<'_>, lives: &Lives<'_>, event: &Event, report: &mut Report) {
    let Some(due) = sends_before(life, event.ended).map(|sent| sent.not_before).min() else { return };
    let (ahead, _) = wall_error(life, lives, event.ended);
    if event.ended.at + ahead < due {
        let what = format!("was due at {due:?} and handed out at {:?}", event.ended.at);
        report.fault(FaultKind::Early, &[life.id], what);
    }
}

fn expired(life: &Life<'_>, lives: &Lives<'_>, event: &Event, report: &mut Report) {
    let ends = sends_before(life, event.ended).map(|sent| sent.not_after);
    let Some(Some(expiry)) = ends.max_by_key(|end| end.unwrap_or(Duration::MAX)) else { return };
    let (_, behind) = wall_error(life, lives, event.ended);
    if event.called.at >= expiry + behind {
        let what = format!("expired at {expiry:?} and was asked for and handed out at {:?}", event.called.at);
        report.fault(FaultKind::Expired, &[life.id], what);
    }
}

/// A retry or release that was answered holds the message back, unless it was moved back to work since.
fn early_after_settling(
    life: &Life<'_>,
    lives: &Lives<'_>,
    event: &Event,
    delivered: &Delivered,
    report: &mut Report,
) {
    let before = |(at, settled): &&(&Event, &Settled)| {
        at.answer == Answer::Ok
            && at.ended < event.ended
            && settled.token != delivered.token
            && !settled.already
    };
    let Some((at, settled)) = life.settles.iter().filter(before).max_by_key(|(at, _)| at.ended) else {
        return;
    };
    let held_back = matches!(settled.how, How::Retry | How::Release) && !settled.dead;
    let moved = life.redrives.iter().any(|redrive| redrive.ended > at.called && redrive.called < event.ended);
    let (ahead, _) = wall_error_between(lives, at.called, event.ended);
    if held_back && !moved && event.ended.at + ahead < settled.not_before {
        let (due, now) = (settled.not_before, event.ended.at);
        let what = format!("was put back until {due:?} and handed out at {now:?}");
        report.fault(FaultKind::Early, &[life.id], what);
    }
}

/// Nothing is handed out behind an answered ack, cancellation or death.
fn after_settled(life: &Life<'_>, event: &Event, delivered: &Delivered, report: &mut Report) {
    let redriven = |since: Moment| {
        life.redrives.iter().any(|redrive| redrive.ended > since && redrive.called < event.ended)
    };
    let ends = life.settles.iter().filter(|(at, settled)| {
        // A repeat tells what became of it at first, which a redrive may have undone.
        let fresh = at.answer == Answer::Ok && !settled.already;
        let ends = fresh && (settled.how == How::Ack || settled.dead);
        // A later lease that was out before the settlement is a stale one that was accepted: told elsewhere.
        ends && settled.token != delivered.token && event.ended > at.called && later(life, delivered, settled)
    });
    let over = |at: Moment| !redriven(at) && !life.reborn(at, event.ended);
    let settled = ends.filter(|(at, settled)| settled.how == How::Ack || over(at.called));
    let settled = settled.map(|(at, settled)| (at.called, format!("{:?}", settled.how)));
    let cancelled = life.cancels.iter().filter(|(at, gone)| *gone && at.answer == Answer::Ok);
    let cancelled = cancelled.filter(|(at, _)| event.called > at.ended);
    let cancelled = cancelled.map(|(at, _)| (at.called, "cancelled".to_owned()));
    let found = settled.chain(cancelled).find(|(at, _)| !life.reborn(*at, event.ended));
    if let Some((at, how)) = found {
        let what =
            format!("was handed out at {:?} after it was settled ({how}) at {:?}", event.ended.at, at.at);
        report.fault(FaultKind::AfterSettled, &[life.id], what);
    }
}

/// Whether the delivery was received after the settled one.
fn later(life: &Life<'_>, delivered: &Delivered, settled: &Settled) -> bool {
    let place = |token: &LeaseToken| life.deliveries.iter().position(|(_, other)| other.token == *token);
    place(&delivered.token) > place(&settled.token)
}

/// The first lease must have ended before the second one was given.
fn two_at_once(
    life: &Life<'_>,
    lives: &Lives<'_>,
    (first, held): (&Event, &Delivered),
    (second, given): (&Event, &Delivered),
    report: &mut Report,
) {
    let moved = |redrive: &&Event| redrive.ended > first.called && redrive.called < second.ended;
    if life.redrives.iter().any(moved) || life.reborn(first.ended, second.ended) {
        return;
    }
    if life.rules.at_most_once {
        let what = format!("was handed out again at {:?}, of an at-most-once inlet", second.ended.at);
        return report.fault(FaultKind::Duplicated, &[life.id], what);
    }
    let (told, term) = life.told(&held.token, second.ended);
    let settled = life.settled(&held.token).any(|(event, _)| event.called < second.ended);
    let process_ended = lives.process_ends.iter().any(|(event, process)| {
        *process == first.process && event.called < second.ended && event.ended > first.called
    });
    if settled || process_ended || freed_by_restart(lives, first.ended, second.ended) {
        return;
    }
    let mut until = told.at + term;
    // An extension to a shorter time whose answer did not come may have shortened it.
    let unanswered = life.extends.iter().filter(|(event, token, _)| {
        let answered = event.answer == Answer::Ok && event.ended <= second.ended;
        *token == &held.token && event.maybe() && !answered && event.called < second.ended
    });
    let mut term = term;
    for (event, _, lease) in unanswered {
        (until, term) = (until.min(event.called.at + *lease), term.min(*lease));
    }
    for (restart, _) in lives.restarts_between(first.ended, second.ended) {
        // What had ended before does not begin anew.
        if until > restart.called.at {
            until = until.max(restart.ended.at + term);
        }
    }
    if second.ended.at < until {
        let what = format!(
            "was handed out at {:?} as attempt {} while attempt {} was leased until {until:?}",
            second.ended.at, given.attempt, held.attempt
        );
        report.fault(FaultKind::Duplicated, &[life.id], what);
    }
}

/// Whether a lease may have been forgotten: with the process, or only in a power cut that may have forgotten
/// the attempt too.
fn freed_by_restart(lives: &Lives<'_>, from: Moment, to: Moment) -> bool {
    let mut restarts = lives.restarts_between(from, to);
    restarts.any(|(_, restart)| restart.power_cut || !lives.contract.leases_survive_death)
}

/// The same id accepted twice within its window.
fn accepted_twice(life: &Life<'_>, report: &mut Report) {
    let accepted =
        life.sends.iter().filter(|(event, sent)| event.answer == Answer::Ok && sent.duplicate_of.is_none());
    let accepted: Vec<_> = accepted.collect();
    for pair in accepted.windows(2) {
        let ((first, _), (second, _)) = (pair[0], pair[1]);
        let gone = life.gone_at_the_earliest();
        let forgotten = gone.is_some_and(|gone| life.forgotten(gone, second.ended));
        if !forgotten {
            let what = format!("was accepted at {:?} and again at {:?}", first.ended.at, second.ended.at);
            report.fault(FaultKind::Duplicated, &[life.id], what);
        }
    }
}
