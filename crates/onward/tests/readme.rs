//! The README's program is the example that is built, and it does what the README says, twice.
#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected has failed")]

use onward_proves::proves;
use std::{path::PathBuf, process::Command};

const README: &str = include_str!("../../../README.md");
const EXAMPLE: &str = include_str!("../examples/first.rs");

/// The example as a program; `cargo test --all-targets` builds examples only as tests, so it may have to be built here.
fn example() -> PathBuf {
    let here = std::env::current_exe().unwrap();
    let program = here.parent().unwrap().parent().unwrap().join("examples").join("first");
    if !program.exists() {
        let build = ["build", "--quiet", "-p", "onward", "--example", "first"];
        let built =
            Command::new(env!("CARGO")).args(build).current_dir(env!("CARGO_MANIFEST_DIR")).status().unwrap();
        assert!(built.success());
    }
    program
}

#[test]
#[proves("T58")]
fn the_readme_shows_the_example_word_for_word_with_its_dependency_lines() {
    let shown = README.split("```rust\n").nth(1).unwrap().split("```").next().unwrap();
    assert!(EXAMPLE.ends_with(shown), "README.md and crates/onward/examples/first.rs differ");
    for dependency in ["onward = ", "serde = ", "tokio = "] {
        assert!(README.contains(dependency), "the README does not show `{dependency}`");
    }
}

#[test]
#[proves("T58")]
fn the_first_example_prints_something_and_is_safe_to_run_twice() {
    let dir = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let output = Command::new(example()).current_dir(dir.path()).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(text.contains("durability: fsync"), "{text}");
        assert_eq!(
            text.matches("Welcome, ada@example.com!").count(),
            1,
            "each run does its own message: {text}"
        );
    }
}
