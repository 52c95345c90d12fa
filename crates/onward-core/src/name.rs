//! Names of queues, topics, subscriptions and streams, each within a namespace.

use crate::{Error, KEY_BYTES_MAX, NAME_PART_BYTES_MAX, Result};
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr, sync::Arc};

const DEFAULT_NAMESPACE: &str = "default";

/// The name of a queue or topic: `namespace/local`, or `local` in the namespace `default`.
///
/// Limits: each part is 1 to [`NAME_PART_BYTES_MAX`] of `a-z 0-9 . _ -`, beginning with a letter or digit.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name {
    full: Arc<str>,
    slash: usize,
}

impl Name {
    /// The namespace.
    pub fn namespace(&self) -> &str {
        &self.full[..self.slash]
    }

    /// The part after the namespace.
    pub fn local(&self) -> &str {
        &self.full[self.slash + 1..]
    }

    /// `namespace/local`, always with the namespace.
    pub fn full(&self) -> &str {
        &self.full
    }
}

impl FromStr for Name {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let (namespace, local) = text.split_once('/').unwrap_or((DEFAULT_NAMESPACE, text));
        check_part(text, namespace)?;
        check_part(text, local)?;
        Ok(Self { full: format!("{namespace}/{local}").into(), slash: namespace.len() })
    }
}

fn check_part(whole: &str, part: &str) -> Result<()> {
    let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'.' | b'_' | b'-');
    let begins = part.bytes().next().is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    if begins && part.len() <= NAME_PART_BYTES_MAX && part.bytes().all(allowed) {
        return Ok(());
    }
    let shown: String = whole.chars().take(80).collect();
    Err(Error::invalid(format!("`{}` is not a name", shown.escape_debug()))
        .mend("use a-z, 0-9, `.`, `_` and `-`, at most 120 of them, as in `emails` or `shop/emails`"))
}

impl TryFrom<String> for Name {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<Name> for String {
    fn from(name: Name) -> String {
        name.to_string()
    }
}

impl fmt::Display for Name {
    /// Leaves out the namespace `default`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.namespace() == DEFAULT_NAMESPACE { self.local() } else { &self.full })
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What can be leased from: a queue, or a subscription of a topic. Text form: `emails`, `orders:analytics`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Inlet {
    /// Each message goes to one worker.
    Queue(Name),
    /// A durable, independent reader of a topic; its name is local to the topic.
    Subscription {
        /// The topic.
        topic: Name,
        /// The subscription's name in it, of the same characters as a name's part.
        name: Arc<str>,
    },
}

impl Inlet {
    /// The queue of that name.
    pub fn queue(name: &str) -> Result<Self> {
        Ok(Self::Queue(name.parse()?))
    }

    /// The subscription of that name in a topic.
    ///
    /// # Errors
    /// `Invalid` when the name has other characters than a name's part may have.
    pub fn subscription(topic: Name, name: &str) -> Result<Self> {
        check_part(name, name)?;
        Ok(Self::Subscription { topic, name: name.into() })
    }

    /// The namespace it is in.
    pub fn namespace(&self) -> &str {
        match self {
            Self::Queue(name) | Self::Subscription { topic: name, .. } => name.namespace(),
        }
    }
}

impl FromStr for Inlet {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text.split_once(':') {
            None => Ok(Self::Queue(text.parse()?)),
            Some((topic, name)) => {
                check_part(text, name)?;
                Ok(Self::Subscription { topic: topic.parse()?, name: name.into() })
            }
        }
    }
}

impl TryFrom<String> for Inlet {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<Inlet> for String {
    fn from(inlet: Inlet) -> String {
        inlet.to_string()
    }
}

impl From<Name> for Inlet {
    fn from(name: Name) -> Self {
        Self::Queue(name)
    }
}

impl fmt::Display for Inlet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Queue(name) => fmt::Display::fmt(name, f),
            Self::Subscription { topic, name } => write!(f, "{topic}:{name}"),
        }
    }
}

impl fmt::Debug for Inlet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The name of a stream: `namespace/category-identity`, or without the namespace; the identity is free text.
///
/// The category is what stands before the first `-`: `account-4711` is in the category `account`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct StreamName {
    namespace: Arc<str>,
    local: Arc<str>,
}

impl StreamName {
    /// The namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The part after the namespace.
    pub fn local(&self) -> &str {
        &self.local
    }

    /// What stands before the first `-`, or the whole.
    pub fn category(&self) -> &str {
        self.local.split_once('-').map_or(&*self.local, |(category, _)| category)
    }
}

impl FromStr for StreamName {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let (namespace, local) = text.split_once('/').unwrap_or((DEFAULT_NAMESPACE, text));
        check_part(text, namespace)?;
        crate::id::check_text("stream", local, KEY_BYTES_MAX)?;
        Ok(Self { namespace: namespace.into(), local: local.into() })
    }
}

impl TryFrom<String> for StreamName {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<StreamName> for String {
    fn from(name: StreamName) -> String {
        name.to_string()
    }
}

impl fmt::Display for StreamName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if &*self.namespace == DEFAULT_NAMESPACE {
            f.write_str(&self.local)
        } else {
            write!(f, "{}/{}", self.namespace, self.local)
        }
    }
}
