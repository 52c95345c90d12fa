//! Topics and subscriptions: everybody gets everything once, independently, from where they began.

use crate::bench::{PATIENCE, millis, rules};
use crate::check::{checks, ensure, ensure_eq};
use crate::{Bench, Done, Need::Has};
use onward_core::{
    Capability::{CrashSuspects, DeadLetters, Filters, OrderByKey, Pause, Seek, Topics},
    ErrorKind, Filter, InletConfig, StartFrom, Timestamp, TopicConfig,
};

mod order;
mod retention;
mod rewind;
pub(super) mod support;

use order::{
    key_order_in_a_subscription, rebalance_never_commits_past_gap, subscription_retries_and_dead_letters,
};
use retention::{
    books_of_a_subscription_balance, retention_by_age, retention_by_size, topic_is_read_both_ways,
};
use rewind::{
    rewind_fill_gaps_skips_processed, rewind_reprocess_runs_handlers, rewind_to_position, rewind_to_time,
    unknown_position_refused,
};
use support::{Sub, keeping};

checks! { group "topics";
    each_once_within_a_subscription,
        "Each message goes to one worker of a subscription, once.",
        [Has(Topics)], ["C1"];
    every_subscription_gets_all,
        "Each subscription gets each message, the body included.",
        [Has(Topics)], ["C1"];
    published_twice_is_one,
        "A message that is published again is recognised; with other content it is a conflict.",
        [Has(Topics)], [];
    late_subscription_start_policy,
        "A new subscription begins where it says: with the next message, the oldest kept one, a time or a position.",
        [Has(Topics)], ["C5"];
    rewind_to_position,
        "A subscription that is moved to a position gets the messages from there on again.",
        [Has(Topics), Has(Seek)], ["C5"];
    rewind_to_time,
        "A subscription that is moved to a time gets the messages from then on again.",
        [Has(Topics), Has(Seek)], ["C5"];
    rewind_reprocess_runs_handlers,
        "To process again is a new replay epoch, which deliveries show; leases of before settle nothing.",
        [Has(Topics), Has(Seek)], ["C5"];
    rewind_fill_gaps_skips_processed,
        "To fill gaps brings what was passed over, and nothing that was processed.",
        [Has(Topics), Has(Seek)], ["C5"];
    unknown_position_refused,
        "A position that never was is refused, for a start and for a rewind, and changes nothing.",
        [Has(Topics), Has(Seek)], [];
    rebalance_never_commits_past_gap,
        "When a worker dies in the middle, what it had not acknowledged comes again, whatever was acknowledged behind it.",
        [Has(Topics), Has(CrashSuspects)], ["AD5"];
    slow_subscription_blocks_nobody,
        "A subscription that holds, fails, is paused or has no worker holds up no other and no publisher.",
        [Has(Topics), Has(Pause)], ["C2"];
    filter_by_type_and_attribute,
        "A subscription gets what its filter takes, by type, prefix, source and header, and nothing else.",
        [Has(Topics), Has(Filters)], ["C7"];
    key_order_in_a_subscription,
        "Messages of one key are handed out in order and one at a time; a stuck key holds up no other, however far ahead.",
        [Has(Topics), Has(OrderByKey)], ["C3", "J1"];
    subscription_retries_and_dead_letters,
        "A subscription has its own attempts and dead letters, which are redriven there alone.",
        [Has(Topics), Has(DeadLetters)], ["C2", "H2"];
    retention_by_age,
        "Messages past their age are let go; a subscription that had not reached them counts them as shed.",
        [Has(Topics)], ["C4"];
    retention_by_size,
        "The oldest messages go when a topic keeps too many bytes, and the newest stay.",
        [Has(Topics)], ["C4"];
    books_of_a_subscription_balance,
        "At every moment what a subscription has reached is all accounted for, and its lag tells the rest.",
        [Has(Topics), Has(Seek)], ["L4"];
    topic_is_read_both_ways,
        "A topic's kept messages are read in slices, oldest or newest first, and reading hands nothing out.",
        [Has(Topics)], [];
}

async fn each_once_within_a_subscription(b: &mut Bench) -> Done {
    let sub = Sub::new(b, TopicConfig::default(), rules()).await?;
    let ids: Vec<String> = (0..40).map(|index| format!("m{index}")).collect();
    for id in &ids {
        sub.publish(b, b.message(id)).await?;
    }
    let mut seen = Vec::new();
    while seen.len() < ids.len() {
        // Two workers in turn; each acknowledges before the other asks.
        for worker in ["w1", "w2"] {
            let mut request = sub.request(b);
            (request.holder.worker, request.holder.process.0) = (worker.into(), worker.into());
            (request.count_max, request.lease) = (3, Some(PATIENCE));
            for delivery in b.engine().lease(request).await? {
                seen.push(delivery.message.id.to_string());
                b.ack(&delivery).await?;
            }
        }
    }
    seen.sort();
    let mut expected = ids.clone();
    expected.sort();
    ensure_eq!(seen, expected, "what was handed out");
    sub.nothing(b).await?;
    ensure_eq!(sub.stats(b).await?.books.done, 40, "done");
    Ok(())
}

async fn every_subscription_gets_all(b: &mut Bench) -> Done {
    let first = Sub::new(b, TopicConfig::default(), rules()).await?;
    let others = [first.beside(b, "second").await?, first.beside(b, "third").await?];
    for index in 0..10 {
        let message = b.message(&format!("m{index}")).header("n", &index.to_string());
        first.publish(b, message).await?;
    }
    for sub in std::iter::once(&first).chain(&others) {
        for index in 0..10 {
            let delivery = sub.await_take(b).await?;
            ensure_eq!(delivery.message.id, b.id(&format!("m{index}")), "the next message of {}", sub.inlet);
            let data = delivery.message.data.as_bytes();
            ensure_eq!(data.as_ref(), format!("\"m{index}\"").as_bytes(), "its data");
            ensure_eq!(delivery.message.headers.get("n"), Some(&index.to_string()), "its header");
            ensure_eq!(delivery.attempt, 1, "its attempt at {}", sub.inlet);
            b.ack(&delivery).await?;
        }
        sub.nothing(b).await?;
    }
    Ok(())
}

async fn published_twice_is_one(b: &mut Bench) -> Done {
    let sub = Sub::new(b, TopicConfig::default(), rules()).await?;
    let first = sub.publish(b, b.message("m")).await?;
    let again = sub.publish(b, b.message("m")).await?;
    ensure!(!first.duplicate && again.duplicate, "a repeat is not told as one");
    ensure_eq!(again.position, first.position, "the position of a repeat");
    let other = sub.publish(b, b.message("m").json(&"other")).await;
    ensure_eq!(other.map_err(|e| e.kind()).err(), Some(ErrorKind::Conflict), "a repeat with other content");
    sub.takes(b, &["m"]).await?;
    let late = sub.publish(b, b.message("m")).await?;
    ensure!(late.duplicate, "a repeat after the acknowledgement is not told as one");
    sub.nothing(b).await
}

async fn late_subscription_start_policy(b: &mut Bench) -> Done {
    let sub = Sub::new(b, keeping(), rules()).await?;
    sub.publish(b, b.message("m0")).await?;
    b.pass(millis(20)).await;
    let then = b.env().now();
    let at = sub.publish(b, b.message("m1")).await?.position;
    sub.publish(b, b.message("m2")).await?;
    let Some(at) = at else { return Err(crate::Stop::Failed("a published message has no position".into())) };
    let early = Timestamp::from_micros(1);
    let starts: [(&str, StartFrom, &[&str]); 5] = [
        ("now", StartFrom::Now, &["m3"]),
        ("beginning", StartFrom::Beginning, &["m0", "m1", "m2", "m3"]),
        ("time", StartFrom::Time(then), &["m1", "m2", "m3"]),
        ("early", StartFrom::Time(early), &["m0", "m1", "m2", "m3"]),
        ("position", StartFrom::Position(at), &["m1", "m2", "m3"]),
    ];
    let mut late = Vec::new();
    for (name, start, expected) in starts {
        late.push((sub.declare_beside(b, name, rules(), Filter::default(), start).await?, expected));
    }
    sub.publish(b, b.message("m3")).await?;
    for (sub, expected) in late {
        sub.takes(b, expected).await?;
        sub.nothing(b).await?;
    }
    Ok(())
}

async fn slow_subscription_blocks_nobody(b: &mut Bench) -> Done {
    let quick = Sub::new(b, TopicConfig::default(), rules()).await?;
    let mut failing = rules();
    failing.retry.attempts_max = 1;
    let held = quick.beside(b, "held").await?;
    let failing = quick.declare_beside(b, "failing", failing, Filter::default(), StartFrom::Now).await?;
    let paused = quick.beside(b, "paused").await?;
    let full = InletConfig { depth_max: 2, ..rules() };
    let full = quick.declare_beside(b, "full", full, Filter::default(), StartFrom::Now).await?;
    b.op(onward_core::Op::Pause { inlet: paused.inlet.clone() }).await?;
    quick.publish(b, b.message("m0")).await?;
    let hostage = held.await_take(b).await?;
    let dead = failing.await_take(b).await?;
    b.settle(&dead.token, crate::bench::reject()).await?;
    full.await_take(b).await?;
    quick.takes(b, &["m0"]).await?;
    let ids: Vec<String> = (1..50).map(|index| format!("m{index}")).collect();
    for id in &ids {
        quick.publish(b, b.message(id)).await?;
    }
    let expected: Vec<&str> = ids.iter().map(String::as_str).collect();
    quick.takes(b, &expected).await?;
    failing.takes(b, &expected).await?;
    ensure_eq!(paused.stats(b).await?.lag.map(|lag| lag.messages), Some(50), "the lag of one that is paused");
    b.op(onward_core::Op::Resume { inlet: paused.inlet.clone() }).await?;
    paused.takes(b, &["m0"]).await?;
    b.ack(&hostage).await?;
    held.takes(b, &expected).await?;
    // One at its bound keeps the rest in the topic and goes on as soon as there is room.
    full.takes(b, &expected).await
}

async fn filter_by_type_and_attribute(b: &mut Bench) -> Done {
    let all = Sub::new(b, TopicConfig::default(), rules()).await?;
    let by = |types: &[&str], sources: &[&str], headers: &[(&str, &str)]| Filter {
        types: types.iter().map(|t| (*t).into()).collect(),
        sources: sources.iter().map(|s| (*s).into()).collect(),
        headers: headers.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect(),
    };
    let cases: [(&str, Filter, &[&str]); 5] = [
        ("type", by(&["order.placed"], &[], &[]), &["placed", "placed-eu"]),
        ("prefix", by(&["order.*"], &[], &[]), &["placed", "placed-eu", "paid"]),
        ("source", by(&[], &["shop"], &[]), &["placed", "user"]),
        ("header", by(&[], &[], &[("region", "eu")]), &["placed-eu", "user"]),
        ("together", by(&["order.*", "user.*"], &["web"], &[("region", "eu")]), &["placed-eu"]),
    ];
    let mut subs = Vec::new();
    for (name, filter, expected) in cases {
        let sub = all.declare_beside(b, name, rules(), filter, StartFrom::Now).await?;
        subs.push((sub, expected));
    }
    let messages = [
        ("placed", "order.placed", "shop", None),
        ("placed-eu", "order.placed", "web", Some("eu")),
        ("paid", "order.paid", "web", Some("us")),
        ("user", "user.made", "shop", Some("eu")),
        ("orders", "orders", "web", None),
    ];
    for (id, kind, source, region) in messages {
        let mut message = onward_core::Message::builder(kind).id(b.id(id)).source(source).json(&id);
        if let Some(region) = region {
            message = message.header("region", region);
        }
        all.publish(b, message).await?;
    }
    for (sub, expected) in &subs {
        sub.takes(b, expected).await?;
        sub.nothing(b).await?;
        let stats = sub.stats(b).await?;
        ensure_eq!(stats.books.accepted, expected.len() as u64, "messages accepted by {}", sub.inlet);
        ensure_eq!(stats.lag.map(|lag| lag.messages), Some(0), "the lag of {}", sub.inlet);
    }
    all.takes(b, &["placed", "placed-eu", "paid", "user", "orders"]).await?;
    let shown = b.engine().topology().await?.filters;
    ensure!(subs.iter().all(|(sub, _)| shown.iter().any(|(i, _)| *i == sub.inlet)), "filters are not shown");
    Ok(())
}
