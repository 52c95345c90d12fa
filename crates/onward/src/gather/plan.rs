//! What a gather is and how it goes on: pure, from the end of one part to what is released next.

use onward_core::{Error, Message, MessageId, MessageState, Name, Op, Payload, Result};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Most parts of one gather.
pub const GATHER_PARTS_MAX: usize = 1_000;
/// The largest result of a part that is kept for those that follow, in bytes.
pub const GATHER_RESULT_BYTES_MAX: usize = 4 * 1024;

/// How a gather stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GatherState {
    /// Some part is not at its end.
    Running,
    /// Every part of every step is done.
    Done,
    /// A part failed for good, and no further step was released.
    Failed,
}

/// How a part ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartState {
    /// Its step was not released yet.
    Planned,
    /// It is in its queue.
    Pending,
    /// Done.
    Done,
    /// A dead letter.
    Dead,
    /// Cancelled, expired or purged.
    Gone,
}

impl PartState {
    fn is_final(self) -> bool {
        !matches!(self, Self::Planned | Self::Pending)
    }
}

/// One message of a gather.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Part {
    pub(crate) queue: Name,
    pub(crate) id: MessageId,
    pub(crate) state: PartState,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) result: Option<Box<RawValue>>,
    /// Until its step is released.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<Box<Message>>,
}

/// A gather as its record keeps it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) state: GatherState,
    pub(crate) steps: Vec<Vec<Part>>,
    /// The step that runs.
    pub(crate) at: usize,
    /// Sent once when it fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) on_failure: Option<Part>,
    /// Dead parts are waited for until they are redriven, and don't fail it.
    #[serde(default)]
    pub(crate) waits_for_redrive: bool,
}

impl Plan {
    /// Releases the first step that has parts; what has none is done at once.
    pub(crate) fn begin(&mut self) -> Result<Vec<Op>> {
        self.release()
    }

    /// A part of the running step ended. Answers what is released; `None` where nothing changes.
    ///
    /// A part that ended before, or of another step, changes nothing: so the next step is released once.
    pub(crate) fn end(
        &mut self,
        (step, index): (usize, usize),
        state: PartState,
        result: Option<&Payload>,
    ) -> Result<Option<Vec<Op>>> {
        if self.state != GatherState::Running || step != self.at {
            return Ok(None);
        }
        let Some(part) = self.steps.get_mut(step).and_then(|parts| parts.get_mut(index)) else {
            return Ok(None);
        };
        let waits = self.waits_for_redrive && state == PartState::Dead;
        if part.state.is_final() || waits {
            return Ok(None);
        }
        part.state = state;
        part.result = result.and_then(kept);
        if !self.steps[step].iter().all(|part| part.state.is_final()) {
            return Ok(Some(Vec::new()));
        }
        if self.steps[step].iter().all(|part| part.state == PartState::Done) {
            self.at += 1;
            return self.release().map(Some);
        }
        self.state = GatherState::Failed;
        self.on_failure.iter_mut().map(release_part).collect::<Result<_>>().map(Some)
    }

    fn release(&mut self) -> Result<Vec<Op>> {
        while let Some(parts) = self.steps.get_mut(self.at) {
            if !parts.is_empty() {
                return parts.iter_mut().map(release_part).collect();
            }
            self.at += 1;
        }
        self.state = GatherState::Done;
        Ok(Vec::new())
    }

    /// The parts whose end is awaited, with their places.
    pub(crate) fn pending(&self) -> Vec<((usize, usize), Name, MessageId)> {
        if self.state != GatherState::Running {
            return Vec::new();
        }
        let parts = self.steps.get(self.at).into_iter().flatten().enumerate();
        let pending = parts.filter(|(_, part)| part.state == PartState::Pending);
        pending.map(|(index, part)| ((self.at, index), part.queue.clone(), part.id.clone())).collect()
    }
}

fn release_part(part: &mut Part) -> Result<Op> {
    let message =
        part.message.take().ok_or_else(|| Error::internal("a part of a gather was released twice"))?;
    part.state = PartState::Pending;
    Ok(Op::Enqueue { queue: part.queue.clone(), message })
}

fn kept(result: &Payload) -> Option<Box<RawValue>> {
    let fits = result.is_json() && result.as_bytes().len() <= GATHER_RESULT_BYTES_MAX;
    fits.then(|| serde_json::from_slice(result.as_bytes()).ok()).flatten()
}

/// What the state of a message means for its part; `None` while it may still be done.
pub(crate) fn ended_as(state: Option<MessageState>) -> Option<PartState> {
    match state {
        Some(MessageState::Dead) => Some(PartState::Dead),
        Some(MessageState::Expired | MessageState::Cancelled) | None => Some(PartState::Gone),
        // One that is done was counted in the commit of its acknowledgement.
        Some(_) => None,
    }
}
