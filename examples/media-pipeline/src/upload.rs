//! The upload record: what the app knows of its picture, and how it may change.

use onward::core::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Where an upload is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UploadState {
    /// The app has a target; the bytes have not arrived. Accepted is not completed.
    Pending,
    /// The bytes are durable and verified, and the work is queued.
    Queued,
    /// The thumbnail is durable. Final.
    Ready,
    /// It can't be processed, and the app sees why. Final.
    Failed,
    /// The bytes never came. Final.
    Expired,
}

impl UploadState {
    /// Whether nothing will change any more.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Ready | Self::Failed | Self::Expired)
    }

    /// Whether an upload may go from here to `next`.
    pub fn may_become(self, next: Self) -> bool {
        use UploadState::{Expired, Failed, Pending, Queued, Ready};
        matches!((self, next), (Pending, Queued | Expired | Failed) | (Queued, Ready | Failed))
    }
}

impl fmt::Display for UploadState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Pending => "pending",
            Self::Queued => "queued",
            Self::Ready => "ready",
            Self::Failed => "failed",
            Self::Expired => "expired",
        })
    }
}

/// What the app said it would upload, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Upload {
    /// Stable: the app finds its upload again by it, whatever happened to the app.
    pub id: String,
    /// The name that the app gave.
    pub file_name: String,
    /// How many bytes will come.
    pub bytes: u64,
    /// Their SHA-256, in hexadecimal.
    pub sha256: String,
    /// The key in object storage that this upload, and only it, may write.
    pub target: String,
    /// After this the target is closed.
    pub expires: Timestamp,
    /// Where it is.
    pub state: UploadState,
    /// Why it failed.
    pub reason: Option<String>,
    /// What was made of it.
    pub thumbnail: Option<Thumbnail>,
}

/// A thumbnail in object storage, and what the picture was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thumbnail {
    /// Its key.
    pub object: String,
    /// The picture's format, as in `png`.
    pub format: String,
    /// The picture's width in pixels.
    pub width: u32,
    /// The picture's height in pixels.
    pub height: u32,
}

#[cfg(test)]
mod tests {
    use super::UploadState::{self, Expired, Failed, Pending, Queued, Ready};
    use onward_proves::proves;

    #[test]
    #[proves("O6")]
    fn final_states_never_change_and_work_is_never_ready_before_it_was_queued() {
        let all = [Pending, Queued, Ready, Failed, Expired];
        for from in all {
            let next: Vec<UploadState> = all.into_iter().filter(|to| from.may_become(*to)).collect();
            assert_eq!(from.is_final(), next.is_empty(), "{from}: {next:?}");
        }
        assert!(!Pending.may_become(Ready));
    }
}
