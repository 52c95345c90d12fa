//! Each absence is found where it holds, and not where it is allowed.

use super::*;
use crate::tidy::file;

fn found(path: &str, text: &str) -> Vec<(usize, String)> {
    let findings = check(&[file(path, text)]).unwrap();
    findings.into_iter().map(|finding| (finding.line, finding.what)).collect()
}

fn is_found(path: &str, text: &str) -> bool {
    !found(path, text).is_empty()
}

#[test]
fn clock_sleep_and_randomness_are_found_outside_their_home() {
    let sources = [
        "fn a() { let t = std::time::Instant::now(); }",
        "use tokio::time::{timeout, Duration};",
        "fn a() { select! { _ = tokio::time::sleep(d) => {} } }",
        "use rand::Rng;",
        "fn a() { std::thread::sleep(d) }",
    ];
    for source in sources {
        assert!(is_found("crates/onward-log/src/a.rs", source), "{source}");
        assert!(!is_found("crates/onward-env/src/a.rs", source), "{source}");
        assert!(!is_found("crates/onward-log/benches/a.rs", source), "{source}");
    }
    assert!(!is_found(
        "crates/onward-log/src/a.rs",
        "use std::time::{Duration, Instant}; fn a(b: B) { b.sleep(d) }"
    ));
}

#[test]
fn a_sleep_is_found_in_tests_only() {
    let source = "#[cfg(test)] mod tests { #[test] fn a() { env.sleep(d) } }";
    assert!(is_found("crates/onward-log/src/a.rs", source));
    assert!(is_found("crates/onward-log/tests/a.rs", "async fn a() { env.sleep(d).await }"));
    assert!(!is_found("crates/onward-sim/src/a.rs", source));
    assert!(!is_found("crates/onward-log/src/a.rs", "fn a() { env.sleep(d) }"));
}

#[test]
fn unfinished_code_and_ignored_tests_are_found_with_their_line() {
    assert_eq!(found("a.rs", "fn a() {\n    todo!()\n}")[0].0, 2);
    assert!(is_found("a.rs", "fn a() { unimplemented!(\"later\") }"));
    assert!(is_found("a.rs", "#[test] #[ignore] fn a() {}"));
    assert!(is_found("a.rs", "#[test] #[ignore = \"slow\"] fn a() {}"));
    assert!(is_found("a.md", concat!("FIX", "ME later")));
    assert!(!is_found("a.rs", "fn a() { let todo = \"todo!()\"; }"));
}

#[test]
fn an_exception_needs_its_reason() {
    assert!(is_found("a.rs", "#[allow(dead_code)] fn a() {}"));
    assert!(is_found("a.rs", "#![allow(dead_code)]"));
    assert!(!is_found("a.rs", "#[allow(dead_code, reason = \"read by derive\")] fn a() {}"));
}

#[test]
fn a_path_of_one_machine_is_found_and_one_of_the_project_is_not() {
    assert!(is_found("a.md", concat!("see `/ho", "me/me/x`")));
    assert!(is_found("a.rs", concat!("const A: &str = \"/wo", "rk/x\";")));
    assert!(!is_found("a.md", "crates/onward/src/work/mod.rs"));
    assert!(!is_found("a.md", "https://example.org/home/me"));
}

#[test]
fn the_suite_names_no_engine_outside_its_binary() {
    let source = "use onward_embedded::Memory;";
    assert!(is_found("crates/onward-conformance/src/checks.rs", source));
    assert!(!is_found("crates/onward-conformance/src/bin/conformance.rs", source));
    assert!(!is_found("crates/onward-cli/src/main.rs", source));
}
