//! The log's settings, each bound with its unit.

use crate::LogError;
use crate::segment::SEGMENT_HEADER_BYTES;

/// Settings of one log; the default suits one machine's disk.
#[derive(Clone, Debug)]
pub struct Config {
    /// Size of a new segment's file, in bytes; a multiple of 4096, 16 KiB to 1 GiB.
    pub segment_bytes: u64,
    /// Largest unit (all records of one append, with headers), in bytes; it must fit into a segment.
    pub unit_bytes_max: u64,
    /// A group is closed when it would grow past this, in bytes; a larger unit makes a group of its own.
    pub group_bytes_max: u64,
    /// While groups are at least so large, in bytes, new segments are only reserved, not written with zeros: that halves
    /// what goes to the disk, and the metadata that each sync then carries is little beside such a group.
    pub large_group_bytes: u64,
    /// Bytes appended and not yet durable, beyond which an append answers [`LogError::Busy`].
    pub pending_bytes_max: u64,
    /// Groups written and synced at the same time, each on a thread of its own; 1 to 8.
    pub groups_in_flight: usize,
    /// Segments made ahead, so that rolling over costs nothing; counts the reserve. At least 2.
    pub spare_segments: usize,
    /// Of the segments made ahead, what only essential appends may use, in bytes; at least one segment.
    pub reserve_bytes: u64,
    /// Released segments kept for reuse besides `spare_segments`; the rest is given back to the disk.
    pub pool_segments_max: usize,
    /// Newest groups kept in memory for reading, in bytes of memory.
    pub tail_cache_bytes: u64,
    /// Marks a new log, so that no other log's bytes pass for its own: draw it at random.
    /// An existing folder keeps the one it was made with.
    pub log_id: u64,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            segment_bytes: 64 << 20,
            unit_bytes_max: 16 << 20,
            group_bytes_max: 4 << 20,
            large_group_bytes: 128 << 10,
            pending_bytes_max: 64 << 20,
            groups_in_flight: 2,
            spare_segments: 2,
            reserve_bytes: 0,
            pool_segments_max: 4,
            tail_cache_bytes: 16 << 20,
            log_id: 0,
        }
    }
}

impl Config {
    /// Bytes of a segment that groups can fill.
    pub(crate) fn capacity(&self) -> u64 {
        self.segment_bytes - SEGMENT_HEADER_BYTES
    }

    pub(crate) fn reserve_segments(&self) -> usize {
        self.reserve_bytes.div_ceil(self.segment_bytes).max(1) as usize
    }

    /// Segments to have ready: what was asked for, and always one more than the reserve.
    pub(crate) fn ready_segments(&self) -> usize {
        self.spare_segments.max(self.reserve_segments() + 1)
    }

    pub(crate) fn check(&self, sector: u64) -> Result<(), LogError> {
        let refuse = |what: &str| Err(LogError::Invalid(what.to_owned()));
        if !self.segment_bytes.is_multiple_of(4096) || !(16 << 10..=1 << 30).contains(&self.segment_bytes) {
            return refuse("`segment_bytes` must be a multiple of 4096 from 16 KiB to 1 GiB");
        }
        if self.unit_bytes_max == 0 || self.unit_bytes_max > self.capacity() - 2 * sector {
            return refuse(
                "`unit_bytes_max` must be at least 1 and fit into a segment; raise `segment_bytes`",
            );
        }
        if !(1..=8).contains(&self.groups_in_flight) {
            return refuse("`groups_in_flight` must be 1 to 8");
        }
        if self.group_bytes_max < sector || self.pending_bytes_max < self.unit_bytes_max {
            return refuse(
                "`group_bytes_max` must be at least a sector, `pending_bytes_max` at least `unit_bytes_max`",
            );
        }
        Ok(())
    }
}
