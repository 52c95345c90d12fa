//! `--json`: one object a line on both streams, whatever the command and however it ends.

use crate::support::{Place, objects};
use onward_proves::proves;

#[test]
#[proves("T53")]
fn every_command_speaks_json_lines_on_both_streams_in_success_and_failure() {
    let place = Place::new();
    let message = "{\"id\":\"m\",\"type\":\"t\",\"data\":1}";
    let beside = place.path(".");
    let calls: &[&[&str]] = &[
        &["queues", "declare", "q"],
        &["enqueue", "q", message],
        &["enqueue", "q", "broken"],
        &["enqueue", "Q!", message],
        &["queues"],
        &["queues", "show", "q"],
        &["queues", "pause", "q"],
        &["queues", "resume", "q"],
        &["queues", "pause", "nobody"],
        &["peek", "q"],
        &["peek", "q", "--stat", "dead"],
        &["find", "m"],
        &["find", "nobody"],
        &["work", "q", "--once", "--exec", "echo text; echo more >&2; exit 65"],
        &["dead", "list"],
        &["dead", "show", "q", "m"],
        &["dead", "show", "q", "nobody"],
        &["dead", "edit", "q", "m", "--set-data", "2"],
        &["dead", "redrive", "q", "m", "--dry-run"],
        &["dead", "redrive", "q", "m"],
        &["dead", "purge", "q", "--all"],
        &["work", "q", "--drain", "--exec", "echo text"],
        &["cancel", "m"],
        &["stats"],
        &["balance"],
        &["queues", "drop", "q"],
        &["verify"],
        &["verify", "no-such-folder"],
        &["bench", "--dir", beside.to_str().unwrap(), "--for", "10ms", "--producers", "2"],
        &["no-such-command"],
    ];
    for call in calls {
        let done = place.run(&[*call, &["--json"]].concat());
        objects(&done.stdout);
        let errors = objects(&done.stderr);
        if done.code != Some(0) {
            let told = errors.iter().any(|e| e.get("error").is_some());
            let answered = !done.stdout.is_empty();
            assert!(told || answered, "{call:?} says nothing: {done:?}");
        }
        for error in errors.iter().filter_map(|e| e.get("error")) {
            assert!(error["what"].is_string() && error["kind"].is_string(), "{call:?}: {error}");
        }
    }
}
