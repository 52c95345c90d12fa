//! The log: opening, releasing. Appending is in `append`, writing in `io`, reading in `reading`.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use parking_lot::{Condvar, Mutex};

use crate::ahead::Ahead;
use crate::aligned::BufferStore;
use crate::config::Config;
use crate::disk::{Disk, DiskInfo, DiskLock, LockError, Mode};
use crate::flow::{Flow, Observer, Progress};
use crate::frame::GROUP_HEADER_BYTES;
use crate::head::{Head, Purpose};
use crate::io::Writer;
use crate::recover::{self, RecoveryReport};
use crate::segment::SEGMENT_HEADER_BYTES;
use crate::stock::Stock;
use crate::tail::Tail;
use crate::walk::RecordRef;
use crate::{LogError, Position};

/// The file that is locked while a process has the log open.
pub(crate) const LOCK: &str = "lock";

/// A durable log of records at positions; cheap to clone, each clone is the same log.
///
/// Guarantees: what an observer was told to be `synced` survives a power cut, as far as the disk keeps its
/// word; units are kept whole; after reopening, the log is a prefix of what was appended.
///
/// Limits: see [`Config`].
#[derive(Clone, Debug)]
pub struct Log {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) stock: Stock,
    pub(crate) flow: Flow,
    pub(crate) tail: Tail,
    pub(crate) ahead: Ahead,
    pub(crate) buffers: Arc<BufferStore>,
    pub(crate) head: Mutex<Head>,
    /// What appenders write with, through the page cache.
    pub(crate) hurrying: Mutex<Writer>,
    /// With what appenders write and sync by themselves.
    pub(crate) here: Mutex<Writer>,
    /// Signalled when there is a group to write, or the log closes.
    pub(crate) work: Condvar,
    /// Signalled when a segment should be made.
    pub(crate) shortage: Condvar,
    /// Everything before this is in `tail` or in a file, the rest in `head`.
    pub(crate) taken: AtomicU64,
    epoch: u32,
    info: DiskInfo,
    _lock: Box<dyn DiskLock>,
}

/// A segment of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentInfo {
    /// Its index; its records lie at positions with this [`Position::segment`].
    pub index: u32,
    /// Bytes it takes on the disk.
    pub bytes: u64,
    /// Whether [`Log::release`] accepts it: it is no longer written, and a durable one stands behind it.
    pub complete: bool,
}

impl Log {
    /// Opens the log in a folder, makes it if the folder is empty, and replays it through `apply`.
    ///
    /// The replay begins at `from` (the end of a unit, as of a snapshot), else at the oldest segment. When this
    /// returns, all that was replayed is durable, and so is the new epoch. Nothing is written by itself
    /// afterwards: call [`Log::spawn_io`], or [`Log::step`] by hand.
    ///
    /// Errors: [`LogError::Locked`] if another process has it, [`LogError::NewerFormat`] and
    /// [`LogError::Corrupt`] without changing anything, what `apply` answers, and the disk's errors.
    pub fn open(
        disk: Arc<dyn Disk>,
        config: Config,
        from: Option<Position>,
        observer: Arc<dyn Observer>,
        apply: &mut dyn FnMut(RecordRef<'_>) -> Result<(), LogError>,
    ) -> Result<(Log, RecoveryReport), LogError> {
        let info = disk.info();
        config.check(info.sector as u64)?;
        let lock = disk.lock(LOCK).map_err(|error| match error {
            LockError::Held(holder) => LogError::Locked { holder },
            LockError::Io(error) => LogError::io("lock", LOCK, &error),
        })?;
        let found = recover::recover(&disk, &config, from, apply)?;
        let epoch = found.report.epoch;
        let stock = Stock::new(disk, config.clone(), found.log_id, found.shelf);
        let buffers = Arc::new(BufferStore::default());
        let begun = stock.begin_epoch(&buffers, found.report.end, epoch)?;
        let head = Head::new(&config, &buffers, &stock, begun, epoch);
        let shared = Shared {
            flow: Flow::new(observer, begun),
            tail: Tail::new(config.tail_cache_bytes, epoch),
            ahead: Ahead::default(),
            head: Mutex::new(head),
            hurrying: Mutex::new(Writer::new(Mode::Buffered)),
            here: Mutex::new(Writer::new(Mode::Direct)),
            work: Condvar::new(),
            shortage: Condvar::new(),
            taken: AtomicU64::new(begun.0),
            epoch,
            info,
            _lock: lock,
            buffers,
            stock,
            config,
        };
        let log = Log { shared: Arc::new(shared) };
        // What the first appends need; the rest is made beside them.
        match log.make_ready(log.shared.config.reserve_segments()) {
            Err(error) if !error.is_full() => Err(error),
            _ => Ok((log, found.report)),
        }
    }

    /// How far the log has come.
    pub fn progress(&self) -> Progress {
        self.shared.flow.progress()
    }

    /// Where the next record will stand at the earliest.
    pub fn end(&self) -> Position {
        let head = self.shared.head.lock();
        head.open.start.plus(head.open.used() as u64)
    }

    /// The number of this opening of the folder; higher than that of every earlier one, and durable.
    pub fn epoch(&self) -> u32 {
        self.shared.epoch
    }

    /// The disk that the log is on.
    pub fn disk_info(&self) -> &DiskInfo {
        &self.shared.info
    }

    /// The id that marks this log's bytes.
    pub fn log_id(&self) -> u64 {
        self.shared.stock.log_id
    }

    /// Bytes that ordinary appends can surely still take, with headers, without a new segment being made.
    pub fn room(&self) -> u64 {
        self.shared.head.lock().room(&self.shared.config)
    }

    /// The first failure of a write or sync, if there was one.
    pub fn failure(&self) -> Option<Arc<LogError>> {
        self.shared.head.lock().poisoned.clone()
    }

    /// Takes no more writes, for a reason that is not the disk's; reads go on. Only the first failure counts.
    pub fn refuse_writes(&self, why: &str) {
        self.shared.poison(&LogError::Invalid(why.to_owned()));
    }

    /// The segments on the disk, oldest first, without those made ahead.
    pub fn segments(&self) -> Vec<SegmentInfo> {
        let (current, synced) = (self.shared.head.lock().open.start.segment(), self.progress().synced);
        let segments = self.shared.stock.segments();
        segments
            .iter()
            .filter(|segment| segment.index <= current)
            .map(|segment| SegmentInfo {
                index: segment.index,
                bytes: segment.bytes,
                complete: behind(segment.index, synced),
            })
            .collect()
    }

    /// Gives a segment's space back: every record in it is dead, and no replay begins in it or before.
    ///
    /// The file is kept for reuse, within `pool_segments_max`, or deleted; durable on return. A segment that
    /// is not there any more is no error.
    ///
    /// Errors: [`LogError::Invalid`] if the segment is not `complete`, the disk's errors.
    pub fn release(&self, index: u32) -> Result<(), LogError> {
        if !behind(index, self.progress().synced) {
            return Err(LogError::Invalid(format!("segment {index} is still written; release it later")));
        }
        self.shared.stock.retire(index).inspect_err(|error| self.shared.poison(error))
    }
}

/// Whether a segment is complete, and the log durable in a later one, from which an opening can begin.
fn behind(index: u32, synced: Position) -> bool {
    index < synced.segment() && synced.offset() > SEGMENT_HEADER_BYTES
}

impl Shared {
    /// Whether an append is taken now.
    pub(crate) fn admit(&self, head: &mut Head, purpose: Purpose, encoded: u64) -> Result<(), LogError> {
        if let Some(cause) = &head.poisoned {
            return Err(LogError::Poisoned { cause: cause.clone() });
        }
        if head.closed {
            return Err(LogError::Closed);
        }
        let pending_bytes = self.flow.pending();
        if pending_bytes + encoded > self.config.pending_bytes_max && pending_bytes > 0 {
            return Err(LogError::Busy { pending_bytes });
        }
        if head.has_room(&self.config, purpose, encoded, self.stock.sector) {
            return Ok(());
        }
        head.short = true;
        self.shortage.notify_all();
        Err(if head.full { LogError::NoSpace } else { LogError::Busy { pending_bytes } })
    }

    /// Closes the open group where the unit would not go into it, and moves to the next segment where needed.
    pub(crate) fn make_place(&self, head: &mut Head, encoded: u64, time: i64) {
        let grown = head.open.used() as u64 + encoded;
        let over = !head.open.is_empty() && grown > self.config.group_bytes_max;
        let rolls = head.rolls(encoded, self.stock.sector);
        if over || rolls || !head.open.takes_time(time) {
            head.close_open(&self.buffers, self.stock.sector);
        }
        if head.rolls(encoded, self.stock.sector) {
            head.roll(&self.buffers, &self.config);
            self.shortage.notify_all();
        }
        debug_assert!(head.open.used() >= GROUP_HEADER_BYTES);
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("epoch", &self.epoch).field("flow", &self.flow).finish_non_exhaustive()
    }
}
