//! `onward topics`, `publish`, `subscribe`, `subscriptions`, `seek`, `tail`, and subscriptions wherever a queue stands.

use crate::support::Place;
use onward_proves::proves;

/// A place with a topic that keeps its messages and one subscription of it.
fn place() -> Place {
    let place = Place::new();
    place.run(&["topics", "declare", "orders", "--keep", "1h"]).ok();
    place.run(&["subscribe", "orders:emails", "--type", "order.*"]).ok();
    place
}

fn publish(place: &Place, kind: &str, id: &str) {
    place.run(&["publish", "orders", "--type", kind, "--id", id, "--data", "1"]).ok();
}

#[test]
#[proves("C1", "C7")]
fn what_is_published_goes_to_each_subscription_that_takes_it() {
    let place = place();
    place.run(&["subscribe", "orders:all"]).ok();
    publish(&place, "order.placed", "a");
    publish(&place, "user.made", "b");
    let work = |inlet: &str| place.run(&["work", inlet, "--drain", "--exec", "echo $ONWARD_ID"]).ok();
    assert_eq!(work("orders:emails").matches("a\n").count(), 1);
    let all = work("orders:all");
    assert!(all.contains('a') && all.contains('b'), "{all}");
    let books = place.run(&["balance", "orders:emails", "--json"]).objects().remove(0);
    assert_eq!((books["done"].as_u64(), books["balanced"].as_bool()), (Some(1), Some(true)));
}

#[test]
fn topics_and_subscriptions_are_listed_with_what_they_keep_and_lag() {
    let place = place();
    publish(&place, "order.placed", "a");
    let topic = place.run(&["topics", "--json"]).objects().remove(0);
    assert_eq!((topic["topic"].as_str(), topic["messages"].as_u64()), (Some("orders"), Some(1)));
    assert_eq!(topic["config"]["retention_ms"], 3_600_000);
    let sub = place.run(&["subscriptions", "orders", "--json"]).objects().remove(0);
    assert_eq!(
        (sub["subscription"].as_str(), sub["lag"]["messages"].as_u64()),
        (Some("orders:emails"), Some(1))
    );
    assert_eq!(sub["filter"]["types"][0], "order.*");
    assert!(place.run(&["topics"]).ok().contains("orders"));
    assert!(place.run(&["subscriptions"]).ok().contains("order.*"));
    assert!(place.run(&["stats", "orders:emails"]).ok().contains("lag:"));
    assert!(place.run(&["peek", "orders:emails"]).ok().contains('a'));
}

#[test]
#[proves("C5")]
fn a_seek_brings_messages_again_and_names_its_mode() {
    let place = place();
    publish(&place, "order.placed", "a");
    let work = || place.run(&["work", "orders:emails", "--drain", "--exec", "echo got $ONWARD_ID"]).ok();
    assert!(work().contains("got a"));
    assert!(!work().contains("got a"));
    place.run(&["seek", "orders:emails", "--to-beginning"]).fails(2);
    place.run(&["seek", "orders:emails", "--reprocess"]).fails(2);
    place.run(&["seek", "orders:emails", "--to-beginning", "--fill-gaps"]).ok();
    assert!(!work().contains("got a"));
    let moved =
        place.run(&["seek", "orders:emails", "--to", "1h", "--reprocess", "--json"]).objects().remove(0);
    assert_eq!((moved["messages"].as_u64(), moved["replay"].as_u64()), (Some(1), Some(1)));
    assert!(work().contains("got a"));
}

#[test]
fn a_tail_shows_the_newest_and_takes_nothing() {
    let place = place();
    ["a", "b", "c"].iter().for_each(|id| publish(&place, "order.placed", id));
    let shown = place.run(&["tail", "orders", "--last", "2", "--no-follow", "--json"]).objects();
    let ids: Vec<_> = shown.iter().map(|line| line["message"]["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["b", "c"]);
    let sub = place.run(&["subscriptions", "--json"]).objects().remove(0);
    assert_eq!(sub["lag"]["messages"], 3);
}

#[test]
#[proves("T53")]
fn what_is_not_there_is_told_with_the_nearest_and_with_the_mend() {
    let place = place();
    assert!(place.run(&["tail", "order", "--no-follow"]).fails(1).contains("did you mean `orders`?"));
    assert!(place.run(&["peek", "orders:email"]).fails(1).contains("did you mean `orders:emails`?"));
    let unknown = place.run(&["work", "orders:nobody-at-all", "--drain", "--exec", "cat"]).fails(1);
    assert!(unknown.contains("onward subscribe orders:nobody-at-all"), "{unknown}");
    assert!(place.run(&["subscribe", "orders"]).fails(65).contains("orders:analytics"));
    place.run(&["subscribe", "nothing:emails"]).fails(1);
    place.run(&["topics", "drop", "orders"]).fails(1);
    place.run(&["queues", "drop", "orders:emails"]).ok();
    place.run(&["topics", "drop", "orders"]).ok();
}

#[test]
#[proves("T58")]
fn the_documentations_examples_of_topics_run_as_they_stand() {
    for (page, heading) in [
        (include_str!("../../../../docs/cli.md"), "## Topics"),
        (include_str!("../../../../docs/guide/pubsub.md"), "The same from a shell:"),
    ] {
        let place = Place::new();
        let example = page.split(heading).nth(1).unwrap().split("```sh\n").nth(1).unwrap();
        let example = example.split("```").next().unwrap();
        assert_eq!(example.lines().count(), 6);
        let bin = std::path::Path::new(env!("CARGO_BIN_EXE_onward")).parent().unwrap();
        let script = format!("set -e; PATH=\"{}:$PATH\"; {example}", bin.display());
        let out = place.shell(&script, &[]).ok();
        assert!(out.contains("4711") && out.contains("orders:emails"), "{out}");
    }
}
