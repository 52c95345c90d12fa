//! `peek`, `find`, `cancel`, `stats`, `balance`: looking changes nothing.

use crate::support::Place;
use onward_proves::proves;

fn place() -> Place {
    let place = Place::new();
    let lines = "{\"id\":\"a\",\"type\":\"t\",\"correlation_id\":\"c1\",\"data\":\"\\u001b[2J\"}\n\
                 {\"id\":\"b\",\"type\":\"t\",\"data\":2}\n";
    place.run_with(&["enqueue", "q"], lines).ok();
    place
}

#[test]
#[proves("T54")]
fn looking_hands_nothing_out_and_changes_no_count() {
    let place = place();
    let before = place.run(&["balance", "--json"]).ok();
    for args in [&["peek", "q"][..], &["find", "a"], &["stats"], &["queues"], &["dead", "list"]] {
        place.run(args).ok();
    }
    assert_eq!(place.run(&["balance", "--json"]).ok(), before);
}

#[test]
#[proves("L2")]
fn messages_are_found_by_id_by_correlation_and_by_state() {
    let place = place();
    assert_eq!(place.run(&["find", "a", "--json"]).objects()[0]["message"]["correlation_id"], "c1");
    let by_correlation = place.run(&["peek", "q", "--correlation-id", "c1", "--json"]).objects();
    assert_eq!(by_correlation.len(), 1);
    assert_eq!(place.run(&["peek", "q", "--limit", "1", "--json"]).objects().len(), 1);
    assert_eq!(place.run(&["find", "nobody"]).code, Some(1));
}

#[test]
fn what_a_message_holds_can_not_drive_the_terminal() {
    let place = place();
    for args in [&["peek", "q"][..], &["find", "a"]] {
        assert!(!place.run(args).ok().contains('\u{1b}'), "{args:?}");
    }
}

#[test]
#[proves("B8")]
fn a_waiting_message_that_is_cancelled_is_gone_and_counted() {
    let place = place();
    assert!(place.run(&["cancel", "a"]).ok().contains("cancelled"));
    assert_eq!(place.run(&["peek", "q", "--json"]).objects().len(), 1);
    let books = place.run(&["balance", "--json"]).objects().remove(0);
    assert_eq!((books["cancelled"].as_u64(), books["balanced"].as_bool()), (Some(1), Some(true)));
    place.run(&["cancel", "nobody"]).fails(1);
}

#[test]
#[proves("L4")]
fn the_books_balance_through_every_fate_of_a_message() {
    let place = place();
    place.run(&["enqueue", "q", "--type", "t", "--id", "later", "--data", "1", "--delay", "1h"]).ok();
    place.run(&["cancel", "a"]).ok();
    place.run(&["work", "q", "--once", "--exec", "exit 65"]).fails(1);
    let table = place.run(&["balance"]).ok();
    assert!(table.contains("balance") && !table.contains("OFF"), "{table}");
    let books = place.run(&["balance", "q", "--json"]).objects().remove(0);
    let of = |name: &str| books[name].as_u64().unwrap();
    assert_eq!((of("accepted"), of("cancelled"), of("dead"), of("delayed")), (3, 1, 1, 1));
}

#[test]
#[proves("I1")]
fn stats_tell_who_works_on_what() {
    let place = place();
    let mut worker = place.start(&["work", "q", "--worker", "ada", "--exec", "echo begun; sleep 600"]);
    worker.says("begun");
    let stats = place.run(&["stats", "q", "--json"]).objects().remove(0);
    assert_eq!(stats["leases"][0]["holder"]["worker"], "ada");
    assert!(place.run(&["stats", "q"]).ok().contains("ada"));
}

#[test]
#[proves("T53")]
fn without_a_data_folder_looking_fails_and_makes_none() {
    let place = Place::new();
    for args in [&["peek", "q"][..], &["stats"], &["queues"], &["balance"], &["dead", "list"], &["find", "x"]]
    {
        assert!(place.run(args).fails(1).contains("there is no data folder"), "{args:?}");
    }
    assert!(!place.data().exists());
}
