//! `append`, `read`, `streams`, `trace`: events from the shell.

use crate::support::Place;
use onward_proves::proves;
use std::{path::Path, process::Command};

const GUIDE: &str = include_str!("../../../../docs/guide/streams.md");

fn ids(place: &Place, args: &[&str]) -> Vec<String> {
    let objects = place.run(&[args, &["--json"]].concat()).objects();
    objects.iter().map(|object| object["message"]["id"].as_str().unwrap().to_owned()).collect()
}

fn append(place: &Place, stream: &str, id: &str, more: &[&str]) -> crate::support::Done {
    place.run(&[&["append", stream, "--type", "t", "--data", "1.10", "--id", id], more].concat())
}

fn filled() -> Place {
    let place = Place::new();
    append(&place, "account-1", "a0", &["--expect", "none", "--tag", "x"]).ok();
    append(&place, "account-2", "b0", &["--tag", "x", "--tag", "y"]).ok();
    append(&place, "account-1", "a1", &["--expect", "0"]).ok();
    append(&place, "order-1", "o0", &[]).ok();
    place
}

#[test]
#[proves("E3", "T53")]
fn an_append_answers_where_it_stands_and_a_conflict_says_what_stands_there() {
    let place = filled();
    let receipt = append(&place, "account-1", "a2", &["--expect", "1", "--json"]).objects().remove(0);
    assert_eq!((&receipt["first_revision"], &receipt["duplicate"]), (&2.into(), &false.into()));
    let again = append(&place, "account-1", "a2", &["--expect", "1", "--json"]).objects().remove(0);
    assert_eq!((&again["position"], &again["duplicate"]), (&receipt["position"], &true.into()));
    let refused = append(&place, "account-1", "x", &["--expect", "0"]).fails(1);
    assert!(refused.contains("expected revision 0, found revision 2"), "{refused}");
    let held = append(&place, "order-1", "x", &["--unless-tag", "y", "--unless-type", "t"]).fails(1);
    assert!(held.contains("matches the condition"), "{held}");
    append(&place, "order-1", "o1", &["--unless-tag", "y", "--unless-type", "other"]).ok();
    assert!(append(&place, "order-1", "x", &["--expect", "two"]).fails(2).contains("`two`"));
    let wrong = place.run_with(&["append", "order-1"], "{\"data\":1}\nbroken\n").fails(65);
    assert!(wrong.contains("stdin:2"), "{wrong}");
    assert_eq!(ids(&place, &["read", "order-1"]), ["o0", "o1"]);
}

#[test]
#[proves("E4", "E2", "L5")]
fn events_are_read_by_stream_category_tag_and_type_both_ways_and_as_of_a_time() {
    let place = filled();
    assert_eq!(ids(&place, &["read", "account-1"]), ["a0", "a1"]);
    assert_eq!(ids(&place, &["read", "account-1", "--backward", "--limit", "1"]), ["a1"]);
    assert_eq!(ids(&place, &["read", "account-1", "--from-revision", "1"]), ["a1"]);
    assert_eq!(ids(&place, &["read", "--category", "account"]), ["a0", "b0", "a1"]);
    assert_eq!(ids(&place, &["read", "--tag", "x", "--type", "t"]), ["a0", "b0"]);
    assert_eq!(ids(&place, &["read", "--tag", "x", "--tag", "y"]), ["b0"]);
    assert_eq!(ids(&place, &["read", "--all"]), ["a0", "b0", "a1", "o0"]);
    let all = place.run(&["read", "--all", "--json"]).objects();
    assert!(place.run(&["read", "--all", "--json"]).stdout.contains("\"data\":1.10"));
    let third = all[2]["recorded_at"].as_str().unwrap();
    assert_eq!(ids(&place, &["read", "--all", "--as-of", third]), ["a0", "b0", "a1"]);
    assert_eq!(ids(&place, &["read", "--all", "--since", third]), ["a1", "o0"]);
    assert!(place.run(&["read", "account-1"]).ok().trim_start().starts_with("POSITION"));
    for wrong in [&["read"][..], &["read", "a-1", "--all"], &["read", "--all", "--from-revision", "1"]] {
        place.run(wrong).fails(2);
    }
}

#[test]
#[proves("E4")]
fn a_follower_shows_what_is_appended_by_another_process() {
    let place = filled();
    let mut follower = place.start(&["read", "--all", "--follow", "--json"]);
    follower.says("\"o0\"");
    append(&place, "account-9", "later", &[]).ok();
    follower.says("\"later\"");
    follower.signal("INT");
    assert_eq!(follower.end().code, Some(0));
}

#[test]
#[proves("L2")]
fn streams_are_listed_with_how_far_they_go() {
    let place = filled();
    let listed = place.run(&["streams", "--json"]).objects();
    let of = |index: usize| {
        (listed[index]["stream"].as_str().unwrap(), listed[index]["revision"].as_u64().unwrap())
    };
    assert_eq!([of(0), of(1), of(2)], [("account-2", 0), ("account-1", 1), ("order-1", 0)]);
    assert_eq!(place.run(&["streams", "account-", "--json"]).objects().len(), 2);
    assert!(place.run(&["streams"]).ok().contains("account-1"));
}

#[test]
#[proves("L2", "F2")]
fn a_trace_shows_messages_dead_letters_and_events_of_one_correlation_id_in_time_order() {
    let place = Place::new();
    append(&place, "order-7", "placed", &["--correlation-id", "c7"]).ok();
    append(&place, "order-8", "another", &["--correlation-id", "c8"]).ok();
    let enqueue = |id: &str| {
        place.run(&["enqueue", "q", "--type", "t", "--data", "1", "--id", id, "--correlation-id", "c7"]).ok()
    };
    place.run(&["queues", "declare", "q", "--keep-results", "1h"]).ok();
    enqueue("done");
    place.run(&["work", "q", "--once", "--exec", "true"]).ok();
    enqueue("dead");
    place.run(&["work", "q", "--once", "--exec", "exit 65"]).fails(1);
    enqueue("waiting");
    let traced = place.run(&["trace", "c7", "--json"]).objects();
    let line = |index: usize| {
        let object = &traced[index];
        let state = object["state"].as_str().unwrap_or("-").to_owned();
        (
            object["what"].as_str().unwrap().to_owned(),
            object["message"]["id"].as_str().unwrap().to_owned(),
            state,
        )
    };
    let expected = [
        ("event", "placed", "-"),
        ("message", "done", "done"),
        ("message", "dead", "dead"),
        ("message", "waiting", "waiting"),
    ];
    assert_eq!(traced.len(), expected.len(), "{traced:?}");
    for (index, (what, id, state)) in expected.into_iter().enumerate() {
        assert_eq!(line(index), (what.to_owned(), id.to_owned(), state.to_owned()));
    }
    assert!(place.run(&["trace", "c7"]).ok().contains("order-7"));
    place.run(&["trace", "nothing"]).fails(1);
}

#[test]
#[proves("T58")]
fn the_guides_shell_lines_run_as_they_stand() {
    let blocks: Vec<&str> =
        GUIDE.split("```sh\n").skip(1).map(|block| block.split("```").next().unwrap()).collect();
    assert!(blocks.len() >= 3);
    let dir = tempfile::tempdir().unwrap();
    let bin = Path::new(env!("CARGO_BIN_EXE_onward")).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let output = Command::new("sh")
        .args(["-euc", &blocks.concat()])
        .current_dir(dir.path())
        .env("PATH", &path)
        .env_remove("ONWARD_DATA_DIR")
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}{errors}", String::from_utf8_lossy(&output.stdout));
    assert!(errors.contains("found revision 1"), "the guide's conflict is not shown: {errors}");
}

#[test]
#[proves("T53")]
fn a_stream_is_truncated_before_a_revision_and_goes_on_where_it_was() {
    let place = filled();
    place.run(&["truncate", "account-1", "--before", "1"]).ok();
    assert_eq!(ids(&place, &["read", "account-1"]), ["a1"]);
    let told = place.run(&["truncate", "account-1", "--before", "2", "--json"]).objects().remove(0);
    assert_eq!((&told["stream"], &told["before"]), (&"account-1".into(), &2.into()));
    assert!(ids(&place, &["read", "account-1"]).is_empty());
    let receipt = append(&place, "account-1", "a2", &["--expect", "1", "--json"]).objects().remove(0);
    assert_eq!(receipt["first_revision"], 2);
    assert!(place.run(&["truncate", "account-1", "--before", "9"]).fails(65).contains("the next is 3"));
    assert!(place.run(&["truncate", "none-1", "--before", "0"]).fails(1).contains("no such stream"));
}
