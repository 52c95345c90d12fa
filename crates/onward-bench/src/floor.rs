//! The machine's floor: what one sync costs here, and on what.

use crate::load::{Figures, figures};
use crate::raw::{Put, RawLog};
use anyhow::{Result, ensure};
use serde::Serialize;
use std::path::Path;
use std::time::{Duration, Instant};

const SYNCS: usize = 2_000;

/// Where figures were measured.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Floor {
    pub folder: String,
    pub device: String,
    pub filesystem: String,
    pub cores: usize,
    pub sync_p50_us: f64,
    pub sync_p99_us: f64,
}

/// Measures the folder; refuses one that is memory.
#[allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]
pub(crate) fn measure(dir: &Path) -> Result<Floor> {
    let (device, filesystem) = mount(dir)?;
    ensure!(filesystem != "tmpfs", "{} is in memory (tmpfs): give --dir on a disk", dir.display());
    let f = syncs(&dir.join("floor"), SYNCS, Duration::ZERO)?;
    Ok(Floor {
        folder: dir.display().to_string(),
        device,
        filesystem,
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        sync_p50_us: f.p50_us,
        sync_p99_us: f.p99_us,
    })
}

/// One sync of 4 KiB at 1,000 a second: it costs more than one right behind another, because the machine sleeps between
/// them.
pub(crate) fn paced(dir: &Path, span: Duration) -> Result<Figures> {
    syncs(dir, span.as_millis() as usize, Duration::from_millis(1))
}

/// So many syncs, one begun every so often; at most for five seconds where none is waited for.
#[allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn syncs(dir: &Path, count: usize, every: Duration) -> Result<Figures> {
    let mut log = RawLog::open(dir, 1)?;
    let message = vec![7; 3_000];
    let (started, most) = (Instant::now(), Duration::from_secs(5) + every * count as u32);
    let mut micros = Vec::with_capacity(count);
    for number in 0..count as u64 {
        let began = Instant::now();
        log.commit(&[Put::Message { number, data: &message }])?;
        micros.push(began.elapsed().as_secs_f64() * 1e6);
        if started.elapsed() > most {
            break;
        }
        std::thread::sleep(every.saturating_sub(began.elapsed()));
    }
    std::fs::remove_dir_all(dir)?;
    Ok(figures(micros, 1, started.elapsed()))
}

/// Device and filesystem of the longest mount point above the folder.
fn mount(dir: &Path) -> Result<(String, String)> {
    let dir = dir.canonicalize()?;
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap_or_default();
    let above = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ');
        let (device, point, filesystem) = (words.next()?, words.next()?, words.next()?);
        dir.starts_with(point).then(|| (point.len(), device.to_owned(), filesystem.to_owned()))
    });
    let longest = above.max_by_key(|(len, ..)| *len);
    Ok(longest
        .map_or_else(|| ("unknown".into(), "unknown".into()), |(_, device, filesystem)| (device, filesystem)))
}
