//! Object storage: the bytes go straight there, never through a queue.

use anyhow::{Context, Result};
use bytes::Bytes;
use object_store::{ObjectStore, ObjectStoreExt, local::LocalFileSystem, path::Path as Key};
use sha2::{Digest, Sha256};
use std::{path::Path, sync::Arc};

/// Where pictures and thumbnails are: any `object_store`; by default a local folder.
#[derive(Debug, Clone)]
pub struct Storage(Arc<dyn ObjectStore>);

/// What an object really is, as read back from the store: a client's word is only a hint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Its size in bytes.
    pub bytes: u64,
    /// Its SHA-256, in hexadecimal.
    pub sha256: String,
}

impl Storage {
    /// Objects as files of a folder, which is made where it is missing.
    ///
    /// # Errors
    /// When the folder can't be made or used.
    pub fn local(dir: &Path) -> Result<Self> {
        std::fs::create_dir_all(dir)
            .with_context(|| format!("the folder {} can't be made", dir.display()))?;
        let store = LocalFileSystem::new_with_prefix(dir)
            .with_context(|| format!("{} can't be used", dir.display()))?;
        Ok(Self(Arc::new(store)))
    }

    /// Any other store: S3, Azure, Google, memory.
    pub fn new(store: Arc<dyn ObjectStore>) -> Self {
        Self(store)
    }

    /// Writes an object; whole or not at all.
    ///
    /// # Errors
    /// The store's, with the key.
    pub async fn put(&self, key: &str, bytes: Bytes) -> Result<()> {
        self.0
            .put(&Key::from(key), bytes.into())
            .await
            .with_context(|| format!("object {key} can't be written"))?;
        Ok(())
    }

    /// Reads an object; `None` when there is none.
    ///
    /// # Errors
    /// The store's, with the key.
    pub async fn get(&self, key: &str) -> Result<Option<Bytes>> {
        match self.0.get(&Key::from(key)).await {
            Ok(object) => {
                Ok(Some(object.bytes().await.with_context(|| format!("object {key} can't be read"))?))
            }
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error).with_context(|| format!("object {key} can't be read")),
        }
    }

    /// What is there, measured; `None` when there is nothing.
    ///
    /// # Errors
    /// The store's, with the key.
    pub async fn inspect(&self, key: &str) -> Result<Option<Found>> {
        let object = self.get(key).await?;
        Ok(object.map(|bytes| Found { bytes: bytes.len() as u64, sha256: sha256(&bytes) }))
    }
}

/// SHA-256 in hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}
