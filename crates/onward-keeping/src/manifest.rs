//! A manifest: what together makes a data folder as of one position.

use crate::{
    destination::Destination,
    names::{self, Copied, Holdings, LineNumber},
};
use onward_core::{Error, Position, Result, Timestamp};
use serde::{Deserialize, Serialize};

/// The format of the copies: of manifests, claims and names. To change it: raise it, and keep reading the older ones.
const FORMAT: u32 = 1;

/// What together makes a data folder as of one position.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    format: u32,
    /// When it was made.
    pub(crate) made_at: Timestamp,
    /// Everything before this is there.
    pub(crate) end: u64,
    /// When the last unit before the end was written, as far as known.
    pub(crate) last_at: Option<Timestamp>,
    /// The snapshot's position and its file's size; none where the whole log is there.
    pub(crate) snapshot: Option<(u64, u64)>,
    /// The segments' indexes, and how much of each, in bytes.
    pub(crate) segments: Vec<(u32, u64)>,
}

/// What a manifest is made of.
#[derive(Debug, Clone, Default)]
pub(crate) struct Content {
    pub(crate) end: u64,
    pub(crate) last_at: Option<Timestamp>,
    pub(crate) snapshot: Option<(u64, u64)>,
    pub(crate) segments: Vec<(u32, u64)>,
}

impl Manifest {
    pub(crate) fn new(content: Content, made_at: Timestamp) -> Self {
        let Content { end, last_at, snapshot, segments } = content;
        Self { format: FORMAT, made_at, end, last_at, snapshot, segments }
    }

    pub(crate) async fn put(&self, to: &Destination, line: LineNumber) -> Result<u64> {
        let text = serde_json::to_vec(self).expect("numbers and strings always serialise");
        let checksum = names::checksum(&text);
        to.put(&names::manifest(line, self.end, checksum), text.into()).await?;
        Ok(checksum)
    }

    /// Reads and checks the manifest that a listing shows.
    pub(crate) async fn get(
        from: &Destination,
        line: LineNumber,
        (end, checksum): (u64, u64),
    ) -> Result<Self> {
        let name = names::manifest(line, end, checksum);
        let bytes = from.get(&name).await?.ok_or_else(|| names::damaged(&name, "is gone"))?;
        names::check(&name, &bytes, checksum)?;
        #[derive(Deserialize)]
        struct Format {
            format: u32,
        }
        let unreadable = |error: serde_json::Error| names::damaged(&name, &format!("can't be read: {error}"));
        let Format { format } = serde_json::from_slice(&bytes).map_err(unreadable)?;
        if format > FORMAT {
            return Err(Error::unsupported(format!(
                "has format {format}, this version knows up to {FORMAT}"
            ))
            .at(name)
            .mend("use the version that made it, or a newer one"));
        }
        serde_json::from_slice(&bytes).map_err(unreadable)
    }

    pub(crate) fn snapshot_at(&self) -> Option<Position> {
        self.snapshot.map(|(position, _)| Position(position))
    }

    /// What it names and a listing does not show whole.
    pub(crate) fn missing(&self, held: &Holdings) -> Vec<String> {
        let segments = self.segments.iter().map(|(index, to)| (Copied::Segment(*index), *to));
        let snapshot = self.snapshot.map(|(position, bytes)| (Copied::Snapshot(position), bytes));
        let short = |(file, to): &(Copied, u64)| held.covered(*file) < *to;
        let told = |(file, to): (Copied, u64)| format!("{file:?} behind byte {} of {to}", held.covered(file));
        segments.chain(snapshot).filter(short).map(told).collect()
    }
}
