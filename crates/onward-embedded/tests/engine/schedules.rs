//! Schedules: one message for each tick, whatever the clocks and the last message do.

use crate::support::*;
use onward_core::*;
use onward_embedded::{Options, TICK_STEP_MAX};
use onward_proves::proves;
use std::time::Duration;

const HOUR_US: i64 = 3_600_000_000;

fn every(bench: &Bench, span: Duration) -> Schedule {
    let when = ScheduleWhen::Every { every_ms: span.as_millis() as u64, first: bench.env.now().plus(span) };
    of(bench, when)
}

fn of(bench: &Bench, when: ScheduleWhen) -> Schedule {
    let template = bench.message("template").build(&*bench.env).unwrap();
    let (catch_up, overlap) = (CatchUp::Skip, Overlap::Allow);
    Schedule { queue: name(), template, when, catch_up, overlap, until: None }
}

fn put(schedule: Option<Schedule>) -> Op {
    Op::PutSchedule { name: "nightly".parse().unwrap(), schedule: schedule.map(Box::new) }
}

async fn shown(bench: &Bench) -> ScheduleView {
    bench.engine.topology().await.unwrap().schedules.remove(0)
}

/// The nominal times of all waiting messages, as the envelope says them.
async fn ticks(bench: &Bench) -> Vec<Timestamp> {
    let page = bench.engine.find(MessageQuery::state(inlet(), MessageState::Waiting, 1000)).await.unwrap();
    page.items.iter().map(|view| view.message.timestamp).collect()
}

#[tokio::test]
#[proves("B6", "T17")]
async fn each_tick_gives_one_message_that_says_which_tick_it_is() {
    let bench = Bench::new();
    let start = bench.env.now();
    bench.one(put(Some(every(&bench, secs(60))))).await.unwrap();
    bench.step(secs(59));
    assert!(ticks(&bench).await.is_empty(), "before its time");
    bench.step(secs(1));
    bench.step(secs(59));
    assert_eq!(ticks(&bench).await, [start.plus(secs(60))]);
    bench.step(secs(1));
    assert_eq!(ticks(&bench).await, [start.plus(secs(60)), start.plus(secs(120))]);
    let first = bench.lease().await.unwrap().message;
    assert_eq!(first.id, tick_id(&"nightly".parse().unwrap(), start.plus(secs(60))));
    assert_eq!(first.headers[SCHEDULE_HEADER], "default/nightly");
    assert_eq!(first.headers[TICK_HEADER], start.plus(secs(60)).to_string());
    let view = shown(&bench).await;
    assert_eq!((view.fired, view.missed), (2, 0));
    assert_eq!((view.last, view.next), (Some(start.plus(secs(120))), Some(start.plus(secs(180)))));
}

#[tokio::test]
#[proves("T18")]
async fn a_cron_line_fires_by_the_clock_of_its_zone() {
    let bench = Bench::new();
    // It is 10:00 in UTC, 11:00 in Zurich.
    let when = ScheduleWhen::Cron { line: "30 11 * * *".into(), zone: "Europe/Zurich".into() };
    bench.one(put(Some(of(&bench, when)))).await.unwrap();
    bench.step(secs(29 * 60));
    assert!(ticks(&bench).await.is_empty());
    bench.step(secs(60));
    assert_eq!(ticks(&bench).await, ["2024-03-15T10:30:00Z".parse().unwrap()]);
}

#[tokio::test]
#[proves("T19")]
async fn missed_ticks_are_left_out_made_one_or_made_up_for_as_the_schedule_says() {
    let minutes = |list: &[u64]| list.iter().map(|m| secs(m * 60)).collect::<Vec<_>>();
    // After ten minutes without a step, half a minute after the tenth tick: nine were missed, one is in time.
    for (catch_up, expected) in [
        (CatchUp::Skip, minutes(&[10])),
        (CatchUp::Coalesce, minutes(&[10])),
        (CatchUp::Backfill(3), minutes(&[7, 8, 9, 10])),
        (CatchUp::Backfill(1_000), minutes(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10])),
    ] {
        let bench = Bench::new();
        let start = bench.env.now();
        bench.one(put(Some(Schedule { catch_up, ..every(&bench, secs(60)) }))).await.unwrap();
        bench.step(secs(630));
        let expected: Vec<Timestamp> = expected.into_iter().map(|span| start.plus(span)).collect();
        assert_eq!(ticks(&bench).await, expected, "{catch_up:?}");
        assert_eq!(shown(&bench).await.missed, 10 - expected.len() as u64, "{catch_up:?}");
    }
}

#[tokio::test]
#[proves("T19")]
async fn a_late_tick_counts_as_missed_too() {
    for (catch_up, expected) in [(CatchUp::Skip, 0), (CatchUp::Coalesce, 1), (CatchUp::Backfill(5), 1)] {
        let bench = Bench::new();
        bench.one(put(Some(Schedule { catch_up, ..every(&bench, secs(3600)) }))).await.unwrap();
        bench.step(secs(3600 + 61));
        assert_eq!(ticks(&bench).await.len(), expected, "{catch_up:?}");
        bench.step(secs(3600 - 61));
        assert_eq!(ticks(&bench).await.len(), expected + 1, "the next tick is in time: {catch_up:?}");
    }
}

#[tokio::test]
#[proves("T19")]
async fn only_ticks_since_it_was_put_are_made_up_for() {
    let bench = Bench::new();
    let first = bench.env.now().minus(secs(3600));
    let when = ScheduleWhen::Every { every_ms: 60_000, first };
    let schedule = Schedule { catch_up: CatchUp::Backfill(1_000), ..of(&bench, when) };
    bench.one(put(Some(schedule))).await.unwrap();
    bench.step(Duration::ZERO);
    assert_eq!(ticks(&bench).await, [bench.env.now()], "the tick of that very moment, none before");
}

#[tokio::test]
#[proves("T19")]
async fn a_wall_clock_step_of_an_hour_fires_no_tick_twice_and_stalls_none() {
    for jump in [HOUR_US, -HOUR_US] {
        let bench = Bench::new();
        bench.one(put(Some(every(&bench, secs(60))))).await.unwrap();
        for minute in 0..240 {
            if minute == 60 {
                bench.clock.jump_wall(jump);
            }
            bench.step(secs(60));
        }
        let fired = ticks(&bench).await;
        let mut distinct = fired.clone();
        distinct.dedup();
        assert_eq!(fired, distinct, "jump {jump}: a tick came twice");
        assert!(fired.is_sorted());
        // Set back, it goes at half speed for two hours: 60 and 60 and 60 ticks. Set forward, an hour is missed.
        let expected = if jump < 0 { 180 } else { 240 };
        assert_eq!(fired.len(), expected, "jump {jump}");
        assert_eq!(shown(&bench).await.missed, if jump < 0 { 0 } else { 60 });
    }
}

#[tokio::test]
#[proves("T19")]
async fn an_overlapping_tick_is_left_out_while_the_last_message_is_unfinished_and_only_then() {
    let bench = Bench::new();
    bench.one(put(Some(Schedule { overlap: Overlap::Skip, ..every(&bench, secs(10)) }))).await.unwrap();
    bench.step(secs(10));
    bench.step(secs(10));
    assert_eq!(ticks(&bench).await.len(), 1, "it waits");
    let held = bench.lease().await.unwrap();
    bench.step(secs(10));
    assert_eq!(ticks(&bench).await.len(), 0, "it is worked on");
    bench.settle(&held.token, reject()).await.unwrap();
    bench.step(secs(10));
    assert_eq!(ticks(&bench).await.len(), 1, "a dead letter is finished");
    let view = shown(&bench).await;
    assert_eq!((view.fired, view.overlapped), (2, 2));
}

#[tokio::test]
#[proves("T19")]
async fn a_schedule_does_not_depend_on_what_became_of_its_last_message() {
    let bench = Bench::new();
    bench.one(put(Some(every(&bench, secs(10))))).await.unwrap();
    bench.step(secs(10));
    let held = bench.lease().await.unwrap();
    bench.step(secs(10));
    bench.settle(&held.token, reject()).await.unwrap();
    bench.step(secs(10));
    let id = bench.lease().await.unwrap().message.id;
    bench.one(Op::Cancel { inlet: inlet(), id }).await.unwrap();
    bench.step(secs(10));
    assert_eq!(shown(&bench).await.fired, 4);
}

#[tokio::test]
async fn no_tick_comes_after_its_end_and_a_removed_schedule_is_gone() {
    let bench = Bench::new();
    let until = Some(bench.env.now().plus(secs(25)));
    bench.one(put(Some(Schedule { until, ..every(&bench, secs(10)) }))).await.unwrap();
    for _ in 0..5 {
        bench.step(secs(10));
    }
    assert_eq!(ticks(&bench).await.len(), 2);
    assert_eq!(shown(&bench).await.next, None);
    bench.one(put(None)).await.unwrap();
    bench.one(put(None)).await.unwrap();
    assert!(bench.engine.topology().await.unwrap().schedules.is_empty());
}

#[tokio::test]
#[proves("T17")]
async fn a_schedule_put_anew_fires_no_tick_again() {
    let bench = Bench::new();
    let schedule = every(&bench, secs(60));
    bench.one(put(Some(schedule.clone()))).await.unwrap();
    bench.step(secs(60));
    bench.one(put(Some(schedule.clone()))).await.unwrap();
    assert_eq!(shown(&bench).await.since, schedule_since(&bench, 60), "the same content changes nothing");
    let other = Schedule { overlap: Overlap::Skip, ..schedule.clone() };
    bench.one(put(Some(other))).await.unwrap();
    bench.step(Duration::ZERO);
    assert_eq!(shown(&bench).await.fired, 1, "changed at the very moment of a tick");
    bench.one(put(None)).await.unwrap();
    bench.one(put(Some(schedule))).await.unwrap();
    bench.step(Duration::ZERO);
    assert_eq!(ticks(&bench).await.len(), 1, "removed and put again at the very moment of a tick");
}

/// When the schedule was put: so long ago, and the tick of that moment would have been one.
fn schedule_since(bench: &Bench, ago: u64) -> Timestamp {
    Timestamp::from_micros(bench.env.now().minus(secs(ago)).as_micros() - 1)
}

#[tokio::test]
async fn a_tick_that_its_queue_refuses_stays_due_and_holds_up_no_other() {
    let bench = Bench::queue(InletConfig { depth_max: 1, ..InletConfig::default() }).await;
    bench.put("m").await;
    let held = bench.lease().await.unwrap();
    bench.one(put(Some(every(&bench, secs(10))))).await.unwrap();
    let other = Schedule { queue: "other".parse().unwrap(), ..every(&bench, secs(10)) };
    let other = Op::PutSchedule { name: "other".parse().unwrap(), schedule: Some(Box::new(other)) };
    bench.one(other).await.unwrap();
    bench.clock.advance(secs(10));
    assert_eq!(bench.engine.tick(), Some(secs(1)), "it tries again after a second");
    let views = bench.engine.topology().await.unwrap().schedules;
    assert_eq!((views[0].fired, views[1].fired), (0, 1));
    assert!(views[0].problem.as_ref().unwrap().contains("unfinished"), "{:?}", views[0].problem);
    bench.ack(&held).await;
    bench.step(secs(1));
    let view = shown(&bench).await;
    assert_eq!((view.fired, view.problem), (1, None));
}

#[tokio::test]
async fn ticks_beyond_one_step_follow_in_the_next() {
    let bench = Bench::new();
    for number in 0..3 {
        let schedule = Schedule { catch_up: CatchUp::Backfill(1_000), ..every(&bench, secs(1)) };
        let name: Name = format!("s{number}").parse().unwrap();
        bench.one(Op::PutSchedule { name, schedule: Some(Box::new(schedule)) }).await.unwrap();
    }
    bench.step(secs(900));
    const { assert!(2_700 > 2 * TICK_STEP_MAX) };
    assert_eq!(bench.stats().await.books.waiting, 2_700);
}

#[tokio::test]
async fn what_can_not_fire_is_refused_before_any_effect() {
    let bench = Bench::new();
    let good = every(&bench, secs(60));
    let with = |change: fn(&mut Schedule)| {
        let mut schedule = good.clone();
        change(&mut schedule);
        bench.engine.prepare(vec![put(Some(schedule))])
    };
    assert!(with(|_| ()).is_ok());
    let invalid: [fn(&mut Schedule); 8] = [
        |s| s.when = ScheduleWhen::Cron { line: "61 * * * *".into(), zone: "UTC".into() },
        |s| s.when = ScheduleWhen::Cron { line: "@daily".into(), zone: "Mars".into() },
        |s| s.when = ScheduleWhen::Every { every_ms: 10, first: Timestamp::default() },
        |s| s.until = Some(Timestamp::default()),
        |s| s.catch_up = CatchUp::Backfill(0),
        |s| s.catch_up = CatchUp::Backfill(1_001),
        |s| s.template.unique_key = Some("mine".try_into().unwrap()),
        |s| s.template.expiry = Some(Timestamp::default()),
    ];
    for change in invalid {
        assert_eq!(kind(with(change)), ErrorKind::Invalid);
    }
    let twice = bench.engine.prepare(vec![put(Some(good.clone())), put(None)]).unwrap();
    assert_eq!(kind(bench.engine.commit(twice).await), ErrorKind::Invalid);
    assert!(bench.engine.topology().await.unwrap().schedules.is_empty());
}

#[tokio::test]
async fn a_strict_engine_refuses_a_schedule_of_a_queue_that_does_not_exist() {
    let options = Options { manual_clock: true, strict: true, ..Options::default() };
    let bench = Bench::with(options);
    assert_eq!(kind(bench.one(put(Some(every(&bench, secs(60))))).await), ErrorKind::NotFound);
}

#[tokio::test]
async fn there_are_at_most_so_many_schedules() {
    let bench = Bench::new();
    let schedule = Box::new(every(&bench, secs(60)));
    let ops = |from: usize, to: usize| -> Vec<Op> {
        let name = |number| format!("s{number}").parse().unwrap();
        (from..to)
            .map(|number| Op::PutSchedule { name: name(number), schedule: Some(schedule.clone()) })
            .collect()
    };
    bench.commit(ops(0, SCHEDULES_MAX)).await.unwrap();
    assert_eq!(kind(bench.commit(ops(SCHEDULES_MAX, SCHEDULES_MAX + 1)).await), ErrorKind::Full);
    let mut swapped = ops(SCHEDULES_MAX, SCHEDULES_MAX + 1);
    swapped.insert(0, Op::PutSchedule { name: "s1".parse().unwrap(), schedule: None });
    bench.commit(vec![swapped.remove(0)]).await.unwrap();
    bench.commit(swapped).await.unwrap();
}

/// The clock task itself wakes for a tick, and looks at the wall clock on the way.
#[tokio::test]
async fn the_clock_task_wakes_for_the_next_tick() {
    let bench = Bench::with(Options::default());
    bench.declare(InletConfig::default()).await;
    bench.one(put(Some(every(&bench, secs(3600))))).await.unwrap();
    let request = LeaseRequest { wait: secs(50), ..bench.request("p") };
    let (engine, clock) = (&bench.engine, bench.clock.clone());
    let lease = engine.lease(request);
    let passing = async {
        clock.advance(secs(10));
        // Set forward to the tick while the task sleeps: it finds out within its look of 30 s.
        clock.jump_wall(3_590_000_000 - 15_000_000);
        for _ in 0..35 {
            tokio::task::yield_now().await;
            clock.advance(secs(1));
        }
    };
    let (got, ()) = tokio::join!(lease, passing);
    assert_eq!(got.unwrap().len(), 1);
}
