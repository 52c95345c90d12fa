//! `onward work --exec`: one worker and its commands.

use crate::support::{Place, objects, watch};
use onward_proves::proves;
use serde_json::Value;

fn with(messages: &[(&str, &str)]) -> Place {
    let place = Place::new();
    let line = |(id, data): &(&str, &str)| format!("{{\"id\":\"{id}\",\"type\":\"t\",\"data\":{data}}}\n");
    let lines: String = messages.iter().map(line).collect();
    place.run_with(&["enqueue", "q"], &lines).ok();
    place
}

/// The one message of a place, wherever it is.
fn view(place: &Place, id: &str) -> Value {
    place.run(&["find", id, "--json"]).objects().remove(0)
}

#[test]
#[proves("B2")]
fn the_command_gets_the_envelope_on_stdin_and_its_parts_in_the_environment() {
    let place = with(&[("m", "{\"n\":1}")]);
    let exec = "cat; echo $ONWARD_ID $ONWARD_TYPE $ONWARD_VERSION $ONWARD_ATTEMPT $ONWARD_QUEUE \
                $ONWARD_CORRELATION_ID $ONWARD_DATA_DIR";
    let out = place.run(&["work", "q", "--drain", "--exec", exec]).ok();
    let (envelope, variables) = out.split_once('\n').unwrap();
    let message: Value = serde_json::from_str(envelope).unwrap();
    assert_eq!((message["id"].as_str(), message["data"]["n"].as_u64()), (Some("m"), Some(1)));
    assert_eq!(variables.trim(), format!("m t 1 1 q m {}", place.data().display()));
}

#[test]
#[proves("B2", "T50")]
fn exit_code_0_acknowledges() {
    let place = with(&[("a", "1"), ("b", "2")]);
    place.run(&["work", "q", "--drain", "--exec", "exit 0"]).ok();
    let books = place.run(&["balance", "--json"]).objects().remove(0);
    assert_eq!((books["done"].as_u64(), books["waiting"].as_u64()), (Some(2), Some(0)));
}

#[test]
#[proves("H1", "T52")]
fn exit_code_75_and_others_are_tried_again_after_a_delay() {
    for code in [75, 1, 3] {
        let place = with(&[("m", "1")]);
        let exec = format!("echo not now; exit {code}");
        place.run(&["work", "q", "--once", "--exec", &exec]).fails(1);
        let view = view(&place, "m");
        assert_eq!(view["causes"][0]["kind"], "transient", "{view}");
        let error = format!("the command ended with exit code {code}: not now");
        assert_eq!(view["causes"][0]["error"], error.as_str());
        assert!(view["due"].is_string() || view["state"] == "waiting", "{view}");
        assert_eq!(view["attempts"], 1);
    }
}

#[test]
#[proves("H1", "H2")]
fn exit_code_65_is_a_dead_letter_at_once() {
    let place = with(&[("m", "1")]);
    place.run(&["work", "q", "--once", "--exec", "exit 65"]).fails(1);
    assert_eq!(view(&place, "m")["state"], "dead");
}

#[test]
fn a_command_killed_by_a_signal_is_a_failed_attempt_with_the_cause_crashed() {
    let place = with(&[("m", "1")]);
    place.run(&["work", "q", "--once", "--exec", "kill -s SEGV $$"]).fails(1);
    let view = view(&place, "m");
    assert_eq!(view["causes"][0]["kind"], "crashed", "{view}");
    assert!(view["causes"][0]["error"].as_str().unwrap().contains("SIGSEGV"), "{view}");
}

#[test]
#[proves("H2", "H3")]
fn a_message_that_always_fails_is_a_dead_letter_with_every_cause() {
    let place = Place::new();
    let fast = [
        "queues",
        "declare",
        "q",
        "--attempts",
        "3",
        "--set",
        "retry.delay_max_ms=1",
        "--set",
        "retry.delay_min_ms=1",
    ];
    place.run(&fast).ok();
    place.run(&["enqueue", "q", "--type", "t", "--id", "m", "--data", "1"]).ok();
    let mut worker = place.start(&["work", "q", "--exec", "echo attempt $ONWARD_ATTEMPT; exit 1"]);
    worker.notes("dead letters in q");
    worker.signal("TERM");
    assert_eq!(worker.end().code, Some(0));
    let view = view(&place, "m");
    let attempts: Vec<u64> =
        view["causes"].as_array().unwrap().iter().map(|c| c["attempt"].as_u64().unwrap()).collect();
    assert_eq!((view["state"].as_str(), attempts), (Some("dead"), vec![1, 2, 3]));
}

#[test]
fn only_the_end_of_long_output_is_kept() {
    let place = with(&[("m", "1")]);
    let exec = "yes noise | head -c 1000000; echo the reason; exit 1";
    place.run(&["work", "q", "--once", "--exec", exec]).fails(1);
    let view = view(&place, "m");
    let detail = view["causes"][0]["detail"].as_str().unwrap();
    assert!(detail.ends_with("the reason\n") && detail.len() <= 4096, "{} bytes", detail.len());
}

#[test]
#[proves("T55")]
fn a_command_over_its_timeout_is_killed_with_everything_it_started() {
    let place = with(&[("m", "1")]);
    let fifo = place.fifo("alive");
    let alive = watch(&fifo);
    let exec = format!("exec 3>{}; sleep 600 & sleep 600", fifo.display());
    let worker = place.start(&["work", "q", "--once", "--timeout", "300ms", "--exec", &exec]);
    alive.all_have_ended();
    assert_eq!(worker.end().code, Some(1));
    assert_eq!(view(&place, "m")["causes"][0]["kind"], "timeout");
}

#[test]
fn what_a_command_leaves_running_ends_with_it() {
    let place = with(&[("m", "1")]);
    let fifo = place.fifo("alive");
    let alive = watch(&fifo);
    let exec = format!("exec 3>{}; sleep 600 & exit 0", fifo.display());
    let worker = place.start(&["work", "q", "--once", "--exec", &exec]);
    alive.all_have_ended();
    assert_eq!(worker.end().code, Some(0));
}

#[test]
#[proves("T34")]
fn as_many_commands_run_at_once_as_asked_for() {
    let place = with(&[("a", "1"), ("b", "2")]);
    let fifo = place.fifo("meet");
    // Each waits for the other: one at a time would never end.
    let exec = format!("case $ONWARD_ID in a) echo met > {0};; b) cat {0};; esac", fifo.display());
    let out = place.run(&["work", "q", "--drain", "--concurrency", "2", "--exec", &exec]).ok();
    assert_eq!(out, "met\n");
}

#[test]
fn a_command_that_does_not_read_its_stdin_is_no_failure() {
    let place = with(&[("m", &format!("\"{}\"", "x".repeat(200_000)))]);
    place.run(&["work", "q", "--once", "--exec", "true"]).ok();
    assert_eq!(place.run(&["balance", "--json"]).objects()[0]["done"], 1);
}

#[test]
fn a_queue_that_keeps_results_keeps_the_output() {
    let place = Place::new();
    place.run(&["queues", "declare", "q", "--keep-results", "1d"]).ok();
    place.run(&["enqueue", "q", "--type", "t", "--id", "m", "--data", "1"]).ok();
    place.run(&["work", "q", "--once", "--keep-output", "--exec", "echo '{\"n\":9007199254740993}'"]).ok();
    let text = place.run(&["find", "m", "--json"]).ok();
    assert!(text.contains("\"result\":{\"n\":9007199254740993}"), "{text}");
}

#[test]
#[proves("T57", "T35")]
fn sigterm_lets_the_running_command_end_and_takes_nothing_more() {
    let place = with(&[("a", "1"), ("b", "2")]);
    let fifo = place.fifo("go");
    let exec = format!("echo begun; cat {}", fifo.display());
    let mut worker = place.start(&["work", "q", "--exec", &exec]);
    worker.says("begun");
    worker.signal("TERM");
    std::fs::write(&fifo, "released\n").unwrap();
    worker.says("released");
    assert_eq!(worker.end().code, Some(0));
    let books = place.run(&["balance", "--json"]).objects().remove(0);
    assert_eq!((books["done"].as_u64(), books["waiting"].as_u64()), (Some(1), Some(1)), "{books}");
}

#[test]
#[proves("T36")]
fn a_second_signal_kills_the_command_and_puts_the_message_back_without_counting() {
    let place = with(&[("m", "1")]);
    let fifo = place.fifo("alive");
    let alive = watch(&fifo);
    let exec = format!("exec 3>{}; echo begun; sleep 600", fifo.display());
    let mut worker = place.start(&["work", "q", "--exec", &exec]);
    worker.says("begun");
    worker.signal("TERM");
    worker.signal("INT");
    alive.all_have_ended();
    assert_eq!(worker.end().code, Some(0));
    let again = place.run(&["work", "q", "--once", "--exec", "echo attempt $ONWARD_ATTEMPT"]).ok();
    assert_eq!(again, "attempt 1\n");
}

#[test]
#[proves("B8")]
fn cancelling_a_running_message_kills_its_command() {
    let place = with(&[("m", "1")]);
    let fifo = place.fifo("alive");
    let alive = watch(&fifo);
    let exec = format!("exec 3>{}; echo begun; sleep 600", fifo.display());
    let mut worker = place.start(&["work", "q", "--once", "--lease", "300ms", "--exec", &exec]);
    worker.says("begun");
    assert!(place.run(&["cancel", "m"]).ok().contains("asked to stop"));
    alive.all_have_ended();
    worker.end();
    assert_eq!(place.run(&["balance", "--json"]).objects()[0]["cancelled"], 1);
}

#[test]
#[proves("T61")]
fn json_events_tell_durability_each_attempt_and_the_end() {
    let place = with(&[("m", "1")]);
    let done = place.run(&["work", "q", "--drain", "--json", "--exec", "echo hello; exit 0"]);
    let events = objects(&done.ok());
    let names: Vec<&str> = events.iter().map(|e| e["event"].as_str().unwrap()).collect();
    assert_eq!(names, ["begin", "attempt", "end"]);
    assert_eq!(events[0]["durability"], "fsync");
    assert_eq!((events[1]["outcome"].as_str(), events[1]["output"].as_str()), (Some("ack"), Some("hello\n")));
    assert_eq!(events[2]["done"], 1);
}

#[test]
fn messages_of_other_types_are_left_to_other_workers() {
    let place = Place::new();
    place.run_with(&["enqueue", "q"], "{\"id\":\"a\",\"type\":\"x\"}\n{\"id\":\"b\",\"type\":\"y\"}\n").ok();
    let out = place.run(&["work", "q", "--once", "--type", "y", "--exec", "echo $ONWARD_ID"]).ok();
    assert_eq!(out, "b\n");
    assert_eq!(view(&place, "a")["state"], "waiting");
}

#[test]
#[proves("T6")]
fn a_guard_that_dies_is_replaced_before_the_next_command_begins() {
    let place = with(&[("a", "1"), ("b", "2")]);
    let (go, fifo) = (place.fifo("go"), place.fifo("alive"));
    let alive = watch(&fifo);
    let exec = format!(
        "case $ONWARD_ID in a) echo first; cat {};; b) exec 3>{}; echo second; sleep 600;; esac",
        go.display(),
        fifo.display()
    );
    let mut worker = place.start(&["work", "q", "--exec", &exec]);
    worker.says("first");
    worker.kill_guard();
    std::fs::write(&go, "").unwrap();
    worker.says("second");
    worker.kill();
    alive.all_have_ended();
}
