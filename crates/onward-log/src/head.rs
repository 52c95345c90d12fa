//! The log's moving end: the group being filled, those closed and waiting, and what room there is.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;

use crate::aligned::BufferStore;
use crate::config::Config;
use crate::group::OpenGroup;
use crate::hurry::Hurried;
use crate::segment::Space;
use crate::stock::Stock;
use crate::{LogError, Position};

/// What an append is for, when room is short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// New work: refused when only the reserve is left.
    Ordinary,
    /// What frees room in the end, as settling a message does: may use the reserve.
    Essential,
}

#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) open: OpenGroup,
    /// Complete groups that no thread has taken yet.
    pub(crate) closed_groups: VecDeque<OpenGroup>,
    /// Groups that their appenders have written, and nobody has synced.
    pub(crate) hurried: VecDeque<Hurried>,
    /// An appender is writing.
    pub(crate) hurrying: bool,
    /// Where the group taken last ends.
    pub(crate) follows: Position,
    /// Where the open group's segment ends.
    segment_end: Position,
    /// The last segment that is ready to be written.
    pub(crate) ready_through: u32,
    /// Whether the disk had no space for the next segment when last asked.
    pub(crate) full: bool,
    /// Whether an append was refused for want of room.
    pub(crate) short: bool,
    pub(crate) poisoned: Option<Arc<LogError>>,
    pub(crate) closed: bool,
    /// Groups between being taken and being synced.
    pub(crate) in_flight: usize,
    /// Threads that wait for work.
    pub(crate) idle_threads: usize,
    /// Records in the group taken last: what to expect of the next.
    pub(crate) last_records: u32,
    /// Behind the last group with records; behind the last attest.
    pub(crate) data_end: Position,
    pub(crate) attested: Position,
    epoch: u32,
    /// What the next group's buffer should hold at first, in bytes.
    expected: usize,
}

impl Head {
    pub(crate) fn new(
        config: &Config,
        buffers: &Arc<BufferStore>,
        stock: &Stock,
        at: Position,
        epoch: u32,
    ) -> Head {
        let current = stock.segment(at.segment());
        let ready_through = stock.segments().last().map_or(at.segment(), |last| last.index);
        Head {
            open: OpenGroup::new(buffers, at, epoch, 0),
            closed_groups: VecDeque::new(),
            hurried: VecDeque::new(),
            hurrying: false,
            follows: at,
            segment_end: current.map_or(Position::at(at.segment(), config.segment_bytes), |s| s.end()),
            ready_through,
            full: false,
            short: false,
            poisoned: None,
            closed: false,
            in_flight: 0,
            idle_threads: 0,
            last_records: 0,
            data_end: at,
            attested: at,
            epoch,
            expected: 0,
        }
    }

    /// How the next segment's space is best taken, by the group taken last.
    pub(crate) fn space(&self, config: &Config) -> Space {
        if self.expected as u64 >= config.large_group_bytes { Space::Reserved } else { Space::Written }
    }

    /// Segments ready behind the one that is being filled.
    pub(crate) fn ready(&self) -> usize {
        self.ready_through.saturating_sub(self.open.start.segment()) as usize
    }

    /// Whether `more` bytes don't fit into the rest of the segment.
    pub(crate) fn rolls(&self, more: u64, sector: u64) -> bool {
        self.open.end_with(more, sector) > self.segment_end
    }

    pub(crate) fn has_room(&self, config: &Config, purpose: Purpose, more: u64, sector: u64) -> bool {
        let needed = usize::from(self.rolls(more, sector));
        match purpose {
            Purpose::Essential => self.ready() >= needed,
            Purpose::Ordinary => self.ready() >= needed + config.reserve_segments(),
        }
    }

    pub(crate) fn room(&self, config: &Config) -> u64 {
        let here = self.segment_end.0 - (self.open.start.0 + self.open.used() as u64).min(self.segment_end.0);
        match self.ready().checked_sub(config.reserve_segments()) {
            Some(segments) => here + segments as u64 * config.capacity(),
            None => 0,
        }
    }

    /// Puts the open group, if it has records, behind the complete ones, and begins the next.
    pub(crate) fn close_open(&mut self, buffers: &Arc<BufferStore>, sector: u64) {
        if !self.open.is_empty() {
            let group = self.next_group(buffers, sector);
            self.closed_groups.push_back(group);
        }
    }

    /// Takes the open group out, and begins the one behind it.
    pub(crate) fn next_group(&mut self, buffers: &Arc<BufferStore>, sector: u64) -> OpenGroup {
        let end = self.open.end_with(0, sector);
        self.expected = self.open.used();
        let next = OpenGroup::new(buffers, end, self.epoch, self.expected);
        std::mem::replace(&mut self.open, next)
    }

    /// Moves the empty open group to the next segment, which is ready.
    pub(crate) fn roll(&mut self, buffers: &Arc<BufferStore>, config: &Config) {
        let next = self.open.start.segment() + 1;
        let at = Position::at(next, crate::segment::SEGMENT_HEADER_BYTES);
        self.open = OpenGroup::new(buffers, at, self.epoch, self.expected);
        self.segment_end = Position::at(next, config.segment_bytes);
    }

    /// A record in a group that no thread has taken yet.
    pub(crate) fn record(&self, position: Position) -> Option<(u8, Bytes)> {
        self.closed_groups.iter().chain([&self.open]).rev().find(|g| g.start <= position)?.record(position)
    }
}
