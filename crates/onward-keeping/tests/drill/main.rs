//! The drills: a process at work is killed with SIGKILL and its folder is lost; what was copied takes its place, and what
//! is missing and how long it took are measured.
//!
//! `cargo xtask drill` runs them for longer, built for speed, and shows the figures: accepted, lost, how long before the
//! loss the oldest lost one was accepted, bytes brought back, time until the first message was handed out again.
#![allow(clippy::unwrap_used, reason = "helpers of tests stop a test as the tests do")]
#![allow(unreachable_pub, reason = "helpers of tests")]

mod found;
mod machine;

use found::{Found, tell};
use machine::{Accepted, Machine, works_for};
use onward_core::{Env, Timestamp};
use onward_env::{SystemEnv, pass};
use onward_keeping::{Destination, ShipOptions, Shipper, Standby, Target, backup, promote, restore};
use onward_proves::proves;
use std::{path::PathBuf, sync::Arc, time::Duration};
use tempfile::TempDir;
use tokio::sync::Mutex;

/// From one pass of the shipper to the next.
const EVERY: Duration = Duration::from_millis(200);

/// One drill at a time: each has the machine to itself.
static ALONE: Mutex<()> = Mutex::const_new(());

/// A machine at work, and where its copies go.
struct Drill {
    place: TempDir,
    machine: Machine,
    to: Destination,
}

impl Drill {
    fn start() -> Self {
        let place = tempfile::tempdir().unwrap();
        let to = Destination::open(place.path().join("copies").to_str().unwrap()).unwrap();
        let machine = Machine::start(place.path().join("data"));
        Self { place, machine, to }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    async fn shipper(&self) -> Shipper {
        let options = ShipOptions { every: EVERY, ..ShipOptions::default() };
        let quiet = Arc::new(|_| {});
        Shipper::start(&self.machine.data, &self.to, &options, quiet, SystemEnv::shared()).await.unwrap()
    }

    /// Ships for as long as a drill lasts, three passes at least, and before each does `beside`; answers when the last pass
    /// began. The machine then goes on for as long as from one pass to the next.
    async fn ship(&self, shipper: &mut Shipper, mut beside: impl AsyncFnMut()) -> i64 {
        let until = SystemEnv.monotonic() + works_for();
        let (mut begun, mut passes) = (SystemEnv.now(), 0);
        // A machine that works fast on a slow disk is shipped in few, long passes.
        while SystemEnv.monotonic() < until || passes < 3 {
            pass(&SystemEnv, EVERY).await;
            begun = SystemEnv.now();
            beside().await;
            shipper.step().await.unwrap();
            passes += 1;
        }
        pass(&SystemEnv, EVERY).await;
        begun.as_micros()
    }
}

fn assert_only_behind(lost: &[&Accepted], last_pass: i64) {
    let before = lost.iter().filter(|(at, _)| *at < last_pass).count();
    assert_eq!(before, 0, "what was accepted before the last pass began is lost");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[proves("LOG23")]
async fn a_backup_made_while_messages_are_accepted_misses_only_what_came_after_its_start() {
    let _alone = ALONE.lock().await;
    let drill = Drill::start();
    pass(&SystemEnv, works_for()).await;
    let asked = SystemEnv.now().as_micros();
    let made = backup(&drill.machine.data, &drill.to, Arc::new(|_| {}), SystemEnv::shared()).await.unwrap();
    let (copy, to) = (drill.path("restored"), drill.to.clone());
    let (_, accepted) = drill.machine.lose();

    let begun = SystemEnv.monotonic();
    let restored = restore(&to, &copy, Target::End, SystemEnv::shared()).await.unwrap();
    let found = Found::in_folder(&copy, begun).await;
    let late: Vec<_> = found.missing(&accepted);
    // Of a backup, what it misses is counted up to its end.
    let ended = asked + i64::try_from(made.took_ms).unwrap() * 1_000;
    let during: Vec<_> = late.iter().filter(|(at, _)| *at <= ended).copied().collect();
    tell(
        &format!("backup, made in {} ms", made.took_ms),
        &accepted,
        &during,
        ended,
        restored.bytes,
        found.took,
    );
    assert!(late.iter().all(|(at, _)| *at >= asked), "what was accepted before the backup began is lost");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[proves("LOG23")]
async fn a_lost_machine_loses_only_what_was_accepted_since_the_last_pass() {
    let _alone = ALONE.lock().await;
    let drill = Drill::start();
    let mut shipper = drill.shipper().await;
    let last_pass = drill.ship(&mut shipper, async || {}).await;
    let (copy, to) = (drill.path("restored"), drill.to.clone());
    let (killed, accepted) = drill.machine.lose();

    let begun = SystemEnv.monotonic();
    let restored = restore(&to, &copy, Target::End, SystemEnv::shared()).await.unwrap();
    let found = Found::in_folder(&copy, begun).await;
    let lost = found.missing(&accepted);
    tell("shipped every 200 ms, restored", &accepted, &lost, killed, restored.bytes, found.took);
    assert_only_behind(&lost, last_pass);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[proves("LOG23")]
async fn a_promoted_standby_has_all_that_was_accepted_before_the_last_pass() {
    let _alone = ALONE.lock().await;
    let drill = Drill::start();
    let mut shipper = drill.shipper().await;
    let dir = drill.path("standby");
    let mut standby = Standby::open(&drill.to, &dir, SystemEnv::shared()).await.unwrap();
    let mut fetched = 0;
    let follow = async || fetched += standby.step().await.unwrap().bytes;
    let last_pass = drill.ship(&mut shipper, follow).await;
    drop(standby);
    let (killed, accepted) = drill.machine.lose();

    let begun = SystemEnv.monotonic();
    promote(&dir, SystemEnv::shared()).await.unwrap().expect("the standby was promoted by somebody else");
    let found = Found::in_folder(&dir, begun).await;
    let lost = found.missing(&accepted);
    tell("shipped every 200 ms, standby promoted", &accepted, &lost, killed, fetched, found.took);
    assert_only_behind(&lost, last_pass);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[proves("LOG23")]
async fn a_moment_is_restored_with_all_that_was_accepted_before_it_and_little_behind() {
    let _alone = ALONE.lock().await;
    let drill = Drill::start();
    let mut shipper = drill.shipper().await;
    let mut moments = Vec::new();
    drill.ship(&mut shipper, async || moments.push(SystemEnv.now())).await;
    let moment: Timestamp = moments[moments.len() / 2];
    let (copy, to) = (drill.path("restored"), drill.to.clone());
    let (_, accepted) = drill.machine.lose();

    let begun = SystemEnv.monotonic();
    let restored = restore(&to, &copy, Target::Time(moment), SystemEnv::shared()).await.unwrap();
    let found = Found::in_folder(&copy, begun).await;
    let missing = found.missing(&accepted);
    let moment = moment.as_micros();
    let lost: Vec<_> = missing.iter().filter(|(at, _)| *at < moment).copied().collect();
    let beyond = found.beyond(moment).as_millis();
    let name = format!("shipped every 200 ms, restored to a moment, {beyond} ms beyond it");
    tell(&name, &accepted, &lost, moment, restored.bytes, found.took);
    assert!(lost.is_empty(), "what was accepted before the moment is lost: {lost:?}");
    assert!(
        missing.len() > lost.len() && restored.groups_left_out > 0,
        "nothing behind the moment was left out"
    );
}

/// Does nothing unless it is started as the child of the tests above.
#[test]
fn as_a_child_it_accepts_until_it_is_killed() {
    machine::work_if_child();
}
