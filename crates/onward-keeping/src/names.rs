//! What lies where at a destination.
//!
//! ```text
//! claims/LINE                                    who copies under this number; the highest one is in force
//! LINE/log/SEGMENT/FROM-TO-CHECKSUM              bytes of a segment's file, whole groups
//! LINE/snapshots/POSITION/FROM-TO-CHECKSUM       bytes of a snapshot's file
//! LINE/manifests/END-CHECKSUM                    what together makes a folder as of END
//! LINE/head                                      how far the copying has come, and when
//! ```
//! Each object's name says what it must hold, so that a listing is enough to find what there is and what is missing.

use crc_fast::CrcAlgorithm;
use onward_core::{Error, Result};
use std::{collections::BTreeMap, fmt};

/// The number of a line: all that one folder copied under one claim.
pub(crate) type LineNumber = u32;

/// A stretch of a file as one object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Span {
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) checksum: u64,
}

impl Span {
    pub(crate) fn of(from: u64, bytes: &[u8]) -> Self {
        Self { from, to: from + bytes.len() as u64, checksum: checksum(bytes) }
    }

    pub(crate) fn bytes(self) -> u64 {
        self.to - self.from
    }

    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let (from, to) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let checksum = u64::from_str_radix(parts.next()?, 16).ok()?;
        (parts.next().is_none() && from < to).then_some(Self { from, to, checksum })
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:012}-{:012}-{:016x}", self.from, self.to, self.checksum)
    }
}

/// A file of a data folder that is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Copied {
    /// A segment of the log, by its index.
    Segment(u32),
    /// A snapshot, by its position.
    Snapshot(u64),
}

pub(crate) fn claim(line: LineNumber) -> String {
    format!("claims/{line:06}")
}

pub(crate) fn line_of_claim(name: &str) -> Option<LineNumber> {
    name.strip_prefix("claims/")?.parse().ok()
}

pub(crate) fn head(line: LineNumber) -> String {
    format!("{line:06}/head")
}

pub(crate) fn manifest(line: LineNumber, end: u64, checksum: u64) -> String {
    format!("{line:06}/manifests/{end:020}-{checksum:016x}")
}

pub(crate) fn span(line: LineNumber, file: Copied, span: Span) -> String {
    match file {
        Copied::Segment(index) => format!("{line:06}/log/{index:010}/{span}"),
        Copied::Snapshot(position) => format!("{line:06}/snapshots/{position:020}/{span}"),
    }
}

pub(crate) fn line(line: LineNumber) -> String {
    format!("{line:06}")
}

/// Checks that an object holds what its name says.
///
/// # Errors
/// `Corrupt` with the object's name.
pub(crate) fn check(name: &str, bytes: &[u8], expected: u64) -> Result<()> {
    match checksum(bytes) == expected {
        true => Ok(()),
        false => Err(damaged(name, "its content is not what its name says")),
    }
}

pub(crate) fn damaged(name: &str, what: &str) -> Error {
    Error::corrupt(what).at(format!("{name} of the copies")).mend(
        "restore an older position with --to, or from another copy; `onward verify` tells what is whole",
    )
}

pub(crate) fn checksum(bytes: &[u8]) -> u64 {
    crc_fast::checksum(CrcAlgorithm::Crc64Nvme, bytes)
}

/// What a listing of a line shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Holdings {
    pub(crate) files: BTreeMap<Copied, Vec<Span>>,
    /// Ends of the manifests and their checksums, in rising order.
    pub(crate) manifests: Vec<(u64, u64)>,
    /// Objects whose size is not what their name says.
    pub(crate) wrong: Vec<String>,
}

impl Holdings {
    pub(crate) fn of(listed: &[(String, u64)]) -> Self {
        let mut held = Self::default();
        listed.iter().for_each(|(name, size)| held.add(name, *size));
        held.files.values_mut().for_each(|spans| spans.sort_unstable());
        held.manifests.sort_unstable();
        held
    }

    fn add(&mut self, name: &str, size: u64) {
        let parts: Vec<&str> = name.split('/').collect();
        let found = match parts[..] {
            [_, "log", index, span] => index.parse().ok().map(Copied::Segment).zip(Span::parse(span)),
            [_, "snapshots", at, span] => at.parse().ok().map(Copied::Snapshot).zip(Span::parse(span)),
            [_, "manifests", end] => {
                let ends = end.split_once('-');
                let ends =
                    ends.and_then(|(end, sum)| Some((end.parse().ok()?, u64::from_str_radix(sum, 16).ok()?)));
                self.manifests.extend(ends);
                return;
            }
            _ => return,
        };
        match found {
            Some((file, span)) if span.bytes() == size => self.files.entry(file).or_default().push(span),
            _ => self.wrong.push(name.to_owned()),
        }
    }

    /// The spans that make a file without a gap from its beginning, as far as there are any.
    pub(crate) fn whole(&self, file: Copied) -> Vec<Span> {
        let mut spans: Vec<Span> = self.files.get(&file).cloned().unwrap_or_default();
        // Of two that begin at the same place the longer one counts.
        spans.sort_unstable_by_key(|span| (span.from, std::cmp::Reverse(span.to)));
        let mut end = 0;
        spans.retain(|span| {
            let follows = span.from == end;
            end = if follows { span.to } else { end };
            follows
        });
        spans
    }

    /// How much of a file there is without a gap, in bytes.
    pub(crate) fn covered(&self, file: Copied) -> u64 {
        self.whole(file).last().map_or(0, |span| span.to)
    }

    pub(crate) fn took(&mut self, file: Copied, span: Span) {
        let spans = self.files.entry(file).or_default();
        spans.push(span);
        spans.sort_unstable();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(spans: &[(u64, u64)]) -> Holdings {
        let name = |(from, to): &(u64, u64)| {
            (span(1, Copied::Segment(3), Span { from: *from, to: *to, checksum: 7 }), to - from)
        };
        Holdings::of(&spans.iter().map(name).collect::<Vec<_>>())
    }

    #[test]
    fn a_listing_says_how_far_a_file_is_there_without_a_gap() {
        let held = listed(&[(4096, 8192), (0, 4096), (8192, 9000), (8192, 12_288), (20_000, 30_000)]);
        let whole: Vec<_> = held.whole(Copied::Segment(3)).iter().map(|span| (span.from, span.to)).collect();
        assert_eq!(whole, [(0, 4096), (4096, 8192), (8192, 12_288)]);
        assert_eq!(held.covered(Copied::Segment(3)), 12_288);
        assert_eq!(held.covered(Copied::Segment(4)), 0);
    }

    #[test]
    fn an_object_of_another_size_than_its_name_says_is_told() {
        let (name, size) = (span(1, Copied::Snapshot(9), Span::of(0, b"abc")), 2);
        let held = Holdings::of(&[(name.clone(), size)]);
        assert_eq!(held.wrong, [name]);
        assert!(held.files.is_empty());
    }
}
