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
        let mut slice = Slice::new(self, read.bytes_max.min(EVENTS_BYTES_MAX), selected.places.len());
        self.store.read_events(&selected.places, &mut |event| slice.take(event))?;
        let last = slice.last.filter(|_| slice.full).map(|(position, _)| position);
        // Places whose events went meanwhile count as shown.
        let shown = last.or(selected.places.last().copied());
        let more = selected.more || shown != selected.places.last().copied();
        let revision = slice.last.map(|(_, revision)| revision);
        let next = shown.filter(|_| more).and_then(|shown| following(&read, shown, revision));
        Ok(EventSlice { events: slice.found, next: next.or(selected.behind), head: selected.head })
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
struct Slice<'a, S: Store> {
    core: &'a Core<S>,
    found: Vec<RecordedEvent>,
    /// Names of streams that were asked for, and the one before.
    names: HashMap<StreamId, StreamName>,
    newest: Option<(StreamId, StreamName)>,
    /// Position and revision of the last one.
    last: Option<(u64, u64)>,
    bytes: u64,
    bytes_max: u64,
    weight: usize,
    full: bool,
}

impl<'a, S: Store> Slice<'a, S> {
    fn new(core: &'a Core<S>, bytes_max: u64, count: usize) -> Self {
        Self {
            core,
            found: Vec::with_capacity(count),
            names: HashMap::new(),
            newest: None,
            last: None,
            bytes: 0,
            bytes_max,
            weight: 0,
            full: false,
        }
    }

    /// Takes an event unless the bound is reached; answers whether more fit.
    fn take(&mut self, stored: StoredEvent) -> bool {
        let bytes = stored.event.message.data.as_bytes().len() as u64;
        let tags: usize = stored.event.tags.iter().map(|tag| tag.as_str().len()).sum();
        let weight = stored.event.message.size() + tags + EVENT_BYTES;
        let over = self.bytes + bytes > self.bytes_max || self.weight + weight > WEIGHT_MAX;
        if over && self.last.is_some() {
            self.full = true;
            return false;
        }
        self.bytes += bytes;
        self.weight += weight;
        self.last = Some((stored.position, stored.revision));
        if let Some(stream) = self.name(stored.stream) {
            let StoredEvent { position, revision, event, recorded_at, .. } = stored;
            let position = Position(position);
            self.found.push(RecordedEvent { event, stream, revision, position, recorded_at });
        }
        true
    }

    /// The name of a stream. The engine's lock is asked once for each.
    fn name(&mut self, id: StreamId) -> Option<StreamName> {
        if let Some((newest, name)) = &self.newest
            && *newest == id
        {
            return Some(name.clone());
        }
        let name = match self.names.get(&id) {
            Some(name) => name.clone(),
            None => {
                let name = self.core.inner.lock().state.streams.get(id)?.name.clone();
                self.names.insert(id, name.clone());
                name
            }
        };
        self.newest = Some((id, name.clone()));
        Some(name)
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
