//! What limits on handing out cost: the same cycle with all of them and with none.

use crate::load::{self, Figures};
use crate::ours::{Bed, or_end};
use crate::plan::Measured;
use anyhow::{Result, ensure};
use onward_core::{InletConfig, Message, Op, RateLimit};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Fairness keys that messages are spread over.
const TENANTS: u64 = 1_000;

/// Every limit there is, and none of them reached.
fn limited() -> InletConfig {
    let rate = Some(RateLimit { count: 1_000_000, per_ms: 1_000, burst: 1_000_000 });
    InletConfig {
        concurrency_max: Some(100_000),
        concurrency_per_key_max: Some(10_000),
        rate,
        rate_per_key: rate,
        ..InletConfig::default()
    }
}

/// How many times slower the cycle is with limits.
pub(crate) async fn cost(dir: &Path, span: Duration) -> Result<Measured> {
    let without = cycles(&dir.join("without"), InletConfig::default(), span).await?;
    let with = cycles(&dir.join("with"), limited(), span).await?;
    let value = without.per_second / with.per_second.max(1.0);
    Ok(Measured { value, ..with.into() })
}

async fn cycles(dir: &Path, config: InletConfig, span: Duration) -> Result<Figures> {
    std::fs::create_dir_all(dir)?;
    let (bed, serial) = (Bed::with(dir, config).await?, Arc::new(AtomicU64::new(0)));
    let one = |_| {
        let (bed, serial) = (bed.producer(), serial.clone());
        move || {
            let (bed, tenant) = (bed.clone(), serial.fetch_add(1, Ordering::Relaxed) % TENANTS);
            async move { or_end(one_cycle(&bed, tenant)).await }
        }
    };
    let figures = load::run(64, 1, span, one).await;
    bed.close().await?;
    Ok(figures)
}

async fn one_cycle(bed: &Bed, tenant: u64) -> Result<()> {
    let message =
        Message::builder("bench.work").data(bed.data.clone()).fairness_key(&format!("tenant-{tenant}"));
    let message = Box::new(message.build(&*bed.env)?);
    bed.engine.commit(bed.engine.prepare(vec![Op::Enqueue { queue: bed.queue.clone(), message }])?).await?;
    let leased = bed.lease(Duration::from_secs(10)).await?;
    ensure!(!leased.is_empty(), "no delivery for a message that was enqueued");
    bed.ack(leased.into_iter().map(|d| d.token).collect()).await
}
