//! Backups, restores and what else keeps a folder safe, by the binary.

use crate::support::{Place, objects, wait_until};
use onward_proves::proves;

fn text(path: &std::path::Path) -> &str {
    path.to_str().unwrap()
}

#[test]
#[proves("LOG23", "T58")]
fn a_folder_is_backed_up_while_a_worker_has_it_and_restored_with_everything_in_it() {
    let place = Place::new();
    let lines: String = (0..50).map(|n| format!("{{\"type\":\"t\",\"data\":\"payload {n}\"}}\n")).collect();
    place.run_with(&["enqueue", "q"], &lines).ok();
    let mut worker = place.start(&["work", "other", "--exec", "true"]);
    worker.notes("working on other");
    let (copies, copy) = (place.path("copies"), place.path("copy"));
    let made = place.run(&["backup", text(&copies), "--json"]).objects().remove(0);
    assert!(made["bytes"].as_u64() > Some(0), "{made}");
    // The folder is still the worker's, and goes on.
    place.run(&["enqueue", "q", "--type", "t", "--data", "1"]).ok();
    let again = place.run(&["backup", text(&copies), "--json"]).objects().remove(0);
    assert!(again["bytes"].as_u64() < made["bytes"].as_u64(), "{again}");
    assert!(place.run(&["verify", text(&copies)]).ok().contains("sound"));

    let restored =
        place.run(&["restore", text(&copies), "--data-dir", text(&copy), "--json"]).objects().remove(0);
    assert_eq!(restored["position"], again["position"], "{restored}");
    let found = place.run(&["verify", text(&copy), "--json"]).objects().remove(0);
    assert_eq!((found["sound"].as_bool(), found["messages"].as_u64()), (Some(true), Some(51)), "{found}");
    let error = place.run(&["restore", text(&copies), "--data-dir", text(&copy)]).fails(1);
    assert!(error.contains("not empty") && error.contains("new folder"), "{error}");
    assert!(place.run(&["restore", text(&copies), "--to", "soon"]).fails(2).contains("RFC 3339"));
}

#[test]
fn verifying_and_opening_agree_on_a_folder_that_lacks_only_its_format_file() {
    let place = Place::new();
    place.run(&["enqueue", "q", "--type", "t", "--data", "1"]).ok();
    std::fs::remove_file(place.data().join("format")).unwrap();
    let found = place.run(&["verify", "--json"]).objects().remove(0);
    assert_eq!((found["sound"].as_bool(), found["messages"].as_u64()), (Some(true), Some(1)), "{found}");
    assert!(!place.data().join("format").exists(), "looking has changed the folder");
    assert_eq!(place.run(&["peek", "q", "--json"]).objects().len(), 1);
}

#[test]
#[proves("LOG23", "T58")]
fn what_is_shipped_is_followed_and_a_promoted_standby_takes_the_originals_place() {
    let place = Place::new();
    place.run(&["enqueue", "q", "--type", "t", "--data", "1"]).ok();
    let (copies, standby) = (place.path("copies"), place.path("standby"));
    let mut shipping = place.start(&["ship", text(&copies), "--every", "20ms"]);
    shipping.says("shipped up to position");
    let mut following =
        place.start(&["standby", text(&copies), "--every", "20ms", "--json", "--data-dir", text(&standby)]);
    following.says("position");
    let refused = place.run(&["peek", "q", "--data-dir", text(&standby)]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("onward promote"), "{refused:?}");

    place.run(&["enqueue", "q", "--type", "t", "--data", "2"]).ok();
    shipping.says("shipped up to position");
    assert!(place.run(&["promote", "--data-dir", text(&standby)]).ok().contains("promoted"));
    let told = following.end();
    assert_eq!(told.code, Some(0), "{told:?}");
    let promoted = objects(&told.stdout).pop().unwrap();
    assert_eq!(promoted["claim"].as_u64(), Some(2), "{promoted}");
    assert_eq!(place.run(&["peek", "q", "--json", "--data-dir", text(&standby)]).objects().len(), 2);

    // The shipper finds out, marks the folder and ends; nothing opens the original any more.
    let ended = shipping.end();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    wait_until("the original is marked", || place.data().join("superseded").exists());
    assert!(place.run(&["enqueue", "q", "--type", "t", "--data", "3"]).fails(1).contains("taken its place"));
    assert_eq!(place.run(&["promote", "--data-dir", text(&standby)]).code, Some(1));
}

#[test]
#[proves("T58")]
fn the_examples_of_the_guide_on_keeping_run_as_they_stand() {
    let guide = include_str!("../../../../docs/guide/keeping.md");
    let blocks = guide.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let script: String = blocks.collect();
    assert!(script.lines().count() >= 10, "{script}");
    let place = Place::new();
    let bin = std::path::Path::new(env!("CARGO_BIN_EXE_onward")).parent().unwrap();
    let here = place.path(".");
    let script = format!(
        "set -eu; unset ONWARD_DATA_DIR; PATH=\"{}:$PATH\"; cd {}; {script}",
        bin.display(),
        text(&here)
    );
    let out = place.shell(&script, &[]).ok();
    assert!(out.contains("sound") && out.contains("restored up to position"), "{out}");
}

#[test]
#[proves("T58")]
fn an_export_is_imported_line_by_line_and_a_second_time_changes_nothing() {
    let place = Place::new();
    place.run(&["queues", "declare", "q", "--attempts", "1"]).ok();
    let lines: String =
        (0..20).map(|n| format!("{{\"id\":\"m{n}\",\"type\":\"t\",\"data\":1.10}}\n")).collect();
    place.run_with(&["enqueue", "q"], &lines).ok();
    place.run(&["work", "q", "--once", "--exec", "exit 65"]).fails(1);
    let exported = place.run(&["export"]).ok();
    assert!(exported.contains("1.10"), "digits of a number were lost");
    let file = place.file("everything.ndjson", &exported);
    let copy = place.path("copy");
    let told = place.run(&["import", &file, "--json", "--data-dir", text(&copy)]);
    assert_eq!(told.code, Some(0), "{told:?}");
    let fates = |told: &crate::support::Done, wanted: &str| {
        told.objects().iter().filter(|line| line["outcome"] == wanted).count()
    };
    assert_eq!((fates(&told, "accepted"), fates(&told, "left_out")), (20, 1), "{told:?}");
    let again = place.run(&["import", &file, "--json", "--data-dir", text(&copy)]);
    assert_eq!((fates(&again, "accepted"), fates(&again, "unchanged")), (0, 20), "{again:?}");
    place.run(&["import", &file, "--dead-as-work", "--data-dir", text(&copy)]).ok();
    let there = place.run(&["peek", "q", "--limit", "100", "--json", "--data-dir", text(&copy)]).objects();
    assert_eq!(there.len(), 20);
    let wrong =
        place.file("wrong.ndjson", &format!("{{\"neither\":1}}\n{}", exported.lines().next().unwrap()));
    let error = place.run(&["import", &wrong, "--data-dir", text(&copy)]).fails(65);
    assert!(error.contains("line 1"), "{error}");
}

#[test]
#[proves("LOG21")]
fn an_upgrade_is_asked_for_and_says_what_the_folder_has() {
    let place = Place::new();
    place.run(&["enqueue", "q", "--type", "t", "--data", "1"]).ok();
    let told = place.run(&["upgrade", "--json"]).objects().remove(0);
    assert_eq!((told["before"].as_u64(), told["format"].as_u64()), (Some(1), Some(1)), "{told}");
    let mut worker = place.start(&["work", "other", "--exec", "true"]);
    worker.notes("working on other");
    assert!(place.run(&["upgrade"]).fails(1).contains("process"));
}

/// A folder with a topic, of whose messages one subscription has finished the first, streams and a schedule.
fn with_everything() -> Place {
    let place = Place::new();
    place.run(&["topics", "declare", "news", "--keep", "7d"]).ok();
    for subscription in ["news:mail", "news:late"] {
        place.run(&["subscribe", subscription]).ok();
    }
    for id in ["t0", "t1", "t2"] {
        place.run(&["publish", "news", "--id", id, "--type", "t", "--data", "1.10"]).ok();
    }
    place.run(&["work", "news:mail", "--once", "--exec", "true"]).ok();
    for (stream, id) in [("s-1", "e0"), ("s-2", "f0"), ("s-1", "e1"), ("s-1", "e2")] {
        place.run(&["append", stream, "--id", id, "--type", "t", "--data", "1.10", "--tag", "red"]).ok();
    }
    place.run(&["truncate", "s-1", "--before", "1"]).ok();
    place
        .run(&["schedules", "put", "nightly", "--queue", "q", "--cron", "30 2 * * *", "--data", "1.10"])
        .ok();
    place
}

#[test]
#[proves("T58")]
fn topics_subscriptions_streams_and_schedules_are_exported_and_imported_too() {
    let place = with_everything();
    let exported = place.run(&["export"]).ok();
    let file = place.file("everything.ndjson", &exported);
    let copy = place.path("copy");
    let there = |args: &[&str]| place.run(&[args, &["--json", "--data-dir", text(&copy)]].concat()).objects();
    let imported = || place.run(&["import", &file, "--json", "--data-dir", text(&copy)]);
    let fates = |told: &crate::support::Done, wanted: &str| {
        told.objects().iter().filter(|line| line["outcome"] == wanted).count()
    };
    // The queue that the schedule made, a topic, two subscriptions, three messages, three events, a schedule.
    let first = imported();
    assert_eq!((first.code, fates(&first, "accepted")), (Some(0), 11), "{first:?}");
    let again = imported();
    assert_eq!((fates(&again, "accepted"), fates(&again, "unchanged")), (0, 11), "{again:?}");

    let ids = |args: &[&str]| -> Vec<String> {
        let id = |object: &serde_json::Value| object["message"]["id"].as_str().unwrap().to_owned();
        there(args).iter().map(id).collect()
    };
    assert_eq!(ids(&["tail", "news", "--no-follow"]), ["t0", "t1", "t2"]);
    let lag = |name: &str| {
        let lines = there(&["subscriptions"]);
        let line = lines.iter().find(|line| line["subscription"] == name).cloned().unwrap();
        line["lag"]["messages"].as_u64().unwrap()
    };
    assert_eq!((lag("news:mail"), lag("news:late")), (2, 3), "each goes on where it was");
    assert_eq!(ids(&["read", "s-1"]), ["e1", "e2"]);
    let events = there(&["read", "--tag", "red"]);
    assert_eq!(events.len(), 3, "tags are kept");
    assert_eq!(there(&["schedules"])[0]["schedule"], "nightly");
    let verified = place.run(&["verify", text(&copy), "--json"]).objects().remove(0);
    assert_eq!((&verified["topic_messages"], &verified["events"]), (&3.into(), &3.into()), "{verified}");
    let digits = place.run(&["export", "--data-dir", text(&copy)]).ok();
    assert_eq!(
        digits.matches("1.10").count(),
        exported.matches("1.10").count(),
        "digits of a number were lost"
    );
}

#[test]
#[proves("T53")]
fn a_line_that_is_none_or_out_of_order_is_refused_and_the_others_are_taken() {
    let place = Place::new();
    let line = |revision: u32, id: &str| {
        format!(
            "{{\"in_stream\":\"s-1\",\"revision\":{revision},\"message\":{{\"id\":\"{id}\",\"type\":\"t\",\"version\":1,\"timestamp\":\"2026-01-01T00:00:00Z\",\"source\":\"test\",\"data\":1}}}}\n"
        )
    };
    let other = "{\"topic\":\"t\"}\n{\"queue\":\"q\",\"record\":\"r\"}\n{\"in_queue\":\"q\"}\n";
    let file =
        place.file("lines.ndjson", &[line(4, "a"), line(5, "b"), line(3, "c"), other.to_owned()].concat());
    let told = place.run(&["import", &file, "--json"]);
    let outcomes: Vec<_> = told.objects().iter().map(|line| line["outcome"].clone()).collect();
    assert_eq!(told.code, Some(65), "{told:?}");
    assert_eq!(outcomes.iter().filter(|outcome| *outcome == "accepted").count(), 2, "{told:?}");
    assert_eq!(outcomes.iter().filter(|outcome| *outcome == "refused").count(), 4, "{told:?}");
}
