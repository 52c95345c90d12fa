//! `onward queues`.

use crate::support::Place;
use onward_proves::proves;

#[test]
fn a_declared_queue_keeps_its_rules_and_shows_them() {
    let place = Place::new();
    let args = [
        "queues",
        "declare",
        "payments",
        "--attempts",
        "3",
        "--order-by-key",
        "wait",
        "--set",
        "dead_max=50",
    ];
    assert_eq!(place.run(&args).ok(), "payments: created\n");
    assert_eq!(place.run(&args).ok(), "payments: unchanged\n");
    let config = place.run(&["queues", "show", "payments", "--json"]).objects().remove(0);
    assert_eq!(config["retry"]["attempts_max"], 3);
    assert_eq!(config["dead_max"], 50);
    assert_eq!(config["order"]["by_key"]["stuck_head"], "wait");
}

#[test]
fn other_rules_for_a_queue_that_exists_are_refused_unless_it_is_to_be_changed() {
    let place = Place::new();
    place.run(&["queues", "declare", "q", "--attempts", "3"]).ok();
    place.run(&["queues", "declare", "q", "--attempts", "4"]).fails(1);
    let changed =
        place.run(&["queues", "declare", "q", "--update", "--lease", "5s", "--json"]).objects().remove(0);
    assert_eq!(changed["done"], "changed");
    let config = place.run(&["queues", "show", "q", "--json"]).objects().remove(0);
    assert_eq!(
        (config["retry"]["attempts_max"].as_u64(), config["lease_ms"].as_u64()),
        (Some(3), Some(5_000))
    );
}

#[test]
fn limits_are_declared_in_words_and_shown_where_queues_are() {
    let place = Place::new();
    let limits = ["--concurrency-max", "2", "--concurrency-per-key-max", "1", "--rate", "600/m"];
    let per_key = ["--rate-per-key", "5/s", "--burst-per-key", "1"];
    let all = [&["queues", "declare", "q"][..], &limits, &per_key].concat();
    place.run(&all).ok();
    let shown = "2 at once, 1 at once per key, 600/m (burst 10), 5/s (burst 1) per key";
    for command in [&["queues"][..], &["stats", "q"]] {
        let text = place.run(command).ok();
        assert!(text.contains(shown), "{text}");
    }
    let line = place.run(&["queues", "--json"]).objects().remove(0);
    assert_eq!(line["limits"]["concurrency_per_key_max"], 1);
    assert_eq!(line["limits"]["rate_per_key"]["burst"], 1);
    place.run(&["queues", "declare", "q", "--update", "--concurrency-max", "3"]).ok();
    assert!(place.run(&["queues"]).ok().contains("3 at once, 1 at once per key"), "what is not given stays");
}

#[test]
#[proves("B3", "N11")]
fn the_list_shows_depth_age_and_what_each_queue_promises() {
    let place = Place::new();
    place.run(&["queues", "declare", "clicks", "--at-most-once"]).ok();
    place.run(&["enqueue", "emails", "--type", "t", "--data", "1"]).ok();
    let table = place.run(&["queues"]).ok();
    let row = |name: &str| table.lines().find(|l| l.starts_with(name)).unwrap().to_owned();
    assert!(row("clicks").contains("at most once"), "{table}");
    assert!(row("emails").contains("at least once"), "{table}");
    let emails =
        place.run(&["queues", "list", "--json"]).objects().into_iter().find(|q| q["queue"] == "emails");
    let emails = emails.unwrap();
    assert_eq!(emails["depth"], 1);
    assert!(emails["oldest_waiting"].is_string());
}

#[test]
#[proves("B8")]
fn a_paused_queue_hands_out_nothing_until_it_is_resumed() {
    let place = Place::new();
    place.run(&["enqueue", "q", "--type", "t", "--data", "1"]).ok();
    place.run(&["queues", "pause", "q"]).ok();
    assert_eq!(place.run(&["work", "q", "--drain", "--exec", "echo worked"]).ok(), "");
    assert!(place.run(&["queues"]).ok().contains("paused"));
    place.run(&["queues", "resume", "q"]).ok();
    assert_eq!(place.run(&["work", "q", "--drain", "--exec", "echo worked"]).ok(), "worked\n");
}

#[test]
fn a_queue_with_messages_is_dropped_only_when_that_is_said() {
    let place = Place::new();
    place.run(&["enqueue", "q", "--type", "t", "--data", "1"]).ok();
    place.run(&["queues", "drop", "q"]).fails(1);
    place.run(&["queues", "drop", "q", "--with-messages"]).ok();
    assert_eq!(place.run(&["queues", "--json"]).ok(), "");
}

#[test]
#[proves("T53")]
fn a_misspelt_queue_or_rule_is_refused_with_the_nearest_one() {
    let place = Place::new();
    place.run(&["queues", "declare", "emails"]).ok();
    assert!(place.run(&["queues", "pause", "emials"]).fails(1).contains("did you mean `emails`?"));
    let rule = place.run(&["queues", "declare", "x", "--set", "retry.atempts_max=1"]).fails(2);
    assert!(rule.contains("did you mean `attempts_max`?"), "{rule}");
    place.run(&["queues", "declare", "Bad Name"]).fails(2);
    place.run(&["queues", "declare", "x", "--set", "dead_max=0"]).fails(65);
}
