//! The log of a copy, group by group from a segment on, up to a moment: into a folder, or only checked.

use crate::{
    destination::Destination,
    names::{self, Copied, Holdings, LineNumber, Span},
    restore::object,
    write::Folder,
};
use bytes::Bytes;
use onward_core::{Error, Result};
use onward_log::{LogError, Part, Position, SegmentLook};
use std::sync::Arc;

/// Up to where a log is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    End,
    /// Groups whose first unit was written at this time or before, in microseconds.
    Time(i64),
    /// Groups that begin before this position: what a record stands in, and what a copy's end was reported as.
    Position(u64),
}

/// Walks a copy's log.
pub(crate) struct Cut<'a> {
    from: &'a Destination,
    line: LineNumber,
    held: &'a Holdings,
    until: Until,
    /// Behind the last group taken.
    pub(crate) end: Position,
    pub(crate) epoch: u32,
    pub(crate) groups: u64,
    pub(crate) last_us: Option<i64>,
    /// Groups behind the target.
    pub(crate) left_out: u64,
    /// Whether a group behind the target was seen.
    pub(crate) reached: bool,
    /// The size of the last segment's file, in bytes.
    pub(crate) segment_bytes: u64,
    /// Whether the next group must follow `end`.
    chained: bool,
    /// Whether it is gone on with later, so that the last segment may grow.
    follows: bool,
}

impl<'a> Cut<'a> {
    pub(crate) fn new(from: &'a Destination, line: LineNumber, held: &'a Holdings, until: Until) -> Self {
        Self {
            from,
            line,
            held,
            until,
            end: Position::ZERO,
            epoch: 0,
            groups: 0,
            last_us: None,
            left_out: 0,
            reached: false,
            segment_bytes: 0,
            chained: false,
            follows: false,
        }
    }

    /// Goes on behind a group that the folder has already; at the beginning of a segment, nothing need be followed.
    pub(crate) fn behind(mut self, end: Position, epoch: u32) -> Self {
        (self.end, self.epoch, self.chained, self.follows) = (end, epoch, end.offset() > 0, true);
        self
    }

    /// Takes the log from segment `first` on into the folder; answers how many bytes were read.
    ///
    /// # Errors
    /// `Corrupt` for an object whose groups do not hold, or do not follow each other.
    pub(crate) async fn run(&mut self, first: u32, folder: &Folder) -> Result<u64> {
        self.end = self.end.max(Position::at(first, 0));
        self.run_on(folder).await
    }

    /// The same from its end on.
    pub(crate) async fn run_on(&mut self, folder: &Folder) -> Result<u64> {
        let (mut index, mut bytes) = (self.end.segment(), 0);
        while !self.held.whole(Copied::Segment(index)).is_empty() && !self.reached {
            let read = self.segment(index, Some(folder)).await?;
            if read > 0 {
                folder.sync(Copied::Segment(index))?;
            }
            if read > 0 || self.follows {
                let grows = self.follows && self.held.whole(Copied::Segment(index + 1)).is_empty();
                // The length of one that still grows says how much of it is there.
                self.segment_bytes =
                    if grows { folder.segment_bytes(index)? } else { folder.lengthen(index)? };
            }
            (index, bytes) = (index + 1, bytes + read);
        }
        Ok(bytes)
    }

    /// Takes a segment's groups behind the end: into a folder, or only checked. Answers how many bytes were read.
    pub(crate) async fn segment(&mut self, index: u32, folder: Option<&Folder>) -> Result<u64> {
        let file = Copied::Segment(index);
        let begin = if self.end.segment() == index { self.end.offset() } else { 0 };
        let mut look = match folder.filter(|_| begin > 0) {
            Some(folder) => folder.look(index)?,
            None => None,
        };
        let (mut read, mut goes_on) = (0, begin > 0);
        for span in self.held.whole(file).into_iter().filter(|span| span.to > begin) {
            let name = names::span(self.line, file, span);
            let bytes = object(self.from, &name, span.checksum).await?;
            read += span.bytes();
            let begun = self.looked(&mut look, index, span, &bytes, &name)?;
            // The first one is gone on with behind what the folder has, the others behind the one before.
            if std::mem::take(&mut goes_on) {
                begun.go_on(self.end, self.epoch);
            }
            let taken = self.take(begun, span, &name)?;
            if let Some(folder) = folder {
                folder.write(file, span.from, &bytes[..(taken - span.from) as usize])?;
            }
            if self.reached {
                break;
            }
        }
        Ok(read)
    }

    fn looked<'l>(
        &self,
        look: &'l mut Option<SegmentLook>,
        index: u32,
        span: Span,
        bytes: &Bytes,
        name: &str,
    ) -> Result<&'l mut SegmentLook> {
        let part = Arc::new(Part::new(span.from, bytes.clone()));
        if let Some(begun) = look {
            begun.read_from(part);
        } else {
            *look = SegmentLook::new(index, part).map_err(|error| log_error(&error, name))?;
        }
        look.as_mut().ok_or_else(|| names::damaged(name, "the segment's first block does not hold"))
    }

    /// Takes the groups of one object; answers up to which offset of the file.
    fn take(&mut self, look: &mut SegmentLook, span: Span, name: &str) -> Result<u64> {
        // Groups of an object lie in it to its last byte; what is behind the target is cut.
        let (mut taken, mut at) = (look.at().offset(), look.at().offset());
        while let Some(group) = look.next_group().map_err(|error| log_error(&error, name))? {
            let behind = match self.until {
                Until::End => false,
                Until::Time(time) => group.records > 0 && group.time > time,
                Until::Position(position) => group.start.0 >= position,
            };
            let broken = self.chained && group.follows != self.end && !self.reached;
            if broken || group.epoch < self.epoch {
                return Err(names::damaged(name, "its first group does not follow the one before"));
            }
            self.reached |= behind;
            at = group.end.offset();
            if self.reached {
                self.left_out += 1;
                continue;
            }
            taken = at;
            self.last_us = if group.records > 0 { Some(group.time) } else { self.last_us };
            (self.end, self.epoch, self.chained) = (group.end, group.epoch, true);
            self.groups += 1;
        }
        match at == span.to {
            true => Ok(taken),
            false => Err(names::damaged(name, &format!("a group does not hold at byte {at}"))),
        }
    }
}

fn log_error(error: &LogError, name: &str) -> Error {
    match error {
        LogError::NewerFormat { .. } => Error::unsupported(error.to_string()).at(name),
        _ => Error::unavailable(error.to_string()).at(name),
    }
}
