//! What stands in a snapshot: the store's own part, then the state's pieces.
//!
//! The store's part comes first; everything is packed into the file's pieces.

use super::ahead::ahead;
use super::live::Live;
use super::pieces::{PieceReader, PieceWriter};
use super::snapshot_file::{Reader, Writer};
use crate::codec::wire::{Decoded, Input, Malformed, Wire, wire_struct};
use crate::{Piece, State};
use onward_core::{Error, Position, Result};
use onward_log::Disk;
use std::io;

/// Pieces of the state are packed into pieces of the file of at least this many bytes, but the last one.
const PACKED_BYTES: usize = 1 << 20;

/// The store's part of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct StorePart {
    /// Which log it belongs to.
    pub(crate) log_id: u64,
    /// Everything before this is in the snapshot; the replay goes on here.
    pub(crate) position: u64,
    /// How many bodies each segment was written with.
    pub(crate) written: Vec<(u32, u64)>,
}

wire_struct!(StorePart { log_id, position, written });

/// A state to be written as a snapshot.
#[derive(Debug)]
pub(crate) struct Image {
    state: State,
    part: StorePart,
}

impl Image {
    /// Of a state that changes no more, with the store's part of the same moment.
    pub(crate) fn new(state: State, part: StorePart) -> Self {
        Self { state, part }
    }

    /// Everything before this is in it.
    pub(crate) fn position(&self) -> Position {
        Position(self.part.position)
    }

    /// Writes it, durable and whole or not at all; answers its size in bytes. At no time more than one piece of the
    /// file is in memory: all of it would be half as much as the state itself.
    pub(crate) fn write(&self, disk: &dyn Disk) -> io::Result<u64> {
        let mut writer = Writer::create(disk, self.position())?;
        let (mut pieces, mut open) =
            (PieceWriter::default(), Vec::with_capacity(PACKED_BYTES + PACKED_BYTES / 8));
        self.part.put(&mut open);
        let mut done = Ok(());
        self.state.pieces(&mut |piece| {
            if done.is_err() {
                return;
            }
            pieces.put(&piece, &mut open);
            if open.len() >= PACKED_BYTES {
                done = writer.piece(&open);
                open.clear();
            }
        });
        done?;
        if !open.is_empty() {
            writer.piece(&open)?;
        }
        writer.finish()
    }
}

/// A state as a snapshot holds it.
#[derive(Debug)]
pub(crate) struct Restored {
    pub(crate) state: State,
    pub(crate) part: StorePart,
}

/// Reads the snapshot as of `position`; with `threads`, the file is read and checked ahead of what is taken from it.
///
/// # Errors
/// `Corrupt` when it is cut, damaged or not what this version writes; it can then be passed over.
pub(crate) fn restore(disk: &dyn Disk, position: Position, threads: bool) -> Result<Restored> {
    let mut file = Reader::open(disk, position)?;
    let name = file.damaged();
    let mut taking = Taking { position, restored: None, pieces: PieceReader::default(), malformed: None };
    let read = |give: &mut dyn FnMut(Vec<u8>)| -> Result<()> {
        while let Some(bytes) = file.piece()? {
            give(bytes);
        }
        Ok(())
    };
    ahead(threads, 1, read, |bytes| taking.take(&bytes))??;
    let at = name.place().unwrap_or_default();
    let unreadable = |what: &str| Error::corrupt(format!("can't be read: {what}")).at(at);
    if let Some(Malformed(what)) = taking.malformed {
        return Err(unreadable(what));
    }
    let mut restored = taking.restored.ok_or_else(|| unreadable("it is empty"))?;
    restored.state.restore(Piece::End);
    Ok(restored)
}

/// A state being made of a file's pieces.
struct Taking {
    position: Position,
    restored: Option<Restored>,
    pieces: PieceReader,
    malformed: Option<Malformed>,
}

impl Taking {
    fn take(&mut self, bytes: &[u8]) {
        if self.malformed.is_none() {
            self.malformed = self.take_into(&mut Input::new(bytes)).err();
        }
    }

    fn take_into(&mut self, input: &mut Input<'_>) -> Decoded<()> {
        if self.restored.is_none() {
            let part = StorePart::get(input)?;
            if part.position != self.position.0 {
                return Err(Malformed("its name and its content differ"));
            }
            self.restored = Some(Restored { state: State::new(), part });
        }
        match &mut self.restored {
            Some(restored) => take_pieces(input, &mut self.pieces, &mut restored.state),
            None => Ok(()),
        }
    }
}

fn take_pieces(input: &mut Input<'_>, pieces: &mut PieceReader, state: &mut State) -> Decoded<()> {
    while !input.is_empty() {
        match pieces.next_message(input)? {
            Some(message) => state.restore_message(message),
            None => state.restore(pieces.get(input)?),
        }
    }
    Ok(())
}

/// Counts anew which bodies a restored state needs.
pub(crate) fn live_of(restored: &Restored) -> Live {
    let mut live = Live::default();
    restored.state.each_body(&mut |position| live.needed(position));
    live.restore_counts(&restored.part.written);
    live
}
