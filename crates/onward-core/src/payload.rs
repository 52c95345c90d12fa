//! The data of a message: bytes exactly as given, and what they are.

use crate::{Error, Result, TYPE_BYTES_MAX, id::check_text};
use bytes::Bytes;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{fmt, sync::Arc};

const JSON: &str = "application/json";

/// The data of a message: bytes exactly as given, and their content type. Cheap to clone.
///
/// Guarantees: the bytes are never parsed and written anew on the way, so numbers above 2^53, decimals, NUL and
/// text that is not UTF-8 arrive byte for byte.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Payload {
    bytes: Bytes,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content_type: Option<Arc<str>>,
}

impl Payload {
    /// JSON text as it stands.
    ///
    /// # Errors
    /// `Invalid` with line and column when it is not JSON.
    pub fn json_text(text: impl Into<Bytes>) -> Result<Self> {
        let bytes = text.into();
        serde_json::from_slice::<serde::de::IgnoredAny>(&bytes)
            .map_err(|e| Error::invalid(format!("the data is not JSON: {e}")))?;
        Ok(Self { bytes, content_type: None })
    }

    /// A value written as JSON.
    ///
    /// # Errors
    /// `Invalid` when the value can't be written as JSON (a map whose keys are not strings).
    pub fn json<T: Serialize + ?Sized>(value: &T) -> Result<Self> {
        let bytes = serde_json::to_vec(value)
            .map_err(|e| Error::invalid(format!("the data can't be written as JSON: {e}")))?;
        Ok(Self { bytes: bytes.into(), content_type: None })
    }

    /// Any bytes, with their content type (`application/octet-stream`, `image/png`).
    ///
    /// # Errors
    /// `Invalid` when the content type is empty, overlong or has control characters.
    pub fn bytes(bytes: impl Into<Bytes>, content_type: &str) -> Result<Self> {
        check_text("content_type", content_type, TYPE_BYTES_MAX)?;
        let content_type = (content_type != JSON).then(|| Arc::from(content_type));
        Ok(Self { bytes: bytes.into(), content_type })
    }

    /// For stores that hold what was checked on its way in: `None` means JSON.
    pub fn trusted(bytes: Bytes, content_type: Option<Arc<str>>) -> Self {
        Self { bytes, content_type }
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The content type.
    pub fn content_type(&self) -> &str {
        self.content_type.as_deref().unwrap_or(JSON)
    }

    /// Whether it is said to be JSON.
    pub fn is_json(&self) -> bool {
        self.content_type.is_none()
    }

    /// The bytes read as JSON.
    ///
    /// # Errors
    /// `Invalid` with the reason, line and column.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_slice(&self.bytes)
            .map_err(|e| Error::invalid(format!("the data does not fit the handler's type: {e}")))
    }
}

impl fmt::Debug for Payload {
    /// Size and type only: the data may be private.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes of {}", self.bytes.len(), self.content_type())
    }
}
