//! The segments' files: which there are, which are made ready ahead, which wait for reuse.

use std::collections::BTreeMap;
use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::aligned::BufferStore;
use crate::config::Config;
use crate::disk::{self, Disk, DiskFile, Mode};
use crate::frame::GROUP_HEADER_BYTES;
use crate::group::{OpenGroup, Seal};
use crate::segment::{self, SEGMENT_HEADER_BYTES, SegmentHeader, Space, segment_name, spare_name};
use crate::{LogError, Position};

/// Open files kept for reading.
const READERS_MAX: usize = 64;

#[derive(Debug)]
pub(crate) struct Stock {
    pub(crate) disk: Arc<dyn Disk>,
    config: Config,
    pub(crate) log_id: u64,
    pub(crate) sector: u64,
    shelf: Mutex<Shelf>,
    readers: Mutex<HashMap<u32, Arc<dyn DiskFile>>>,
    /// Held while files are made or renamed, so that only one thread does.
    making: Mutex<()>,
}

#[derive(Debug, Default)]
pub(crate) struct Shelf {
    pub(crate) segments: BTreeMap<u32, SegmentHeader>,
    pub(crate) spares: Vec<u32>,
}

impl Stock {
    pub(crate) fn new(disk: Arc<dyn Disk>, config: Config, log_id: u64, shelf: Shelf) -> Stock {
        let sector = disk.info().sector as u64;
        Stock {
            disk,
            config,
            log_id,
            sector,
            shelf: Mutex::new(shelf),
            readers: Mutex::default(),
            making: Mutex::default(),
        }
    }

    /// The segments that there are, the ones made ahead among them.
    pub(crate) fn segments(&self) -> Vec<SegmentHeader> {
        self.shelf.lock().segments.values().copied().collect()
    }

    pub(crate) fn segment(&self, index: u32) -> Option<SegmentHeader> {
        self.shelf.lock().segments.get(&index).copied()
    }

    /// Makes segment `index` ready to be written: from a spare if there is one, else anew. One that another
    /// thread has made meanwhile stays as it is.
    pub(crate) fn make(&self, index: u32, epoch: u32, space: Space) -> Result<SegmentHeader, LogError> {
        let _making = self.making.lock();
        if let Some(made) = self.segment(index) {
            return Ok(made);
        }
        let spare = self.take_spare(space)?;
        let header = SegmentHeader {
            index,
            epoch,
            log_id: self.log_id,
            bytes: self.config.segment_bytes,
            sector: self.sector as u32,
        };
        self.rename(&spare_name(spare), &segment_name(index))?;
        segment::begin_segment(&*self.disk, &header)?;
        self.shelf.lock().segments.insert(index, header);
        Ok(header)
    }

    fn take_spare(&self, space: Space) -> Result<u32, LogError> {
        if let Some(spare) = self.shelf.lock().spares.pop() {
            return Ok(spare);
        }
        let number = self.free_number()?;
        segment::make_spare(&*self.disk, number, self.config.segment_bytes, self.sector as usize, space)?;
        Ok(number)
    }

    /// A spare's number that no file has.
    fn free_number(&self) -> Result<u32, LogError> {
        let names = self.disk.list().map_err(|error| LogError::io("list", ".", &error))?;
        let taken = names.iter().filter_map(|name| segment::any_spare_number(name)).max();
        Ok(taken.map_or(1, |number| number + 1))
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), LogError> {
        self.disk.rename(from, to).map_err(|error| LogError::io("rename", from, &error))
    }

    /// Takes a segment out of the log: its file becomes a spare, or is given back to the disk.
    pub(crate) fn retire(&self, index: u32) -> Result<(), LogError> {
        let _making = self.making.lock();
        let Some(header) = self.shelf.lock().segments.remove(&index) else { return Ok(()) };
        self.readers.lock().remove(&index);
        let keep = header.bytes == self.config.segment_bytes
            && self.shelf.lock().spares.len() < self.config.pool_segments_max;
        if keep {
            let number = self.free_number()?;
            self.rename(&segment_name(index), &spare_name(number))?;
            disk::sync_dir(&*self.disk)?;
            self.shelf.lock().spares.push(number);
            return Ok(());
        }
        self.delete(&segment_name(index))
    }

    fn delete(&self, name: &str) -> Result<(), LogError> {
        self.disk.delete(name).map_err(|error| LogError::io("delete", name, &error))?;
        disk::sync_dir(&*self.disk)
    }

    /// Opens a segment for one writing thread. Each has a file of its own: the kernel tells a lost write to
    /// each opened file once, and no thread may hear "synced" because another heard of the loss.
    pub(crate) fn writer(&self, index: u32, mode: Mode) -> Result<Arc<dyn DiskFile>, LogError> {
        let name = segment_name(index);
        self.disk.open(&name, mode).map_err(|error| LogError::io("open", &name, &error))
    }

    /// The segment's file for reading.
    pub(crate) fn reader(&self, index: u32) -> Result<Arc<dyn DiskFile>, LogError> {
        if let Some(file) = self.readers.lock().get(&index) {
            return Ok(file.clone());
        }
        let name = segment_name(index);
        let file = self.disk.open(&name, Mode::Read).map_err(|error| LogError::io("open", &name, &error))?;
        let mut readers = self.readers.lock();
        if readers.len() >= READERS_MAX {
            let oldest = readers.keys().min().copied();
            oldest.map(|index| readers.remove(&index));
        }
        // Only while it is a segment: a released one's file may be renamed by now.
        if self.shelf.lock().segments.contains_key(&index) {
            readers.insert(index, file.clone());
        }
        Ok(file)
    }

    /// The beginning of the oldest segment.
    pub(crate) fn first(&self) -> Position {
        let shelf = self.shelf.lock();
        shelf.segments.keys().next().map_or(Position::ZERO, |index| Position::at(*index, 0))
    }
}

impl Stock {
    /// Writes and syncs the group with which an opening begins; answers its end.
    pub(crate) fn begin_epoch(
        &self,
        buffers: &Arc<BufferStore>,
        end: Position,
        epoch: u32,
    ) -> Result<Position, LogError> {
        let at = self.place_for_epoch(end, epoch)?;
        let seal = Seal { log_id: self.log_id, follows: end, synced_through: end, sector: self.sector };
        let group = OpenGroup::new(buffers, at, epoch, GROUP_HEADER_BYTES).seal(seal);
        let file = self.writer(at.segment(), Mode::Direct)?;
        let name = segment_name(at.segment());
        disk::write_all(&*file, &group.bytes, at.offset(), self.sector as usize)
            .map_err(|error| LogError::io("write", &name, &error))?;
        disk::sync(&*file, &name)?;
        Ok(group.end())
    }

    /// Where the log goes on: at its end, or in the next segment if this one is full, missing, or of other
    /// sectors than the disk has now.
    fn place_for_epoch(&self, end: Position, epoch: u32) -> Result<Position, LogError> {
        let here = self.segment(end.segment());
        let fits = |s: &SegmentHeader| u64::from(s.sector) == self.sector && end.plus(self.sector) <= s.end();
        let next = match here {
            Some(segment) if fits(&segment) => return Ok(end),
            Some(segment) => segment.index + 1,
            None => end.segment(),
        };
        if self.segment(next).is_none() {
            self.make(next, epoch, Space::Written)?;
        }
        Ok(Position::at(next, SEGMENT_HEADER_BYTES))
    }
}
