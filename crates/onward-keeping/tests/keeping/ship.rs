//! Shipping, moments, standbys and what becomes of the original.

use crate::support::{Place, ack, commit, enqueue, inlet, lease, open, quiet, there};
use onward_core::{Engine, Env, ErrorKind, Message, MessageId, Op};
use onward_embedded::{EmbeddedEngine, OpenOptions};
use onward_env::SystemEnv;
use onward_keeping::{ShipOptions, Shipper, Standby, Target, check, promote, restore};
use onward_proves::proves;
use std::{collections::BTreeSet, time::Duration};

async fn shipper(place: &Place, options: &ShipOptions) -> Shipper {
    Shipper::start(&place.data(), &place.to(), options, quiet(), SystemEnv::shared()).await.unwrap()
}

/// An engine whose folder is only cared for when a test asks for it, so that nothing is released before it is shipped.
fn open_without_care(place: &Place) -> EmbeddedEngine {
    let options = OpenOptions { care_every: Duration::from_secs(3600), ..crate::support::options() };
    EmbeddedEngine::open(&place.data(), options, SystemEnv::shared()).unwrap()
}

/// Works through so much that segments roll and are released, shipping in between; answers whether there was a gap.
async fn work_and_ship(engine: &EmbeddedEngine, shipper: &mut Shipper, rounds: usize) -> bool {
    let mut gap = false;
    for _ in 0..rounds {
        for number in 0..200 {
            enqueue(engine, MessageId::generate(&SystemEnv).as_str()).await;
            if number % 10 > 0 {
                let delivery = lease(engine).await.unwrap();
                ack(engine, &delivery).await.unwrap();
            }
        }
        gap |= shipper.step().await.unwrap().gap;
        engine.care().unwrap();
    }
    gap
}

#[tokio::test]
#[proves("LOG23")]
async fn what_is_shipped_restores_to_any_moment_while_segments_come_and_go() {
    let place = Place::new();
    let engine = open_without_care(&place);
    enqueue(&engine, "first").await;
    let mut shipper = shipper(&place, &ShipOptions::default()).await;
    let mut moments = Vec::new();
    for _ in 0..6 {
        assert!(!work_and_ship(&engine, &mut shipper, 1).await);
        let shipped = shipper.step().await.unwrap();
        moments.push((shipped.position, shipped.last_at, there(&engine).await));
    }
    check(&place.to()).await.unwrap();
    let log = std::fs::read_dir(place.data().join("log")).unwrap().map(|e| e.unwrap().file_name());
    assert!(log.min().unwrap() > *"0000000001.seg", "no segment was released: the test shows little");
    for (number, (position, _, expected)) in moments.iter().enumerate() {
        let dir = place.path(&format!("moment {number}"));
        restore(&place.to(), &dir, Target::Position(*position), SystemEnv::shared()).await.unwrap();
        assert_eq!(there(&open(&dir)).await, *expected, "moment {number}");
    }
}

#[tokio::test]
#[proves("LOG23")]
async fn copies_older_than_is_kept_are_deleted_and_the_rest_restores() {
    let place = Place::new();
    let engine = open_without_care(&place);
    let options = ShipOptions { keep: Duration::ZERO, ..ShipOptions::default() };
    let mut shipper = shipper(&place, &options).await;
    assert!(!work_and_ship(&engine, &mut shipper, 8).await);
    let found = check(&place.to()).await.unwrap();
    assert!(found.manifests <= 2, "{found:?}");
    // A folder of this machine may keep the empty folders of objects that are gone.
    let is_empty = |path: &std::path::Path| std::fs::read_dir(path).unwrap().next().is_none();
    let log = std::fs::read_dir(place.path("copies/000001/log")).unwrap().map(|entry| entry.unwrap().path());
    let segments = log.filter(|path| !is_empty(path)).count();
    let ever = found.end.0 >> 32;
    assert!((segments as u64) < ever / 2, "{segments} of {ever} segments are kept");
    let dir = place.path("restored");
    restore(&place.to(), &dir, Target::End, SystemEnv::shared()).await.unwrap();
    assert_eq!(there(&open(&dir)).await, there(&engine).await);
}

#[tokio::test]
#[proves("LOG23")]
async fn a_standby_that_a_snapshot_overtook_has_the_rest_of_the_segment_that_it_was_in() {
    let place = Place::new();
    let engine = open_without_care(&place);
    let mut shipper = shipper(&place, &ShipOptions::default()).await;
    let dir = place.path("standby");
    let mut standby = Standby::open(&place.to(), &dir, SystemEnv::shared()).await.unwrap();
    for round in 0..6 {
        enqueue(&engine, &format!("within a segment {round}")).await;
        shipper.step().await.unwrap();
        standby.step().await.unwrap();
        for number in 0..400 {
            enqueue(&engine, &format!("{round} {number}")).await;
        }
        engine.care().unwrap();
        shipper.step().await.unwrap();
    }
    let expected = there(&engine).await;
    drop(standby);
    promote(&dir, SystemEnv::shared()).await.unwrap().unwrap();
    assert_eq!(there(&open(&dir)).await, expected);
}

#[tokio::test]
#[proves("LOG23", "LOG19")]
async fn a_promoted_standby_goes_on_where_shipping_ended_and_the_original_takes_no_more_writes() {
    let place = Place::new();
    let engine = open(&place.data());
    let mut shipper = shipper(&place, &ShipOptions::default()).await;
    let dir = place.path("standby");
    let mut standby = Standby::open(&place.to(), &dir, SystemEnv::shared()).await.unwrap();
    // Segments may go before they are shipped: then both begin anew on a newer snapshot.
    work_and_ship(&engine, &mut shipper, 4).await;
    standby.step().await.unwrap();
    for number in 0..5 {
        enqueue(&engine, &format!("followed {number}")).await;
        let shipped = shipper.step().await.unwrap();
        assert_eq!(standby.step().await.unwrap().position, shipped.position, "pass {number}");
    }
    let followed = standby.step().await.unwrap();
    let held = lease(&engine).await.unwrap();
    enqueue(&engine, "last shipped").await;
    let shipped = shipper.step().await.unwrap();
    assert!(followed.position < shipped.position && followed.lag_ms.is_some(), "{followed:?}");
    let expected = there(&engine).await;
    enqueue(&engine, "never shipped").await;

    // Nothing opens a standby by mistake, and one that stopped goes on where it was.
    let refused = EmbeddedEngine::open(&dir, crate::support::options(), SystemEnv::shared()).unwrap_err();
    assert!(refused.to_string().contains("onward promote"), "{refused}");
    drop(standby);
    let promoted = promote(&dir, SystemEnv::shared()).await.unwrap().unwrap();
    assert_eq!((promoted.position, promoted.leases_voided), (shipped.position, 1));
    let copy = open(&dir);
    assert_eq!(there(&copy).await, expected);
    assert_eq!(ack(&copy, &held).await.unwrap_err().kind(), ErrorKind::LeaseLost);

    // The original learns of it by its next pass; its engine refuses to write, and to be opened again.
    let fenced = shipper.step().await.unwrap_err();
    assert_eq!(fenced.kind(), ErrorKind::Conflict, "{fenced}");
    let patience = SystemEnv.monotonic() + Duration::from_secs(60);
    let stopped = loop {
        let onward_core::Inlet::Queue(queue) = inlet() else { unreachable!() };
        let message = Box::new(Message::builder("late").json(&1).build(&SystemEnv).unwrap());
        // What was under way at that moment has an unknown outcome; what comes later is refused.
        match commit(&engine, vec![Op::Enqueue { queue, message }]).await {
            Err(error) if error.kind() == ErrorKind::Poisoned => break error,
            _ => {}
        }
        assert!(SystemEnv.monotonic() < patience, "the original still takes writes");
        tokio::task::yield_now().await;
    };
    assert!(stopped.to_string().contains("taken this one's place"), "{stopped}");
    engine.close(Duration::from_secs(1)).await.ok();
    drop(engine);
    let refused =
        EmbeddedEngine::open(&place.data(), crate::support::options(), SystemEnv::shared()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict, "{refused}");

    // The promoted one ships on to the same place, in a line of its own, from which the next restore comes.
    let mut next = Shipper::start(&dir, &place.to(), &ShipOptions::default(), quiet(), SystemEnv::shared())
        .await
        .unwrap();
    enqueue(&copy, "after").await;
    next.step().await.unwrap();
    let restored = place.path("restored");
    restore(&place.to(), &restored, Target::End, SystemEnv::shared()).await.unwrap();
    let expected: BTreeSet<String> = expected.into_iter().chain(["after".to_owned()]).collect();
    assert_eq!(there(&open(&restored)).await, expected);
}

#[tokio::test]
async fn a_second_promotion_from_the_same_line_is_refused() {
    let place = Place::new();
    let engine = open(&place.data());
    enqueue(&engine, "m").await;
    let _shipper = shipper(&place, &ShipOptions::default()).await;
    let first = Standby::open(&place.to(), &place.path("a"), SystemEnv::shared()).await.unwrap();
    let second = Standby::open(&place.to(), &place.path("b"), SystemEnv::shared()).await.unwrap();
    first.promote().await.unwrap();
    let error = second.promote().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    let error = promote(&place.path("a"), SystemEnv::shared()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
}
