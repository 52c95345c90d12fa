//! Finds what was never sent: objects that are durable though their event was lost, and uploads that never came.

use crate::catalog::{Catalog, Completed};
use crate::upload::UploadState;
use anyhow::Result;

/// What one round found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reconciled {
    /// Uploads whose object was there: their work is queued now.
    pub queued: Vec<String>,
    /// Uploads whose object is not what was announced.
    pub wrong: Vec<String>,
    /// Uploads that were given up.
    pub expired: Vec<String>,
}

/// One round over all unfinished uploads. Safe to run at any time, any number of times, beside everything else.
///
/// # Errors
/// When store or engine can't be reached; what was found before stands.
pub async fn reconcile(catalog: &Catalog) -> Result<Reconciled> {
    let mut found = Reconciled::default();
    for (upload, revision) in catalog.list().await? {
        if upload.state != UploadState::Pending {
            continue;
        }
        let id = upload.id.clone();
        match catalog.complete(&id).await? {
            Completed::Queued => found.queued.push(id),
            Completed::Wrong => found.wrong.push(id),
            Completed::NoObject => {
                if catalog.expire((upload, revision), catalog.onward().env().now()).await? {
                    found.expired.push(id);
                }
            }
            Completed::Before => {}
        }
    }
    Ok(found)
}
