//! Benchmarks beside a bare log on the same disk in the same run.

mod load;
mod raw;

use anyhow::Result;
use std::{path::Path, time::Duration};

fn main() -> Result<()> {
    let dir = std::env::args().nth(1).unwrap_or_else(|| "bench-data".into());
    let rt = load::runtime()?;
    let q = raw::enqueue::RawQueue::start(&Path::new(&dir).join("e"), 24)?;
    let f = rt.block_on(load::run(64, 1, Duration::from_secs(3), |_| {
        let q = q.clone();
        move || {
            let q = q.clone();
            async move { q.enqueue(vec![vec![7; 1024]]).await }
        }
    }));
    println!("enqueue {f:?}");
    let c = raw::cycle::RawCycle::start(&Path::new(&dir).join("c"), 24)?;
    let f = rt.block_on(load::run(64, 1, Duration::from_secs(3), |_| {
        let c = c.clone();
        move || {
            let c = c.clone();
            async move { c.cycle(vec![7; 1024]).await }
        }
    }));
    println!("cycle {f:?}");
    Ok(())
}
