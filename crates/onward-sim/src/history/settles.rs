//! Judges settlements and attempts: what was accepted under which lease, and how attempts were counted.

use std::time::Duration;

use onward_core::LeaseToken;

use super::lives::{Life, Lives};
use super::{Answer, Delivered, Event, FaultKind, How, Moment, Report, Settled};

pub(super) fn check(life: &Life<'_>, lives: &Lives<'_>, report: &mut Report) {
    let settles = life.settles.iter().map(|(event, settled)| (*event, &settled.token, "settlement"));
    let extends = life.extends.iter().map(|(event, token, _)| (*event, *token, "extension"));
    for (event, token, what) in settles.chain(extends).filter(|(event, _, _)| event.answer == Answer::Ok) {
        if !repeats(life, event) {
            stale(life, lives, event, token, what, report);
        }
    }
    two_outcomes(life, report);
    attempts(life, lives, report);
}

/// A repeat of what was said before is answered as the first time, also when the lease is over by now.
fn repeats(life: &Life<'_>, event: &Event) -> bool {
    life.settles.iter().any(|(other, settled)| other.called == event.called && settled.already)
}

fn stale(
    life: &Life<'_>,
    lives: &Lives<'_>,
    event: &Event,
    token: &LeaseToken,
    what: &str,
    report: &mut Report,
) {
    let Some((received, held)) = life.deliveries.iter().find(|(_, d)| d.token == *token) else {
        let seen = format!("a {what} was accepted at {:?} under a lease that nobody got", event.called.at);
        return report.fault(FaultKind::StaleSettle, &[life.id], seen);
    };
    // A lease that was given first and ended by a move may be the one that is received last.
    let moved =
        |other: &Event| life.redrives.iter().any(|r| r.ended > other.called && r.called < other.ended);
    let newer = life.deliveries.iter().find(|(other, delivered)| {
        let later = other.ended > received.ended && other.ended < event.called;
        delivered.token != *token && later && !moved(other)
    });
    let why = if let Some((other, _)) = newer {
        format!("after another got the message at {:?}", other.ended.at)
    } else if let Some(at) = process_ended(lives, received, event) {
        format!("after its process ended at {at:?}")
    } else if let Some(until) = ran_out(life, lives, received, held, event) {
        format!("after the lease ran out at {until:?}")
    } else {
        return;
    };
    let seen = format!("a {what} of attempt {} was accepted at {:?}, {why}", held.attempt, event.called.at);
    report.fault(FaultKind::StaleSettle, &[life.id], seen);
}

fn process_ended(lives: &Lives<'_>, received: &Event, event: &Event) -> Option<Duration> {
    let ended = lives.process_ends.iter().find(|(end, process)| {
        let in_between = end.called > received.ended && end.ended < event.called;
        *process == received.process && end.answer == Answer::Ok && in_between
    });
    ended.map(|(end, _)| end.ended.at)
}

fn ran_out(
    life: &Life<'_>,
    lives: &Lives<'_>,
    received: &Event,
    held: &Delivered,
    event: &Event,
) -> Option<Duration> {
    if !lives.contract.ended_is_stale {
        return None;
    }
    // What an unanswered extension or a restart may have given counts for the holder.
    let unknown = life.extends.iter().filter(|(extend, token, _)| {
        *token == &held.token && extend.answer == Answer::Unknown && extend.called < event.called
    });
    let unknown = unknown.map(|(extend, _, lease)| extend.ended.at + *lease);
    let restarts = lives.restarts_between(received.ended, event.called);
    // The whole term may be longer than what was left of it when it was told.
    let term = |event: &Event, told: Duration| told + (event.ended.at - event.called.at);
    let extended = life.extends.iter().map(|(event, _, lease)| term(event, *lease));
    let longest = extended.chain([term(received, held.lease)]).max().unwrap_or_default();
    let restarts = restarts.map(|(restart, _)| restart.ended.at + longest);
    let until = life.until(&held.token, event.called);
    let until = unknown.chain(restarts).fold(until, Duration::max);
    (event.called.at > until).then_some(until)
}

/// Two different outcomes were accepted for one lease.
fn two_outcomes(life: &Life<'_>, report: &mut Report) {
    let sure: Vec<&(&Event, &Settled)> =
        life.settles.iter().filter(|(event, _)| event.answer == Answer::Ok).collect();
    for (at, first) in &sure {
        let second = sure.iter().find(|(other, second)| {
            second.token == first.token && second.how != first.how && other.called > at.called
        });
        if let Some((other, second)) = second {
            let what = format!(
                "was settled as {:?} at {:?} and, under the same lease, as {:?} at {:?}",
                first.how, at.called.at, second.how, other.called.at
            );
            report.fault(FaultKind::StaleSettle, &[life.id], what);
        }
    }
}

fn attempts(life: &Life<'_>, lives: &Lives<'_>, report: &mut Report) {
    let (leases, gone) = (life.leases(), life.gone_at_the_earliest());
    for (index, (event, delivered)) in leases.iter().enumerate() {
        if delivered.attempt > life.rules.attempts_max || delivered.attempt == 0 {
            let what = format!("attempt {} of at most {}", delivered.attempt, life.rules.attempts_max);
            report.fault(FaultKind::Attempts, &[life.id], what);
        }
        let before = &leases[..index];
        let first = life.sends.iter().map(|(event, _)| event.called).min().unwrap_or_default();
        let unseen = lives.lost_leases.iter().filter(|(lost, inlets)| {
            lost.called < event.ended && lost.ended > first && inlets.contains(life.inlet)
        });
        let most = 1 + before.len() + unseen.count();
        if delivered.attempt as usize > most {
            let what = format!("attempt {} where at most {most} can have been made", delivered.attempt);
            report.fault(FaultKind::Attempts, &[life.id], what);
        }
        let counted = counted(life, lives, before, event.ended);
        let reborn = gone.is_some_and(|gone| life.reborn(gone, event.ended));
        if (delivered.attempt as usize) < 1 + counted && !reborn {
            let what =
                format!("attempt {} at {:?} though {counted} counted", delivered.attempt, event.ended.at);
            report.fault(FaultKind::AttemptForgotten, &[life.id], what);
        }
    }
}

/// Attempts before `by` that must be counted: received, not given back, not forgotten in a power cut, and not
/// from before a redrive.
fn counted(life: &Life<'_>, lives: &Lives<'_>, before: &[(&Event, &Delivered)], by: Moment) -> usize {
    let counts = |(event, delivered): &&(&Event, &Delivered)| {
        let given_back = life.settled(&delivered.token).any(|(_, settled)| settled.how == How::Release);
        let suspected = lives
            .process_ends
            .iter()
            .any(|(end, process)| *process == event.process && end.ended > event.called && end.called < by);
        let forgotten = lives
            .restarts_between(event.ended, by)
            .any(|(_, restart)| restart.power_cut || !lives.contract.leases_survive_death);
        let since = life.redrives.iter().all(|redrive| redrive.called >= by || redrive.ended < event.called);
        since && !given_back && !suspected && !forgotten
    };
    before.iter().filter(counts).count()
}
