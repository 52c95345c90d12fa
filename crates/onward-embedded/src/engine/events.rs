//! Reading events: their places under the lock, the events themselves without it.

use super::Core;
use crate::{Store, StoredEvent, StreamId};
use hashbrown::HashMap;
use onward_core::{
    Direction, EVENTS_BYTES_MAX, EVENTS_MAX, Error, EventRead, EventScope, EventSlice, Position, ReadFrom,
    RecordedEvent, Result, StreamName, TAGS_MAX, TYPES_MAX,
};
use std::sync::Arc;

/// What an event weighs beside its data and tags, in bytes: so that a slice of small ones is bounded too.
const EVENT_BYTES: usize = 256;

impl<S: Store> Core<S> {
    /// Reads from streams. Only what is durable is shown, and it waits for nothing.
    pub(super) async fn read_streams(self: &Arc<Self>, read: EventRead) -> Result<EventSlice> {
        let _running = self.enter()?;
        check(&read)?;
        let visible = self.waits.synced();
        let selected = self.inner.lock().state.streams.select(&read, visible)?;
        let mut slice = Slice { bytes_max: read.bytes_max.min(EVENTS_BYTES_MAX), ..Slice::default() };
        slice.found.reserve_exact(selected.places.len());
        self.store.read_events(&selected.places, &mut |event| slice.take(event))?;
        let last = if slice.full { slice.found.last().map(|event| event.position) } else { None };
        // Places whose events went meanwhile count as shown.
        let shown = last.or(selected.places.last().copied());
        let more = selected.more || shown != selected.places.last().copied();
        let revision = slice.found.last().map(|event| event.revision);
        let next = shown.filter(|_| more).and_then(|shown| following(&read, shown, revision));
        let events = self.name(slice.found);
        Ok(EventSlice { events, next: next.or(selected.behind), head: selected.head })
    }

    /// Gives events the names of their streams.
    fn name(&self, found: Vec<StoredEvent>) -> Vec<RecordedEvent> {
        let mut names: HashMap<StreamId, StreamName> = HashMap::new();
        {
            let inner = self.inner.lock();
            for event in &found {
                if !names.contains_key(&event.stream)
                    && let Some(stream) = inner.state.streams.get(event.stream)
                {
                    names.insert(event.stream, stream.name.clone());
                }
            }
        }
        let named = found.into_iter().filter_map(|stored| {
            let StoredEvent { position, stream, revision, event, recorded_at } = stored;
            let stream = names.get(&stream)?.clone();
            Some(RecordedEvent { event, stream, revision, position: Position(position), recorded_at })
        });
        named.collect()
    }
}

/// Where a read goes on behind the last place that it has shown.
fn following(read: &EventRead, shown: u64, revision: Option<u64>) -> Option<ReadFrom> {
    let step = |number: u64| match read.direction {
        Direction::Forward => number.checked_add(1),
        Direction::Backward => number.checked_sub(1),
    };
    match (&read.scope, revision) {
        (EventScope::Stream(_), Some(revision)) => step(revision).map(ReadFrom::Revision),
        _ => step(shown).map(|place| ReadFrom::Position(Position(place))),
    }
}

/// The events of a slice, up to its bound.
#[derive(Default)]
struct Slice {
    found: Vec<StoredEvent>,
    bytes: u64,
    bytes_max: u64,
    weight: usize,
    full: bool,
}

impl Slice {
    /// Takes an event unless the bound is reached; answers whether more fit.
    fn take(&mut self, event: StoredEvent) -> bool {
        let bytes = event.event.message.data.as_bytes().len() as u64;
        let tags: usize = event.event.tags.iter().map(|tag| tag.as_str().len()).sum();
        let weight = event.event.message.size() + tags + EVENT_BYTES;
        let over = self.bytes + bytes > self.bytes_max || self.weight + weight > WEIGHT_MAX;
        if over && !self.found.is_empty() {
            self.full = true;
            return false;
        }
        self.bytes += bytes;
        self.weight += weight;
        self.found.push(event);
        true
    }
}

/// Most bytes of one slice with everything around the data, but for its first event.
const WEIGHT_MAX: usize = 32 << 20;

/// Checks what a read asks for.
pub(super) fn check(read: &EventRead) -> Result<()> {
    if !(1..=EVENTS_MAX).contains(&read.limit) {
        return Err(Error::invalid(format!("is {}", read.limit))
            .at("`limit`")
            .mend(format!("use 1 to {EVENTS_MAX}, and `next` for more")));
    }
    if let EventScope::Query(query) = &read.scope
        && (query.types.len() > TYPES_MAX || query.tags.len() > TAGS_MAX)
    {
        let (types, tags) = (query.types.len(), query.tags.len());
        return Err(Error::invalid(format!("asks for {types} types and {tags} tags"))
            .at("the query")
            .mend(format!("use at most {TYPES_MAX} types and {TAGS_MAX} tags")));
    }
    Ok(())
}
