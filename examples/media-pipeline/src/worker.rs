//! The worker: reads the durable object, writes the thumbnail, then status and metadata, then acknowledges.

use crate::catalog::{Catalog, QUEUE, WORK_TYPE, Work, advance, put};
use crate::thumbnail::{self, Made};
use crate::upload::{Thumbnail, Upload, UploadState};
use anyhow::Context as _;
use onward::core::{Guarded, Op, RecordExpect};
use onward::work::{self, Context, Permanent, State, Transient, handler};

/// What a worker process does at each picture that it begins, beside the work: the demo prints and, once, dies here.
pub type OnBegin = Box<dyn Fn(&str, u32) -> Begin + Send + Sync>;

/// How to go on with a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begin {
    /// Work on it.
    GoOn,
    /// Hold it until this process is killed: so that the demo can show what happens then.
    HoldForever,
}

/// What the handler shares.
pub struct Shared {
    /// Records and objects.
    pub catalog: Catalog,
    /// Called at each picture.
    pub on_begin: OnBegin,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("catalog", &self.catalog).finish_non_exhaustive()
    }
}

/// The handler of [`WORK_TYPE`]: makes one thumbnail.
///
/// Whatever happens between two of its steps, running it again leaves everything right: the thumbnail's key is derived
/// from the upload, the record only moves along legal transitions, and record and acknowledgement are one commit.
///
/// # Errors
/// Permanent for a picture that can't be processed (the app sees it as failed, the message is a dead letter);
/// transient when store or engine can't be reached.
pub async fn make_thumbnail(work: Work, shared: State<Shared>, context: Context) -> work::Result {
    if (shared.on_begin)(&work.upload_id, context.attempt()) == Begin::HoldForever {
        std::future::pending::<()>().await;
    }
    let catalog = &shared.catalog;
    let found = catalog.get(&work.upload_id).await.map_err(Transient)?;
    let Some((upload, revision)) = found else {
        return Err(Permanent(format!("there is no upload {}", work.upload_id)).into());
    };
    match upload.state {
        UploadState::Queued => {}
        UploadState::Ready => return Ok(()),
        state => {
            return Err(Permanent(upload.reason.unwrap_or_else(|| format!("the upload is {state}"))).into());
        }
    }
    // An upload's record does not mean that its object is there.
    let Some(original) = catalog.storage().get(&upload.target).await.map_err(Transient)? else {
        return Err(Transient(format!("object {} is not there", upload.target)).into());
    };
    let made = tokio::task::spawn_blocking(move || thumbnail::make(&original)).await?;
    match made {
        Ok(made) => finish(&shared, &context, upload, revision, made).await.map_err(|e| Transient(e).into()),
        Err(reason) => Err(give_up(&shared, &context, upload, revision, reason).await),
    }
}

/// Object first, then record and acknowledgement in one commit.
async fn finish(
    shared: &Shared,
    context: &Context,
    upload: Upload,
    revision: u64,
    made: Made,
) -> anyhow::Result<()> {
    let object = format!("uploads/{}/thumbnail.png", upload.id);
    shared.catalog.storage().put(&object, made.png.into()).await?;
    let mut upload = upload;
    advance(&mut upload, UploadState::Ready)?;
    upload.thumbnail =
        Some(Thumbnail { object, format: made.format, width: made.width, height: made.height });
    context
        .commit_with(put(&upload, RecordExpect::Revision(revision))?)
        .context("the record can't join the commit")
}

/// The app is told before the message is set aside; under the lease, so that a stale worker can't tell it.
async fn give_up(
    shared: &Shared,
    context: &Context,
    upload: Upload,
    revision: u64,
    reason: String,
) -> work::Error {
    let write = || -> anyhow::Result<Vec<Op>> {
        let mut upload = upload;
        advance(&mut upload, UploadState::Failed)?;
        upload.reason = Some(reason.clone());
        let guard = Op::Guard(Guarded::Lease { token: context.token().clone() });
        Ok(vec![guard, put(&upload, RecordExpect::Revision(revision))?])
    };
    let told = match write() {
        Ok(ops) => shared.catalog.onward().commit(ops).await.map(drop).map_err(anyhow::Error::from),
        Err(error) => Err(error),
    };
    match told {
        Ok(()) => Permanent(reason).into(),
        Err(error) => Transient(error).into(),
    }
}

/// A worker for pictures on this catalog, `concurrency` at a time.
pub fn worker(catalog: Catalog, concurrency: u32, on_begin: OnBegin) -> work::Worker {
    work::Worker::new(catalog.onward())
        .state(Shared { catalog: catalog.clone(), on_begin })
        .concurrency(concurrency)
        .handle(QUEUE, handler(make_thumbnail).kind(WORK_TYPE))
}
