//! Moving a subscription: to a position, to a time, to process again or to fill gaps.

use super::support::{Sub, keeping};
use crate::bench::{ack, millis, reject, rules};
use crate::check::{ensure, ensure_eq};
use crate::{Bench, Done, Stop};
use onward_core::{
    BulkId, ErrorKind, Filter, Inlet, Op, Position, PurgeWhat, SeekMode, SeekTo, Selection, StartFrom,
    TopologyChange,
};

const IDS: [&str; 4] = ["m0", "m1", "m2", "m3"];

pub(super) async fn rewind_to_position(b: &mut Bench) -> Done {
    let sub = Sub::new(b, keeping(), rules()).await?;
    let mut positions = Vec::new();
    for id in IDS {
        positions.push(sub.publish(b, b.message(id)).await?.position);
    }
    sub.takes(b, &IDS).await?;
    let Some(at) = positions[2] else { return Err(Stop::Failed("a receipt without a position".into())) };
    let sought = sub.seek(b, SeekTo::Position(at), SeekMode::Reprocess).await?;
    ensure_eq!((sought.next, sought.messages, sought.clipped), (Some(at), 2, false), "where it was moved to");
    sub.takes(b, &["m2", "m3"]).await?;
    sub.nothing(b).await?;
    // Ahead as well as back: what is in between is passed over.
    sub.publish_ids(b, &["m4", "m5"]).await?;
    let last = sub.publish(b, b.message("m6")).await?.position.unwrap_or(at);
    sub.seek(b, SeekTo::Position(last), SeekMode::Reprocess).await?;
    sub.takes(b, &["m6"]).await?;
    sub.seek(b, SeekTo::Beginning, SeekMode::Reprocess).await?;
    sub.takes(b, &["m0", "m1", "m2", "m3", "m4", "m5", "m6"]).await?;
    sub.publish_ids(b, &["m7", "m8"]).await?;
    sub.seek(b, SeekTo::End, SeekMode::Reprocess).await?;
    sub.publish_ids(b, &["m9"]).await?;
    sub.takes(b, &["m9"]).await?;
    sub.nothing(b).await
}

pub(super) async fn rewind_to_time(b: &mut Bench) -> Done {
    let sub = Sub::new(b, keeping(), rules()).await?;
    sub.publish_ids(b, &["m0", "m1"]).await?;
    b.pass(millis(30)).await;
    let then = b.env().now();
    sub.publish_ids(b, &["m2", "m3"]).await?;
    sub.takes(b, &IDS).await?;
    sub.seek(b, SeekTo::Time(then), SeekMode::Reprocess).await?;
    sub.takes(b, &["m2", "m3"]).await?;
    sub.nothing(b).await?;
    let later = b.env().now().plus(std::time::Duration::from_secs(60));
    let sought = sub.seek(b, SeekTo::Time(later), SeekMode::Reprocess).await?;
    ensure_eq!((sought.next, sought.messages), (None, 0), "a time that nothing was published at yet");
    sub.publish_ids(b, &["m4"]).await?;
    sub.takes(b, &["m4"]).await
}

pub(super) async fn rewind_reprocess_runs_handlers(b: &mut Bench) -> Done {
    let sub = Sub::new(b, keeping(), rules()).await?;
    sub.publish_ids(b, &IDS).await?;
    let first = sub.await_take(b).await?;
    ensure_eq!(first.replay, 0, "the replay epoch of a first delivery");
    b.ack(&first).await?;
    let held = sub.await_take(b).await?;
    let sought = sub.seek(b, SeekTo::Beginning, SeekMode::Reprocess).await?;
    ensure_eq!(sought.replay, 1, "the replay epoch that a seek answers");
    let stale = b.settle(&held.token, ack()).await;
    ensure_eq!(stale.map_err(|e| e.kind()).err(), Some(ErrorKind::LeaseLost), "a lease of before the rewind");
    for id in IDS {
        let delivery = sub.await_take(b).await?;
        ensure_eq!(delivery.message.id.as_str(), id, "what comes again");
        ensure_eq!((delivery.replay, delivery.attempt), (1, 1), "its replay epoch and attempt");
        b.ack(&delivery).await?;
    }
    sub.nothing(b).await?;
    sub.seek(b, SeekTo::Beginning, SeekMode::Reprocess).await?;
    ensure_eq!(sub.await_take(b).await?.replay, 2, "the replay epoch of a second rewind");
    ensure_eq!(sub.stats(b).await?.lag.map(|lag| lag.replay), Some(2), "the replay epoch in the numbers");
    Ok(())
}

pub(super) async fn rewind_fill_gaps_skips_processed(b: &mut Bench) -> Done {
    let sub = Sub::new(b, keeping(), rules()).await?;
    sub.publish_ids(b, &IDS).await?;
    sub.takes(b, &["m0"]).await?;
    let dead = sub.await_take(b).await?;
    b.settle(&dead.token, reject()).await?;
    // Two are passed over: one that is purged, one that a jump to the end leaves out.
    let purge = Op::Purge {
        inlet: sub.inlet.clone(),
        what: PurgeWhat::Waiting,
        selection: Selection { ids: vec![b.id("m2")], ..Selection::default() },
        bulk: BulkId::generate(b.env()),
        dry_run: false,
    };
    b.op(purge).await?;
    sub.seek(b, SeekTo::End, SeekMode::FillGaps).await?;
    sub.publish_ids(b, &["m4"]).await?;
    let held = sub.await_take(b).await?;
    ensure_eq!(held.message.id.as_str(), "m4", "what comes after a jump to the end");
    let sought = sub.seek(b, SeekTo::Beginning, SeekMode::FillGaps).await?;
    ensure_eq!(sought.replay, 0, "the replay epoch after filling gaps");
    ensure!(!b.settle(&held.token, ack()).await?.already, "filling gaps ended a lease");
    sub.takes(b, &["m2", "m3"]).await?;
    sub.nothing(b).await?;
    // Once filled they are gaps no more.
    sub.seek(b, SeekTo::Beginning, SeekMode::FillGaps).await?;
    sub.nothing(b).await?;
    // What was published before a subscription began is a gap of it.
    let late = sub.declare_beside(b, "late", rules(), Filter::default(), StartFrom::Now).await?;
    late.nothing(b).await?;
    late.seek(b, SeekTo::Beginning, SeekMode::FillGaps).await?;
    late.takes(b, &["m0", "m1", "m2", "m3", "m4"]).await?;
    late.nothing(b).await
}

pub(super) async fn unknown_position_refused(b: &mut Bench) -> Done {
    let sub = Sub::new(b, keeping(), rules()).await?;
    sub.publish_ids(b, &IDS).await?;
    sub.takes(b, &["m0"]).await?;
    for position in [Position(0), Position(u64::MAX)] {
        for mode in [SeekMode::Reprocess, SeekMode::FillGaps] {
            let op = Op::Seek { inlet: sub.inlet.clone(), to: SeekTo::Position(position), mode };
            let refused = b.op(op).await.map_err(|e| e.kind()).err();
            ensure_eq!(refused, Some(ErrorKind::NotFound), "a seek to {position:?}");
        }
        let change = TopologyChange::Subscription {
            topic: sub.topic.clone(),
            name: "lost".into(),
            config: Box::new(rules()),
            filter: Filter::default(),
            start: StartFrom::Position(position),
            update: false,
        };
        let refused = b.engine().declare(change).await.map_err(|e| e.kind()).err();
        ensure_eq!(refused, Some(ErrorKind::NotFound), "a start at {position:?}");
    }
    let lost = Inlet::subscription(sub.topic.clone(), "lost")?;
    let exists = b.engine().topology().await?.inlets.iter().any(|(inlet, _)| *inlet == lost);
    ensure!(!exists, "a refused subscription exists");
    sub.takes(b, &["m1", "m2", "m3"]).await
}
