//! Checking copies: every object that is there, and everything that a restore would need.

use crate::{
    cut::{Cut, Until},
    destination::Destination,
    manifest::Manifest,
    names::{self, Copied},
    restore::{newest_line, object},
};
use onward_core::{Position, Result, Timestamp};
use serde::Serialize;

/// What checking copies found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Checked {
    /// The line in force.
    pub line: u32,
    /// How many manifests there are.
    pub manifests: usize,
    /// The end of the newest one.
    pub position: Position,
    /// When the last unit before it was written.
    pub last_at: Option<Timestamp>,
    /// When the newest one was made.
    pub copied_at: Timestamp,
    /// How far the log goes on behind it.
    pub end: Position,
    /// Objects that were read.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Whole groups in the log of the newest one and behind.
    pub groups: u64,
}

/// Reads every object of the line in force, checks each against its name, and walks the log group by group.
///
/// # Errors
/// `Corrupt` naming the first object that is damaged or missing, `NotFound` where no finished copy is.
pub async fn check(at: &Destination) -> Result<Checked> {
    let (line, held) = newest_line(at).await?;
    if let Some(wrong) = held.wrong.first() {
        return Err(names::damaged(wrong, "its size is not what its name says"));
    }
    let (mut objects, mut bytes) = (0, 0);
    let mut newest = None;
    for named in &held.manifests {
        let manifest = Manifest::get(at, line, *named).await?;
        if let Some(missing) = manifest.missing(&held).first() {
            return Err(names::damaged(missing, &format!("is missing for the manifest of {}", manifest.end)));
        }
        newest = Some(manifest);
    }
    for (file, spans) in &held.files {
        for span in spans {
            object(at, &names::span(line, *file, *span), span.checksum).await?;
            (objects, bytes) = (objects + 1, bytes + span.bytes());
        }
    }
    let Some(newest) = newest else {
        return Err(names::damaged(&names::line(line), "has no manifest"));
    };
    let first = newest.snapshot.map(|(position, _)| onward_log::Position(position).segment());
    let first = first.or(newest.segments.first().map(|(index, _)| *index)).unwrap_or(1);
    let mut cut = Cut::new(at, line, &held, Until::End);
    for (index, _) in newest.segments.iter().filter(|(index, _)| *index < first) {
        Cut::new(at, line, &held, Until::End).segment(*index, None).await?;
    }
    let mut index = first;
    while !held.whole(Copied::Segment(index)).is_empty() {
        cut.segment(index, None).await?;
        index += 1;
    }
    if cut.end.0 < newest.end {
        return Err(names::damaged(&format!("the log behind {}", cut.end), "is missing"));
    }
    Ok(Checked {
        line,
        manifests: held.manifests.len(),
        position: Position(newest.end),
        last_at: newest.last_at,
        copied_at: newest.made_at,
        end: Position(cut.end.0),
        objects,
        bytes,
        groups: cut.groups,
    })
}
