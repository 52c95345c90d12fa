//! The newest groups in memory: those under way to the disk, and some behind them for reading.

use std::collections::VecDeque;

use bytes::Bytes;
use parking_lot::RwLock;

use crate::Position;
use crate::group::{SealedGroup, record_in};

#[derive(Debug)]
pub(crate) struct Tail {
    bytes_max: u64,
    epoch: u32,
    groups: RwLock<Groups>,
}

#[derive(Debug, Default)]
struct Groups {
    bytes: u64,
    newest_last: VecDeque<SealedGroup>,
}

impl Tail {
    pub(crate) fn new(bytes_max: u64, epoch: u32) -> Tail {
        Tail { bytes_max, epoch, groups: RwLock::default() }
    }

    /// Adds a group, and drops the oldest that are `written` and over the bound.
    pub(crate) fn push(&self, group: SealedGroup, written: Position) {
        let mut groups = self.groups.write();
        groups.bytes += group.held;
        groups.newest_last.push_back(group);
        while groups.bytes > self.bytes_max && groups.newest_last.front().is_some_and(|g| g.end() <= written)
        {
            if let Some(oldest) = groups.newest_last.pop_front() {
                groups.bytes -= oldest.held;
            }
        }
    }

    /// The record at `position`, without copying it, if its group is in memory.
    pub(crate) fn record(&self, position: Position) -> Option<(u8, Bytes)> {
        let (start, group) = self.group(position)?;
        let (kind, bytes) = record_in(&group, (position.0 - start.0) as usize, self.epoch)?;
        Some((kind, group.slice(bytes)))
    }

    /// The group around `position` and where it begins, without copying it, if it is in memory.
    pub(crate) fn group(&self, position: Position) -> Option<(Position, Bytes)> {
        let groups = self.groups.read();
        let behind = groups.newest_last.partition_point(|group| group.start <= position);
        let group = groups.newest_last.get(behind.checked_sub(1)?)?;
        (position < group.end()).then(|| (group.start, group.bytes.clone()))
    }
}
