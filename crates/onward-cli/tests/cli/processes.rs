//! Several real processes on one folder: terminals, workers, and what their deaths do.

use crate::support::{Place, wait_until, watch};
use onward_proves::proves;

fn one(place: &Place, queue: &str, id: &str) {
    place.run(&["enqueue", queue, "--type", "t", "--id", id, "--data", "1"]).ok();
}

#[test]
#[proves("M9")]
fn two_terminals_work_on_one_folder() {
    let place = Place::new();
    let mut worker = place.start(&["work", "q", "--exec", "echo got $ONWARD_ID"]);
    worker.notes("working on q");
    one(&place, "q", "from-the-other");
    worker.says("got from-the-other");
    assert_eq!(place.run(&["stats", "q", "--json"]).objects()[0]["inlet"], "q");
    worker.signal("TERM");
    assert_eq!(worker.end().code, Some(0));
    assert_eq!(place.run(&["balance"]).code, Some(0));
}

/// A worker with a command that runs, known to be running; `host` says whether the worker holds the folder.
fn killed_in_the_middle(host: bool) {
    let place = Place::new();
    one(&place, "q", "m");
    let other = (!host).then(|| {
        let mut other = place.start(&["work", "other", "--exec", "true"]);
        other.notes("working on other");
        other
    });
    let fifo = place.fifo("alive");
    let alive = watch(&fifo);
    let exec = format!("exec 3>{}; sleep 600 & echo begun; sleep 600", fifo.display());
    let mut worker = place.start(&["work", "q", "--lease", "10m", "--worker", "w", "--exec", &exec]);
    worker.says("begun");
    worker.kill();
    alive.all_have_ended();
    // The lease has ten minutes to go: only the death of its holder can have ended it. The name is used again.
    let again =
        place.run(&["work", "q", "--once", "--lease", "10m", "--worker", "w", "--exec", "echo again"]).ok();
    assert_eq!(again, "again\n");
    drop(other);
    let books = place.run(&["balance", "q", "--json"]).objects().remove(0);
    assert_eq!((books["done"].as_u64(), books["balanced"].as_bool()), (Some(1), Some(true)), "{books}");
}

#[test]
#[proves("T6", "T7", "T57")]
fn a_worker_killed_in_the_middle_takes_its_commands_along_and_its_message_is_done_by_another_at_once() {
    killed_in_the_middle(false);
}

#[test]
#[proves("T8", "LOG13")]
fn the_same_when_the_worker_killed_was_the_host_of_the_folder() {
    killed_in_the_middle(true);
}

#[test]
#[proves("T8")]
fn when_the_host_is_killed_another_process_takes_the_folder_over_and_goes_on() {
    let place = Place::new();
    let mut host = place.start(&["work", "a", "--exec", "true"]);
    host.notes("working on a");
    let mut worker = place.start(&["work", "q", "--exec", "echo got $ONWARD_ID"]);
    worker.notes("working on q");
    one(&place, "q", "before");
    worker.says("got before");
    host.kill();
    one(&place, "q", "after");
    worker.says("got after");
}

#[test]
#[proves("T13", "H5", "T9")]
fn a_message_that_kills_its_worker_each_time_is_a_dead_letter_with_the_cause_crashed() {
    let place = Place::new();
    let fast = ["queues", "declare", "q", "--set", "retry.delay_max_ms=1", "--set", "retry.delay_min_ms=1"];
    place.run(&fast).ok();
    one(&place, "q", "poison");
    let mut deaths = 0;
    loop {
        let done = place.run(&["work", "q", "--drain", "--exec", "kill -s KILL $PPID; sleep 600"]);
        if done.code.is_some() {
            break;
        }
        deaths += 1;
        wait_until("the message is there again", || {
            let books = place.run(&["balance", "q", "--json"]).objects().remove(0);
            books["leased"] == 0 && books["delayed"] == 0
        });
        assert!(deaths <= 4, "still not set aside");
    }
    assert!(deaths >= 3, "set aside after {deaths} deaths");
    let dead = place.run(&["dead", "list", "q", "--json"]).objects().remove(0);
    assert_eq!(dead["causes"].as_array().unwrap().last().unwrap()["kind"], "crashed", "{dead}");
    one(&place, "q", "harmless");
    place.run(&["work", "q", "--drain", "--exec", "exit 0"]).ok();
}

#[test]
fn a_reader_that_goes_away_ends_a_listing_quietly() {
    let place = Place::new();
    let lines: String = (0..3_000).map(|n| format!("{{\"type\":\"t\",\"data\":\"{n:0>100}\"}}\n")).collect();
    place.run_with(&["enqueue", "q"], &lines).ok();
    let mut command = place.command(&["peek", "q", "--limit", "3000"]);
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(0), ""));
}
