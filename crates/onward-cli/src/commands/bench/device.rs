//! What is measured on: device, filesystem, the price of a sync.

use onward_core::Env;
use serde::Serialize;
use std::{
    fs::File,
    io::{self, Write},
    path::Path,
};

/// Syncs that are measured.
const SYNCS: usize = 51;

/// What a folder lies on.
#[derive(Debug, Serialize)]
pub(super) struct Device {
    pub(super) source: String,
    pub(super) filesystem: String,
    /// It is in memory: a sync keeps nothing.
    pub(super) volatile: bool,
    pub(super) fsync_micros: u64,
}

impl Device {
    /// Looks at a folder's mount and measures syncs in it.
    pub(super) fn of(folder: &Path, env: &dyn Env) -> io::Result<Self> {
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let (filesystem, source) = mount_of(&mounts, &folder.canonicalize()?);
        let volatile = matches!(filesystem.as_str(), "tmpfs" | "ramfs");
        let fsync_micros = median_sync(&folder.join("sync.probe"), env)?;
        Ok(Self { source, filesystem, volatile, fsync_micros })
    }
}

/// Filesystem and device of the mount that a path lies on: the longest mount point that it begins with, the last of
/// several at one place.
fn mount_of(mounts: &str, path: &Path) -> (String, String) {
    let unknown = || ("unknown".to_owned(), "unknown".to_owned());
    let parse = |line: &str| {
        let (left, right) = line.split_once(" - ")?;
        let point = left.split(' ').nth(4)?.replace("\\040", " ");
        let mut right = right.split(' ');
        let kind = (right.next()?.to_owned(), right.next()?.to_owned());
        path.starts_with(&point).then_some((point.len(), kind))
    };
    mounts.lines().filter_map(parse).max_by_key(|(length, _)| *length).map_or_else(unknown, |(_, kind)| kind)
}

fn median_sync(path: &Path, env: &dyn Env) -> io::Result<u64> {
    let mut file = File::create(path)?;
    let block = [0x5a; 4096];
    let mut spans = Vec::with_capacity(SYNCS);
    for _ in 0..SYNCS {
        let begun = env.monotonic();
        file.write_all(&block)?;
        file.sync_data()?;
        spans.push(env.monotonic().saturating_sub(begun).as_micros());
    }
    std::fs::remove_file(path)?;
    spans.sort_unstable();
    Ok(u64::try_from(spans[SYNCS / 2]).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use onward_proves::proves;

    #[test]
    #[proves("LOG14")]
    fn the_mount_of_a_path_is_the_longest_and_latest_that_holds_it() {
        let mounts = "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n\
                      2 1 8:2 / /data rw shared:1 - xfs /dev/sdb1 rw\n\
                      3 1 0:5 / /data rw - tmpfs tmpfs rw\n\
                      4 1 0:6 / /database rw - btrfs /dev/sdc rw\n";
        assert_eq!(mount_of(mounts, Path::new("/data/x")), ("tmpfs".into(), "tmpfs".into()));
        assert_eq!(mount_of(mounts, Path::new("/home")), ("ext4".into(), "/dev/sda1".into()));
        assert_eq!(mount_of("", Path::new("/home")).0, "unknown");
    }
}
