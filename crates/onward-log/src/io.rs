//! Writing: take a group, write it, sync it, tell; making segments ahead.

use std::sync::Arc;
use std::sync::atomic::Ordering::*;

use parking_lot::MutexGuard;

use crate::disk::{self, DiskFile, Mode};
use crate::flow::State;
use crate::group::{Seal, SealedGroup};
use crate::head::Head;
use crate::hurry::Hurried;
use crate::log::{Log, Shared};
use crate::segment::segment_name;
use crate::stock::Stock;
use crate::{LogError, Position};

/// The file of the segment that a thread writes, kept open from group to group.
#[derive(Debug)]
pub(crate) struct Writer {
    mode: Mode,
    open: Option<(u32, Arc<dyn DiskFile>)>,
}

impl Writer {
    pub(crate) fn new(mode: Mode) -> Writer {
        Writer { mode, open: None }
    }

    fn file(&mut self, stock: &Stock, index: u32) -> Result<Arc<dyn DiskFile>, LogError> {
        match &self.open {
            Some((open, file)) if *open == index => Ok(file.clone()),
            _ => {
                let file = stock.writer(index, self.mode)?;
                self.open = Some((index, file.clone()));
                Ok(file)
            }
        }
    }
}

/// A group taken from the log: to be written, then synced, each once.
///
/// Several may be under way at once, and finish in any order; the observer is told in log order.
#[derive(Debug)]
pub struct InFlight {
    log: Log,
    group: SealedGroup,
    number: u64,
    file: Arc<dyn DiskFile>,
    /// Its appender has written it.
    written: bool,
}

impl InFlight {
    /// Where the group begins and ends.
    pub fn range(&self) -> std::ops::Range<Position> {
        self.group.start..self.group.end()
    }

    /// Writes the group, and reports it written.
    ///
    /// Errors: the log is poisoned, the observer was told.
    pub fn write(&self) -> Result<(), LogError> {
        if self.written {
            return Ok(());
        }
        let shared = &*self.log.shared;
        let offset = self.group.start.offset();
        disk::write_all(&*self.file, &self.group.bytes, offset, shared.stock.sector as usize)
            .map_err(|error| LogError::io("write", &segment_name(self.group.start.segment()), &error))
            .inspect_err(|error| shared.poison(error))?;
        shared.flow.reached(self.number, State::Written);
        Ok(())
    }

    pub(crate) fn into_hurried(self) -> Hurried {
        Hurried { group: self.group, number: self.number, file: self.file }
    }

    /// Syncs the written group, and reports it durable.
    ///
    /// Errors: the log is poisoned, the observer was told; this sync is never tried again.
    pub fn sync(self) -> Result<(), LogError> {
        let shared = &*self.log.shared;
        let synced = disk::sync(&*self.file, &segment_name(self.group.start.segment()))
            .inspect_err(|error| shared.poison(error));
        let mut head = shared.head.lock();
        head.in_flight -= 1;
        // What was failed by another thread's write meanwhile stays unreported: the order is broken.
        let poisoned = head.poisoned.is_some();
        drop(head);
        if synced.is_ok() && !poisoned {
            shared.flow.reached(self.number, State::Synced);
        }
        synced
    }
}

impl Log {
    /// Takes the next group to be written, if there is one.
    ///
    /// Errors: [`LogError::Poisoned`], or the segment's file can't be opened, which poisons.
    pub fn begin(&self) -> Result<Option<InFlight>, LogError> {
        let head = self.shared.head.lock();
        if let Some(cause) = &head.poisoned {
            return Err(LogError::Poisoned { cause: cause.clone() });
        }
        let none = head.closed_groups.is_empty() && head.open.is_empty() && head.hurried.is_empty();
        if none || head.hurrying {
            return Ok(None);
        }
        self.take(head, &mut Writer::new(Mode::Direct)).map(Some)
    }

    /// Makes what is short, then writes and syncs one group; answers whether there was one.
    ///
    /// Errors: as of [`Log::begin`], [`InFlight::write`] and [`InFlight::sync`]. A full disk is no error here.
    pub fn step(&self) -> Result<bool, LogError> {
        match self.maintain() {
            Err(error) if !error.is_full() => return Err(error),
            _ => {}
        }
        let Some(group) = self.begin()? else { return Ok(false) };
        group.write()?;
        group.sync()?;
        Ok(true)
    }

    /// Makes segments ahead until enough are ready; answers at once when they are.
    ///
    /// Errors: [`LogError::is_full`] ones are tried again at the next call; others poison the log.
    pub fn maintain(&self) -> Result<(), LogError> {
        self.make_ready(self.shared.config.ready_segments())
    }

    /// Makes segments until `count` are ready behind the one that is being filled.
    pub(crate) fn make_ready(&self, count: usize) -> Result<(), LogError> {
        let shared = &*self.shared;
        loop {
            let (missing, space) = {
                let head = shared.head.lock();
                (shared.missing_segment(&head, count), head.space(&shared.config))
            };
            let Some(index) = missing else { return Ok(()) };
            match shared.stock.make(index, self.epoch(), space) {
                Ok(_) => shared.made(index),
                Err(error) if error.is_full() => {
                    shared.head.lock().full = true;
                    return Err(error);
                }
                Err(error) => {
                    shared.poison(&error);
                    return Err(error);
                }
            }
        }
    }

    /// Appends an empty group that says how far the log is durable, unless the last one says it already.
    ///
    /// Call it when nothing was appended for a while: until then, damage to the newest groups can't be told
    /// from a power cut. Answers whether there is such a group to be written now.
    pub fn attest(&self) -> bool {
        let shared = &*self.shared;
        let mut head = shared.head.lock();
        let idle = head.in_flight == 0 && head.closed_groups.is_empty() && head.open.is_empty();
        if !idle || head.poisoned.is_some() || head.attested >= head.data_end {
            return false;
        }
        if head.rolls(0, shared.stock.sector) {
            if head.ready() <= shared.config.reserve_segments() {
                return false;
            }
            head.roll(&shared.buffers, &shared.config);
        }
        let group = head.next_group(&shared.buffers, shared.stock.sector);
        head.closed_groups.push_back(group);
        shared.wake(&head);
        true
    }

    /// Closes the next group and puts it in line; first comes what is written already and waits for its sync.
    pub(crate) fn take(
        &self,
        mut head: MutexGuard<'_, Head>,
        writer: &mut Writer,
    ) -> Result<InFlight, LogError> {
        let shared = &*self.shared;
        if let Some(Hurried { group, number, file }) = head.hurried.pop_front() {
            return Ok(InFlight { log: self.clone(), group, number, file, written: true });
        }
        let group = match head.closed_groups.pop_front() {
            Some(group) => group,
            None => head.next_group(&shared.buffers, shared.stock.sector),
        };
        let records = group.records;
        let progress = shared.flow.progress();
        let group = group.seal(Seal {
            log_id: shared.stock.log_id,
            follows: head.follows,
            synced_through: progress.synced,
            sector: shared.stock.sector,
        });
        head.follows = group.end();
        if records > 0 {
            head.data_end = group.end();
        } else {
            head.attested = group.end();
        }
        head.last_records = records;
        head.in_flight += 1;
        let number = shared.flow.begin(group.end(), group.pending);
        shared.tail.push(group.clone(), progress.written);
        shared.taken.store(group.end().0, Release);
        drop(head);
        let file =
            writer.file(&shared.stock, group.start.segment()).inspect_err(|error| shared.poison(error))?;
        Ok(InFlight { log: self.clone(), group, number, file, written: false })
    }
}

impl Shared {
    /// A complete group is taken at once, and an open one when nothing is under way: a lone producer never
    /// waits. Behind a group under way, it is worth a write of its own once it is as large as that one.
    pub(crate) fn worth_taking(&self, head: &Head) -> bool {
        if head.hurrying {
            return false;
        }
        if !head.closed_groups.is_empty() || !head.hurried.is_empty() {
            return true;
        }
        !head.open.is_empty() && (head.in_flight == 0 || head.open.records >= head.last_records.max(2))
    }

    /// Wakes a thread if one waits and there is something for it.
    pub(crate) fn wake(&self, head: &Head) {
        if head.idle_threads > 0 && self.worth_taking(head) {
            self.work.notify_one();
        }
    }

    /// The next segment to be made, if fewer than `count` are ready.
    pub(crate) fn missing_segment(&self, head: &Head, count: usize) -> Option<u32> {
        (head.ready() < count && head.poisoned.is_none()).then_some(head.ready_through + 1)
    }

    /// A segment is ready.
    fn made(&self, index: u32) {
        let mut head = self.head.lock();
        head.ready_through = head.ready_through.max(index);
        head.full = false;
        if std::mem::take(&mut head.short) {
            drop(head);
            self.flow.room();
        }
    }

    /// Takes no more writes, and tells everybody why. Only the first failure counts.
    pub(crate) fn poison(&self, error: &LogError) {
        let mut head = self.head.lock();
        if head.poisoned.is_none() {
            head.poisoned = Some(Arc::new(error.clone()));
            drop(head);
            self.work.notify_all();
            self.shortage.notify_all();
            self.flow.fail(error);
        }
    }
}
