//! Where copies go: a folder, or an object store by its URL.

use bytes::Bytes;
use futures::TryStreamExt;
use object_store::{
    ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, local::LocalFileSystem, path::Path as Key,
};
use onward_core::{Error, Result};
use std::{path::Path, sync::Arc};

/// A place for the copies of one data folder.
///
/// Guarantees: an object is there whole or not at all, and in a folder of this machine it is durable once it is put.
#[derive(Debug, Clone)]
pub struct Destination {
    store: Arc<dyn ObjectStore>,
    root: Key,
    name: Arc<str>,
}

impl Destination {
    /// The place that a path or URL names; a folder is made if it is missing.
    ///
    /// # Errors
    /// `Invalid` for what is no URL, `Unsupported` for a scheme that is not built in, `Unavailable` for a folder that
    /// can't be made.
    pub fn open(place: &str) -> Result<Self> {
        if let Some(dir) = local(place) {
            std::fs::create_dir_all(dir).map_err(|error| {
                Error::unavailable(format!("the folder can't be made: {error}"))
                    .at(place)
                    .mend("check the path and its permissions")
            })?;
        }
        Self::existing(place)
    }

    /// The same, of what must be there already.
    ///
    /// # Errors
    /// Those of [`Destination::open`]; `NotFound` for a folder that is not there.
    pub fn existing(place: &str) -> Result<Self> {
        let Some(dir) = local(place) else { return remote(place) };
        if !dir.is_dir() {
            return Err(Error::not_found("there is no such folder").at(place).mend("name a backup"));
        }
        let store = LocalFileSystem::new_with_prefix(dir).map_err(|error| failed("open", place, &error))?;
        let name = dir.canonicalize().map_or_else(|_| place.to_owned(), |dir| dir.display().to_string());
        Ok(Self { store: Arc::new(store.with_fsync(true)), root: Key::default(), name: name.into() })
    }

    /// A place in a store of the caller's own.
    pub fn on(store: Arc<dyn ObjectStore>, name: &str) -> Self {
        Self { store, root: Key::default(), name: name.into() }
    }

    /// How it is named: by its full path or URL.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn key(&self, name: &str) -> Key {
        name.split('/').fold(self.root.clone(), |key, part| key.join(part))
    }

    pub(crate) async fn put(&self, name: &str, bytes: Bytes) -> Result<()> {
        let put = self.store.put(&self.key(name), PutPayload::from_bytes(bytes)).await;
        put.map(drop).map_err(|error| failed("write", name, &error))
    }

    /// Puts what must not be there yet; answers whether it was not.
    pub(crate) async fn put_new(&self, name: &str, bytes: Bytes) -> Result<bool> {
        let options = PutOptions::from(PutMode::Create);
        match self.store.put_opts(&self.key(name), PutPayload::from_bytes(bytes), options).await {
            Ok(_) => Ok(true),
            Err(object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. }) => {
                Ok(false)
            }
            Err(error) => Err(failed("write", name, &error)),
        }
    }

    pub(crate) async fn get(&self, name: &str) -> Result<Option<Bytes>> {
        match self.store.get(&self.key(name)).await {
            Ok(found) => found.bytes().await.map(Some).map_err(|error| failed("read", name, &error)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(failed("read", name, &error)),
        }
    }

    /// Names and sizes of the objects below `prefix`, in no order; names are relative to the place.
    pub(crate) async fn list(&self, prefix: &str) -> Result<Vec<(String, u64)>> {
        let below = self.key(prefix);
        let listed: Vec<_> = self
            .store
            .list(Some(&below))
            .try_collect()
            .await
            .map_err(|error| failed("list", prefix, &error))?;
        let root = self.root.as_ref();
        let relative = |key: &Key| key.as_ref()[root.len()..].trim_start_matches('/').to_owned();
        Ok(listed.iter().map(|meta| (relative(&meta.location), meta.size)).collect())
    }

    /// Deletes an object; one that is not there is no error.
    pub(crate) async fn delete(&self, name: &str) -> Result<()> {
        match self.store.delete(&self.key(name)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(failed("delete", name, &error)),
        }
    }
}

/// The folder that a place names, unless it is a URL of something else.
fn local(place: &str) -> Option<&Path> {
    match place.split_once("://") {
        None => Some(Path::new(place)),
        Some(("file", path)) => Some(Path::new(path)),
        Some(_) => None,
    }
}

fn remote(place: &str) -> Result<Destination> {
    let wrong = |what: String| Error::invalid(what).at(place).mend("write a path, or s3://BUCKET/PREFIX");
    let url = url::Url::parse(place).map_err(|error| wrong(format!("is no URL: {error}")))?;
    // Keys and regions stand in the environment, as AWS_ACCESS_KEY_ID does.
    match object_store::parse_url_opts(&url, std::env::vars()) {
        Ok((store, root)) => Ok(Destination { store: store.into(), root, name: place.into() }),
        Err(error) => Err(Error::unsupported(format!("this destination can't be used: {error}"))
            .at(place)
            .mend("build with the feature `s3`, or name a folder")),
    }
}

fn failed(what: &str, name: &str, error: &object_store::Error) -> Error {
    Error::unavailable(format!("can't {what} at the destination: {error}"))
        .at(name)
        .mend("check the destination; the same command goes on where it stopped")
}
