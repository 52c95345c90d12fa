//! What a topic keeps, what it lets go, and how that is counted.

use super::support::{Sub, keeping};
use crate::bench::{millis, reject, rules};
use crate::check::{ensure, ensure_eq};
use crate::{Bench, Done, Stop};
use onward_core::{
    Direction, EventRead, EventScope, LeaseRequest, Name, ReadFrom, Result, SeekMode, SeekTo, StartFrom,
    TopicConfig,
};

async fn kept(b: &Bench, topic: &Name) -> Result<Vec<String>> {
    let read = EventRead {
        scope: EventScope::Topic(topic.clone()),
        from: ReadFrom::Start,
        direction: Direction::Forward,
        limit: 100,
        bytes_max: 1 << 20,
        as_of: None,
    };
    let events = b.engine().read_events(read).await?.events;
    Ok(events.into_iter().map(|event| event.event.message.id.to_string()).collect())
}

pub(super) async fn retention_by_age(b: &mut Bench) -> Done {
    let config = TopicConfig { retention_ms: Some(2_000), ..TopicConfig::default() };
    let sub = Sub::new(b, config, rules()).await?;
    let watcher = sub.beside(b, "watcher").await?;
    sub.publish_ids(b, &["m0", "m1", "m2"]).await?;
    // What is in hand when the topic lets it go is finished all the same.
    let held = watcher.await_take(b).await?;
    b.pass(millis(2_500)).await;
    sub.publish_ids(b, &["m3", "m4"]).await?;
    let mut waited = 0;
    while kept(b, &sub.topic).await? != ["m3", "m4"] {
        ensure!(waited < 200, "messages past their age are still kept: {:?}", kept(b, &sub.topic).await?);
        waited += 1;
        b.pass(millis(10)).await;
    }
    sub.takes(b, &["m3", "m4"]).await?;
    sub.nothing(b).await?;
    let books = sub.stats(b).await?.books;
    ensure_eq!((books.accepted, books.done, books.shed), (5, 2, 3), "accepted, done, shed");
    ensure_eq!(held.message.id.as_str(), "m0", "what was in hand");
    b.ack(&held).await?;
    let late = sub.seek(b, SeekTo::Time(held.accepted_at), SeekMode::Reprocess).await?;
    ensure!(late.clipped, "a rewind to before what is kept does not say so");
    sub.takes(b, &["m3", "m4"]).await
}

pub(super) async fn retention_by_size(b: &mut Bench) -> Done {
    let size = b.message("m0").build(b.env())?.size() as u64;
    let config = TopicConfig { retention_bytes: Some(3 * size), ..TopicConfig::default() };
    let sub = Sub::new(b, config, rules()).await?;
    sub.publish_ids(b, &["m0", "m1", "m2", "m3", "m4", "m5", "m6"]).await?;
    ensure_eq!(kept(b, &sub.topic).await?, ["m4", "m5", "m6"], "what is kept");
    sub.takes(b, &["m4", "m5", "m6"]).await?;
    sub.nothing(b).await?;
    let stats = sub.stats(b).await?;
    ensure_eq!((stats.books.accepted, stats.books.shed), (7, 4), "accepted and shed");
    ensure!(stats.books.balance(), "the books do not balance: {:?}", stats.books);
    // What every subscription has reached is kept too, for those who come later.
    let late = sub.declare_beside(b, "late", rules(), Default::default(), StartFrom::Beginning).await?;
    late.takes(b, &["m4", "m5", "m6"]).await?;
    late.nothing(b).await
}

pub(super) async fn books_of_a_subscription_balance(b: &mut Bench) -> Done {
    let size = b.message("m0").build(b.env())?.size() as u64;
    let config = TopicConfig { retention_bytes: Some(6 * size), ..TopicConfig::default() };
    let sub = Sub::new(b, config, rules()).await?;
    let balanced = async |what: &str| -> Result<onward_core::Stats, Stop> {
        let stats = sub.stats(b).await?;
        ensure!(stats.books.balance(), "{what} the books do not balance: {:?}", stats.books);
        Ok(stats)
    };
    for index in 0..8 {
        sub.publish(b, b.message(&format!("m{index}"))).await?;
    }
    let lag = balanced("behind").await?.lag.ok_or_else(|| Stop::Failed("no lag of a subscription".into()))?;
    ensure_eq!(lag.messages, 6, "the lag, of 8 messages of which 6 are kept");
    let three = LeaseRequest { count_max: 3, ..sub.request(b) };
    let held = b.engine().lease(three).await?;
    let stats = balanced("with leases").await?;
    ensure_eq!((stats.books.leased, stats.books.shed), (3, 2), "leased and shed");
    ensure_eq!(stats.lag.map(|lag| lag.messages), Some(3), "the lag with three in hand");
    b.ack(&held[0]).await?;
    b.settle(&held[1].token, reject()).await?;
    let books = balanced("after settling").await?.books;
    ensure_eq!((books.done, books.dead, books.leased), (1, 1, 1), "done, dead, leased");
    sub.seek(b, SeekTo::Beginning, SeekMode::Reprocess).await?;
    balanced("after a rewind").await?;
    sub.takes(b, &["m2", "m4", "m5", "m6", "m7"]).await?;
    let stats = balanced("at the end").await?;
    ensure_eq!(
        (stats.books.dead, stats.lag.map(|lag| lag.messages)),
        (1, Some(0)),
        "dead and lag at the end"
    );
    Ok(())
}

pub(super) async fn topic_is_read_both_ways(b: &mut Bench) -> Done {
    let sub = Sub::new(b, keeping(), rules()).await?;
    sub.publish_ids(b, &["m0", "m1", "m2", "m3", "m4"]).await?;
    for (direction, from, expected) in [
        (Direction::Forward, ReadFrom::Start, ["m0", "m1", "m2", "m3", "m4"]),
        (Direction::Backward, ReadFrom::End, ["m4", "m3", "m2", "m1", "m0"]),
    ] {
        let (mut seen, mut next, mut positions) = (Vec::new(), Some(from), Vec::new());
        while let Some(from) = next {
            let scope = EventScope::Topic(sub.topic.clone());
            let read = EventRead { scope, from, direction, limit: 2, bytes_max: 1 << 20, as_of: None };
            let slice = b.engine().read_events(read).await?;
            ensure!(slice.events.len() <= 2, "a slice of at most 2 has {}", slice.events.len());
            ensure!(seen.len() <= 10, "the slices have no end");
            seen.extend(slice.events.iter().map(|e| e.event.message.id.to_string()));
            positions.extend(slice.events.iter().map(|e| e.position));
            next = slice.next;
        }
        ensure_eq!(seen, expected, "what is read {direction:?}");
        let rising =
            positions.windows(2).all(|pair| (pair[0] < pair[1]) == (direction == Direction::Forward));
        ensure!(rising, "positions are out of order: {positions:?}");
    }
    sub.takes(b, &["m0", "m1", "m2", "m3", "m4"]).await
}
