//! Copying: what of a folder is not at the destination yet goes there, in an order that keeps every copy whole.
//!
//! The order is what makes a copy right while the folder is worked on. The snapshot is chosen first, so that the log is
//! copied at least up to its place. The list of segments is made next, then those before the snapshot's are copied, then
//! the log from the snapshot's on, its end last. A segment that is released meanwhile is needed by nobody: the facts
//! that say so are durable before it goes, and so they are in the part of the log that is copied after it.

use crate::{
    claim::{self, Claim, Standing},
    destination::Destination,
    manifest::{Content, Manifest},
    names::{self, Copied, Holdings, Span},
    source::{Base, Behind, Cursor, PART_BYTES, Resumed, Source, Stretch},
};
use onward_core::{Env, Error, Position, Result, Timestamp};
use std::{path::Path, sync::Arc};

/// How often copying begins anew because segments were released faster than they were copied.
const ATTEMPTS_MAX: u32 = 5;

/// How far a copy has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes copied by this call.
    pub bytes: u64,
    /// Bytes that were at the destination already.
    pub kept_bytes: u64,
    /// Objects written.
    pub objects: u64,
    /// Bytes of the folder's log and snapshot, as far as known.
    pub total_bytes: u64,
}

/// Who is told how a copy comes along.
pub type Watch = Arc<dyn Fn(Progress) + Send + Sync>;

/// Copies one folder to one destination under one claim.
pub(crate) struct Copier {
    pub(crate) source: Source,
    pub(crate) to: Destination,
    pub(crate) claim: Claim,
    pub(crate) env: Arc<dyn Env>,
    pub(crate) held: Holdings,
    pub(crate) progress: Progress,
    watch: Watch,
    pub(crate) last_us: Option<i64>,
}

/// Where a copy stands: it can be made a manifest.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stand {
    pub(crate) cursor: Cursor,
    pub(crate) snapshot: Option<Position>,
    /// Segments that were there when the copy of the log's end began, and are copied.
    pub(crate) segments: Vec<u32>,
}

impl Copier {
    /// Enters a destination for a folder: under the claim that it has there, or a first one.
    ///
    /// # Errors
    /// `Conflict` where another folder's claim is in force, unless `take_over`.
    pub(crate) async fn enter(
        dir: &Path,
        to: &Destination,
        take_over: bool,
        watch: Watch,
        env: Arc<dyn Env>,
    ) -> Result<Self> {
        let source = Source::new(dir);
        source.check()?;
        let claim = match claim::standing(to, dir).await? {
            Standing::Ours(claim) => claim,
            Standing::Free => claim::make(to, dir, 0, &*env).await?,
            Standing::Lost { theirs, .. } if !take_over => return Err(claim::supersede(dir, to, &theirs)),
            Standing::Theirs(theirs) if !take_over => return Err(refuse_theirs(to, &theirs)),
            Standing::Lost { theirs, .. } | Standing::Theirs(theirs) => {
                claim::make(to, dir, theirs.line, &*env).await?
            }
        };
        Self::with(source, to, claim, watch, env).await
    }

    async fn with(
        source: Source,
        to: &Destination,
        claim: Claim,
        watch: Watch,
        env: Arc<dyn Env>,
    ) -> Result<Self> {
        let held = Holdings::of(&to.list(&names::line(claim.line)).await?);
        Ok(Self {
            source,
            to: to.clone(),
            claim,
            env,
            held,
            progress: Progress::default(),
            watch,
            last_us: None,
        })
    }

    /// Copies all that is missing of a whole folder, up to the end that its log has then.
    pub(crate) async fn base(&mut self) -> Result<Stand> {
        for _ in 0..ATTEMPTS_MAX {
            let base = self.read(|source| source.base()).await?;
            self.progress.total_bytes = self.size_of(&base);
            if let Some(stand) = self.attempt(&base).await? {
                return Ok(stand);
            }
        }
        Err(Error::unavailable("segments of the log are released faster than they are copied")
            .at(self.to.name())
            .mend("try again when less is going on, or copy to a faster place"))
    }

    /// One attempt; nothing when a segment that the snapshot needs was released meanwhile.
    async fn attempt(&mut self, base: &Base) -> Result<Option<Stand>> {
        if let Some(position) = base.snapshot
            && !self.snapshot(position).await?
        {
            return Ok(None);
        }
        let Some(first) = base.snapshot.map(segment_of).or(base.segments.first().copied()) else {
            return Err(
                Error::unavailable("the folder's log has no segment yet").at(self.source.dir.display())
            );
        };
        let mut segments = Vec::new();
        for index in base.segments.iter().copied().filter(|index| *index < first) {
            let begin = Cursor { segment: index, ..Cursor::default() };
            if let Some(begin) = self.resumed(begin).await?
                && self.segment(begin).await?.is_some()
            {
                segments.push(index);
            }
        }
        let begin = Cursor { segment: first, ..Cursor::default() };
        let Some(cursor) = self.resumed(begin).await? else { return Ok(None) };
        let Some(cursor) = self.follow(cursor).await? else { return Ok(None) };
        segments.extend(first..=cursor.segment);
        Ok(Some(Stand { cursor, snapshot: base.snapshot, segments }))
    }

    /// Copies the log from a cursor to its end, over segments; nothing if one on the way was released.
    pub(crate) async fn follow(&mut self, mut cursor: Cursor) -> Result<Option<Cursor>> {
        while let Some(end) = self.segment(cursor).await? {
            cursor = end;
            if !matches!(self.behind(cursor).await?, Behind::NextSegment) {
                return Ok(Some(cursor));
            }
            let next = Cursor { segment: cursor.segment + 1, offset: 0, epoch: cursor.epoch };
            match self.resumed(next).await? {
                Some(next) => cursor = next,
                None => return Ok(None),
            }
        }
        Ok(None)
    }

    /// Copies one segment from a cursor to the end of its groups; nothing if it was released.
    async fn segment(&mut self, mut cursor: Cursor) -> Result<Option<Cursor>> {
        loop {
            match self.behind(cursor).await? {
                Behind::Stretch(stretch) => {
                    cursor = stretch.end;
                    self.send(stretch).await?;
                }
                Behind::Gone => return Ok(None),
                Behind::Nothing | Behind::NextSegment => return Ok(Some(cursor)),
            }
        }
    }

    async fn behind(&self, cursor: Cursor) -> Result<Behind> {
        self.read(move |source| source.behind(cursor)).await
    }

    async fn send(&mut self, stretch: Stretch) -> Result<()> {
        let index = stretch.end.segment;
        self.last_us = stretch.last_us.or(self.last_us);
        self.put(Copied::Segment(index), stretch.from, stretch.bytes).await
    }

    async fn put(&mut self, file: Copied, from: u64, bytes: bytes::Bytes) -> Result<()> {
        let span = Span::of(from, &bytes);
        self.to.put(&names::span(self.claim.line, file, span), bytes).await?;
        self.held.took(file, span);
        self.progress.bytes += span.bytes();
        self.progress.objects += 1;
        (self.watch)(self.progress);
        Ok(())
    }

    /// Where copying a segment goes on, of which something may be at the destination already.
    async fn resumed(&mut self, begin: Cursor) -> Result<Option<Cursor>> {
        let Some(last) = self.held.whole(Copied::Segment(begin.segment)).last().copied() else {
            return Ok(Some(begin));
        };
        match self.read(move |source| source.resume(begin.segment, last)).await? {
            Resumed::At(cursor, last_us) => {
                self.last_us = last_us.or(self.last_us);
                self.progress.kept_bytes += cursor.offset;
                Ok(Some(cursor))
            }
            Resumed::Gone => Ok(None),
            Resumed::Other => Err(Error::conflict(format!(
                "the destination holds another history of segment {} than this folder",
                begin.segment
            ))
            .at(self.to.name())
            .mend("copy to another destination, or begin a new line at this one with --take-over")),
        }
    }

    /// Copies a snapshot's file; answers whether it is whole at the destination.
    pub(crate) async fn snapshot(&mut self, position: Position) -> Result<bool> {
        let file = Copied::Snapshot(position.0);
        loop {
            let from = self.held.covered(file);
            let read = self.read(move |source| Ok(source.snapshot_bytes(position, from))).await?;
            match read {
                Ok(bytes) if bytes.is_empty() => return Ok(true),
                Ok(bytes) => self.put(file, from, bytes).await?,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
                Err(error) => {
                    return Err(Error::unavailable(format!("a snapshot can't be read: {error}"))
                        .at(self.source.dir.display()));
                }
            }
        }
    }

    /// Says what together makes a folder as of where the copy stands.
    pub(crate) async fn manifest(&mut self, stand: &Stand) -> Result<Manifest> {
        let covered = |file| self.held.covered(file);
        let segments: Vec<(u32, u64)> =
            stand.segments.iter().map(|index| (*index, covered(Copied::Segment(*index)))).collect();
        let content = Content {
            end: stand.cursor.position().0,
            last_at: self.last_us.map(Timestamp::from_micros),
            snapshot: stand.snapshot.map(|at| (at.0, covered(Copied::Snapshot(at.0)))),
            segments,
        };
        let manifest = Manifest::new(content, self.env.now());
        let checksum = manifest.put(&self.to, self.claim.line).await?;
        self.held.manifests.retain(|(end, _)| *end != manifest.end);
        self.held.manifests.push((manifest.end, checksum));
        self.held.manifests.sort_unstable();
        Ok(manifest)
    }

    /// Joins the small objects of a segment that is complete.
    pub(crate) async fn join(&mut self, index: u32) -> Result<()> {
        let file = Copied::Segment(index);
        let mut run: Vec<(Span, bytes::Bytes)> = Vec::new();
        for span in self.held.whole(file) {
            let size: u64 = run.iter().map(|(span, _)| span.bytes()).sum();
            if size + span.bytes() > PART_BYTES as u64 {
                self.joined(file, std::mem::take(&mut run)).await?;
            }
            let name = names::span(self.claim.line, file, span);
            run.push((span, crate::restore::object(&self.to, &name, span.checksum).await?));
        }
        self.joined(file, run).await
    }

    /// The joined object is there before the small ones go.
    async fn joined(&mut self, file: Copied, run: Vec<(Span, bytes::Bytes)>) -> Result<()> {
        let [(first, _), _, ..] = run[..] else { return Ok(()) };
        let bytes: Vec<u8> = run.iter().flat_map(|(_, bytes)| bytes.iter().copied()).collect();
        let whole = Span::of(first.from, &bytes);
        self.to.put(&names::span(self.claim.line, file, whole), bytes.into()).await?;
        self.held.took(file, whole);
        for (span, _) in run {
            self.to.delete(&names::span(self.claim.line, file, span)).await?;
            self.held.files.entry(file).or_default().retain(|held| *held != span);
        }
        Ok(())
    }

    fn size_of(&self, base: &Base) -> u64 {
        let segments = base.segments.iter().map(|index| self.source.path(*index));
        let bytes = |path: std::path::PathBuf| std::fs::metadata(path).map_or(0, |file| file.len());
        segments.map(bytes).sum()
    }

    /// Reads the folder aside: the disk is waited for.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Source) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let source = self.source.clone();
        let done = tokio::task::spawn_blocking(move || read(&source)).await;
        done.map_err(|failed| Error::internal(format!("reading the folder failed: {failed}")))?
    }
}

fn segment_of(position: Position) -> u32 {
    onward_log::Position(position.0).segment()
}

fn refuse_theirs(to: &Destination, theirs: &Claim) -> Error {
    Error::conflict(format!("another folder copies there since {} (claim {})", theirs.made_at, theirs.line))
        .at(to.name())
        .mend("name another destination; or take it over with --take-over, which stops the other folder")
}
