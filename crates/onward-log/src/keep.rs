//! After a replay: what was kept is made durable, and files of which nothing was kept are kept for reuse.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::config::Config;
use crate::disk::{self, Disk, DiskFile, Mode};
use crate::segment::{self, SEGMENT_HEADER_BYTES, SegmentHeader, segment_name, spare_name};
use crate::stock::Shelf;
use crate::{LogError, Position};

/// How much is written again at once, in bytes.
const REWRITTEN_AT_ONCE_BYTES: u64 = 1 << 20;

/// Segments by index; `None` where the first block is damaged or was never finished.
pub(crate) type Found = BTreeMap<u32, Option<SegmentHeader>>;

/// Where a replay ended, and up to where everything was known to be durable.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    pub(crate) end: Position,
    pub(crate) synced_through: Position,
}

/// Makes what was kept durable, and files of which nothing was kept into spares.
pub(crate) fn tidy_up(
    disk: &Arc<dyn Disk>,
    config: &Config,
    names: &[String],
    found: &Found,
    ends: Ends,
) -> Result<Shelf, LogError> {
    let mut shelf = Shelf::default();
    let mut unused = Vec::new();
    let mut ready_through = ends.end.segment();
    for (index, header) in found {
        match header {
            // Behind the end, only what follows without a gap is ready to be written.
            Some(header) if *index <= ready_through + 1 && suits(header, config, disk, ends) => {
                ready_through = ready_through.max(*index);
                shelf.segments.insert(*index, *header);
            }
            _ => unused.push(*index),
        }
    }
    save_kept(&**disk, &shelf, ends)?;
    let mut number = names.iter().filter_map(|name| segment::spare_number(name)).max().unwrap_or(0);
    shelf.spares = keep_spares(&**disk, config, names)?;
    for index in unused {
        number += 1;
        retire(&**disk, config, &segment_name(index), number, &mut shelf)?;
    }
    disk::sync_dir(&**disk)?;
    Ok(shelf)
}

/// Whether a segment can stay as it is: everything up to the end, and behind it what is like a new one.
fn suits(header: &SegmentHeader, config: &Config, disk: &Arc<dyn Disk>, ends: Ends) -> bool {
    header.index <= ends.end.segment()
        || (header.bytes == config.segment_bytes && header.sector as usize == disk.info().sector)
}

/// Writes what was kept and may not be durable once more, and syncs it.
///
/// It may have stood in the page cache alone when the process died. A sync would not be enough: after one that
/// failed, the system takes the pages for clean and never saves them, though it still shows them.
fn save_kept(disk: &dyn Disk, shelf: &Shelf, ends: Ends) -> Result<(), LogError> {
    let from = ends.synced_through.segment();
    for (index, header) in shelf.segments.range(from..) {
        let name = segment_name(*index);
        let file = disk.open(&name, Mode::Buffered).map_err(|error| LogError::io("open", &name, &error))?;
        let begin = if *index == from { ends.synced_through.offset() } else { 0 };
        let end = match index.cmp(&ends.end.segment()) {
            Ordering::Less => header.bytes,
            Ordering::Equal => ends.end.offset(),
            // Made ahead: only its first block holds anything.
            Ordering::Greater => SEGMENT_HEADER_BYTES,
        };
        rewrite(&*file, &name, begin..end)?;
        disk::sync(&*file, &name)?;
    }
    Ok(())
}

/// Writes bytes of a file as they are, so that the next sync saves them.
fn rewrite(file: &dyn DiskFile, name: &str, range: Range<u64>) -> Result<(), LogError> {
    let (mut at, mut piece) = (range.start, Vec::new());
    while at < range.end {
        piece.resize((range.end - at).min(REWRITTEN_AT_ONCE_BYTES) as usize, 0);
        let got =
            disk::read_full(file, &mut piece, at).map_err(|error| LogError::io("read", name, &error))?;
        if got == 0 {
            return Ok(());
        }
        disk::write_all(file, &piece[..got], at, 1).map_err(|error| LogError::io("write", name, &error))?;
        at += got as u64;
    }
    Ok(())
}

/// Of the spares, those of the right size, within the bound; the others are deleted.
fn keep_spares(disk: &dyn Disk, config: &Config, names: &[String]) -> Result<Vec<u32>, LogError> {
    let mut kept = Vec::new();
    for name in names {
        if name.ends_with(segment::UNFINISHED) {
            disk.delete(name).map_err(|error| LogError::io("delete", name, &error))?;
        }
        let Some(number) = segment::spare_number(name) else { continue };
        let size = disk.open(name, Mode::Read).and_then(|file| file.size());
        let size = size.map_err(|error| LogError::io("open", name, &error))?;
        if size == config.segment_bytes && kept.len() < config.pool_segments_max {
            kept.push(number);
        } else {
            disk.delete(name).map_err(|error| LogError::io("delete", name, &error))?;
        }
    }
    Ok(kept)
}

fn retire(
    disk: &dyn Disk,
    config: &Config,
    name: &str,
    number: u32,
    shelf: &mut Shelf,
) -> Result<(), LogError> {
    let size = disk.open(name, Mode::Read).and_then(|file| file.size());
    let fits = size.map_err(|error| LogError::io("open", name, &error))? == config.segment_bytes;
    if fits && shelf.spares.len() < config.pool_segments_max {
        disk.rename(name, &spare_name(number)).map_err(|error| LogError::io("rename", name, &error))?;
        shelf.spares.push(number);
        return Ok(());
    }
    disk.delete(name).map_err(|error| LogError::io("delete", name, &error))
}
