//! Runs one test binary (or cargo's doc tests) and turns what it prints into records.

use super::libtest;
use crate::results::{Record, Status};
use crate::ui::note;
use anyhow::{Context, Result};
use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// Lines of a binary's output that are kept to be shown when it fails.
const OUTPUT_LINES_MAX: usize = 2_000;
/// How often a silent binary is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How often a long run says that it goes on.
const TELL_EVERY: Duration = Duration::from_secs(15);

/// What one binary did.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) records: Vec<Record>,
    pub(crate) output: Vec<String>,
    pub(crate) seconds: f64,
}

/// How a run is named in records, and what it is expected to report.
#[derive(Debug)]
pub(crate) struct Expected {
    pub(crate) package: String,
    pub(crate) target: String,
    /// The tests that must report; for doc tests, which can't be listed, empty.
    pub(crate) tests: Vec<String>,
}

/// Runs `command` to its end, or kills it after `limit`.
///
/// Every expected test that was not reported is a failure, and so is a bad exit without a failed test.
#[allow(clippy::disallowed_methods, reason = "a real process is timed on the real clock")]
pub(crate) fn run(mut command: Command, expected: Expected, limit: Duration) -> Result<Outcome> {
    let start = Instant::now();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("cannot start {}", expected.target))?;
    let lines = lines_of(&mut child);
    let mut tally = Tally::new(expected, start);
    let killed = follow(&mut child, &lines, &mut tally, limit)?;
    let status = child.wait().context("cannot wait for the tests")?;
    Ok(tally.finish(status, killed.then_some(limit)))
}

/// Reads until both pipes are closed. A process that the binary left behind may hold them: then its own end counts.
fn follow(child: &mut Child, lines: &Receiver<String>, tally: &mut Tally, limit: Duration) -> Result<bool> {
    let (mut killed, mut told) = (false, TELL_EVERY);
    loop {
        match lines.recv_timeout(LOOK_EVERY) {
            Ok(line) => tally.take(line),
            Err(RecvTimeoutError::Disconnected) => return Ok(killed),
            Err(RecvTimeoutError::Timeout) if child.try_wait()?.is_some() => return Ok(killed),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if tally.start.elapsed() > told {
            told += TELL_EVERY;
            tally.tell();
        }
        if !killed && tally.start.elapsed() > limit {
            child.kill().context("cannot end the tests")?;
            killed = true;
        }
    }
}

fn lines_of(child: &mut Child) -> Receiver<String> {
    let (sender, receiver) = sync_channel(1_024);
    let stdout = child.stdout.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>);
    let stderr = child.stderr.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>);
    for pipe in [stdout, stderr].into_iter().flatten() {
        let sender = sender.clone();
        std::thread::spawn(move || forward(pipe, &sender));
    }
    receiver
}

fn forward(pipe: Box<dyn Read + Send>, sender: &SyncSender<String>) {
    let mut reader = BufReader::new(pipe);
    let mut line = Vec::new();
    while matches!(reader.read_until(b'\n', &mut line), Ok(read) if read > 0) {
        let text = String::from_utf8_lossy(&line).trim_end_matches('\n').to_owned();
        line.clear();
        if sender.send(text).is_err() {
            return;
        }
    }
}

struct Tally {
    expected: Expected,
    start: Instant,
    records: Vec<Record>,
    output: Vec<String>,
}

impl Tally {
    fn new(expected: Expected, start: Instant) -> Self {
        Self { expected, start, records: Vec::new(), output: Vec::new() }
    }

    fn take(&mut self, line: String) {
        if let Some(reported) = libtest::reported(&line, &self.expected.tests) {
            self.add(reported.test, reported.status, None);
        } else if !libtest::is_frame(&line) && self.output.len() < OUTPUT_LINES_MAX {
            self.output.push(line);
        }
    }

    fn tell(&self) {
        let (done, seconds) = (self.records.len(), self.start.elapsed().as_secs());
        let Expected { package, target, tests } = &self.expected;
        note(format!("    {package} {target}: {done} of {} tests after {seconds} s", tests.len().max(done)));
    }

    fn add(&mut self, test: String, status: Status, reason: Option<String>) {
        let seconds = (self.start.elapsed().as_secs_f64() * 1000.0).round() / 1000.0;
        let (package, target) = (self.expected.package.clone(), self.expected.target.clone());
        self.records.push(Record { package, target, test, status, ended_after_seconds: seconds, reason });
    }

    fn finish(mut self, status: ExitStatus, limit: Option<Duration>) -> Outcome {
        let reason = match limit {
            Some(limit) => format!("ended after {} s without a result", limit.as_secs()),
            None => format!("the test binary ended ({status}) before it reported"),
        };
        let reported: HashSet<_> = self.records.iter().map(|record| record.test.clone()).collect();
        for test in self.expected.tests.clone().into_iter().filter(|test| !reported.contains(test)) {
            self.add(test, Status::Failed, Some(reason.clone()));
        }
        let failed = self.records.iter().any(|record| record.status == Status::Failed);
        if !failed && (!status.success() || limit.is_some()) {
            self.add("(the run as a whole)".to_owned(), Status::Failed, Some(format!("ended with {status}")));
        }
        Outcome { seconds: self.start.elapsed().as_secs_f64(), records: self.records, output: self.output }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, tests: &[&str]) -> Outcome {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let tests = tests.iter().map(|test| (*test).to_owned()).collect();
        let expected = Expected { package: "p".into(), target: "lib".into(), tests };
        run(command, expected, Duration::from_secs(60)).unwrap()
    }

    fn statuses(outcome: &Outcome) -> Vec<(&str, Status)> {
        outcome.records.iter().map(|record| (record.test.as_str(), record.status)).collect()
    }

    #[test]
    fn a_good_run_has_a_record_for_each_test_and_keeps_no_frames() {
        let outcome = shell("echo running 2 tests; echo test a ... ok; echo test b ... ignored", &["a", "b"]);
        assert_eq!(statuses(&outcome), [("a", Status::Passed), ("b", Status::Skipped)]);
        assert!(outcome.output.is_empty(), "{:?}", outcome.output);
    }

    #[test]
    fn tests_that_a_killed_binary_did_not_report_are_failures() {
        let outcome = shell("echo test a ... ok; kill -9 $$", &["a", "b"]);
        assert_eq!(statuses(&outcome), [("a", Status::Passed), ("b", Status::Failed)]);
        assert!(outcome.records[1].reason.as_deref().is_some_and(|reason| reason.contains("signal")));
    }

    #[test]
    fn a_bad_exit_after_good_tests_is_a_failure() {
        let outcome = shell("echo test a ... ok; echo why >&2; exit 3", &["a"]);
        assert_eq!(statuses(&outcome)[1].1, Status::Failed);
        assert_eq!(outcome.output, ["why"]);
    }

    #[test]
    fn a_binary_that_hangs_is_ended_and_its_tests_fail() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo test a ... ok; exec tail -f /dev/null"]);
        let expected =
            Expected { package: "p".into(), target: "lib".into(), tests: vec!["a".into(), "b".into()] };
        let outcome = run(command, expected, Duration::from_millis(300)).unwrap();
        assert_eq!(statuses(&outcome), [("a", Status::Passed), ("b", Status::Failed)]);
    }

    #[test]
    fn a_process_left_behind_does_not_hold_up_the_run() {
        let outcome = shell("tail -f /dev/null --pid=$$ & echo test a ... ok", &["a"]);
        assert_eq!(statuses(&outcome), [("a", Status::Passed)]);
        assert!(outcome.seconds < 30.0);
    }
}
