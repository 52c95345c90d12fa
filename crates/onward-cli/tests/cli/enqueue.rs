//! `onward enqueue`.

use crate::support::{Place, objects};
use onward_proves::proves;

const WELCOME: &str = r#"{"type":"email.welcome","data":{"to":"ada@example.com"}}"#;

#[test]
#[proves("F2")]
fn a_message_gets_what_it_leaves_out_and_its_id_is_printed() {
    let place = Place::new();
    let id = place.run(&["enqueue", "emails", WELCOME]).ok().trim().to_owned();
    assert_eq!(id.len(), 36, "{id}");
    let view = place.run(&["peek", "emails", "--json"]).objects().remove(0);
    let message = &view["message"];
    assert_eq!(message["id"], id.as_str());
    assert_eq!(message["type"], "email.welcome");
    assert_eq!(message["version"], 1);
    assert_eq!(message["data"]["to"], "ada@example.com");
    assert!(message["timestamp"].is_string() && message["source"].is_string());
}

#[test]
#[proves("F1")]
fn a_whole_envelope_is_taken_as_it_stands() {
    let place = Place::new();
    let sample = r#"{"id":"msg-12345","type":"order.created","version":1,"timestamp":"2024-03-15T10:23:45Z",
        "source":"order-service","correlation_id":"req-67890","data":{"order_id":"ord-11111","total":99.99}}"#;
    assert_eq!(place.run(&["enqueue", "orders", sample]).ok(), "msg-12345\n");
    let view = place.run(&["find", "msg-12345", "--json"]).objects().remove(0);
    assert_eq!(view["message"]["timestamp"], "2024-03-15T10:23:45Z");
    assert_eq!(view["message"]["correlation_id"], "req-67890");
    assert_eq!(view["state"], "waiting");
}

#[test]
#[proves("T61", "A2")]
fn the_receipt_says_which_durability_holds() {
    let place = Place::new();
    let receipt = place.run(&["enqueue", "emails", WELCOME, "--json"]).objects().remove(0);
    assert_eq!(receipt["durability"], "fsync");
    assert_eq!(receipt["duplicate"], false);
    assert_eq!(receipt["queue"], "emails");
    let note = place.run(&["enqueue", "emails", WELCOME]).stderr;
    assert!(note.contains("durability: fsync"), "{note}");
}

#[test]
#[proves("T56")]
fn the_same_id_again_is_a_duplicate_and_adds_nothing() {
    let place = Place::new();
    let message = r#"{"id":"one","type":"t","data":1}"#;
    place.run(&["enqueue", "q", message]).ok();
    let again = place.run(&["enqueue", "q", message, "--json"]).objects().remove(0);
    assert_eq!((again["id"].as_str(), again["duplicate"].as_bool()), (Some("one"), Some(true)));
    assert_eq!(place.run(&["peek", "q", "--json"]).objects().len(), 1);
}

#[test]
#[proves("T53")]
fn a_bad_line_is_told_with_file_line_reason_and_mend_and_the_others_go_on() {
    let place = Place::new();
    let text =
        "{\"type\":\"a\"}\n\n{\"typ\":\"b\"}\nnot json\n{\"type\":\"c\",\"priority\":99}\n{\"type\":\"d\"}\n";
    let file = place.file("lines.jsonl", text);
    let done = place.run(&["enqueue", "q", "--file", &file, "--json"]);
    assert_eq!(done.code, Some(65), "{done:?}");
    assert_eq!(done.objects().len(), 2);
    let errors: Vec<_> = objects(&done.stderr).into_iter().filter(|o| o.get("error").is_some()).collect();
    let places: Vec<&str> = errors.iter().map(|e| e["error"]["place"].as_str().unwrap()).collect();
    assert_eq!(places.len(), 3, "{errors:?}");
    for (found, line) in places.iter().zip([3, 4, 5]) {
        assert!(found.starts_with(&format!("{file}:{line}")), "{found}");
    }
    assert!(errors[0]["error"]["mend"].as_str().unwrap().contains("`type`"), "{errors:?}");
    assert_eq!(place.run(&["peek", "q", "--json"]).objects().len(), 2);
}

#[test]
fn all_or_nothing_accepts_nothing_when_one_line_is_bad() {
    let place = Place::new();
    let lines = "{\"type\":\"a\"}\nbroken\n";
    let error = place.run_with(&["enqueue", "q", "--file", "-", "--all-or-nothing"], lines).fails(65);
    assert!(error.contains("stdin:2") && error.contains("nothing was accepted"), "{error}");
    assert_eq!(
        place.run_with(&["enqueue", "q", "--all-or-nothing"], "{\"type\":\"a\"}\n{\"type\":\"b\"}\n").code,
        Some(0)
    );
    assert_eq!(place.run(&["peek", "q", "--json"]).objects().len(), 2);
}

#[test]
fn options_fill_in_what_messages_leave_out_and_messages_win() {
    let place = Place::new();
    let args =
        ["enqueue", "q", "--type", "t", "--priority", "7", "--header", "tenant=acme", "--order-key", "k1"];
    let done = place.run_with(&args, "{\"data\":1}\n{\"data\":2,\"type\":\"own\",\"priority\":2}\n");
    done.ok();
    let views = place.run(&["peek", "q", "--json"]).objects();
    let kinds: Vec<(&str, u64)> = views
        .iter()
        .map(|v| (v["message"]["type"].as_str().unwrap(), v["message"]["priority"].as_u64().unwrap()))
        .collect();
    assert_eq!(kinds, [("t", 7), ("own", 2)]);
    assert_eq!(views[0]["message"]["headers"]["tenant"], "acme");
    assert_eq!(views[1]["message"]["order_key"], "k1");
}

#[test]
fn bare_data_needs_no_envelope() {
    let place = Place::new();
    place.run(&["enqueue", "q", "--type", "t", "--data", "[1,2.50]", "--id", "x"]).ok();
    let shown = place.run(&["find", "x", "--json"]).ok();
    assert!(shown.contains("\"data\":[1,2.50]"), "{shown}");
    place.run(&["enqueue", "q", "--type", "t", "--data", "{"]).fails(65);
}

#[test]
#[proves("B6")]
fn a_delayed_message_is_not_waiting_yet() {
    let place = Place::new();
    place.run(&["enqueue", "q", "--type", "t", "--data", "1", "--delay", "1h"]).ok();
    assert_eq!(place.run(&["peek", "q", "--json"]).objects().len(), 0);
    let delayed = place.run(&["peek", "q", "--state", "delayed", "--json"]).objects();
    assert!(delayed[0]["due"].is_string(), "{delayed:?}");
}

#[test]
#[proves("T53")]
fn a_named_file_that_is_missing_fails_before_anything_is_sent() {
    let place = Place::new();
    let error = place.run(&["enqueue", "q", WELCOME, "--file", "no-such-file.jsonl"]).fails(1);
    assert!(error.contains("no-such-file.jsonl"), "{error}");
    assert!(!place.data().exists());
}

#[test]
#[proves("T54", "T48")]
fn a_message_over_the_size_bound_is_refused_with_the_mend() {
    let place = Place::new();
    let line = format!("{{\"type\":\"t\",\"data\":\"{}\"}}\n", "x".repeat(300 * 1024));
    let error = place.run_with(&["enqueue", "q"], &line).fails(65);
    assert!(error.contains("claim check"), "{error}");
}

#[test]
fn five_thousand_lines_go_in_and_each_gets_its_id() {
    let place = Place::new();
    let lines: String =
        (0..5_000).map(|n| format!("{{\"id\":\"m{n}\",\"type\":\"t\",\"data\":{n}}}\n")).collect();
    let ids = place.run_with(&["enqueue", "q"], &lines).ok();
    assert_eq!(ids.lines().count(), 5_000);
    assert_eq!(ids.lines().last(), Some("m4999"));
    let queues = place.run(&["queues", "--json"]).objects();
    assert_eq!(queues[0]["depth"], 5_000);
}
