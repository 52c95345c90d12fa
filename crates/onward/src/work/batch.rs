//! Batch handlers: several messages in one call, each with its own outcome.
//!
//! Every message keeps its own lease, timeout, idempotency and settlement: members of a batch wait for it together,
//! and whoever is asked to stop leaves it alone. The call is one future that all members drive.

use super::{
    Answer, Context, Error, Failed, Handling, Running, Verdict,
    extract::decode,
    handler::AnyHandler,
    handling::of,
    panic::{Caught, caught},
    states::States,
};
use futures::{FutureExt, future::Shared};
use onward_core::{Failure, Result};
use serde::de::DeserializeOwned;
use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::sync::{Notify, oneshot};

/// One message of a batch.
#[derive(Debug, Clone)]
pub struct Item<T> {
    /// Its data.
    pub data: T,
    /// Its delivery.
    pub context: Context,
}

/// What a batch handler may return: an outcome for each message in the same order, or one for all.
///
/// `Vec<work::Result>` has an outcome for each; `()` and `work::Result` are about all; an error fails them all. With
/// more or fewer outcomes than messages all have failed, since which is whose can't be known.
pub trait BatchAnswer {
    /// The verdicts on so many messages.
    fn into_verdicts(self, count: usize) -> Vec<Verdict>;
}

impl BatchAnswer for () {
    fn into_verdicts(self, count: usize) -> Vec<Verdict> {
        (0..count).map(|_| Verdict::Done(None)).collect()
    }
}

impl<A: Answer> BatchAnswer for Vec<A> {
    fn into_verdicts(self, count: usize) -> Vec<Verdict> {
        if self.len() == count {
            return self.into_iter().map(Answer::into_verdict).collect();
        }
        let text = format!("the batch handler answered {} outcomes for {count} messages", self.len());
        all_failed(&Error::unsorted(text.into()), count)
    }
}

impl<B: BatchAnswer, E: Into<Error>> BatchAnswer for std::result::Result<B, E> {
    fn into_verdicts(self, count: usize) -> Vec<Verdict> {
        match self {
            Ok(answer) => answer.into_verdicts(count),
            Err(error) => all_failed(&error.into(), count),
        }
    }
}

fn all_failed(error: &Error, count: usize) -> Vec<Verdict> {
    (0..count).map(|_| Verdict::Failed(error.clone())).collect()
}

/// Makes a handler that takes up to `size` messages in one call, and waits for so many no longer than `wait`.
///
/// The worker's concurrency counts messages: it must be `size` at least for a batch to become full. Data that can't
/// be read fails its own message only. A member that has to stop leaves the batch; when all have left, the call is
/// dropped at its next await.
pub fn batch<T, F, Fut>(size: u32, wait: Duration, function: F) -> Handling
where
    T: DeserializeOwned + Send + 'static,
    F: Fn(Vec<Item<T>>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output: BatchAnswer> + Send + 'static,
{
    let function = move |items: Vec<Item<T>>| -> Pin<Box<dyn Future<Output = Vec<Verdict>> + Send>> {
        let count = items.len();
        let call = function(items);
        Box::pin(async move { call.await.into_verdicts(count) })
    };
    let mut handling = of(Arc::new(Batching {
        size: size.max(1) as usize,
        wait,
        function: Arc::new(function),
        open: Open::default(),
    }));
    handling.batch = Some(size.max(1));
    handling
}

type Function<T> = dyn Fn(Vec<Item<T>>) -> Pin<Box<dyn Future<Output = Vec<Verdict>> + Send>> + Send + Sync;

struct Batching<T> {
    size: usize,
    wait: Duration,
    function: Arc<Function<T>>,
    open: Open<T>,
}

/// The batch that still takes members, and its call.
type Open<T> = Arc<Mutex<Option<(Arc<Group<T>>, Call)>>>;

/// What all members of a batch drive together.
type Call = Shared<Pin<Box<dyn Future<Output = ()> + Send>>>;

/// A batch that gathers its members.
struct Group<T> {
    members: Mutex<Vec<Member<T>>>,
    full: Notify,
}

struct Member<T> {
    item: Item<T>,
    answer: oneshot::Sender<Verdict>,
}

impl<T: DeserializeOwned + Send + 'static> AnyHandler for Batching<T> {
    fn call(&self, context: Context) -> Running {
        let data = decode(context.message())?;
        let (answer, verdict) = oneshot::channel();
        let call = self.join(Member { item: Item { data, context }, answer });
        Ok(Box::pin(async move {
            call.await;
            let gone = |_| Verdict::Failed(Error::unsorted("the batch ended without this message".into()));
            verdict.await.unwrap_or_else(gone)
        }))
    }

    fn check(&self, _: &States) -> Result<()> {
        Ok(())
    }
}

impl<T: Send + 'static> Batching<T> {
    /// Takes a place in the open batch, or opens one.
    fn join(&self, member: Member<T>) -> Call {
        let mut open = lock(&self.open);
        let (group, call) = open.get_or_insert_with(|| self.begin(&member.item.context));
        let call = call.clone();
        let mut members = lock(&group.members);
        members.push(member);
        if members.len() < self.size {
            return call;
        }
        group.full.notify_one();
        drop(members);
        // Full: whoever comes next opens another.
        *open = None;
        call
    }

    fn begin(&self, first: &Context) -> (Arc<Group<T>>, Call) {
        let group = Arc::new(Group { members: Mutex::default(), full: Notify::new() });
        let (gathering, open) = (group.clone(), self.open.clone());
        let (function, env) = (self.function.clone(), first.onward().env().clone());
        let over = env.sleep(self.wait);
        let call = async move {
            tokio::select! {
                () = gathering.full.notified() => {}
                () = over => {}
            }
            run(&*function, close(&open, &gathering)).await;
        };
        let call: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(call);
        (group, call.shared())
    }
}

/// Takes no more members. Those that left meanwhile are not worked on.
fn close<T>(open: &Open<T>, group: &Arc<Group<T>>) -> Vec<Member<T>> {
    let mut open = lock(open);
    if open.as_ref().is_some_and(|(still, _)| Arc::ptr_eq(still, group)) {
        *open = None;
    }
    let members = std::mem::take(&mut *lock(&group.members));
    members.into_iter().filter(|member| !member.answer.is_closed()).collect()
}

async fn run<T>(function: &Function<T>, members: Vec<Member<T>>) {
    let (items, answers): (Vec<_>, Vec<_>) = members.into_iter().map(|m| (m.item, m.answer)).unzip();
    if items.is_empty() {
        return;
    }
    let ended = match caught(|| function(items)) {
        Ok(running) => Caught(running).await,
        Err(panicked) => Err(panicked),
    };
    let verdicts =
        ended.unwrap_or_else(|panicked: Failure| all_failed(&Failed(panicked).into(), answers.len()));
    for (answer, verdict) in answers.into_iter().zip(verdicts) {
        // A member that has left meanwhile is settled by what made it leave.
        drop(answer.send(verdict));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
