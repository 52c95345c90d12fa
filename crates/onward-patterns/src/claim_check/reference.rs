//! What a message carries instead of its payload. Pure.

use onward_core::{Error, Message, Payload, Result};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The header that names the stored payload of a message. Only the claim check sets it.
pub const CLAIM_HEADER: &str = "onward-claim";
/// The content type of a reference, so that nobody takes it for the data.
pub const CLAIM_CONTENT_TYPE: &str = "application/vnd.onward.claim+json";

/// What a payload must be when it is fetched. It depends on the payload alone, so that a repeat of a message is known
/// as one by its data, wherever its payload is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Reference {
    /// Its length.
    pub(super) bytes: u64,
    /// Its SHA-256, in hexadecimal.
    pub(super) sha256: String,
    /// Its content type.
    pub(super) content_type: String,
}

impl Reference {
    /// The reference to a payload.
    pub(super) fn to(payload: &Payload) -> Self {
        Self {
            bytes: payload.as_bytes().len() as u64,
            sha256: hex::encode(Sha256::digest(payload.as_bytes())),
            content_type: payload.content_type().into(),
        }
    }

    /// Of the same form and size, without the work of hashing: to check a message ahead.
    pub(super) fn stand_in(payload: &Payload) -> Self {
        let sha256 = "0".repeat(64);
        Self { bytes: payload.as_bytes().len() as u64, sha256, content_type: payload.content_type().into() }
    }

    /// The message with this reference in place of its payload, which is stored under `serial`.
    pub(super) fn put_into(&self, mut message: Message, serial: &str) -> Result<Message> {
        let text = serde_json::to_vec(self).map_err(|e| Error::internal(e.to_string()))?;
        message.data = Payload::bytes(text, CLAIM_CONTENT_TYPE)?;
        message.headers.insert(CLAIM_HEADER.into(), serial.into());
        Ok(message)
    }

    /// The reference of a message, and the serial of its payload; `None` for a message that carries its own payload,
    /// which one whose data was edited does too.
    ///
    /// # Errors
    /// `Corrupt` for a reference that can't be read.
    pub(super) fn of(message: &Message) -> Result<Option<(Self, &str)>> {
        let Some(serial) = message.headers.get(CLAIM_HEADER) else { return Ok(None) };
        if message.data.content_type() != CLAIM_CONTENT_TYPE {
            return Ok(None);
        }
        let reference = serde_json::from_slice(message.data.as_bytes())
            .map_err(|e| Error::corrupt(format!("the reference can't be read: {e}")).at(&message.id))?;
        Ok(Some((reference, serial)))
    }

    /// The payload, if these bytes are what was referred to.
    pub(super) fn redeem(&self, bytes: bytes::Bytes) -> Result<Payload> {
        let payload = Payload::bytes(bytes, &self.content_type)?;
        match Self::to(&payload) == *self {
            true => Ok(payload),
            false => Err(Error::corrupt("the stored payload is not the one that the message refers to")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_comes_back_only_as_it_was() {
        let payload = Payload::bytes(vec![0, 255, 7], "image/png").unwrap();
        let reference = Reference::to(&payload);
        assert_eq!(reference.redeem(payload.as_bytes().clone()).unwrap(), payload);
        for other in [vec![0, 255, 8], vec![0, 255], vec![0, 255, 7, 0]] {
            assert_eq!(reference.redeem(other.into()).unwrap_err().kind(), onward_core::ErrorKind::Corrupt);
        }
    }

    #[test]
    fn a_stand_in_is_as_large_as_the_reference() {
        let payload = Payload::json(&"x".repeat(1000)).unwrap();
        let size = |reference: &Reference| serde_json::to_string(reference).unwrap().len();
        assert_eq!(size(&Reference::stand_in(&payload)), size(&Reference::to(&payload)));
    }
}
