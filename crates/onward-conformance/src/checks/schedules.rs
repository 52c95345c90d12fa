//! Schedules: one message for each tick, whatever the clocks, the last message and the processes do.

use crate::bench::{reject, rules};
use crate::check::{checks, ensure, ensure_eq};
use crate::{Bench, Done, Need::Durable, Need::Has, Stop};
use onward_core::{
    Capability::{Queues, Schedules},
    CatchUp, ErrorKind, Name, Op, Overlap, Result, Schedule, ScheduleView, ScheduleWhen, Timestamp, tick_id,
};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);

checks! { group "schedules";
    one_message_for_each_tick,
        "Each tick gives one message, whose id is derived from the schedule and the tick, and which says both.",
        [Has(Queues), Has(Schedules)], ["T17", "B6"];
    tick_once_over_a_crash,
        "A tick is fired once though the process dies around it, and a put schedule is there after a crash.",
        [Has(Queues), Has(Schedules), Durable], ["T17"];
    cron_goes_by_its_zone,
        "A cron line fires by the clock of its zone; a time of day that does not exist is the first instant after.",
        [Has(Queues), Has(Schedules)], ["T18"];
    missed_ticks_go_by_the_policy,
        "Missed ticks are left out, one for all, or made up for, as the schedule says; the counts tell.",
        [Has(Queues), Has(Schedules)], ["T19"];
    overlap_skips_while_unfinished,
        "With `skip` a tick is left out while the last message is unfinished, and only then.",
        [Has(Queues), Has(Schedules)], ["T19"];
    clock_step_fires_none_twice,
        "The wall clock set an hour back or forward fires no tick twice and stalls none.",
        [Has(Queues), Has(Schedules)], ["T19"];
    no_tick_after_until,
        "No tick comes after a schedule's end.",
        [Has(Queues), Has(Schedules)], [];
    removed_schedule_is_silent,
        "A removed schedule fires no more, and what it gave stays.",
        [Has(Queues), Has(Schedules)], [];
    schedule_put_again_fires_none_again,
        "Putting the same content changes nothing, and other content fires no tick again.",
        [Has(Queues), Has(Schedules)], ["T17"];
    schedule_that_never_fires_refused,
        "Lines that can't be read, unknown zones, too short spans and ended schedules are refused without effect.",
        [Has(Queues), Has(Schedules)], ["T53"];
}

/// The name of the one schedule of a check.
fn name() -> Result<Name> {
    "check-schedule".parse()
}

/// A schedule that fires every so often, first after one span; missed ticks are left out.
fn every(b: &Bench, queue: &Name, span: Duration) -> Result<Schedule> {
    let first = b.env().now().plus(span);
    of(b, queue, ScheduleWhen::Every { every_ms: span.as_millis() as u64, first })
}

fn of(b: &Bench, queue: &Name, when: ScheduleWhen) -> Result<Schedule> {
    let template = b.message("template").build(b.env())?;
    let (catch_up, overlap) = (CatchUp::Skip, Overlap::Allow);
    Ok(Schedule { queue: queue.clone(), template, when, catch_up, overlap, until: None })
}

async fn put(b: &Bench, schedule: Option<Schedule>) -> Result<()> {
    b.op(Op::PutSchedule { name: name()?, schedule: schedule.map(Box::new) }).await.map(drop)
}

async fn shown(b: &Bench) -> std::result::Result<ScheduleView, Stop> {
    let all = b.engine().topology().await?.schedules;
    all.into_iter().next().ok_or_else(|| Stop::Failed("the schedule is not listed".into()))
}

/// Takes and acknowledges what is there; answers the nominal times.
async fn ticks(b: &Bench, queue: &Name) -> std::result::Result<Vec<Timestamp>, Stop> {
    // Asking for numbers lets an engine without a clock of its own do what is due.
    b.stats(queue).await?;
    let mut found = Vec::new();
    for delivery in b.take_many(queue, 1_000).await? {
        found.push(delivery.message.timestamp);
        b.ack(&delivery).await?;
    }
    Ok(found)
}

async fn one_message_for_each_tick(b: &mut Bench) -> Done {
    let queue = b.queue(rules()).await?;
    let schedule = every(b, &queue, SECOND)?;
    let ScheduleWhen::Every { first, .. } = schedule.when else { return Ok(()) };
    put(b, Some(schedule)).await?;
    ensure!(b.take(&queue).await?.is_none(), "a message before the first tick");
    for number in 0..3 {
        let tick = first.plus(SECOND * number);
        let delivery = b.await_take(&queue).await?;
        let message = &delivery.message;
        ensure!(b.env().now() >= tick, "a tick was early");
        ensure_eq!(message.timestamp, tick, "the nominal time of tick {number}");
        ensure_eq!(message.id, tick_id(&name()?, tick), "the id of tick {number}");
        ensure_eq!(message.headers.get("onward-tick"), Some(&tick.to_string()), "its header");
        ensure!(b.take(&queue).await?.is_none(), "a second message for one tick");
        b.ack(&delivery).await?;
    }
    Ok(())
}

async fn tick_once_over_a_crash(b: &mut Bench) -> Done {
    let queue = b.queue(rules()).await?;
    let schedule = Schedule { catch_up: CatchUp::Backfill(100), ..every(b, &queue, SECOND)? };
    let ScheduleWhen::Every { first, .. } = schedule.when else { return Ok(()) };
    put(b, Some(schedule)).await?;
    for number in 0..3 {
        let delivery = b.await_take(&queue).await?;
        ensure_eq!(delivery.message.timestamp, first.plus(SECOND * number), "the tick after a crash");
        b.ack(&delivery).await?;
        b.subject.crash().await?;
    }
    Ok(())
}

async fn cron_goes_by_its_zone(b: &mut Bench) -> Done {
    b.clock().stepped()?;
    let queue = b.queue(rules()).await?;
    let when = ScheduleWhen::Cron { line: "30 2 * * *".into(), zone: "Europe/Zurich".into() };
    put(b, Some(of(b, &queue, when)?)).await?;
    // On 31 March 2024 the clocks of Zurich go from 02:00 to 03:00, at 01:00 in UTC.
    let tick: Timestamp = "2024-03-31T01:00:00Z".parse()?;
    b.pass(tick.minus(HOUR * 13).since(b.env().now())).await;
    ticks(b, &queue).await?;
    b.pass(tick.minus(SECOND).since(b.env().now())).await;
    ensure_eq!(ticks(b, &queue).await?, Vec::<Timestamp>::new(), "ticks before the gap");
    b.pass(SECOND).await;
    ensure_eq!(ticks(b, &queue).await?, vec![tick], "ticks at the end of the gap");
    ensure_eq!(shown(b).await?.next, Some("2024-04-01T00:30:00Z".parse()?), "the next tick");
    Ok(())
}

async fn missed_ticks_go_by_the_policy(b: &mut Bench) -> Done {
    b.clock().stepped()?;
    // Half a minute after the tenth tick: nine are missed, one is in time.
    for (catch_up, expected) in [(CatchUp::Skip, 1), (CatchUp::Coalesce, 1), (CatchUp::Backfill(4), 5)] {
        let queue = b.queue(rules()).await?;
        let schedule = Schedule { catch_up, ..every(b, &queue, MINUTE)? };
        let ScheduleWhen::Every { first, .. } = schedule.when else { return Ok(()) };
        put(b, Some(schedule)).await?;
        b.pass(MINUTE * 10 + MINUTE / 2).await;
        let found = ticks(b, &queue).await?;
        ensure_eq!(found.len(), expected, "messages with {catch_up:?}");
        ensure_eq!(found.last(), Some(&first.plus(MINUTE * 9)), "the last of them");
        ensure_eq!(shown(b).await?.missed, 10 - expected as u64, "missed with {catch_up:?}");
        put(b, None).await?;
    }
    Ok(())
}

async fn overlap_skips_while_unfinished(b: &mut Bench) -> Done {
    b.clock().stepped()?;
    let queue = b.queue(rules()).await?;
    put(b, Some(Schedule { overlap: Overlap::Skip, ..every(b, &queue, SECOND)? })).await?;
    b.pass(SECOND).await;
    b.stats(&queue).await?;
    b.pass(SECOND).await;
    ensure_eq!(b.stats(&queue).await?.books.accepted, 1, "messages while the first one waits");
    let held = b.must_take(&queue).await?;
    b.pass(SECOND).await;
    ensure_eq!(b.stats(&queue).await?.books.accepted, 1, "messages while it is worked on");
    b.settle(&held.token, reject()).await?;
    b.pass(SECOND).await;
    ensure_eq!(b.stats(&queue).await?.books.accepted, 2, "messages after it died");
    let view = shown(b).await?;
    ensure_eq!((view.fired, view.overlapped), (2, 2), "fired and left out");
    Ok(())
}

async fn clock_step_fires_none_twice(b: &mut Bench) -> Done {
    let clock = b.clock().stepped()?.clone();
    let queue = b.queue(rules()).await?;
    put(b, Some(every(b, &queue, MINUTE)?)).await?;
    let mut seen = Vec::new();
    for (round, step) in [None, Some(true), Some(false)].into_iter().enumerate() {
        match step {
            Some(true) => clock.wall_forward(HOUR),
            Some(false) => clock.wall_back(HOUR),
            None => {}
        }
        let before = seen.len();
        for _ in 0..30 {
            b.pass(MINUTE).await;
            seen.extend(ticks(b, &queue).await?);
        }
        let came = seen.len() - before;
        ensure!(came >= 14, "only {came} ticks in half an hour of round {round}: it stalls");
    }
    ensure!(seen.windows(2).all(|pair| pair[0] < pair[1]), "a tick came twice, or out of order: {seen:?}");
    Ok(())
}

async fn no_tick_after_until(b: &mut Bench) -> Done {
    let queue = b.queue(rules()).await?;
    let schedule = every(b, &queue, SECOND)?;
    // Room for a process that stands still for seconds between here and the engine: the first tick is still to come.
    let until = b.env().now().plus(SECOND * 9 / 2);
    put(b, Some(Schedule { until: Some(until), ..schedule })).await?;
    let mut seen = Vec::new();
    while b.env().now() <= until.plus(SECOND * 3) {
        b.pass(SECOND).await;
        seen.extend(ticks(b, &queue).await?);
    }
    ensure!(!seen.is_empty() && seen.iter().all(|tick| *tick <= until), "ticks {seen:?} up to {until:?}");
    ensure_eq!(shown(b).await?.next, None, "the next tick of an ended schedule");
    Ok(())
}

async fn removed_schedule_is_silent(b: &mut Bench) -> Done {
    let queue = b.queue(rules()).await?;
    put(b, Some(every(b, &queue, SECOND)?)).await?;
    let held = b.await_take(&queue).await?;
    put(b, None).await?;
    put(b, None).await?;
    ensure!(b.engine().topology().await?.schedules.is_empty(), "a removed schedule is listed");
    b.ack(&held).await?;
    b.nothing_for(&queue, SECOND * 3).await
}

async fn schedule_put_again_fires_none_again(b: &mut Bench) -> Done {
    b.clock().stepped()?;
    let queue = b.queue(rules()).await?;
    let schedule = every(b, &queue, MINUTE)?;
    put(b, Some(schedule.clone())).await?;
    b.pass(MINUTE).await;
    let mut seen = ticks(b, &queue).await?;
    put(b, Some(schedule.clone())).await?;
    put(b, Some(Schedule { overlap: Overlap::Skip, ..schedule.clone() })).await?;
    seen.extend(ticks(b, &queue).await?);
    put(b, None).await?;
    put(b, Some(schedule)).await?;
    seen.extend(ticks(b, &queue).await?);
    ensure_eq!(seen.len(), 1, "messages of one tick");
    Ok(())
}

async fn schedule_that_never_fires_refused(b: &mut Bench) -> Done {
    let queue = b.queue(rules()).await?;
    let good = every(b, &queue, MINUTE)?;
    let cron = |line: &str, zone: &str| ScheduleWhen::Cron { line: line.into(), zone: zone.into() };
    let with = |when| Schedule { when, ..good.clone() };
    let wrong = [
        with(cron("61 * * * *", "UTC")),
        with(cron("* * *", "UTC")),
        with(cron("@daily", "Mars/Olympus")),
        with(ScheduleWhen::Every { every_ms: 10, first: b.env().now() }),
        Schedule { until: Some(b.env().now().minus(HOUR)), ..good.clone() },
        Schedule { catch_up: CatchUp::Backfill(0), ..good.clone() },
    ];
    for schedule in wrong {
        let shown = format!("{:?}", schedule.when);
        let op = Op::PutSchedule { name: name()?, schedule: Some(Box::new(schedule)) };
        let refused = b.engine().prepare(vec![op]).is_err_and(|error| error.kind() == ErrorKind::Invalid);
        ensure!(refused, "{shown} is not refused as invalid");
    }
    ensure!(b.engine().topology().await?.schedules.is_empty(), "a refused schedule is listed");
    Ok(())
}
