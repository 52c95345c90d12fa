//! `onward verify`, and folders that can't be worked on.

use crate::support::Place;
use onward_proves::proves;
use std::{collections::BTreeMap, path::Path, path::PathBuf};

/// Every file below a folder with its bytes.
fn everything(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(everything(&path)),
            false => drop(found.insert(path.clone(), std::fs::read(&path).unwrap())),
        }
    }
    found
}

fn place() -> Place {
    let place = Place::new();
    let lines: String = (0..50).map(|n| format!("{{\"type\":\"t\",\"data\":\"payload {n}\"}}\n")).collect();
    place.run_with(&["enqueue", "q"], &lines).ok();
    place.run(&["work", "q", "--once", "--exec", "exit 65"]).fails(1);
    place
}

/// The log's first segment.
fn segment(place: &Place) -> PathBuf {
    let log = std::fs::read_dir(place.data().join("log")).unwrap();
    let mut segments: Vec<PathBuf> =
        log.map(|e| e.unwrap().path()).filter(|p| p.extension().is_some_and(|e| e == "seg")).collect();
    segments.sort();
    segments.remove(0)
}

#[test]
#[proves("L2")]
fn a_sound_folder_is_read_whole_and_not_one_byte_of_it_changes() {
    let place = place();
    let before = everything(&place.data());
    let found = place.run(&["verify", "--json"]).objects().remove(0);
    assert_eq!((found["sound"].as_bool(), found["messages"].as_u64()), (Some(true), Some(50)), "{found}");
    assert!(place.run(&["verify", place.data().to_str().unwrap()]).ok().contains("sound"));
    assert!(everything(&place.data()) == before, "the folder has changed");
}

#[test]
#[proves("LOG7", "LOG8")]
fn a_flipped_bit_is_told_with_its_file_and_the_folder_is_left_as_it_is() {
    let place = place();
    let path = segment(&place);
    let mut bytes = std::fs::read(&path).unwrap();
    let needle = b"payload 7";
    let at = bytes.windows(needle.len()).position(|window| window == needle).unwrap();
    bytes[at] ^= 0x10;
    std::fs::write(&path, &bytes).unwrap();
    // Snapshots would spare the reader the damaged part.
    std::fs::remove_dir_all(place.data().join("snapshots")).unwrap();
    let before = everything(&place.data());
    let error = place.run(&["verify"]).fails(74);
    assert!(error.contains(path.file_name().unwrap().to_str().unwrap()), "{error}");
    assert!(everything(&place.data()) == before, "the folder has changed");
    place.run(&["enqueue", "q", "--type", "t", "--data", "1"]).fails(74);
}

#[test]
#[proves("LOG13", "T53")]
fn a_folder_that_is_open_or_none_at_all_is_refused() {
    let place = place();
    let mut worker = place.start(&["work", "other", "--exec", "true"]);
    worker.notes("working on other");
    let error = place.run(&["verify"]).fails(1);
    assert!(error.contains("process") && error.contains("check a copy"), "{error}");
    let none = place.path("none");
    assert!(place.run(&["verify", none.to_str().unwrap()]).fails(1).contains("not a data folder"));
    assert!(!none.exists());
}

#[test]
#[proves("LOG21")]
fn a_folder_of_a_newer_version_is_refused_without_writing() {
    let place = place();
    std::fs::write(place.data().join("format"), "onward data folder, format 99\n").unwrap();
    let before = everything(&place.data());
    assert!(place.run(&["verify"]).fails(1).contains("format 99"));
    place.run(&["peek", "q"]).fails(1);
    let after = everything(&place.data());
    let changed: Vec<&PathBuf> = after.keys().filter(|path| before.get(*path) != after.get(*path)).collect();
    // The lock names its holder; nothing of the data may change.
    assert!(changed.iter().all(|path| path.ends_with("host.lock")), "{changed:?}");
}

#[test]
#[proves("T57")]
fn a_data_folder_that_can_not_be_made_is_an_error_with_the_mend() {
    let place = Place::new();
    std::fs::write(place.data(), "a file stands in the way").unwrap();
    let error = place.run(&["enqueue", "q", "--type", "t", "--data", "1"]).fails(69);
    assert!(error.contains("can't be used") && error.contains("check the path"), "{error}");
}

#[test]
#[proves("T57", "T50", "LOG4")]
fn a_disk_that_refuses_to_be_written_ends_the_command_and_what_was_acknowledged_is_there_afterwards() {
    let place = place();
    // No file may be written behind its first 500 KiB from here on.
    let limited = "trap '' XFSZ; ulimit -f 1000; exec \"$0\" enqueue full --file \"$1\"";
    let line = |n| format!("{{\"id\":\"m{n}\",\"type\":\"t\",\"data\":\"{n:0>500}\"}}\n");
    let lines: String = (0..4_000).map(line).collect();
    let file = place.file("lines.jsonl", &lines);
    let output = place.shell(limited, &[env!("CARGO_BIN_EXE_onward"), &file]);
    assert_eq!(output.code, Some(74), "{output:?}");
    let errors = output.stderr.lines().filter(|line| line.contains("error:")).count();
    assert_eq!(errors, 1, "one cause, told once: {output:?}");
    let there = place.run(&["peek", "full", "--limit", "10000", "--json"]).objects();
    let ids: Vec<&str> = there.iter().map(|view| view["message"]["id"].as_str().unwrap()).collect();
    assert!(output.stdout.lines().count() > 0, "none was accepted before the disk failed");
    assert!(output.stdout.lines().all(|id| ids.contains(&id)), "an acknowledged message is missing");
    place.run(&["enqueue", "full", "--file", &file]).ok();
    assert_eq!(place.run(&["balance"]).code, Some(0));
}
