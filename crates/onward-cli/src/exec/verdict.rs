//! What becomes of a message, read from how its command ended. Pure.

use onward::work::{Failed, Permanent, Release, Stop, Verdict};
use onward_core::{CauseKind, Failure, Payload};
use std::{os::unix::process::ExitStatusExt, process::ExitStatus, time::Duration};

/// "Try again": the attempt failed and counts, the message comes again after a delay.
const CODE_RETRY: i32 = 75;
/// "The data is wrong": to the dead letters now.
const CODE_REJECT: i32 = 65;
/// How long a message is put back for when its command could not even be started.
const NOT_STARTED_WAIT: Duration = Duration::from_secs(1);

/// How a command ended.
#[derive(Debug)]
pub(super) enum Ended {
    /// By itself, or by somebody's signal.
    Status(ExitStatus),
    /// It was killed by its worker.
    Stopped(Stop),
    /// It never began.
    NotStarted(String),
}

/// What a command's end means, in one word for programs; `dead` where a failure of the last attempt sets it aside.
pub(super) fn word(ended: &Ended, last: bool) -> &'static str {
    match ended {
        Ended::Status(status) if last && !matches!(status.code(), Some(0 | CODE_REJECT)) => "dead",
        Ended::Stopped(Stop::Timeout) if last => "dead",
        Ended::Status(status) => match status.code() {
            Some(0) => "ack",
            Some(CODE_REJECT) => "reject",
            _ => "retry",
        },
        Ended::Stopped(Stop::Timeout) => "retry",
        Ended::Stopped(Stop::LeaseLost | Stop::LeaseEnding) => "lost",
        Ended::Stopped(_) | Ended::NotStarted(_) => "release",
    }
}

/// The same for people: what becomes of the message.
pub(super) fn follows(word: &str) -> &'static str {
    match word {
        "ack" => "done",
        "retry" => "failed, will be tried again",
        "dead" => "failed, was its last: now a dead letter",
        "reject" => "refused: now a dead letter",
        "lost" => "lost its lease, comes again",
        _ => "put back",
    }
}

/// Why it was not an acknowledgement, in one sentence.
pub(super) fn reason(ended: &Ended, tail: &str) -> Option<String> {
    let what = match ended {
        Ended::Status(status) => match (status.code(), status.signal()) {
            (Some(0), _) => return None,
            (Some(code), _) => format!("the command ended with exit code {code}"),
            (None, signal) => killed(signal.unwrap_or(0)),
        },
        Ended::Stopped(Stop::Timeout) => "the command took longer than its timeout and was killed".to_owned(),
        Ended::Stopped(Stop::CancelRequested) => {
            "the message was cancelled; the command was killed".to_owned()
        }
        Ended::Stopped(Stop::LeaseLost | Stop::LeaseEnding) => {
            "the lease could not be kept; the command was killed, the message comes again".to_owned()
        }
        Ended::Stopped(_) => "the worker stops; the command was killed, the message put back".to_owned(),
        Ended::NotStarted(why) => format!("the command did not begin: {why}"),
    };
    let last = tail.lines().rev().find(|line| !line.trim().is_empty());
    Some(last.map_or(what.clone(), |line| format!("{what}: {}", line.trim())))
}

/// What the worker does with the message.
pub(super) fn verdict(ended: &Ended, tail: &str, result: Option<Payload>) -> Verdict {
    let Some(reason) = reason(ended, tail) else { return Verdict::Done(result) };
    let failed = |kind| {
        let failure = Failure::new(kind, &reason);
        Failed(if tail.is_empty() { failure } else { failure.with_detail(tail) })
    };
    let error = match ended {
        Ended::Status(status) => match status.code() {
            Some(CODE_REJECT) => Permanent(failed(CauseKind::Permanent)).into(),
            Some(CODE_RETRY) | Some(_) => failed(CauseKind::Transient).into(),
            // A command has one message only: what killed it died alone with it.
            None => failed(CauseKind::Crashed).into(),
        },
        Ended::Stopped(Stop::Timeout) => failed(CauseKind::Timeout).into(),
        // Interrupted is not failed: no attempt is counted.
        Ended::Stopped(_) => Release(Duration::ZERO).into(),
        Ended::NotStarted(_) => Release(NOT_STARTED_WAIT).into(),
    };
    Verdict::Failed(error)
}

fn killed(signal: i32) -> String {
    let name = match signal {
        1 => " (SIGHUP)",
        2 => " (SIGINT)",
        3 => " (SIGQUIT)",
        4 => " (SIGILL)",
        6 => " (SIGABRT)",
        8 => " (SIGFPE)",
        9 => " (SIGKILL)",
        11 => " (SIGSEGV)",
        13 => " (SIGPIPE)",
        15 => " (SIGTERM)",
        _ => "",
    };
    format!("the command was killed by signal {signal}{name}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use onward::work::Class;
    use onward_proves::proves;

    fn failed(raw: i32) -> (Option<Class>, Failure) {
        let ended = Ended::Status(ExitStatus::from_raw(raw));
        let Verdict::Failed(error) = verdict(&ended, "first\nlast words\n\n", None) else { panic!("done") };
        let Some(Failed(failure)) = error.source().downcast_ref::<Failed>() else { panic!("no failure") };
        (error.class().cloned(), failure.clone())
    }

    #[test]
    #[proves("H1")]
    fn zero_acks_75_and_others_retry_65_rejects() {
        let done = verdict(&Ended::Status(ExitStatus::from_raw(0)), "anything", None);
        assert!(matches!(done, Verdict::Done(None)));
        for code in [75, 1, 2, 127, 255] {
            let (class, failure) = failed(code << 8);
            assert_eq!((class, failure.kind), (None, CauseKind::Transient), "{code}");
            assert_eq!(&*failure.error, format!("the command ended with exit code {code}: last words"));
            assert_eq!(failure.detail.as_deref(), Some("first\nlast words\n\n"));
        }
        let (class, failure) = failed(65 << 8);
        assert_eq!((class, failure.kind), (Some(Class::Permanent), CauseKind::Permanent));
    }

    #[test]
    fn the_last_failed_attempt_is_not_said_to_be_tried_again() {
        let ended = |raw| Ended::Status(ExitStatus::from_raw(raw));
        assert_eq!((word(&ended(75 << 8), false), word(&ended(75 << 8), true)), ("retry", "dead"));
        assert_eq!((word(&ended(9), true), word(&Ended::Stopped(Stop::Timeout), true)), ("dead", "dead"));
        assert_eq!((word(&ended(0), true), word(&ended(65 << 8), true)), ("ack", "reject"));
        assert_eq!(word(&Ended::Stopped(Stop::Shutdown), true), "release");
        assert!(!follows("dead").contains("again"));
    }

    #[test]
    fn a_command_killed_by_a_signal_is_a_failed_attempt_that_says_so() {
        let (class, failure) = failed(9);
        assert_eq!((class, failure.kind), (None, CauseKind::Crashed));
        assert!(failure.error.contains("signal 9 (SIGKILL)"));
    }

    #[test]
    #[proves("T36")]
    fn what_the_worker_interrupts_is_put_back_and_counts_no_attempt() {
        let Verdict::Failed(error) = verdict(&Ended::Stopped(Stop::Shutdown), "", None) else {
            panic!("done")
        };
        assert_eq!(error.class(), Some(&Class::Release(Duration::ZERO)));
    }
}
