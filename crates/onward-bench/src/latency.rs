//! From an enqueue to the start of its handler, one at a time.

use crate::load::{self, Figures};
use crate::ours::{Bed, QUEUE, or_end};
use anyhow::{Result, ensure};
use onward_core::{Message, Op};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Enqueue to the start of its handler at 1,000 a second, by a worker that waits.
#[allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]
pub(crate) async fn measure(dir: &Path, span: Duration) -> Result<Figures> {
    let bed = Bed::open(dir).await?;
    let (begin, micros) = (Instant::now(), Arc::new(parking_lot::Mutex::new(Vec::new())));
    let onward = onward::Onward::new(bed.engine.clone(), bed.env.clone());
    let heard = micros.clone();
    let handler = move |message: Message| {
        let now = begin.elapsed().as_nanos() as u64;
        let sent: u64 = message.headers.get("sent").and_then(|s| s.parse().ok()).unwrap_or(now);
        heard.lock().push((now - sent) as f64 / 1e3);
        std::future::ready(())
    };
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let worker = onward::work::Worker::new(&onward).handle(QUEUE, handler).concurrency(16);
    let running = tokio::spawn(worker.run_until(async move { drop(stopped.await) }));
    // On a worker thread, as a service's handler would be.
    let took = tokio::spawn(one_every_millisecond(bed, begin, span)).await??;
    let _ = stop.send(());
    running.await??;
    let micros = std::mem::take(&mut *micros.lock());
    ensure!(!micros.is_empty(), "no handler ran");
    Ok(load::figures(micros, 1, took))
}

/// Enqueues, each by a task of its own, whether the one before is through or not.
#[allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]
async fn one_every_millisecond(bed: Bed, begin: Instant, span: Duration) -> Result<Duration> {
    let (started, mut ticks) = (Instant::now(), ticks(Duration::from_millis(1), span));
    while ticks.recv().await.is_some() {
        let sent = begin.elapsed().as_nanos().to_string();
        let message =
            Message::builder("bench.work").data(bed.data.clone()).header("sent", &sent).build(&*bed.env)?;
        let op = Op::Enqueue { queue: bed.queue.clone(), message: Box::new(message) };
        let bed = bed.clone();
        tokio::spawn(async move {
            or_end(async {
                bed.engine.commit(bed.engine.prepare(vec![op])?).await?;
                Ok(())
            })
            .await;
        });
    }
    Ok(started.elapsed())
}

/// A tick every so often, by a thread of its own: the runtime's timers come in whole milliseconds, some of them in pairs.
#[allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn ticks(every: Duration, span: Duration) -> tokio::sync::mpsc::UnboundedReceiver<()> {
    let (send, receive) = tokio::sync::mpsc::unbounded_channel();
    std::thread::spawn(move || {
        let started = Instant::now();
        for number in 1.. {
            let due = every * number;
            std::thread::sleep(due.saturating_sub(started.elapsed()));
            if due > span || send.send(()).is_err() {
                break;
            }
        }
    });
    receive
}
