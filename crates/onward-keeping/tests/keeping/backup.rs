//! What a backup holds, and what a restore makes of it.

use crate::support::{Place, ack, commit, enqueue, inlet, lease, open, quiet, there};
use onward_core::{Engine, ErrorKind, FindBy, MessageQuery, MessageState, Receipt};
use onward_embedded::EmbeddedEngine;
use onward_env::SystemEnv;
use onward_keeping::{Destination, Target, check, restore};
use onward_proves::proves;
use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    time::Duration,
};

/// What producers and workers were told, over all backups.
#[derive(Default)]
struct Told {
    sending: Mutex<BTreeSet<String>>,
    accepted: Mutex<BTreeSet<String>>,
    settling: Mutex<BTreeSet<String>>,
    settled: Mutex<BTreeSet<String>>,
    next: AtomicU64,
    stop: AtomicBool,
}

fn note(set: &Mutex<BTreeSet<String>>, id: &str) {
    set.lock().unwrap().insert(id.to_owned());
}

async fn produce(engine: Arc<EmbeddedEngine>, told: Arc<Told>) {
    while !told.stop.load(SeqCst) {
        let id = format!("m{}", told.next.fetch_add(1, SeqCst));
        note(&told.sending, &id);
        enqueue(&engine, &id).await;
        note(&told.accepted, &id);
    }
}

async fn work(engine: Arc<EmbeddedEngine>, told: Arc<Told>) {
    while !told.stop.load(SeqCst) {
        let Some(delivery) = lease(&engine).await else {
            tokio::task::yield_now().await;
            continue;
        };
        let id = delivery.message.id.to_string();
        // One in ten stays, so that bodies outlive their segments and are copied forward.
        if id.ends_with('7') {
            continue;
        }
        note(&told.settling, &id);
        ack(&engine, &delivery).await.unwrap();
        note(&told.settled, &id);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[proves("LOG23")]
async fn backups_taken_while_writing_restore_to_a_valid_prefix_no_older_than_their_start() {
    let place = Place::new();
    let (engine, told) = (Arc::new(open(&place.data())), Arc::new(Told::default()));
    let mut tasks = Vec::new();
    for _ in 0..3 {
        tasks.push(tokio::spawn(produce(engine.clone(), told.clone())));
        tasks.push(tokio::spawn(work(engine.clone(), told.clone())));
    }
    for round in 0..3 {
        // The log has surely moved on by some segments since the last one.
        let wanted = told.next.load(SeqCst) + 600;
        while told.next.load(SeqCst) < wanted {
            tokio::task::yield_now().await;
        }
        let (accepted, settled) =
            (told.accepted.lock().unwrap().clone(), told.settled.lock().unwrap().clone());
        let made = place.back_up().await;
        let (sending, settling) =
            (told.sending.lock().unwrap().clone(), told.settling.lock().unwrap().clone());
        check(&place.to()).await.unwrap();
        let dir = place.path(&format!("restored {round}"));
        let restored = restore(&place.to(), &dir, Target::End, SystemEnv::shared()).await.unwrap();
        assert!(restored.position >= made.position, "round {round}");
        let copy = open(&dir);
        let there = there(&copy).await;
        let lost: Vec<_> = accepted.difference(&there).filter(|id| !settling.contains(*id)).collect();
        assert!(lost.is_empty(), "round {round}: accepted before the backup, and lost: {lost:?}");
        assert!(there.is_subset(&sending), "round {round}: never sent");
        let back: Vec<_> = settled.intersection(&there).collect();
        assert!(back.is_empty(), "round {round}: settled before the backup, and back: {back:?}");
        assert!(copy.stats(vec![inlet()]).await.unwrap()[0].books.balance());
    }
    told.stop.store(true, SeqCst);
    for task in tasks {
        task.await.unwrap();
    }
    let first = std::fs::read_dir(place.data().join("log")).unwrap().map(|e| e.unwrap().file_name()).min();
    assert!(first.unwrap() > *"0000000001.seg", "no segment was released meanwhile: the test shows little");
}

#[tokio::test]
#[proves("LOG23", "LOG19")]
async fn a_restore_opens_a_new_epoch_in_which_no_token_of_the_original_settles_anything() {
    let place = Place::new();
    let engine = open(&place.data());
    enqueue(&engine, "leased").await;
    enqueue(&engine, "waiting").await;
    let delivery = lease(&engine).await.unwrap();
    place.back_up().await;
    let dir = place.path("restored");
    let restored = restore(&place.to(), &dir, Target::End, SystemEnv::shared()).await.unwrap();
    assert_eq!(restored.leases_voided, 1);

    let copy = open(&dir);
    assert_eq!(ack(&copy, &delivery).await.unwrap_err().kind(), ErrorKind::LeaseLost);
    let again = lease(&copy).await.unwrap();
    assert_eq!((again.message.id.as_str(), again.attempt), ("leased", 1));
    // The original knows nothing of it: its token is good, and settles nothing in the copy.
    ack(&engine, &delivery).await.unwrap();
    assert_eq!(there(&copy).await.len(), 2);
    // Nor does a token that the original gives out later, in as many openings as it may have.
    drop(engine);
    let engine = open(&place.data());
    let later = lease(&engine).await.unwrap();
    assert_eq!(later.message.id.as_str(), "waiting");
    assert_eq!(ack(&copy, &later).await.unwrap_err().kind(), ErrorKind::LeaseLost);
}

#[tokio::test]
#[proves("LOG23")]
async fn a_restore_goes_to_a_position_or_a_time_and_says_what_is_lost() {
    let place = Place::new();
    // A new folder's first snapshot is written beside the work; nothing before it can be restored. A close ends that.
    open(&place.data()).close(Duration::from_secs(10)).await.unwrap();
    let engine = open(&place.data());
    let mut positions = Vec::new();
    for number in 0..40 {
        match enqueue(&engine, &format!("m{number}")).await {
            Receipt::Accepted(accepted) => positions.push(accepted.position.unwrap()),
            other => panic!("{other:?}"),
        }
    }
    let at = engine
        .find(MessageQuery {
            inlet: inlet(),
            by: FindBy::State(MessageState::Waiting),
            after: None,
            limit: 100,
        })
        .await
        .unwrap()
        .items;
    place.back_up().await;
    let dir = place.path("to position");
    let to = Target::Position(positions[19]);
    let restored = restore(&place.to(), &dir, to, SystemEnv::shared()).await.unwrap();
    assert_eq!(there(&open(&dir)).await.len(), 20);
    assert!(restored.groups_left_out >= 20 && restored.lost_ms_max.is_some(), "{restored:?}");

    let dir = place.path("to time");
    let time = Target::Time(at[9].accepted_at);
    restore(&place.to(), &dir, time, SystemEnv::shared()).await.unwrap();
    assert_eq!(there(&open(&dir)).await.len(), 10);

    let before = Target::Position(onward_core::Position(1));
    let error = restore(&place.to(), &place.path("none"), before, SystemEnv::shared()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
}

#[tokio::test]
async fn a_second_backup_copies_only_what_is_new_and_an_interrupted_one_goes_on() {
    let place = Place::new();
    let engine = open(&place.data());
    for number in 0..500 {
        enqueue(&engine, &format!("m{number}")).await;
    }
    let first = place.back_up().await;
    enqueue(&engine, "one more").await;
    let second = place.back_up().await;
    assert!(second.bytes < first.bytes / 4 && second.kept_bytes > 0, "{first:?} {second:?}");
    // An interrupted one has left objects, and no manifest.
    std::fs::remove_dir_all(place.path("copies/000001/manifests")).unwrap();
    assert_eq!(check(&place.to()).await.unwrap_err().kind(), ErrorKind::NotFound);
    let third = place.back_up().await;
    assert!(third.bytes < first.bytes / 4, "{third:?}");
    let dir = place.path("restored");
    restore(&place.to(), &dir, Target::End, SystemEnv::shared()).await.unwrap();
    assert_eq!(there(&open(&dir)).await.len(), 501);
}

#[tokio::test]
async fn nothing_is_restored_over_anything_and_a_restore_that_was_interrupted_is_not_opened() {
    let place = Place::new();
    let engine = open(&place.data());
    enqueue(&engine, "m").await;
    place.back_up().await;
    let error = restore(&place.to(), &place.data(), Target::End, SystemEnv::shared()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    // The last object that is read is gone, so that the restore stops in its middle.
    let log = place.path("copies/000001/log");
    let segment = std::fs::read_dir(log).unwrap().next().unwrap().unwrap().path();
    let object = std::fs::read_dir(segment).unwrap().next().unwrap().unwrap().path();
    std::fs::write(&object, vec![0; std::fs::metadata(&object).unwrap().len() as usize]).unwrap();
    let dir = place.path("half");
    restore(&place.to(), &dir, Target::End, SystemEnv::shared()).await.unwrap_err();
    let error = EmbeddedEngine::open(&dir, crate::support::options(), SystemEnv::shared()).unwrap_err();
    assert!(error.to_string().contains("did not finish"), "{error}");
}

#[tokio::test]
#[proves("T53")]
async fn another_folders_copies_are_not_mixed_with_ours() {
    let (place, other) = (Place::new(), Place::new());
    let (engine, others) = (open(&place.data()), open(&other.data()));
    enqueue(&engine, "ours").await;
    enqueue(&others, "theirs").await;
    place.back_up().await;
    let error =
        onward_keeping::backup(&other.data(), &place.to(), quiet(), SystemEnv::shared()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.mend_text().unwrap().contains("another destination"), "{error}");
    let none = Destination::existing(other.path("nowhere").to_str().unwrap()).unwrap_err();
    assert_eq!(none.kind(), ErrorKind::NotFound);
    commit(&engine, vec![]).await.ok();
}
