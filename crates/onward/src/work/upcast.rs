//! Old messages and new handlers: which schema versions a handler reads, and how older data is brought up to them.

use super::{Handling, extract::decode_payload};
use onward_core::{Error, Failure, Inlet, Message, Payload, Result};
use serde::{Serialize, de::DeserializeOwned};
use std::{fmt, ops::RangeInclusive, sync::Arc};

/// Brings data of one version up to the next.
type Step = Arc<dyn Fn(&Payload) -> std::result::Result<Payload, Failure> + Send + Sync>;

/// The versions that a handler takes: those that it reads itself, and the steps from older ones.
#[derive(Clone, Default)]
pub(crate) struct Versions {
    read: Option<RangeInclusive<u32>>,
    steps: Vec<(u32, Step)>,
}

impl fmt::Debug for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let from: Vec<u32> = self.steps.iter().map(|(from, _)| *from).collect();
        write!(f, "reads {:?}, brings up {from:?}", self.read)
    }
}

impl Versions {
    fn step(&self, from: u32) -> Option<&Step> {
        self.steps.iter().find(|(version, _)| *version == from).map(|(_, step)| step)
    }

    /// Whether a message of this version can be handled.
    pub(crate) fn take(&self, version: u32) -> bool {
        self.read.as_ref().is_none_or(|read| read.contains(&version) || self.step(version).is_some())
    }

    /// The versions in words, for people.
    pub(crate) fn text(&self) -> String {
        let mut parts: Vec<String> = self.steps.iter().map(|(from, _)| from.to_string()).collect();
        if let Some(read) = &self.read {
            parts.push(format!("{} to {}", read.start(), read.end()));
        }
        parts.join(", ")
    }

    /// Brings a message up to a version that the handler reads.
    ///
    /// # Errors
    /// `Undecodable` where the data does not fit the version that it says it has.
    pub(crate) fn bring_up(&self, message: &mut Message) -> std::result::Result<(), Failure> {
        let Some(read) = &self.read else { return Ok(()) };
        while !read.contains(&message.version) {
            let Some(step) = self.step(message.version) else { return Ok(()) };
            message.data = step(&message.data)?;
            message.version += 1;
        }
        Ok(())
    }

    /// Every step must lead to a version that is read.
    ///
    /// # Errors
    /// `Invalid` with the mend.
    pub(crate) fn check(&self, inlet: &Inlet) -> Result<()> {
        let Some(read) = &self.read else {
            let none = Error::invalid("it upcasts, and does not say which versions it reads").at(inlet);
            return if self.steps.is_empty() { Ok(()) } else { Err(none.mend("add `.versions(..)`")) };
        };
        for (from, _) in &self.steps {
            let next = from.saturating_add(1);
            if read.contains(from) || !(read.contains(&next) || self.step(next).is_some()) {
                return Err(Error::invalid(format!(
                    "the upcast from version {from} leads to none that is read"
                ))
                .at(inlet)
                .mend(format!("add an upcast from {next}, or read version {next}")));
            }
        }
        Ok(())
    }
}

impl Handling {
    /// Takes its type under an older or another name as well: for types that were renamed.
    pub fn alias(self, kind: &str) -> Self {
        self.kind(kind)
    }

    /// Reads these schema versions of its types only; without it, all.
    ///
    /// A message of another version is left to other workers, then set aside as one of an unknown type is.
    pub fn versions(mut self, versions: RangeInclusive<u32>) -> Self {
        self.versions.read = Some(versions);
        self
    }

    /// Brings data of version `from` up to the next version, before the handler sees it.
    ///
    /// Steps follow each other until a version is reached that [`Handling::versions`] names. The message keeps its id
    /// and its data in the queue; only what the handler sees is new.
    pub fn upcast<Old, New>(mut self, from: u32, step: impl Fn(Old) -> New + Send + Sync + 'static) -> Self
    where
        Old: DeserializeOwned + 'static,
        New: Serialize + 'static,
    {
        let step = move |old: &Payload| {
            let new = step(decode_payload::<Old>(old)?);
            Payload::json(&new)
                .map_err(|e| Failure::new(onward_core::CauseKind::Undecodable, format!("an upcast: {e}")))
        };
        self.versions.steps.push((from, Arc::new(step)));
        self
    }
}
