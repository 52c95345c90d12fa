//! The app's other part: it only knows ids, asks what became of them, and may do so at any time later.

use super::crew::{Began, Crew};
use crate::catalog::{Catalog, QUEUE};
use crate::report::{Event, Reporter, Summary};
use crate::upload::{Upload, UploadState};
use anyhow::{Result, bail};
use onward::core::Books;
use std::collections::BTreeSet;
use std::time::Duration;

const POLL: Duration = Duration::from_millis(50);
/// Without any upload becoming final for so long, something is wrong.
const PATIENCE: Duration = Duration::from_secs(120);

pub(super) struct Watcher<'a> {
    catalog: &'a Catalog,
    reporter: &'a Reporter,
    open: BTreeSet<String>,
    before: Books,
    summary: Summary,
    taken_over: bool,
}

impl<'a> Watcher<'a> {
    pub(super) fn new(catalog: &'a Catalog, reporter: &'a Reporter, ids: &[String], before: Books) -> Self {
        let summary = Summary { uploads: ids.len(), ..Summary::default() };
        Self { catalog, reporter, open: ids.iter().cloned().collect(), before, summary, taken_over: false }
    }

    /// Tells of each upload once it is final; then looks at the books.
    pub(super) async fn until_all_final(mut self, crew: &mut Crew<'_>, killed: &str) -> Result<Summary> {
        let env = self.catalog.onward().env().clone();
        let mut moved = env.monotonic();
        while !self.open.is_empty() || !self.drained().await? {
            tokio::select! {
                Some(began) = crew.hear() => self.heard(began, killed),
                () = env.sleep(POLL) => {
                    if self.look().await? {
                        moved = env.monotonic();
                    }
                }
            }
            if env.monotonic() - moved > PATIENCE {
                bail!("{} uploads are not final after {PATIENCE:?}: {:?}", self.open.len(), self.open);
            }
        }
        let books = self.catalog.onward().stats(QUEUE).await?.books;
        self.summary.books_balance = books.balance();
        self.summary.dead_letters =
            usize::try_from(books.dead - self.before.dead.min(books.dead)).unwrap_or(usize::MAX);
        Ok(self.summary)
    }

    fn heard(&mut self, began: Began, killed: &str) {
        if began.upload == killed && !std::mem::replace(&mut self.taken_over, true) {
            self.reporter.tell(&Event::TakenOver { upload: began.upload.clone(), by: began.worker.clone() });
        }
        let Began { worker, upload, attempt } = began;
        self.reporter.tell(&Event::Working { worker, upload, attempt });
    }

    /// Asks for each open upload; says whether one became final.
    async fn look(&mut self) -> Result<bool> {
        let mut moved = false;
        for id in self.open.clone() {
            let Some((upload, _)) = self.catalog.get(&id).await? else {
                bail!("the record of upload {id} is gone")
            };
            if upload.state.is_final() {
                self.count(&upload);
                self.open.remove(&id);
                moved = true;
            }
        }
        Ok(moved)
    }

    fn count(&mut self, upload: &Upload) {
        match upload.state {
            UploadState::Ready => self.summary.ready += 1,
            UploadState::Failed => self.summary.failed += 1,
            _ => self.summary.expired += 1,
        }
        self.reporter.tell(&Event::Final {
            upload: upload.id.clone(),
            file: upload.file_name.clone(),
            state: upload.state,
            reason: upload.reason.clone(),
            thumbnail: upload.thumbnail.as_ref().map(|t| t.object.clone()),
        });
    }

    /// A failed picture's record is written before its message is set aside: wait for that too.
    async fn drained(&self) -> Result<bool> {
        let books = self.catalog.onward().stats(QUEUE).await?.books;
        Ok(books.waiting + books.delayed + books.leased == 0)
    }
}
