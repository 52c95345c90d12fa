//! The simulated clock and executor: what they promise to every simulation built on them.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use onward_core::Env;
use onward_proves::proves;
use onward_sim::{SimEnv, SimExecutor, Trace};

const HOUR: i64 = 3_600_000_000;

/// Ten tasks that wait for random times, several times over; answers the trace and the order of their ends.
fn run(seed: u64) -> (u64, Vec<(Duration, u64)>) {
    let (env, trace, ended) = (SimEnv::new(seed), Trace::default(), Rc::new(RefCell::new(Vec::new())));
    let mut executor = SimExecutor::new(env.clone(), seed, trace.clone());
    for number in 0..10 {
        let (env, ended) = (env.clone(), ended.clone());
        executor.spawn(async move {
            for _ in 0..3 {
                env.sleep(Duration::from_millis(env.random() % 4)).await;
            }
            ended.borrow_mut().push((env.elapsed(), number));
        });
    }
    executor.run_until_stalled();
    while executor.advance(Duration::from_secs(1)) {}
    let ended = ended.borrow().clone();
    (trace.hash(), ended)
}

#[test]
#[proves("LOG20")]
fn a_seed_gives_the_same_trace_each_time_and_another_seed_another() {
    let (first, again, other) = (run(7), run(7), run(8));
    assert_eq!(first, again);
    assert_eq!(first.1.len(), 10);
    assert_ne!(first, other);
}

#[test]
#[proves("LOG20")]
fn sleepers_wake_in_the_order_of_their_times_and_not_before() {
    let (_, ended) = run(3);
    assert!(ended.is_sorted_by_key(|(at, _)| *at));
    let (env, trace) = (SimEnv::new(1), Trace::default());
    let mut executor = SimExecutor::new(env.clone(), 1, trace);
    let sleep = env.sleep(Duration::from_secs(5));
    let task = executor.spawn(sleep);
    executor.run_until_stalled();
    env.advance(Duration::from_millis(4_999));
    executor.run_until_stalled();
    assert!(!executor.is_over(task));
    assert_eq!(env.next_timer(), Some(Duration::from_millis(1)));
    env.advance(Duration::from_millis(1));
    executor.run_until_stalled();
    assert!(executor.is_over(task));
}

#[test]
#[proves("LOG18")]
fn the_wall_clock_steps_and_stalls_while_the_monotonic_one_goes_on() {
    let env = SimEnv::new(1);
    let begun = env.now();
    env.step_wall(-HOUR);
    assert_eq!((env.wall_ahead(), env.now()), (-HOUR, begun.minus(Duration::from_secs(3600))));
    env.stall_wall();
    env.advance(Duration::from_secs(10));
    assert_eq!(env.now(), begun.minus(Duration::from_secs(3600)));
    assert_eq!(env.monotonic(), Duration::from_secs(10));
    env.right_wall();
    assert_eq!((env.now(), env.wall_ahead()), (begun.plus(Duration::from_secs(10)), 0));
    assert_eq!(env.truth(), env.now());
}

#[test]
#[proves("LOG18")]
fn a_process_that_restarts_has_a_monotonic_clock_of_its_own() {
    let env = SimEnv::new(1);
    env.advance(Duration::from_secs(10));
    let again = env.restarted();
    env.advance(Duration::from_secs(3));
    assert_eq!((env.monotonic(), again.monotonic()), (Duration::from_secs(13), Duration::from_secs(3)));
    assert_eq!(again.elapsed(), Duration::from_secs(13));
}

#[test]
#[proves("LOG22")]
fn a_dropped_task_and_its_sleeping_are_gone() {
    let env = SimEnv::new(1);
    let mut executor = SimExecutor::new(env.clone(), 1, Trace::default());
    let task = executor.spawn(env.sleep(Duration::from_secs(5)));
    executor.run_until_stalled();
    assert!(executor.drop_task(task));
    assert_eq!(env.next_timer(), None);
    assert!(executor.tasks().is_empty() && !executor.drop_task(task));
}
