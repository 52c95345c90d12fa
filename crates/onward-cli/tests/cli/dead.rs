//! `onward dead`.

use crate::support::Place;
use onward_proves::proves;

/// Numbers that a double can't hold, and decimals that it would round or write otherwise.
const NUMBERS: &str =
    r#"{"id":9007199254740993,"total":0.10000000000000000001,"big":123456789012345678901234567890.50}"#;
const EDITED: &str = r#"{ "id": 9007199254740995, "total":1.10, "exp":1E400 }"#;

/// A queue with one dead letter of this data.
fn with_dead(id: &str, data: &str) -> Place {
    let place = Place::new();
    add_dead(&place, id, data);
    place
}

fn add_dead(place: &Place, id: &str, data: &str) {
    place.run(&["enqueue", "q", "--type", "t", "--id", id, "--data", data]).ok();
    place.run(&["work", "q", "--once", "--exec", "cat >/dev/null; echo bad data >&2; exit 65"]).fails(1);
}

#[test]
#[proves("L5", "H4")]
fn numbers_above_2_53_and_decimals_survive_enqueue_edit_redrive_and_work_byte_for_byte() {
    let place = with_dead("m", NUMBERS);
    let shown = place.run(&["dead", "show", "q", "m", "--json"]).ok();
    assert!(shown.contains(NUMBERS), "{shown}");
    assert!(place.run(&["dead", "show", "q", "m"]).ok().contains(NUMBERS));
    place.run(&["dead", "edit", "q", "m", "--set-data", EDITED]).ok();
    let edited = place.run(&["dead", "show", "q", "m", "--json"]).ok();
    assert!(edited.contains(EDITED), "{edited}");
    assert!(edited.contains(NUMBERS), "the original is kept: {edited}");
    place.run(&["dead", "redrive", "q", "m"]).ok();
    let peeked = place.run(&["peek", "q", "--json"]).ok();
    assert!(peeked.contains(EDITED), "{peeked}");
    let worked = place.run(&["work", "q", "--once", "--exec", "cat"]).ok();
    assert!(worked.contains(EDITED), "{worked}");
}

#[test]
#[proves("H3", "H6")]
fn a_dead_letter_shows_its_message_and_why_each_attempt_failed() {
    let place = with_dead("m", "1");
    let list = place.run(&["dead", "list", "--json"]).objects();
    assert_eq!(list.len(), 1);
    let cause = &list[0]["causes"][0];
    assert_eq!(cause["kind"], "permanent");
    assert_eq!(cause["error"], "the command ended with exit code 65: bad data");
    assert_eq!(cause["detail"], "bad data\n");
    assert_eq!(cause["worker"], "exec");
    let text = place.run(&["dead", "list"]).ok();
    assert!(text.contains("permanent") && text.contains("bad data"), "{text}");
}

#[test]
#[proves("H4")]
fn redrive_keeps_the_id_and_counts_first_where_a_dry_run_is_asked_for() {
    let place = with_dead("a", "1");
    add_dead(&place, "b", "2");
    let dry = place.run(&["dead", "redrive", "q", "--all", "--dry-run", "--json"]).objects().remove(0);
    assert_eq!((dry["matched"].as_u64(), dry["done"].as_u64()), (Some(2), Some(0)));
    assert_eq!(place.run(&["dead", "list", "q", "--json"]).objects().len(), 2);
    assert_eq!(place.run(&["dead", "redrive", "q", "a"]).ok(), "1 of 1 redriven\n");
    let waiting = place.run(&["peek", "q", "--json"]).objects();
    assert_eq!(waiting[0]["message"]["id"], "a");
}

#[test]
#[proves("H4")]
fn a_redrive_with_a_rate_spreads_what_comes_back() {
    let place = with_dead("a", "1");
    add_dead(&place, "b", "2");
    place.run(&["dead", "redrive", "q", "--all", "--rate", "1/h"]).ok();
    let states: Vec<usize> = ["waiting", "delayed"]
        .iter()
        .map(|state| place.run(&["peek", "q", "--state", state, "--json"]).objects().len())
        .collect();
    assert_eq!(states, [1, 1]);
}

#[test]
fn filters_choose_and_all_must_be_said() {
    let place = with_dead("a", "1");
    assert_eq!(place.run(&["dead", "list", "q", "--cause", "timeout", "--json"]).objects().len(), 0);
    assert_eq!(place.run(&["dead", "list", "q", "--error", "bad data", "--json"]).objects().len(), 1);
    assert_eq!(place.run(&["dead", "list", "q", "--before", "1d", "--json"]).objects().len(), 0);
    let error = place.run(&["dead", "purge", "q"]).fails(2);
    assert!(error.contains("--all"), "{error}");
    let none = place.run(&["dead", "redrive", "q", "--type", "other", "--json"]).objects().remove(0);
    assert_eq!(none["matched"], 0);
}

#[test]
#[proves("B8")]
fn a_purged_dead_letter_is_gone_and_the_books_still_balance() {
    let place = with_dead("a", "1");
    assert_eq!(place.run(&["dead", "purge", "q", "--all"]).ok(), "1 of 1 purged\n");
    assert_eq!(place.run(&["dead", "list", "q", "--json"]).objects().len(), 0);
    let books = place.run(&["balance", "--json"]).objects().remove(0);
    assert_eq!((books["purged"].as_u64(), books["balanced"].as_bool()), (Some(1), Some(true)));
}

#[test]
fn an_id_that_is_no_dead_letter_is_told_what_it_is_instead() {
    let place = with_dead("a", "1");
    place.run(&["enqueue", "q", "--type", "t", "--id", "w", "--data", "1"]).ok();
    let waiting = place.run(&["dead", "show", "q", "w"]).fails(1);
    assert!(waiting.contains("it is waiting"), "{waiting}");
    place.run(&["dead", "edit", "q", "nobody", "--set-data", "1"]).fails(1);
    place.run(&["dead", "edit", "q", "a", "--set-data", "{"]).fails(65);
    place.run(&["dead", "edit", "q", "a"]).fails(2);
    place.run(&["dead", "redrive", "q", "nobody"]).fails(1);
}

#[test]
#[proves("H4")]
fn an_edit_with_redrive_brings_the_new_edition_back_to_work() {
    let place = with_dead("a", "1");
    assert_eq!(
        place.run(&["dead", "edit", "q", "a", "--set-data", "2", "--redrive"]).ok(),
        "a: edition 2, redriven\n"
    );
    let waiting = place.run(&["peek", "q", "--json"]).objects();
    assert_eq!((&waiting[0]["message"]["id"], &waiting[0]["message"]["data"]), (&"a".into(), &2.into()));
    assert!(place.run(&["dead", "list", "q", "--json"]).objects().is_empty());
}

#[test]
#[proves("T53")]
fn no_json_line_names_a_field_twice() {
    let place = with_dead("a", "1");
    for args in [
        ["dead", "redrive", "q", "--all", "--dry-run", "--json"],
        ["dead", "purge", "q", "--all", "--dry-run", "--json"],
    ] {
        let line = place.run(&args).ok();
        assert_eq!(line.matches("\"done\":").count(), 1, "{line}");
        assert_eq!(line.matches("\"action\":").count(), 1, "{line}");
    }
}
