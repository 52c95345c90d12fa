//! `cargo xtask test`: builds and runs every test of the workspace and says honestly how it went.

mod build;
mod libtest;
mod report;
mod run;

use crate::results::{self, Record, Status, Totals};
use crate::servers;
use crate::ui::{Human, note, say};
use crate::workspace::Workspace;
use anyhow::Result;
use build::Binary;
use run::{Expected, Outcome};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

pub(crate) use build::onward as build_onward;

/// A binary that runs longer hangs.
const LIMIT_SECONDS: u64 = 900;

/// Choices of `cargo xtask test`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// Print one JSON object for each test on stdout, and all else on stderr
    #[arg(long)]
    pub(crate) json: bool,
    /// Run only the tests of this crate (may be given several times)
    #[arg(short = 'p', long = "package", value_name = "CRATE")]
    pub(crate) packages: Vec<String>,
    /// End a test binary that runs longer than this
    #[arg(long, value_name = "SECONDS", default_value_t = LIMIT_SECONDS)]
    pub(crate) limit_seconds: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { json: false, packages: Vec::new(), limit_seconds: LIMIT_SECONDS }
    }
}

/// Runs the tests; `true` when all passed.
pub(crate) fn test(workspace: &Workspace, options: &Options) -> Result<bool> {
    let human = Human { json: options.json };
    let limit = Duration::from_secs(options.limit_seconds);
    let records = run_all(workspace, &options.packages, human, limit)?;
    if options.json {
        for record in &records {
            say(serde_json::to_string(record)?);
        }
    }
    close(human, &records)
}

/// Runs all tests for their results alone, all output on stderr.
pub(crate) fn test_quietly(workspace: &Workspace) -> Result<bool> {
    let (human, limit) = (Human { json: true }, Duration::from_secs(LIMIT_SECONDS));
    Ok(Totals::of(&run_all(workspace, &[], human, limit)?).failed == 0)
}

/// Builds, runs and keeps the results of `packages` (all when empty).
fn run_all(workspace: &Workspace, packages: &[String], human: Human, limit: Duration) -> Result<Vec<Record>> {
    let dir = workspace.results_dir()?;
    let whole = packages.is_empty();
    if whole {
        results::write(&dir, &[], false)?;
    }
    servers::require(&tested(workspace, packages))?;
    note("building the tests");
    let built = build::tests(workspace, packages)?;
    if !built.complete {
        return Ok(vec![build_failure()]);
    }
    let onward = built.onward.clone().map_or_else(|| build::onward(workspace), |path| Ok(Some(path)))?;
    let (mut records, all) = (Vec::new(), built.tests.len() + 1);
    for (index, binary) in built.tests.iter().enumerate() {
        let outcome = run_binary(binary, onward.as_deref(), limit)?;
        let name = format!("{} {}", binary.package, binary.target);
        report::binary(human, &format!("[{:>2}/{all}]", index + 1), &name, &outcome);
        records.extend(outcome.records);
    }
    let documents = run_documents(workspace, packages, limit)?;
    report::binary(human, &format!("[{all:>2}/{all}]"), "doc tests", &documents);
    records.extend(documents.records);
    results::write(&dir, &records, !whole)?;
    Ok(records)
}

fn build_failure() -> Record {
    let (package, target, test) = ("workspace".to_owned(), "build".to_owned(), "(the build)".to_owned());
    let reason = Some("it failed, so no test was run".to_owned());
    Record { package, target, test, status: Status::Failed, ended_after_seconds: 0.0, reason }
}

fn tested(workspace: &Workspace, packages: &[String]) -> Vec<String> {
    let all = workspace.members.iter().map(|package| package.name.clone());
    all.filter(|name| packages.is_empty() || packages.contains(name)).collect()
}

fn close(human: Human, records: &[Record]) -> Result<bool> {
    let totals = Totals::of(records);
    for failed in records.iter().filter(|record| record.status == Status::Failed) {
        let reason = failed.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        human.line(format!("failed: {} {} {}{reason}", failed.package, failed.target, failed.test));
    }
    human.line(totals.line());
    Ok(totals.failed == 0)
}

fn run_binary(binary: &Binary, onward: Option<&Path>, limit: Duration) -> Result<Outcome> {
    let tests = list(binary)?;
    let mut command = prepared(binary);
    command.arg(format!("--test-threads={}", threads()));
    if let Some(onward) = onward {
        command.env("ONWARD_BIN", onward);
    }
    let expected = Expected { package: binary.package.clone(), target: binary.target.clone(), tests };
    run::run(command, expected, limit)
}

/// The names of a binary's tests. A binary that can't even list them reports nothing and fails as a whole.
fn list(binary: &Binary) -> Result<Vec<String>> {
    let output = prepared(binary).args(["--list", "--format", "terse"]).output()?;
    Ok(libtest::listed(&String::from_utf8_lossy(&output.stdout)))
}

fn prepared(binary: &Binary) -> Command {
    let mut command = Command::new(&binary.executable);
    command
        .current_dir(&binary.dir)
        .env("CARGO_MANIFEST_DIR", &binary.dir)
        .env("CARGO_PKG_NAME", &binary.package);
    if let Some(libraries) = compiler_libraries() {
        command.env("LD_LIBRARY_PATH", libraries);
    }
    command
}

/// Where the compiler's own libraries lie: the tests of an attribute crate are linked to them.
fn compiler_libraries() -> Option<PathBuf> {
    static FOUND: std::sync::OnceLock<Option<PathBuf>> = std::sync::OnceLock::new();
    let ask = || Command::new("rustc").args(["--print", "target-libdir"]).output().ok();
    let root = || ask().map(|output| PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()));
    FOUND.get_or_init(root).clone()
}

/// At least two, so that one waiting test never stands alone and each result is printed in one piece.
fn threads() -> usize {
    std::thread::available_parallelism().map_or(2, |cores| cores.get().max(2))
}

/// Doc tests can be run by cargo alone. Their names begin with their file, which tells the crate.
fn run_documents(workspace: &Workspace, packages: &[String], limit: Duration) -> Result<Outcome> {
    let with_library = |name: &String| workspace.package(name).is_some_and(|package| package.has_library());
    let documented: Vec<_> = packages.iter().filter(|name| with_library(name)).cloned().collect();
    if documented.is_empty() && !packages.is_empty() {
        return Ok(Outcome::default());
    }
    let mut command = workspace.cargo();
    command.args(["test", "--doc", "--no-fail-fast"]).args(build::selection(&documented));
    let expected = Expected { package: String::new(), target: "doc".to_owned(), tests: Vec::new() };
    let mut outcome = run::run(command, expected, limit)?;
    for record in &mut outcome.records {
        record.package = package_of_document(&record.test);
    }
    Ok(outcome)
}

/// `crates/onward/src/lib.rs - work (line 3)` -> `onward`.
fn package_of_document(test: &str) -> String {
    let mut parts = test.split('/');
    match (parts.next(), parts.next()) {
        (Some("crates" | "examples"), Some(name)) => name.to_owned(),
        (Some(name), Some(_)) => name.to_owned(),
        _ => "workspace".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::package_of_document;

    #[test]
    fn a_doc_tests_crate_is_read_from_its_file() {
        assert_eq!(package_of_document("crates/onward-log/src/lib.rs - x (line 3)"), "onward-log");
        assert_eq!(package_of_document("xtask/src/main.rs - (line 1)"), "xtask");
        assert_eq!(package_of_document("(the run as a whole)"), "workspace");
    }
}
