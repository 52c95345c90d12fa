//! The store on disk: facts as records of the log, bodies read back by position.

use super::error::{io_error, log_error};
use super::live::Live;
use super::relay::{Relay, poisoned};
use crate::codec::{BodyReader, Encoded, decode_body, encode};
use crate::{AppendError, Class, Fact, How, Progress, Store, StoreObserver, Stored, StoredEvent, Writer};
use onward_core::{Durability, Error, Payload, Problem, Result, Timestamp};
use onward_log::{DiskLock, Found, IoThreads, Log, LogError, Position, Purpose, Record, UnitSize};
use parking_lot::Mutex;
use std::sync::Arc;

/// Payloads up to this size are copied out of the log's memory, in bytes: a slice would keep a whole group there.
const COPY_BYTES_MAX: usize = 64 << 10;
/// Largest encoding buffer that is kept between appends, in bytes.
const SCRATCH_BYTES_MAX: usize = 1 << 20;

/// Keeps facts in a durable log.
#[derive(Debug)]
pub(crate) struct LogStore {
    pub(crate) log: Log,
    pub(crate) relay: Arc<Relay>,
    io: Mutex<Option<IoThreads>>,
    /// Nothing is written by threads: whoever waits for the disk writes himself, so that a simulation has one order.
    pub(super) by_hand: bool,
    before_close: Mutex<Option<Last>>,
    /// Used under the engine's lock only.
    scratch: Mutex<Vec<u8>>,
    pub(crate) use_of: Mutex<Use>,
    /// Last, so that the folder is free only when the log is.
    _lock: Option<Box<dyn DiskLock>>,
}

/// What is done once before the log's threads end.
pub(crate) struct Last(pub(crate) Box<dyn FnOnce() + Send>);

impl std::fmt::Debug for Last {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Last")
    }
}

/// How the log's space is used.
#[derive(Debug, Default)]
pub(crate) struct Use {
    pub(crate) live: Live,
    /// Behind the last unit appended.
    pub(crate) end: u64,
}

impl LogStore {
    /// A store over an opened log; it writes by its own threads unless `by_hand`.
    pub(crate) fn start(
        log: Log,
        relay: Arc<Relay>,
        live: Live,
        by_hand: bool,
        lock: Option<Box<dyn DiskLock>>,
    ) -> Result<Self> {
        let threads = if by_hand { None } else { Some(log.spawn_io()) };
        let io = threads.transpose().map_err(|error| io_error("start the log's threads", "log", &error))?;
        let end = log.progress().synced.0;
        Ok(Self {
            log,
            relay,
            io: Mutex::new(io),
            by_hand,
            before_close: Mutex::default(),
            scratch: Mutex::default(),
            use_of: Mutex::new(Use { live, end }),
            _lock: lock,
        })
    }

    /// Behind the last unit appended.
    pub(crate) fn end(&self) -> u64 {
        self.use_of.lock().end
    }

    /// The failure that poisoned the log.
    pub(crate) fn failure(&self) -> Option<Error> {
        self.relay.failure()
    }

    /// Has `last` done when the store is closed, while it can still be used.
    pub(crate) fn before_close(&self, last: Last) {
        *self.before_close.lock() = Some(last);
    }

    /// Waits until everything before `end` is on the disk; answers whether it is, and nothing failed.
    pub(crate) fn wait_synced(&self, end: u64) -> bool {
        if !self.by_hand {
            return self.relay.wait_synced(end);
        }
        while self.log.progress().synced.0 < end {
            if !self.log.step().unwrap_or(false) {
                break;
            }
        }
        self.log.progress().synced.0 >= end
    }

    fn unit(
        &self,
        time: Timestamp,
        class: Class,
        records: &[Encoded<'_>],
        fields: &[u8],
        positions: &mut Vec<u64>,
        writer: Writer,
    ) -> Result<u64, LogError> {
        let purpose = match class {
            Class::Grow => Purpose::Ordinary,
            Class::Drain => Purpose::Essential,
        };
        let size = UnitSize { records: records.len(), bytes: records.iter().map(Encoded::len).sum() };
        let fill = |unit: &mut onward_log::Unit<'_>| {
            for record in records {
                let position = unit.record(record.kind, &[&fields[record.fields.clone()], record.data])?;
                positions.push(position.0);
            }
            Ok::<(), LogError>(())
        };
        let appended = match writer {
            Writer::Store => self.log.append(purpose, size, time.as_micros(), fill)?,
            Writer::Appender => self.log.append_unwoken(purpose, size, time.as_micros(), fill)?,
        };
        Ok(appended.end.0)
    }

    /// The record at a position, wherever it lies.
    fn record(&self, place: Position) -> Result<Record> {
        self.log.read(place).map_err(log_error)
    }

    /// The records at these positions, in their order, until `each` wants no more or can't read one.
    pub(super) fn many(
        &self,
        positions: &[u64],
        each: &mut dyn FnMut(Found<'_>, Position) -> Result<bool>,
    ) -> Result<()> {
        let places: Vec<Position> = positions.iter().map(|position| Position(*position)).collect();
        let mut problem = None;
        let read = self.log.read_many(&places, &mut |found| match each(found, places[found.index]) {
            Ok(more) => more,
            Err(error) => {
                problem = Some(error);
                false
            }
        });
        problem.map_or(read.map_err(log_error), Err)
    }

    fn refused(&self, error: LogError) -> AppendError {
        match error {
            LogError::Busy { .. } => AppendError::Busy,
            LogError::NoSpace => {
                self.relay.refused_full();
                AppendError::NoSpace
            }
            LogError::TooLarge { bytes, max } => AppendError::TooLarge { bytes, max },
            LogError::Closed => AppendError::Poisoned(Error::closed("the store is closed")),
            other => AppendError::Poisoned(poisoned(&other)),
        }
    }
}

impl Store for LogStore {
    fn append(
        &self,
        time: Timestamp,
        class: Class,
        facts: &[Fact],
        positions: &mut Vec<u64>,
        writer: Writer,
    ) -> Result<u64, AppendError> {
        positions.clear();
        let mut fields = self.scratch.lock();
        fields.clear();
        let records: Vec<Encoded<'_>> = facts.iter().map(|fact| encode(fact, time, &mut fields)).collect();
        let end = self
            .unit(time, class, &records, &fields, positions, writer)
            .map_err(|error| self.refused(error))?;
        fields.shrink_to(SCRATCH_BYTES_MAX);
        let mut used = self.use_of.lock();
        used.end = end;
        let bodies = facts.iter().zip(positions.iter()).filter(|(fact, _)| fact.body().is_some());
        bodies.for_each(|(_, position)| used.live.written(*position));
        Ok(end)
    }

    fn write(&self, how: How) {
        match how {
            How::Hurried => self.log.hurry(),
            How::Here => self.log.write_here(),
            How::Woken => self.log.wake(),
        }
    }

    fn read(&self, position: u64) -> Result<Stored> {
        let place = Position(position);
        let record = self.record(place)?;
        let mut stored =
            decode_body(record.kind, &record.bytes).map_err(|malformed| unreadable(place, malformed.0))?;
        if let Some(message) = Arc::get_mut(&mut stored.message) {
            unpin(&mut message.data);
        }
        Ok(stored)
    }

    fn read_events(&self, positions: &[u64], each: &mut dyn FnMut(StoredEvent) -> bool) -> Result<()> {
        self.events(positions, each)
    }

    fn read_many(&self, positions: &[u64], each: &mut dyn FnMut(usize, Stored)) -> Result<()> {
        let mut reader = BodyReader::default();
        self.many(positions, &mut |found, position| {
            let stored = reader.body(found.kind, found.bytes);
            each(found.index, stored.map_err(|malformed| unreadable(position, malformed.0))?);
            Ok(true)
        })
    }

    fn released(&self, positions: &[u64]) {
        let mut used = self.use_of.lock();
        let end = used.end;
        used.live.released(positions, end);
    }

    fn progress(&self) -> Progress {
        self.relay.progress(self.log.progress())
    }

    fn observe(&self, observer: Arc<dyn StoreObserver>) {
        self.relay.observe(observer);
    }

    fn durability(&self) -> Durability {
        self.relay.durability()
    }

    fn problems(&self) -> Vec<Problem> {
        self.relay.problems()
    }

    fn close(&self) -> Result<()> {
        if let Some(last) = self.before_close.lock().take() {
            (last.0)();
        }
        // Dropping the threads writes and syncs what was appended.
        drop(self.io.lock().take());
        self.relay.failure().map_or(Ok(()), Err)
    }
}

fn unpin(data: &mut Payload) {
    let bytes = data.as_bytes();
    if bytes.len() <= COPY_BYTES_MAX {
        let content_type = (!data.is_json()).then(|| data.content_type().into());
        *data = Payload::trusted(bytes::Bytes::copy_from_slice(bytes), content_type);
    }
}

/// A record that is whole, but not one that this version can read.
pub(crate) fn unreadable(position: Position, what: &str) -> Error {
    Error::corrupt(format!("can't be read: {what}"))
        .at(format!("the record at {position} of the log"))
        .mend("open the folder with the version that wrote it; nothing was changed")
}
