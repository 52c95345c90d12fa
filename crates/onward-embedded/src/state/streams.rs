//! Streams: where each event stands, by stream, category, type, tag and time. The events themselves stay in the log.

use super::{
    boards::Shelf,
    places::Places,
    streams_ids::{EventIds, Found},
    streams_image::Restoring,
};
use crate::StreamId;
use hashbrown::{HashMap, HashSet};
use onward_core::{StreamName, Tag, Timestamp};
use std::sync::Arc;

/// Truncated events are taken out of the lists of categories, types and tags once there are so many, and they are at
/// least a quarter of all; until then each is remembered on its own.
const SWEEP_MIN: usize = 4096;

/// Everything that is known of streams.
#[derive(Debug, Clone, Default)]
pub(crate) struct Streams {
    pub(super) names: HashMap<StreamName, u32>,
    pub(super) streams: Shelf<Stream>,
    pub(super) categories: Lists,
    pub(super) kinds: Lists,
    pub(super) tags: Lists,
    /// Every event.
    pub(super) all: Places,
    /// When each of them was recorded, in the same order.
    pub(super) times: Places,
    /// Truncated events that still stand in the lists.
    pub(super) gone: Arc<HashSet<u64>>,
    pub(super) ids: EventIds,
    pub(super) restoring: Restoring,
}

/// One stream.
#[derive(Debug, Clone)]
pub(crate) struct Stream {
    pub(crate) name: StreamName,
    pub(super) category: u32,
    /// The first revision that is kept.
    pub(crate) first: u64,
    /// The revision of the next event.
    pub(crate) next: u64,
    /// The revision of the first place.
    pub(super) base: u64,
    pub(super) places: Places,
}

/// Events by a word: a category, a type, a tag.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lists {
    numbers: HashMap<Arc<str>, u32>,
    pub(super) lists: Shelf<List>,
}

#[derive(Debug, Clone)]
pub(crate) struct List {
    pub(super) word: Arc<str>,
    pub(super) places: Places,
}

/// A new event, as the lists need it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry<'a> {
    pub(crate) stream: StreamId,
    pub(crate) revision: u64,
    pub(crate) kind: &'a Arc<str>,
    pub(crate) tags: &'a [Tag],
    pub(crate) mark: u64,
}

impl Stream {
    /// The place of a revision that is kept.
    pub(crate) fn place(&self, revision: u64) -> Option<u64> {
        let index = revision.checked_sub(self.base).filter(|_| revision >= self.first)?;
        self.places.get(index as usize)
    }
}

impl Lists {
    pub(super) fn number(&mut self, word: &str) -> u32 {
        if let Some(number) = self.numbers.get(word) {
            return *number;
        }
        let word: Arc<str> = word.into();
        let number = self.lists.push(List { word: word.clone(), places: Places::default() });
        self.numbers.insert(word, number);
        number
    }

    fn push(&mut self, number: u32, place: u64) {
        if let Some(list) = self.lists.get_mut(number) {
            list.places.push(place);
        }
    }

    pub(super) fn places(&self, word: &str) -> Option<&Places> {
        self.numbers.get(word).and_then(|number| self.lists.get(*number)).map(|list| &list.places)
    }

    fn retain(&mut self, gone: &HashSet<u64>) {
        self.lists.iter_mut().for_each(|list| list.places.retain(|place| !gone.contains(&place)));
    }
}

/// The word of a category.
pub(super) fn category_word(namespace: &str, category: &str) -> String {
    format!("{namespace}/{category}")
}

/// A time as a number in the same order.
pub(super) fn time_number(time: Timestamp) -> u64 {
    (time.as_micros() as u64) ^ (1 << 63)
}

impl Streams {
    /// The number that the next new stream gets.
    pub(crate) fn next_stream(&self) -> StreamId {
        StreamId(self.streams.len() as u32)
    }

    pub(crate) fn find(&self, name: &StreamName) -> Option<(StreamId, &Stream)> {
        let number = *self.names.get(name)?;
        Some((StreamId(number), self.streams.get(number)?))
    }

    pub(crate) fn get(&self, stream: StreamId) -> Option<&Stream> {
        self.streams.get(stream.0)
    }

    /// Where an event of this mark was appended lately.
    pub(crate) fn recent(&self, mark: u64) -> Option<Found> {
        self.ids.get(mark)
    }

    pub(crate) fn named(&mut self, stream: StreamId, name: &StreamName) {
        if stream != self.next_stream() || self.names.contains_key(name) {
            return;
        }
        let category = self.categories.number(&category_word(name.namespace(), name.category()));
        let new =
            Stream { name: name.clone(), category, first: 0, next: 0, base: 0, places: Places::default() };
        let number = self.streams.push(new);
        self.names.insert(name.clone(), number);
    }

    pub(crate) fn appended(&mut self, entry: Entry<'_>, position: u64, time: Timestamp) {
        let Some(stream) = self.streams.get_mut(entry.stream.0).filter(|s| s.next == entry.revision) else {
            return;
        };
        stream.next += 1;
        stream.places.push(position);
        let category = stream.category;
        self.categories.push(category, position);
        let kind = self.kinds.number(entry.kind);
        self.kinds.push(kind, position);
        for (index, tag) in entry.tags.iter().enumerate() {
            // A tag said twice counts once.
            if !entry.tags[..index].contains(tag) {
                let tag = self.tags.number(tag.as_str());
                self.tags.push(tag, position);
            }
        }
        self.all.push(position);
        self.times.push(time_number(time).max(self.times.last().unwrap_or(0)));
        self.ids.insert(entry.mark, Found { stream: entry.stream, revision: entry.revision });
    }

    /// The events before a revision are gone; `freed` gets their places.
    pub(crate) fn truncated(&mut self, stream: StreamId, before: u64, freed: &mut Vec<u64>) {
        let Some(stream) = self.streams.get_mut(stream.0) else { return };
        let before = before.min(stream.next);
        let mut places: Vec<u64> = Vec::new();
        stream.places.parts().for_each(|part| part.values(&mut places));
        let from = (stream.first - stream.base) as usize;
        let to = before.saturating_sub(stream.base) as usize;
        let went = places.get(from..to).unwrap_or_default();
        if went.is_empty() {
            return;
        }
        freed.extend_from_slice(went);
        Arc::make_mut(&mut self.gone).extend(went);
        stream.first = before;
        stream.base += stream.places.drop_before(to) as u64;
        if self.gone.len() >= SWEEP_MIN && self.gone.len() * 4 >= self.all.len() {
            self.sweep();
        }
    }

    /// Takes truncated events out of every list.
    fn sweep(&mut self) {
        let gone = std::mem::take(&mut self.gone);
        [&mut self.categories, &mut self.kinds, &mut self.tags].into_iter().for_each(|l| l.retain(&gone));
        let (mut places, mut times) = (Vec::new(), Vec::new());
        self.all.parts().for_each(|part| part.values(&mut places));
        self.times.parts().for_each(|part| part.values(&mut times));
        (self.all, self.times) = (Places::default(), Places::default());
        for (place, time) in places.into_iter().zip(times).filter(|(place, _)| !gone.contains(place)) {
            self.all.push(place);
            self.times.push(time);
        }
    }

    /// A copy that gives the same pieces; it is good for nothing else.
    pub(crate) fn frozen(&self) -> Self {
        let only_lists = |lists: &Lists| Lists { numbers: HashMap::new(), lists: lists.lists.clone() };
        Self {
            names: HashMap::new(),
            streams: self.streams.clone(),
            categories: only_lists(&self.categories),
            kinds: only_lists(&self.kinds),
            tags: only_lists(&self.tags),
            all: self.all.clone(),
            times: self.times.clone(),
            gone: self.gone.clone(),
            ids: self.ids.clone(),
            restoring: Restoring::default(),
        }
    }
}
