//! Watching over one running handler: its timeout, its lease, and everybody who asks it to stop.

use super::heart::{Hold, SharedHold, Stop};
use onward_core::Env;
use std::{future::Future, time::Duration};
use tokio::sync::watch;

/// What is to be done about a running handler now.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    Wait(Duration),
    Ask(Stop),
    Drop,
}

/// Pure: what a hold says at `now`. A handler that was asked to stop gets `grace`, but never beyond its lease.
fn judge(hold: &Hold, now: Duration, grace: Duration) -> Next {
    if let Some((why, asked)) = hold.stop {
        let until = match why {
            Stop::LeaseLost => asked,
            Stop::LeaseEnding => hold.last_moment(),
            Stop::Timeout | Stop::CancelRequested | Stop::Shutdown => (asked + grace).min(hold.last_moment()),
        };
        return if now >= until { Next::Drop } else { Next::Wait(until) };
    }
    if now >= hold.warning() {
        return Next::Ask(Stop::LeaseEnding);
    }
    match hold.deadline {
        Some(deadline) if now >= deadline => Next::Ask(Stop::Timeout),
        Some(deadline) => Next::Wait(deadline.min(hold.warning())),
        None => Next::Wait(hold.warning()),
    }
}

/// Runs `work` to its end, or drops it when it may not go on; `None` then. Why stands in the hold.
pub(crate) async fn supervise<T>(
    work: impl Future<Output = T>,
    hold: &SharedHold,
    mut interrupt: watch::Receiver<bool>,
    env: &dyn Env,
    grace: Duration,
) -> Option<T> {
    tokio::pin!(work);
    let mut changes = hold.subscribe();
    loop {
        let state = *changes.borrow_and_update();
        let now = env.monotonic();
        let until = match judge(&state, now, grace) {
            Next::Wait(until) => until,
            Next::Ask(why) => {
                hold.send_modify(|hold| hold.ask_to_stop(why, now));
                // The handler sees it before anything else happens to it.
                continue;
            }
            Next::Drop => return None,
        };
        tokio::select! {
            biased;
            done = &mut work => return Some(done),
            _ = changes.changed() => {}
            true = interrupted(&mut interrupt), if state.stop.is_none() => {
                hold.send_modify(|hold| hold.ask_to_stop(Stop::Shutdown, env.monotonic()));
            }
            () = env.sleep(until.saturating_sub(now)) => {}
        }
    }
}

/// Whether the worker interrupts what runs; waits until it does.
async fn interrupted(interrupt: &mut watch::Receiver<bool>) -> bool {
    if interrupt.wait_for(|now| *now).await.is_ok() {
        return true;
    }
    // A worker that is gone interrupts nothing any more.
    std::future::pending().await
}

#[cfg(test)]
mod tests {
    use super::*;
    use onward_proves::proves;

    const SECOND: Duration = Duration::from_secs(1);

    fn hold() -> Hold {
        Hold { lease: SECOND * 10, fence: SECOND * 20, deadline: Some(SECOND * 100), stop: None }
    }

    #[proves("T4")]
    #[test]
    fn an_unextended_lease_stops_its_handler_before_it_can_be_given_to_another() {
        assert_eq!(judge(&hold(), SECOND * 17, SECOND), Next::Wait(SECOND * 18));
        assert_eq!(judge(&hold(), SECOND * 18, SECOND), Next::Ask(Stop::LeaseEnding));
        let asked = Hold { stop: Some((Stop::LeaseEnding, SECOND * 18)), ..hold() };
        assert_eq!(judge(&asked, SECOND * 18, SECOND * 60), Next::Wait(Duration::from_millis(19_500)));
        assert_eq!(judge(&asked, Duration::from_millis(19_500), SECOND * 60), Next::Drop);
    }

    #[test]
    fn the_grace_of_a_stop_never_reaches_beyond_the_lease() {
        let asked = Hold { stop: Some((Stop::Shutdown, SECOND * 15)), ..hold() };
        assert_eq!(judge(&asked, SECOND * 15, SECOND * 60), Next::Wait(Duration::from_millis(19_500)));
        assert_eq!(judge(&asked, SECOND * 15, SECOND), Next::Wait(SECOND * 16));
    }

    #[test]
    fn a_lost_lease_beats_every_other_reason() {
        let mut hold = hold();
        hold.ask_to_stop(Stop::CancelRequested, SECOND * 12);
        hold.ask_to_stop(Stop::Timeout, SECOND * 13);
        assert_eq!(hold.stop, Some((Stop::CancelRequested, SECOND * 12)));
        hold.ask_to_stop(Stop::LeaseLost, SECOND * 14);
        assert_eq!(judge(&hold, SECOND * 14, SECOND * 60), Next::Drop);
    }
}
