//! Stored payloads: objects whose names tell whose they are and since when.

use crate::Destination;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use bytes::Bytes;
use futures::TryStreamExt;
use object_store::{ObjectStore, ObjectStoreExt, PutPayload, path::Path};
use onward_core::{Env, Error, ErrorKind, MessageId, Result, RetryHint, Timestamp};
use std::{sync::Arc, time::Duration};

/// Longest part of an object's name, in bytes: file systems take no more than 255.
const PART_BYTES_MAX: usize = 200;

/// Where payloads are: any object store; a folder by default.
#[derive(Debug, Clone)]
pub struct Payloads {
    store: Arc<dyn ObjectStore>,
}

/// Whose payload an object is: the message of this id there.
pub(super) type Owner = (Destination, MessageId);

/// One stored payload, by its name alone.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) path: Path,
    pub(super) owner: Owner,
    pub(super) since: Timestamp,
}

impl Payloads {
    /// Payloads in a store of the caller's own: S3, Azure, Google, memory. The claim check alone writes there.
    pub fn on(store: Arc<dyn ObjectStore>) -> Self {
        Self { store }
    }

    /// Payloads as files of a folder, which is made where it is missing. A payload is synced before its message is sent.
    ///
    /// # Errors
    /// `Unavailable` when the folder can't be made or used.
    pub fn in_folder(dir: impl AsRef<std::path::Path>) -> Result<Self> {
        let dir = dir.as_ref();
        let wrong = |error: &dyn std::fmt::Display| {
            Error::unavailable(format!("the folder for payloads can't be used: {error}"))
                .at(dir.display())
                .mend("check the path and its permissions")
        };
        std::fs::create_dir_all(dir).map_err(|e| wrong(&e))?;
        let store = object_store::local::LocalFileSystem::new_with_prefix(dir).map_err(|e| wrong(&e))?;
        Ok(Self::on(Arc::new(store.with_fsync(true).with_automatic_cleanup(true))))
    }

    /// Stores a payload of a message under a new serial.
    pub(super) async fn put(&self, owner: &Owner, bytes: Bytes, env: &dyn Env) -> Result<String> {
        let serial = MessageId::generate(env).to_string();
        let put = self.store.put(&path(&serial, owner)?, PutPayload::from_bytes(bytes)).await;
        put.map_err(|error| failed("stored", &owner.1, &error))?;
        Ok(serial)
    }

    pub(super) async fn get(&self, owner: &Owner, serial: &str) -> Result<Bytes> {
        let wrong = |error: object_store::Error| failed("fetched", &owner.1, &error);
        self.store.get(&path(serial, owner)?).await.map_err(wrong)?.bytes().await.map_err(wrong)
    }

    pub(super) async fn remove(&self, path: &Path) -> Result<()> {
        match self.store.delete(path).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(failed("removed", path, &error)),
        }
    }

    pub(super) async fn remove_of(&self, owner: &Owner, serial: &str) -> Result<()> {
        self.remove(&path(serial, owner)?).await
    }

    /// Every stored payload. What has another name than the claim check gives is left out.
    pub(super) async fn list(&self) -> Result<Vec<Stored>> {
        let found =
            self.store.list(None).try_filter_map(async |meta| Ok(stored(meta.location))).try_collect();
        found.await.map_err(|error| failed("listed", "all", &error))
    }
}

fn path(serial: &str, owner: &Owner) -> Result<Path> {
    // Serials are ids that we made: whatever else stands in a header names no object.
    if since(serial).is_none() || !serial.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-') {
        return Err(Error::corrupt("the message's claim names no stored payload").at(&owner.1));
    }
    let text = serde_json::to_vec(owner).map_err(|e| Error::internal(e.to_string()))?;
    let text = URL_SAFE_NO_PAD.encode(text);
    let parts = text.as_bytes().chunks(PART_BYTES_MAX);
    Ok(std::iter::once(serial.as_bytes()).chain(parts).collect())
}

fn stored(path: Path) -> Option<Stored> {
    let mut parts = path.parts();
    let serial = parts.next()?.as_ref().to_owned();
    let text: String = parts.map(|part| part.as_ref().to_owned()).collect();
    let owner = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).ok()?).ok()?;
    let since = since(&serial)?;
    Some(Stored { path, owner, since })
}

/// When a serial was given: the first 48 bits are milliseconds, as in every UUIDv7.
fn since(serial: &str) -> Option<Timestamp> {
    let digits: String = serial.chars().filter(|c| *c != '-').take(12).collect();
    let millis = (serial.len() == 36).then(|| u64::from_str_radix(&digits, 16).ok()).flatten()?;
    Some(Timestamp::default().plus(Duration::from_millis(millis)))
}

fn failed(what: &str, place: impl std::fmt::Display, error: &object_store::Error) -> Error {
    let what = format!("the payload could not be {what}: {error}");
    match error {
        object_store::Error::NotFound { .. } => Error::not_found(what),
        _ => Error::new(ErrorKind::Unavailable, RetryHint::After(Duration::from_secs(1)), what),
    }
    .at(place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::still::StillEnv;

    #[test]
    fn a_name_tells_whose_it_is_and_since_when_however_odd_the_id() {
        let serial = MessageId::generate(&StillEnv).to_string();
        for id in ["a", "../../etc/passwd", "größer/als .", &"x".repeat(255)] {
            let owner =
                (Destination::Topic("shop/orders".parse().unwrap()), MessageId::try_from(id).unwrap());
            let path = path(&serial, &owner).unwrap();
            assert!(path.parts().all(|part| part.as_ref().len() <= PART_BYTES_MAX), "{path}");
            let stored = stored(path).unwrap();
            assert_eq!((stored.owner, stored.since), (owner, StillEnv.now()));
        }
    }

    #[test]
    fn names_that_we_did_not_give_are_none_of_ours() {
        for name in ["readme.txt", "a/b", "0190a5b4-0000-7000-8000-000000000000/not-an-owner"] {
            assert!(stored(Path::from(name)).is_none(), "{name}");
        }
        let owner = (Destination::Queue("q".parse().unwrap()), MessageId::try_from("m").unwrap());
        for serial in ["../0190a5b4-0000-7000-8000-0000000000", "", "x"] {
            assert_eq!(path(serial, &owner).unwrap_err().kind(), ErrorKind::Corrupt, "{serial}");
        }
    }
}
