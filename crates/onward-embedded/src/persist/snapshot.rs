//! What stands in a snapshot: the store's own part, then the state's pieces.
//!
//! The store's part comes first; everything is packed into the file's pieces.

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

/// Reads the snapshot as of `position`.
///
/// # Errors
/// `Corrupt` when it is cut, damaged or not what this version writes; it can then be passed over.
pub(crate) fn restore(disk: &dyn Disk, position: Position) -> Result<Restored> {
    let mut file = Reader::open(disk, position)?;
    let first = file.piece()?.ok_or_else(|| file.damaged())?;
    let mut input = Input::new(&first);
    let part = StorePart::get(&mut input).map_err(|malformed| unreadable(&file, malformed))?;
    if part.position != position.0 {
        return Err(unreadable(&file, Malformed("its name and its content differ")));
    }
    let (mut state, mut pieces) = (State::new(), PieceReader::default());
    take_pieces(&mut input, &mut pieces, &mut state).map_err(|malformed| unreadable(&file, malformed))?;
    while let Some(bytes) = file.piece()? {
        take_pieces(&mut Input::new(&bytes), &mut pieces, &mut state)
            .map_err(|malformed| unreadable(&file, malformed))?;
    }
    state.restore(Piece::End);
    Ok(Restored { state, part })
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

fn unreadable(reader: &Reader, malformed: Malformed) -> Error {
    let damaged = reader.damaged();
    Error::corrupt(format!("can't be read: {}", malformed.0)).at(damaged.place().unwrap_or_default())
}

/// Counts anew which bodies a restored state needs.
pub(crate) fn live_of(restored: &Restored) -> Live {
    let mut live = Live::default();
    restored.state.each_body(&mut |position| live.needed(position));
    live.restore_counts(&restored.part.written);
    live
}
