//! A folder with several ways in: who is its host, and who takes its place.
//!
//! The engine lives in memory and outlasts its hosts here, as one on disk does. What happens to real processes and to
//! the disk stands in `tests/processes.rs`.

#![allow(clippy::unwrap_used, reason = "a test")]

use futures::{FutureExt, StreamExt, poll};
use onward::{
    Engine, Env, Error, ErrorKind, Folder, FolderOptions, Message, Op, RetryHint, SystemEnv,
    core::{Hint, Interest, LeaseRequest, Receipt, RequestId},
    folder::{Opener, Role},
};
use onward_core::{Accepted, Holder, Inlet};
use onward_embedded::{MemoryEngine, Options};
use onward_proves::proves;
use std::{pin::pin, sync::Arc, time::Duration};
use tempfile::TempDir;
use tokio::sync::Semaphore;

/// A folder whose engine can be opened as often as there are permits.
struct Setup {
    folder: TempDir,
    engine: Arc<MemoryEngine>,
    openings: Arc<Semaphore>,
}

fn setup() -> Setup {
    let engine = Arc::new(MemoryEngine::new(SystemEnv::shared(), Options::default()));
    Setup { folder: tempfile::tempdir().unwrap(), engine, openings: Arc::new(Semaphore::new(1)) }
}

impl Setup {
    fn opener(&self) -> Opener {
        let (engine, openings) = (self.engine.clone(), self.openings.clone());
        Arc::new(move |_| {
            let (engine, openings) = (engine.clone(), openings.clone());
            Box::pin(async move {
                openings.acquire().await.unwrap().forget();
                Ok(engine as Arc<dyn Engine>)
            })
        })
    }

    async fn enter(&self, change: impl FnOnce(&mut FolderOptions)) -> onward::Result<Folder> {
        let mut options = FolderOptions::default();
        change(&mut options);
        Folder::open(self.folder.path(), options, self.opener(), SystemEnv::shared()).await
    }
}

async fn put(engine: &dyn Engine, id: &str) -> onward::Result<Accepted> {
    let message =
        Message::builder("mail.wanted").id(id.try_into().unwrap()).json(&1).build(&SystemEnv).unwrap();
    let op = Op::Enqueue { queue: "emails".parse().unwrap(), message: Box::new(message) };
    match engine.commit(engine.prepare(vec![op])?).await?.remove(0) {
        Receipt::Accepted(accepted) => Ok(accepted),
        other => panic!("{other:?}"),
    }
}

async fn take(engine: &dyn Engine) -> Vec<String> {
    let holder = Holder { worker: "w".into(), process: onward::this_process(&SystemEnv) };
    let request = LeaseRequest::one(Inlet::queue("emails").unwrap(), holder, RequestId::generate(&SystemEnv));
    let got = engine.lease(LeaseRequest { count_max: 100, ..request }).await.unwrap();
    got.into_iter().map(|delivery| delivery.message.id.to_string()).collect()
}

#[tokio::test]
async fn the_first_is_the_host_and_the_second_works_through_it() {
    let setup = setup();
    let first = setup.enter(|_| {}).await.unwrap();
    let second = setup.enter(|_| {}).await.unwrap();
    assert!(first.is_host() && !second.is_host());
    put(&second, "m1").await.unwrap();
    assert!(put(&first, "m1").await.unwrap().duplicate);
    assert_eq!(take(&second).await, ["m1"]);
}

#[tokio::test]
#[proves("LOG13")]
async fn one_that_insists_on_being_the_host_is_refused_by_the_name_of_the_holder() {
    let setup = setup();
    let _first = setup.enter(|_| {}).await.unwrap();
    let error = setup.enter(|options| options.role = Role::Host).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.what().contains(&format!("process {} (", std::process::id())), "{error}");
}

#[tokio::test]
#[proves("T15")]
async fn when_the_host_goes_another_takes_its_place_with_everything_that_was_there() {
    let setup = setup();
    let first = setup.enter(|_| {}).await.unwrap();
    let second = setup.enter(|_| {}).await.unwrap();
    let third = setup.enter(|_| {}).await.unwrap();
    let mut hints = second.watch(Interest::Everything);
    assert_eq!(hints.next().await, Some(Hint::Somewhere));
    put(&third, "m1").await.unwrap();
    setup.openings.add_permits(1);
    drop(first);
    // The answer may be lost with the host; then the same is sent again.
    while put(&third, "m2").await.is_err_and(|error| error.retry_hint() == RetryHint::Unknown) {}
    assert_eq!(take(&second).await, ["m1", "m2"]);
    assert!(second.is_host() ^ third.is_host());
    // Whatever was missed between the hosts is made up for by one more hint.
    while hints.next().await != Some(Hint::Somewhere) {}
}

#[tokio::test]
async fn calls_between_two_hosts_wait_and_those_that_wait_too_long_fail_as_not_sent() {
    let setup = setup();
    let first = setup.enter(|_| {}).await.unwrap();
    let patient = setup.enter(|_| {}).await.unwrap();
    let hasty = setup.enter(|options| options.takeover_wait_ms = 50).await.unwrap();
    drop(first);
    for folder in [&patient, &hasty] {
        while folder.health().readable {
            tokio::task::yield_now().await;
        }
    }
    // Whoever becomes the host can't open the engine yet.
    let mut waiting = pin!(put(&patient, "m1"));
    let error = tokio::select! {
        biased;
        done = &mut waiting => panic!("{done:?}"),
        error = put(&hasty, "m2") => error.unwrap_err(),
    };
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(matches!(error.retry_hint(), RetryHint::After(_)), "{error}");
    assert!(!hasty.health().readable);
    assert!(poll!(&mut waiting).is_pending());
    setup.openings.add_permits(1);
    assert!(!waiting.await.unwrap().duplicate);
    assert!(patient.health().writable);
}

#[tokio::test]
async fn a_damaged_folder_is_an_error_at_once_and_leaves_the_folder_to_others() {
    let setup = setup();
    let damaged: Opener = Arc::new(|_| async { Err(Error::corrupt("a flipped bit")) }.boxed());
    let env: Arc<dyn Env> = SystemEnv::shared();
    let error = Folder::open(setup.folder.path(), FolderOptions::default(), damaged, env).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(setup.enter(|_| {}).await.unwrap().is_host());
}

#[tokio::test]
#[proves("T57")]
async fn a_disk_that_is_full_at_opening_is_told_as_such_and_not_as_a_host_that_does_not_answer() {
    let setup = setup();
    let full: Opener = Arc::new(|_| async { Err(Error::full("the disk is full")) }.boxed());
    let env: Arc<dyn Env> = SystemEnv::shared();
    let error = Folder::open(setup.folder.path(), FolderOptions::default(), full, env).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Full);
    assert!(setup.enter(|_| {}).await.unwrap().is_host());
}

#[tokio::test]
async fn a_closed_folder_refuses_and_its_watches_end() {
    let setup = setup();
    let folder = setup.enter(|_| {}).await.unwrap();
    let hints = folder.watch(Interest::Everything);
    folder.close(Duration::ZERO).await.unwrap();
    folder.close(Duration::ZERO).await.unwrap();
    assert_eq!(folder.topology().await.unwrap_err().kind(), ErrorKind::Closed);
    assert!(hints.collect::<Vec<_>>().await.len() <= 1);
}
