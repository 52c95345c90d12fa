//! The API behind the app: upload records, and the one commit that turns a durable object into queued work.

use crate::storage::{Storage, sha256};
use crate::upload::{Upload, UploadState};
use anyhow::{Context, Result, anyhow};
use onward::Onward;
use onward::core::{
    Error, ErrorKind, Message, MessageId, Op, Record, RecordExpect, RecordKey, RecordQuery, Timestamp,
};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The queue of pictures to be worked on.
pub const QUEUE: &str = "media/thumbnails";
/// The type of its messages.
pub const WORK_TYPE: &str = "picture.uploaded";
/// How long the app may take to send its bytes.
pub const TARGET_OPEN: Duration = Duration::from_secs(15 * 60);
/// Largest upload, in bytes.
pub const UPLOAD_BYTES_MAX: u64 = 64 << 20;
const PREFIX: &str = "media/uploads/";

/// The data of one piece of work: whatever the worker needs, and no bytes of the picture.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Work {
    /// The upload.
    pub upload_id: String,
}

/// An upload and the revision of its record, for compare-and-set.
pub type Revised = (Upload, u64);

/// What completing an upload found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completed {
    /// The object is durable and right: its work is queued now.
    Queued,
    /// It was queued, finished or given up before: nothing was done twice.
    Before,
    /// There is no object yet.
    NoObject,
    /// The object is not what was announced; the app sees it as failed.
    Wrong,
}

/// Upload records, in the same store as the queue: one commit covers both.
#[derive(Debug, Clone)]
pub struct Catalog {
    onward: Onward,
    storage: Storage,
}

impl Catalog {
    /// A catalog on an engine and a store.
    pub fn new(onward: Onward, storage: Storage) -> Self {
        Self { onward, storage }
    }

    /// Where the bytes are.
    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    /// The engine's handle.
    pub fn onward(&self) -> &Onward {
        &self.onward
    }

    /// The app asks to upload: it gets a stable id and the one place that it may write, for a while.
    ///
    /// # Errors
    /// When the announced size is over [`UPLOAD_BYTES_MAX`], or the engine can't be reached.
    pub async fn create(&self, file_name: &str, bytes: &[u8]) -> Result<Upload> {
        anyhow::ensure!(
            bytes.len() as u64 <= UPLOAD_BYTES_MAX,
            "{file_name} has more than {UPLOAD_BYTES_MAX} bytes"
        );
        let env = self.onward.env();
        let id = MessageId::generate(env.as_ref()).to_string();
        let upload = Upload {
            target: format!("uploads/{id}/original"),
            id,
            file_name: file_name.to_owned(),
            bytes: bytes.len() as u64,
            sha256: sha256(bytes),
            expires: env.now().plus(TARGET_OPEN),
            state: UploadState::Pending,
            reason: None,
            thumbnail: None,
        };
        self.onward.commit(vec![put(&upload, RecordExpect::Absent)?]).await?;
        Ok(upload)
    }

    /// What became of an upload. The app may have been restarted, or be another one: the id is enough.
    ///
    /// # Errors
    /// When the engine can't be reached, or the record can't be read.
    pub async fn get(&self, id: &str) -> Result<Option<Revised>> {
        let page = self.onward.engine().get_records(RecordQuery::Keys(vec![key(id)?])).await?;
        page.items.first().map(read).transpose()
    }

    /// All uploads, oldest first.
    ///
    /// # Errors
    /// When the engine can't be reached, or a record can't be read.
    pub async fn list(&self) -> Result<Vec<Revised>> {
        let (mut uploads, mut after) = (Vec::new(), None);
        loop {
            let query = RecordQuery::Prefix { prefix: PREFIX.into(), after, limit: 500 };
            let page = self.onward.engine().get_records(query).await?;
            for record in &page.items {
                uploads.push(read(record)?);
            }
            after = page.next;
            if after.is_none() {
                return Ok(uploads);
            }
        }
    }

    /// Called on the store's own event, and by the reconciler: both may come, in any order, any number of times.
    ///
    /// Guarantees: work is queued only after the object was read back and is what was announced; the record's change and
    /// the message are one commit, so there is never one without the other, and never two messages.
    ///
    /// # Errors
    /// When store or engine can't be reached: nothing was changed, the reconciler tries again.
    pub async fn complete(&self, id: &str) -> Result<Completed> {
        let (mut upload, revision) = self.get(id).await?.ok_or_else(|| anyhow!("there is no upload {id}"))?;
        if upload.state != UploadState::Pending {
            return Ok(Completed::Before);
        }
        let Some(found) = self.storage.inspect(&upload.target).await? else { return Ok(Completed::NoObject) };
        let right = found.bytes == upload.bytes && found.sha256 == upload.sha256;
        let mut ops = Vec::new();
        if right {
            advance(&mut upload, UploadState::Queued)?;
            ops.push(self.work(&upload)?);
        } else {
            advance(&mut upload, UploadState::Failed)?;
            upload.reason = Some("what arrived is not what was announced (size or checksum)".into());
        }
        ops.push(put(&upload, RecordExpect::Revision(revision))?);
        match self.onward.commit(ops).await {
            Ok(_) if right => Ok(Completed::Queued),
            Ok(_) => Ok(Completed::Wrong),
            Err(error) if error.kind() == ErrorKind::Conflict => Ok(Completed::Before),
            Err(error) => Err(error.into()),
        }
    }

    fn work(&self, upload: &Upload) -> Result<Op> {
        let message = Message::builder(WORK_TYPE)
            .source("media-pipeline")
            .dedup_key(&upload.id)
            .correlation_id(&upload.id)
            .json(&Work { upload_id: upload.id.clone() })
            .build(self.onward.env().as_ref())?;
        Ok(Op::Enqueue { queue: QUEUE.parse()?, message: Box::new(message) })
    }

    /// Gives up an upload whose bytes never came in time. Says whether it did.
    ///
    /// # Errors
    /// When the engine can't be reached.
    pub async fn expire(&self, (upload, revision): Revised, now: Timestamp) -> Result<bool> {
        if upload.state != UploadState::Pending || now < upload.expires {
            return Ok(false);
        }
        let mut upload = upload;
        advance(&mut upload, UploadState::Expired)?;
        upload.reason = Some("the bytes never came".into());
        Ok(settled_once(self.onward.commit(vec![put(&upload, RecordExpect::Revision(revision))?]).await)?)
    }
}

fn settled_once(answer: Result<Vec<onward::core::Receipt>, Error>) -> Result<bool, Error> {
    match answer {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::Conflict => Ok(false),
        Err(error) => Err(error),
    }
}

/// Moves an upload on; what is not a legal transition is a fault of this program and is refused.
///
/// # Errors
/// Names both states.
pub fn advance(upload: &mut Upload, next: UploadState) -> Result<()> {
    anyhow::ensure!(
        upload.state.may_become(next),
        "upload {}: {} can't become {next}",
        upload.id,
        upload.state
    );
    upload.state = next;
    Ok(())
}

/// The write of an upload's record.
///
/// # Errors
/// When the id is no record key.
pub fn put(upload: &Upload, expect: RecordExpect) -> Result<Op> {
    let value = serde_json::to_vec(upload)?.into();
    Ok(Op::PutRecord { key: key(&upload.id)?, value, expect, ttl: None })
}

fn key(id: &str) -> Result<RecordKey> {
    RecordKey::try_from(format!("{PREFIX}{id}").as_str())
        .with_context(|| format!("`{id}` is not an upload's id"))
}

fn read(record: &Record) -> Result<Revised> {
    let upload = serde_json::from_slice(&record.value)
        .with_context(|| format!("the record {} is damaged", record.key))?;
    Ok((upload, record.revision))
}
