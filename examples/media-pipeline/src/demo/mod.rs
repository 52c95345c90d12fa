//! The demo: a folder of pictures goes through the pipeline, while an event is lost, a worker is killed and pictures are
//! damaged; every upload is final in the end.

mod crew;
mod watcher;

use crate::catalog::{Catalog, Completed, QUEUE};
use crate::pictures::{self, Picture};
use crate::reconciler::reconcile;
use crate::report::{Event, Reporter, Summary};
use crate::storage::Storage;
use crate::thumbnail::FORMATS;
use anyhow::{Context, Result};
use crew::{Crew, Role};
use onward::Onward;
use onward::core::{Error, InletConfig};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Most worker processes of one run.
pub const WORKERS_MAX: usize = 16;

/// What to run.
#[derive(Debug, Clone)]
pub struct Options {
    /// The folder of pictures; without it, a few that are drawn here.
    pub images: Option<PathBuf>,
    /// Where to keep queue, records and objects; without it, a temporary folder.
    pub data_dir: Option<PathBuf>,
    /// One JSON object a line instead of words.
    pub json: bool,
    /// Worker processes that do the work, besides the one that is killed.
    pub workers: usize,
}

/// Runs the demo; the same program is started again for each worker process, and is then that worker.
///
/// # Errors
/// When a folder can't be used, the engine can't be opened, or an upload did not become final in time.
pub async fn run(options: Options) -> Result<Summary> {
    if let Some(role) = Role::of_this_process()? {
        crew::work(role).await?;
        return Ok(Summary::default());
    }
    anyhow::ensure!((1..=WORKERS_MAX).contains(&options.workers), "use 1 to {WORKERS_MAX} workers");
    let pictures = match &options.images {
        Some(dir) => {
            pictures::from_folder(dir).map_err(|e| Error::invalid(format!("{e:#}")).at("`--images`"))?
        }
        None => pictures::drawn(),
    };
    let (dir, temporary) = folder(options.data_dir.as_deref())?;
    let reporter = Reporter::new(options.json);
    let onward = open(&dir).await?;
    let storage_dir = dir.join("objects");
    let catalog = Catalog::new(onward.clone(), Storage::local(&storage_dir)?);
    reporter.tell(&Event::Began {
        folder: dir.display().to_string(),
        storage: storage_dir.display().to_string(),
        durability: onward.engine().capabilities().durability.to_string(),
        pictures: pictures.len(),
        formats: FORMATS,
    });
    let mut summary =
        Demo { catalog, reporter: &reporter, dir: &dir }.play(&pictures, options.workers).await?;
    summary.kept = temporary.is_none().then(|| dir.display().to_string());
    reporter.tell(&Event::Summary(summary.clone()));
    onward.engine().close(crew::GRACE).await?;
    Ok(summary)
}

fn folder(kept: Option<&Path>) -> Result<(PathBuf, Option<TempDir>)> {
    if let Some(dir) = kept {
        std::fs::create_dir_all(dir)
            .with_context(|| format!("the folder {} can't be made", dir.display()))?;
        return Ok((dir.to_owned(), None));
    }
    let temporary = TempDir::with_prefix("onward-demo-").context("no temporary folder can be made")?;
    Ok((temporary.path().to_owned(), Some(temporary)))
}

/// Opens the folder's engine and declares the queue; every process does the same.
async fn open(dir: &Path) -> Result<Onward> {
    let onward = onward::open(dir).await?;
    onward.declare_queue(QUEUE, InletConfig { lease_ms: 10_000, ..InletConfig::default() }).await?;
    Ok(onward)
}

struct Demo<'a> {
    catalog: Catalog,
    reporter: &'a Reporter,
    dir: &'a Path,
}

impl Demo<'_> {
    async fn play(&self, pictures: &[Picture], workers: usize) -> Result<Summary> {
        let before = self.catalog.onward().stats(QUEUE).await?.books;
        let ids = self.upload(pictures).await?;
        let mut crew = Crew::new(self.dir, self.reporter);
        let killed = crew.kill_one_in_the_middle().await?;
        for _ in 0..workers {
            crew.start(false)?;
        }
        let reconciled = self.reconcile(pictures, &ids).await?;
        let watcher = watcher::Watcher::new(&self.catalog, self.reporter, &ids, before);
        let mut summary = watcher.until_all_final(&mut crew, &killed).await?;
        summary.reconciled = reconciled;
        summary.workers_killed = 1;
        crew.stop().await?;
        Ok(summary)
    }

    /// The app's part: announce, send the bytes straight to object storage, and go on.
    async fn upload(&self, pictures: &[Picture]) -> Result<Vec<String>> {
        let mut ids = Vec::with_capacity(pictures.len());
        for (number, picture) in pictures.iter().enumerate() {
            let created = self.catalog.create(&picture.name, &picture.bytes).await?;
            let (upload, file) = (created.id.clone(), picture.name.clone());
            let bytes = picture.bytes.len();
            self.reporter.tell(&Event::Created { upload: upload.clone(), file: file.clone(), bytes });
            self.catalog.storage().put(&created.target, picture.bytes.clone().into()).await?;
            let lost = number == 1;
            if lost {
                self.reporter.tell(&Event::EventLost { upload, file });
            } else {
                self.object_created(&created.id).await?;
                self.reporter.tell(&Event::Stored { upload, file });
            }
            ids.push(created.id);
        }
        Ok(ids)
    }

    /// The store's event: an object is durable. A local folder sends none, so its writer does.
    async fn object_created(&self, upload_id: &str) -> Result<()> {
        let completed = self.catalog.complete(upload_id).await?;
        anyhow::ensure!(completed != Completed::NoObject, "the object of upload {upload_id} is not there");
        Ok(())
    }

    async fn reconcile(&self, pictures: &[Picture], ids: &[String]) -> Result<usize> {
        let found = reconcile(&self.catalog).await?;
        for upload in &found.queued {
            let file =
                ids.iter().position(|id| id == upload).map_or("of an earlier run", |at| &pictures[at].name);
            self.reporter.tell(&Event::Reconciled { upload: upload.clone(), file: file.to_owned() });
        }
        Ok(found.queued.len())
    }
}
