//! What shipped copies are kept: enough for every moment since a while ago, and no more.

use crate::{
    copy::Copier,
    manifest::Manifest,
    names::{self, Copied},
};
use onward_core::Result;
use std::time::Duration;

/// The manifests of a line, oldest first, and how long a moment can be restored.
#[derive(Debug)]
pub(crate) struct Retention {
    keep: Duration,
    manifests: Vec<(Manifest, u64)>,
}

impl Retention {
    pub(crate) async fn of(copier: &Copier, keep: Duration) -> Result<Self> {
        let mut manifests = Vec::new();
        for named in &copier.held.manifests {
            manifests.push((Manifest::get(&copier.to, copier.claim.line, *named).await?, named.1));
        }
        Ok(Self { keep, manifests })
    }

    pub(crate) fn made(&mut self, manifest: Manifest, checksum: u64) {
        self.manifests.retain(|(known, _)| known.end != manifest.end);
        self.manifests.push((manifest, checksum));
    }

    /// Deletes what no kept moment needs. The newest manifest that is older than what is kept stays, since the moments
    /// behind it are restored from it.
    pub(crate) async fn apply(&mut self, copier: &mut Copier) -> Result<()> {
        let horizon = copier.env.now().minus(self.keep);
        let older = self.manifests.iter().take_while(|(manifest, _)| manifest.made_at <= horizon).count();
        let gone: Vec<_> = self.manifests.drain(..older.saturating_sub(1)).collect();
        if gone.is_empty() {
            return Ok(());
        }
        for (manifest, checksum) in gone {
            copier.to.delete(&names::manifest(copier.claim.line, manifest.end, checksum)).await?;
            copier.held.manifests.retain(|(end, _)| *end != manifest.end);
        }
        for file in self.unneeded(copier) {
            for span in copier.held.files.remove(&file).unwrap_or_default() {
                copier.to.delete(&names::span(copier.claim.line, file, span)).await?;
            }
        }
        Ok(())
    }

    /// Files that no manifest names, and that stand before the oldest one's end.
    fn unneeded(&self, copier: &Copier) -> Vec<Copied> {
        let Some((oldest, _)) = self.manifests.first() else { return Vec::new() };
        let named = |file: &Copied| {
            self.manifests.iter().any(|(manifest, _)| match file {
                Copied::Segment(index) => manifest.segments.iter().any(|(named, _)| named == index),
                Copied::Snapshot(at) => manifest.snapshot.is_some_and(|(named, _)| named == *at),
            })
        };
        let before = |file: &Copied| match file {
            Copied::Segment(index) => onward_log::Position::at(index + 1, 0).0 <= oldest.end,
            Copied::Snapshot(at) => *at <= oldest.end,
        };
        copier.held.files.keys().filter(|file| before(file) && !named(file)).copied().collect()
    }
}
