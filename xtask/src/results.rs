//! The results of the last test run, one JSON object a line in `target/onward/test-results.jsonl`.

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

pub(crate) const FILE: &str = "test-results.jsonl";

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Status {
    Passed,
    Failed,
    Skipped,
}

/// How one test ended.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Record {
    #[serde(rename = "crate")]
    pub(crate) package: String,
    pub(crate) target: String,
    pub(crate) test: String,
    pub(crate) status: Status,
    /// Seconds from the start of its test binary to the line that reported it.
    pub(crate) ended_after_seconds: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
}

/// How many tests ended how.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub(crate) struct Totals {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    pub(crate) skipped: usize,
}

impl Totals {
    pub(crate) fn of(records: &[Record]) -> Self {
        let count = |status| records.iter().filter(|record| record.status == status).count();
        Self { passed: count(Status::Passed), failed: count(Status::Failed), skipped: count(Status::Skipped) }
    }

    /// The closing line, such as `12 passed, 0 failed, 1 skipped`.
    pub(crate) fn line(&self) -> String {
        let skipped = if self.skipped > 0 { format!(", {} skipped", self.skipped) } else { String::new() };
        format!("{} passed, {} failed{skipped}", self.passed, self.failed)
    }
}

/// The results of the last run; none when there was none.
pub(crate) fn read(dir: &Path) -> Result<Vec<Record>> {
    read_lines(&dir.join(FILE))
}

/// Puts `records` in place of all former ones, or of those of the same crate and target only.
pub(crate) fn write(dir: &Path, records: &[Record], keep_others: bool) -> Result<()> {
    let mut all = if keep_others { read(dir)? } else { Vec::new() };
    all.retain(|old| !records.iter().any(|new| new.package == old.package && new.target == old.target));
    all.extend_from_slice(records);
    let lines: Result<Vec<String>, _> = all.iter().map(serde_json::to_string).collect();
    let path: PathBuf = dir.join(FILE);
    let text = lines?.into_iter().map(|line| line + "\n").collect::<String>();
    std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Reads one JSON object a line; a file that isn't there holds none.
pub(crate) fn read_lines<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<Vec<T>> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
    };
    let parse = |(index, line)| {
        serde_json::from_str(line).with_context(|| format!("{} line {}", path.display(), index + 1))
    };
    text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).map(parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(target: &str, test: &str, status: Status) -> Record {
        let (package, target, test) = ("onward-log".to_owned(), target.to_owned(), test.to_owned());
        Record { package, target, test, status, ended_after_seconds: 0.5, reason: None }
    }

    #[test]
    fn the_closing_line_names_skipped_tests_only_when_there_are_some() {
        let totals = Totals { passed: 12, failed: 0, skipped: 0 };
        assert_eq!(totals.line(), "12 passed, 0 failed");
        assert_eq!(Totals { skipped: 3, ..totals }.line(), "12 passed, 0 failed, 3 skipped");
    }

    #[test]
    fn a_partial_run_replaces_only_the_targets_that_ran() {
        let dir = tempfile::tempdir().unwrap();
        let (lib, test) = (record("lib", "a", Status::Failed), record("test:b", "b", Status::Passed));
        write(dir.path(), &[lib, test.clone()], false).unwrap();
        let again = record("lib", "renamed", Status::Passed);
        write(dir.path(), std::slice::from_ref(&again), true).unwrap();
        assert_eq!(read(dir.path()).unwrap(), [test, again]);
    }

    #[test]
    fn a_full_run_leaves_nothing_of_the_former_one() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), &[record("test:gone", "a", Status::Passed)], false).unwrap();
        write(dir.path(), &[], false).unwrap();
        assert_eq!(read(dir.path()).unwrap(), []);
    }

    #[test]
    fn a_damaged_line_is_named() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(FILE), "\n{not json\n").unwrap();
        let error = format!("{:#}", read(dir.path()).unwrap_err());
        assert!(error.contains("line 2"), "{error}");
    }
}
