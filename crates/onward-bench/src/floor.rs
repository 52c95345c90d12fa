//! The machine's floor: what one sync costs here, and on what.

use crate::load::figures;
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
    let scratch = dir.join("floor");
    let mut log = RawLog::open(&scratch, 1)?;
    let message = vec![7; 3_000];
    let started = Instant::now();
    let mut micros = Vec::with_capacity(SYNCS);
    for number in 0..SYNCS as u64 {
        let began = Instant::now();
        log.commit(&[Put::Message { number, data: &message }])?;
        micros.push(began.elapsed().as_secs_f64() * 1e6);
        if started.elapsed() > Duration::from_secs(5) {
            break;
        }
    }
    std::fs::remove_dir_all(&scratch)?;
    let f = figures(micros, 1, started.elapsed());
    Ok(Floor {
        folder: dir.display().to_string(),
        device,
        filesystem,
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        sync_p50_us: f.p50_us,
        sync_p99_us: f.p99_us,
    })
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
