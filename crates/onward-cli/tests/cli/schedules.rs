//! `onward schedules`, and the shell lines of its pages.

use crate::support::Place;
use onward_proves::proves;
use std::{path::Path, process::Command};

#[test]
#[proves("B6")]
fn a_schedule_is_put_listed_previewed_and_removed() {
    let place = Place::new();
    let put = [
        "schedules",
        "put",
        "nightly",
        "--queue",
        "reports",
        "--cron",
        "30 2 * * *",
        "--zone",
        "Europe/Zurich",
    ];
    assert!(place.run(&put).ok().starts_with("nightly: next tick 2"));
    let listed = place.run(&["schedules", "--json"]).objects().remove(0);
    assert_eq!(listed["when"]["cron"]["zone"], "Europe/Zurich");
    assert_eq!(listed["catch_up"], "coalesce");
    assert_eq!(listed["message"]["type"], "nightly");
    assert!(listed["next_local"].as_str().unwrap().contains("T02:30:00+0"), "{listed}");
    let table = place.run(&["schedules"]).ok();
    assert!(table.contains("30 2 * * * (Europe/Zurich)"), "{table}");
    assert_eq!(place.run(&["schedules", "preview", "nightly", "-n", "3", "--json"]).objects().len(), 3);
    place.run(&["schedules", "remove", "nightly"]).ok();
    assert!(place.run(&["schedules", "--json"]).objects().is_empty());
    assert!(place.run(&["queues"]).ok().contains("reports"), "its queue is declared");
}

#[test]
#[proves("T18")]
fn a_preview_shows_what_happens_where_the_clock_is_changed() {
    let place = Place::new();
    let args = [
        "schedules",
        "preview",
        "--cron",
        "30 2 * * *",
        "--zone",
        "Europe/Zurich",
        "--after",
        "2024-03-30T12:00:00Z",
        "-n",
        "2",
    ];
    let expected =
        "2024-03-31T03:00:00+02:00  2024-03-31T01:00:00Z\n2024-04-01T02:30:00+02:00  2024-04-01T00:30:00Z\n";
    assert_eq!(place.run(&args).ok(), expected);
}

#[test]
fn an_interval_that_begins_in_the_past_fires_at_its_next_tick_and_the_message_says_which() {
    let place = Place::new();
    let put = [
        "schedules",
        "put",
        "often",
        "--queue",
        "q",
        "--every",
        "1s",
        "--from",
        "2024-01-01T00:00:00Z",
        "--data",
        "[1]",
    ];
    place.run(&put).ok();
    let worked = place.run(&["work", "q", "--once", "--exec", "cat"]).ok();
    assert!(worked.contains("\"onward-schedule\":\"default/often\""), "{worked}");
}

#[test]
#[proves("T53")]
fn wrong_lines_zones_policies_and_names_are_told_with_the_mend() {
    let place = Place::new();
    place.run(&["schedules", "put", "nightly", "--queue", "q", "--cron", "@daily"]).ok();
    let put = |args: &[&str]| place.run(&[&["schedules", "put", "n", "--queue", "q"], args].concat());
    assert!(put(&["--cron", "61 * * * *"]).fails(65).contains("is no cron line"));
    assert!(put(&["--cron", "@daily", "--zone", "Mars"]).fails(65).contains("is no time zone"));
    assert!(put(&["--cron", "0 0 30 2 *"]).fails(65).contains("never"));
    assert!(put(&["--every", "10ms"]).fails(65).contains("at least 1000 ms"));
    assert!(put(&["--cron", "@daily", "--catch-up", "all"]).fails(2).contains("backfill:N"));
    assert!(put(&[]).fails(2).contains("--cron LINE"));
    assert!(place.run(&["schedules", "remove", "nightli"]).fails(1).contains("did you mean `nightly`"));
}

#[test]
#[proves("T58")]
fn the_shell_lines_of_the_pages_run_as_they_stand() {
    let guide = include_str!("../../../../docs/guide/schedules.md");
    let cli = include_str!("../../../../docs/cli.md").split("## Schedules").nth(1).unwrap();
    let bin = Path::new(env!("CARGO_BIN_EXE_onward")).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    for page in [guide, cli] {
        let lines = page.split("```sh\n").nth(1).unwrap().split("```").next().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let output = Command::new("sh")
            .args(["-euc", lines])
            .current_dir(dir.path())
            .env("PATH", &path)
            .env_remove("ONWARD_DATA_DIR")
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{errors}");
        assert!(String::from_utf8_lossy(&output.stdout).contains("nightly"));
    }
}
