//! Gathers: several messages, and what follows once all of them are done.
//!
//! A gather has steps that follow each other; the messages of one step run at the same time. Steps of one message each
//! are a chain; a step of many and one that follows is a fan-in. Each part's end is counted in the commit of its
//! acknowledgement, so the last one releases the next step exactly once, whatever dies in between.

mod ending;
mod plan;

use crate::{IntoMessage, Onward};
use onward_core::{
    AtomicScope, Error, ErrorKind, MessageId, Name, Op, Payload, RecordExpect, RecordKey, RecordQuery, Result,
};
use plan::{Part, Plan};
use serde::de::DeserializeOwned;
use std::time::Duration;

pub(crate) use ending::{Ending, sweep};
pub use plan::{GATHER_PARTS_MAX, GATHER_RESULT_BYTES_MAX, GatherState, PartState};

/// The gather that a message is a part of.
pub const GATHER_HEADER: &str = "onward-gather";
/// Its place in it.
pub(crate) const PART_HEADER: &str = "onward-gather-part";
/// How long a gather that has ended can be looked up.
pub const GATHER_KEPT: Duration = Duration::from_secs(7 * 86_400);
pub(crate) const PREFIX: &str = "onward.gather/";

/// A gather to be started. Its id makes starting it safe to repeat.
#[derive(Debug)]
pub struct Gather {
    id: String,
    steps: Vec<Vec<(String, Result<onward_core::Message>)>>,
    on_failure: Option<(String, Result<onward_core::Message>)>,
    waits_for_redrive: bool,
    onward: Onward,
}

/// A gather as it stands.
#[derive(Debug, Clone)]
pub struct GatherView {
    /// Whether it runs, is done, or has failed.
    pub state: GatherState,
    /// Its steps with their parts.
    pub steps: Vec<Vec<PartView>>,
}

/// One part of a gather as it stands.
#[derive(Debug, Clone)]
pub struct PartView {
    /// Its queue.
    pub queue: Name,
    /// Its message.
    pub id: MessageId,
    /// How it stands.
    pub state: PartState,
    result: Option<Payload>,
}

impl PartView {
    /// What its handler answered, where it answered with at most [`GATHER_RESULT_BYTES_MAX`] of JSON.
    ///
    /// # Errors
    /// `Invalid` where it is of another type, or there is none.
    pub fn result<T: DeserializeOwned>(&self) -> Result<T> {
        let none = || Error::invalid("it left no result").at(&self.id);
        self.result.as_ref().ok_or_else(none)?.parse()
    }
}

impl Onward {
    /// Begins a gather: add steps, then [`Gather::start`] it.
    pub fn gather(&self, id: &str) -> Gather {
        Gather {
            id: id.into(),
            steps: Vec::new(),
            on_failure: None,
            waits_for_redrive: false,
            onward: self.clone(),
        }
    }

    /// A gather as it stands; `None` where none of that id is known, or it ended more than [`GATHER_KEPT`] ago.
    ///
    /// # Errors
    /// What the engine answers.
    pub async fn find_gather(&self, id: &str) -> Result<Option<GatherView>> {
        let query = RecordQuery::Keys(vec![record_key(id)?]);
        let found = self.engine().get_records(query).await?.items.pop();
        found.map(|record| ending::read(&record).map(view)).transpose()
    }
}

impl Gather {
    /// Adds a step of several messages that run at the same time, each with its queue.
    pub fn all<'a, M: IntoMessage>(mut self, parts: impl IntoIterator<Item = (&'a str, M)>) -> Self {
        let env = self.onward.env().clone();
        let made = parts.into_iter().map(|(queue, message)| (queue.to_owned(), message.into_message(&*env)));
        self.steps.push(made.collect());
        self
    }

    /// Adds a step of one message, which follows once the steps before are done.
    pub fn then(self, queue: &str, message: impl IntoMessage) -> Self {
        self.all([(queue, message)])
    }

    /// Sends this once when a part fails for good (dead, cancelled, expired) and all others of its step have ended.
    /// Further steps are then not released.
    pub fn on_failure(mut self, queue: &str, message: impl IntoMessage) -> Self {
        self.on_failure = Some((queue.to_owned(), message.into_message(&**self.onward.env())));
        self
    }

    /// Waits for dead parts until they are redriven and done, instead of failing.
    pub fn wait_for_redrive(mut self) -> Self {
        self.waits_for_redrive = true;
        self
    }

    /// Starts it: its record and the messages of its first step are one commit. True where it was not there before.
    ///
    /// Its parts are worked on by workers as any other messages. Parts that end without their handler (dead after the
    /// last attempt, cancelled, expired) are found by any running worker within a minute or two.
    ///
    /// # Errors
    /// `Unsupported` where the engine can't commit records and messages together; `Invalid` for what is not right.
    pub async fn start(self) -> Result<bool> {
        let onward = self.onward.clone();
        if onward.engine().capabilities().atomic != AtomicScope::Store {
            return Err(Error::unsupported("a gather needs records and messages in one commit")
                .mend("use an engine with a store: embedded, or a database"));
        }
        let (key, mut plan) = (record_key(&self.id)?, self.plan()?);
        let mut ops = plan.begin()?;
        ops.insert(0, ending::put(&key, &plan, RecordExpect::Absent)?);
        match onward.commit(ops).await {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::Conflict && onward.find_gather_by(&key).await? => {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    fn plan(self) -> Result<Plan> {
        let count: usize = self.steps.iter().map(Vec::len).sum();
        if count > GATHER_PARTS_MAX {
            return Err(Error::invalid(format!("{count} parts"))
                .at(format!("gather `{}`", self.id))
                .mend(format!("use at most {GATHER_PARTS_MAX}, or gathers of gathers")));
        }
        let mut steps = Vec::new();
        for (step, parts) in self.steps.into_iter().enumerate() {
            let parts = parts.into_iter().enumerate();
            let parts = parts.map(|(index, part)| make(&self.id, Some((step, index)), part));
            steps.push(parts.collect::<Result<Vec<_>>>()?);
        }
        Ok(Plan {
            state: GatherState::Running,
            steps,
            at: 0,
            on_failure: self.on_failure.map(|part| make(&self.id, None, part)).transpose()?,
            waits_for_redrive: self.waits_for_redrive,
        })
    }
}

impl Onward {
    async fn find_gather_by(&self, key: &RecordKey) -> Result<bool> {
        Ok(!self.engine().get_records(RecordQuery::Keys(vec![key.clone()])).await?.items.is_empty())
    }
}

/// A part, marked with its place; the message of a failure has none, since its end changes nothing.
fn make(
    gather: &str,
    place: Option<(usize, usize)>,
    (queue, message): (String, Result<onward_core::Message>),
) -> Result<Part> {
    let (queue, mut message): (Name, _) = (queue.parse()?, message?);
    message.headers.insert(GATHER_HEADER.into(), gather.into());
    if let Some((step, index)) = place {
        message.headers.insert(PART_HEADER.into(), format!("{step}.{index}"));
    }
    message.correlation_id.get_or_insert_with(|| gather.into());
    message.check()?;
    let (id, message) = (message.id.clone(), Some(Box::new(message)));
    Ok(Part { queue, id, state: PartState::Planned, result: None, message })
}

fn record_key(id: &str) -> Result<RecordKey> {
    RecordKey::try_from(format!("{PREFIX}{id}"))
}

fn view(plan: Plan) -> GatherView {
    let part = |part: Part| PartView {
        queue: part.queue,
        id: part.id,
        state: part.state,
        result: part.result.map(|raw| Payload::trusted(raw.get().to_owned().into(), None)),
    };
    let steps = plan.steps.into_iter().map(|parts| parts.into_iter().map(part).collect());
    GatherView { state: plan.state, steps: steps.collect() }
}

impl crate::work::Context {
    /// The gather that this message is a part of, with the results of the steps before.
    ///
    /// # Errors
    /// `NotFound` where it is a part of none; else what the engine answers.
    pub async fn gather(&self) -> Result<GatherView> {
        let none = || Error::not_found("this message is a part of no gather").at(self.id());
        let id = self.message().headers.get(GATHER_HEADER).ok_or_else(none)?;
        self.onward().find_gather(id).await?.ok_or_else(none)
    }
}

/// Operations that go with the end of a part.
pub(crate) type Joined = Vec<Op>;
