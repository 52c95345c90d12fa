//! The main job: pictures become thumbnails while an event is lost, a worker is killed and pictures are damaged.

use crate::support::Place;
use onward_proves::proves;
use serde_json::Value;

fn events<'a>(all: &'a [Value], name: &str) -> Vec<&'a Value> {
    all.iter().filter(|event| event["event"] == name).collect()
}

#[test]
#[proves("O2", "O3", "O4", "O5", "O6", "B2", "T6", "T8", "N8")]
fn every_upload_is_final_though_an_event_is_lost_a_worker_is_killed_and_pictures_are_damaged() {
    let place = Place::new();
    let kept = place.path("kept");
    let done = place.run(&["demo", "--json", "--keep", kept.to_str().unwrap()]);
    let all = done.objects();
    done.ok();
    let summary = all.last().unwrap();
    assert_eq!(summary["event"], "summary");
    for (field, expected) in [
        ("uploads", 12),
        ("ready", 10),
        ("failed", 2),
        ("dead_letters", 2),
        ("reconciled", 1),
        ("workers_killed", 1),
    ] {
        assert_eq!(summary[field], expected, "{field}: {summary}");
    }
    assert_eq!(summary["books_balance"], true);
    let killed = &events(&all, "worker_killed")[0]["upload"];
    assert_eq!(
        events(&all, "taken_over")[0]["upload"],
        *killed,
        "the killed worker's picture was done by another"
    );
    assert_eq!(events(&all, "reconciled")[0]["upload"], events(&all, "event_lost")[0]["upload"]);
    for end in events(&all, "final") {
        match end["state"].as_str().unwrap() {
            "ready" => {
                let thumbnail = kept.join("objects").join(end["thumbnail"].as_str().unwrap());
                let png = std::fs::read(&thumbnail).unwrap();
                assert_eq!(&png[1..4], b"PNG", "{}", thumbnail.display());
            }
            state => {
                assert_eq!(state, "failed");
                assert!(!end["reason"].as_str().unwrap().is_empty(), "the app sees why: {end}");
            }
        }
    }
}

#[test]
#[proves("O6", "T58")]
fn a_folder_of_ones_own_files_is_taken_twice_and_each_file_is_final_each_time() {
    let place = Place::new();
    let images = place.path("images");
    std::fs::create_dir(&images).unwrap();
    std::fs::write(images.join("empty.png"), b"").unwrap();
    std::fs::write(images.join("notes.txt"), b"no picture").unwrap();
    let kept = place.path("kept");
    for _ in 0..2 {
        let args = ["demo", "--json", "--images", images.to_str().unwrap(), "--keep", kept.to_str().unwrap()];
        let done = place.run(&args);
        let all = done.objects();
        done.ok();
        let summary = all.last().unwrap();
        assert_eq!(
            (&summary["uploads"], &summary["failed"], &summary["dead_letters"]),
            (&2.into(), &2.into(), &2.into())
        );
    }
}

#[test]
#[proves("T53")]
fn a_folder_of_pictures_that_is_not_there_is_named_with_what_to_do() {
    let place = Place::new();
    let error = place.run(&["demo", "--images", "no-such-folder"]).fails(65);
    assert!(error.contains("no-such-folder") && error.contains("--images"), "{error}");
}
