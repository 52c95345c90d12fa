//! The command line itself: help, completions, man pages, mistakes.

use crate::support::Place;
use onward_proves::proves;

#[test]
#[proves("T53")]
fn a_misspelt_option_or_command_ends_with_2_and_the_nearest_one() {
    let place = Place::new();
    let option = place.run(&["enqueue", "q", "--prioriti", "3"]).fails(2);
    assert!(option.contains("--priority"), "{option}");
    assert!(place.run(&["enqeue", "q"]).fails(2).contains("enqueue"));
    let value = place.run(&["enqueue", "q", "--delay", "10"]).fails(2);
    assert!(value.contains("with a unit"), "{value}");
    assert!(!place.data().exists());
}

#[test]
#[proves("T58")]
fn help_tells_the_exit_codes_and_examples() {
    let place = Place::new();
    let help = place.run(&["--help"]).ok();
    assert!(help.contains("Exit codes:") && help.contains("65"), "{help}");
    let work = place.run(&["work", "--help"]).ok();
    assert!(work.contains("ONWARD_ATTEMPT") && work.contains("onward work emails --exec"), "{work}");
}

#[test]
fn completions_and_man_pages_come_from_the_command_line_itself() {
    let place = Place::new();
    assert!(place.run(&["completions", "bash"]).ok().contains("enqueue"));
    assert!(place.run(&["man"]).ok().contains(".TH onward"));
    let dir = place.path("man");
    std::fs::create_dir(&dir).unwrap();
    place.run(&["man", "--dir", dir.to_str().unwrap()]).ok();
    assert!(dir.join("onward-dead-redrive.1").exists());
    place.run(&["man", "--dir", "no-such-folder"]).fails(1);
}

#[test]
fn nothing_is_coloured_where_no_terminal_is() {
    let place = Place::new();
    place.run(&["enqueue", "q", "--type", "t", "--data", "1"]).ok();
    assert!(!place.run(&["queues"]).ok().contains('\u{1b}'));
    assert!(!place.run(&["peek", "nobody"]).stderr.contains('\u{1b}'));
}

#[test]
#[proves("T58")]
fn the_first_example_of_the_documentation_prints_something_and_is_safe_to_run_twice() {
    let place = Place::new();
    let page = include_str!("../../../../docs/cli.md");
    let example = page.split("```sh\n").nth(1).unwrap().split("```").next().unwrap();
    assert_eq!(example.lines().count(), 5);
    let bin = std::path::Path::new(env!("CARGO_BIN_EXE_onward")).parent().unwrap();
    let script = format!("set -e; PATH=\"{}:$PATH\"; {example}", bin.display());
    for _ in 0..2 {
        let out = place.shell(&script, &[]).ok();
        assert!(out.contains("ada@example.com") && out.contains("balance"), "{out}");
    }
}

#[test]
#[proves("T53")]
fn an_empty_command_is_refused_since_it_would_acknowledge_everything_undone() {
    let place = Place::new();
    for empty in ["", "  "] {
        let error = place.run(&["work", "q", "--drain", "--exec", empty]).fails(2);
        assert!(error.contains("acknowledge every message"), "{error}");
    }
}
