//! Ids of messages and requests, and places in a store.

use crate::text::Text;
use crate::{Env, Error, ID_BYTES_MAX, Result};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The stable id of a message: the same through every retry, redrive and resend.
///
/// Limits: 1 to [`ID_BYTES_MAX`] bytes, no control characters. Any text of another system is accepted as it stands.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MessageId(Text);

impl MessageId {
    /// A new UUIDv7: unique, and rising with time.
    pub fn generate(env: &dyn Env) -> Self {
        let millis = u64::try_from(env.now().as_micros() / 1000).unwrap_or(0);
        let mut random = [0u8; 10];
        random[..8].copy_from_slice(&env.random().to_le_bytes());
        random[8..].copy_from_slice(&env.random().to_le_bytes()[..2]);
        let uuid = uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid();
        Self(Text::from(&*uuid.hyphenated().encode_lower(&mut [0; 36])))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl TryFrom<String> for MessageId {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        Self::try_from(text.as_str())
    }
}

impl TryFrom<&str> for MessageId {
    type Error = Error;

    fn try_from(text: &str) -> Result<Self> {
        check_text("id", text, ID_BYTES_MAX)?;
        Ok(Self(text.into()))
    }
}

impl From<MessageId> for String {
    fn from(id: MessageId) -> String {
        id.as_str().to_owned()
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Refuses empty, overlong and control characters, naming the field.
pub(crate) fn check_text(field: &str, text: &str, bytes_max: usize) -> Result<()> {
    if text.is_empty() {
        return Err(Error::invalid("is empty").at(format!("`{field}`")).mend("give it a value"));
    }
    if text.len() > bytes_max {
        let what = format!("has {} bytes, more than {bytes_max}", text.len());
        return Err(Error::invalid(what)
            .at(format!("`{field}`"))
            .mend("shorten it, or put it into the data"));
    }
    // Nearly every text is plain ASCII: that is found out without looking at characters one by one.
    if text.bytes().fold(true, |plain, byte| plain & (0x20..0x7f).contains(&byte)) {
        return Ok(());
    }
    match text.chars().find(|c| c.is_control()) {
        Some(c) => Err(Error::invalid(format!("has the control character {c:?}")).at(format!("`{field}`"))),
        None => Ok(()),
    }
}

/// The caller's id of one lease request; a repeat of it gets the same deliveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RequestId(pub u128);

impl RequestId {
    /// A new random one.
    pub fn generate(env: &dyn Env) -> Self {
        Self(u128::from(env.random()) << 64 | u128::from(env.random()))
    }
}

/// A place in a store: opaque, strictly rising, with gaps. Only positions of one store compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Position(pub u64);

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}
