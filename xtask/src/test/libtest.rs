//! The lines that Rust's own test runner prints, as far as they are stable.

use crate::results::Status;

/// One reported test.
#[derive(Debug, PartialEq)]
pub(crate) struct Reported {
    pub(crate) test: String,
    pub(crate) status: Status,
}

/// Reads `test NAME ... ok|FAILED|ignored`; any other line is the tests' own output.
///
/// Output that a test wrote past the capture may stand before the line's `test ` or after its ` ... `.
pub(crate) fn reported(line: &str, known: &[String]) -> Option<Reported> {
    let start = line.find("test ").filter(|at| *at == 0 || known_name_at(line, *at, known))?;
    let (name, outcome) = line[start + 5..].split_once(" ... ")?;
    let status = status(outcome)?;
    Some(Reported { test: plain_name(name).to_owned(), status })
}

/// The names that `--list --format terse` prints, benchmarks left out.
pub(crate) fn listed(output: &str) -> Vec<String> {
    output.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect()
}

/// Whether a line is the runner's frame around the tests and no output worth showing.
pub(crate) fn is_frame(line: &str) -> bool {
    let running =
        line.strip_prefix("running ").is_some_and(|rest| rest.ends_with(" tests") || rest == "1 test");
    running || line.trim().is_empty()
}

fn status(outcome: &str) -> Option<Status> {
    if outcome.ends_with("FAILED") {
        return Some(Status::Failed);
    }
    if outcome == "ignored" || outcome.starts_with("ignored,") {
        return Some(Status::Skipped);
    }
    (outcome == "ok" || outcome.ends_with(" ok")).then_some(Status::Passed)
}

/// A test that should panic, or a doc test that only compiles, is printed with that behind its name.
fn plain_name(name: &str) -> &str {
    let marks = [" - should panic", " - compile fail", " - compile"];
    marks.iter().find_map(|mark| name.strip_suffix(mark)).unwrap_or(name)
}

fn known_name_at(line: &str, at: usize, known: &[String]) -> bool {
    let name = line[at + 5..].split(" ... ").next().map(plain_name);
    name.is_some_and(|name| known.iter().any(|own| own == name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Option<(String, Status)> {
        let known = ["a::b".to_owned()];
        reported(line, &known).map(|reported| (reported.test, reported.status))
    }

    #[test]
    fn each_outcome_is_read() {
        let a_b = |status| Some(("a::b".to_owned(), status));
        assert_eq!(read("test a::b ... ok"), a_b(Status::Passed));
        assert_eq!(read("test a::b ... FAILED"), a_b(Status::Failed));
        assert_eq!(read("test a::b ... ignored"), a_b(Status::Skipped));
        assert_eq!(read("test a::b ... ignored, needs a server"), a_b(Status::Skipped));
        assert_eq!(read("test a::b - should panic ... ok"), a_b(Status::Passed));
    }

    #[test]
    fn a_doc_test_keeps_its_path_and_line_as_name() {
        let line = "test crates/onward/src/lib.rs - work (line 12) - compile fail ... ok";
        let name = "crates/onward/src/lib.rs - work (line 12)".to_owned();
        assert_eq!(read(line), Some((name, Status::Passed)));
    }

    #[test]
    fn the_summary_and_a_tests_own_output_are_no_results() {
        for line in
            ["test result: ok. 3 passed; 0 failed", "the test b ... ok", "test a::b", "latest a ... ok", ""]
        {
            assert_eq!(read(line), None, "{line}");
        }
    }

    #[test]
    fn a_known_test_is_found_behind_uncaptured_output() {
        assert_eq!(
            read("noise without a line end test a::b ... ok"),
            Some(("a::b".to_owned(), Status::Passed))
        );
        assert_eq!(read("test a::b ... child said hello FAILED"), Some(("a::b".to_owned(), Status::Failed)));
    }

    #[test]
    fn the_list_leaves_benchmarks_out() {
        assert_eq!(listed("a::b: test\nc: benchmark\nd - e: test\n"), ["a::b", "d - e"]);
    }

    #[test]
    fn frames_are_not_shown_but_sentences_that_begin_like_them_are() {
        assert!(is_frame("running 12 tests") && is_frame("running 1 test") && is_frame(""));
        assert!(!is_frame("running away"));
    }
}
