//! Streams in a snapshot: a head each, and its places in parts behind it.

use super::{
    places::{Part, Places},
    streams::{Stream, Streams},
    streams_ids::Found,
};
use bytes::Bytes;
use onward_core::StreamName;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Entries of one piece of remembered ids or of truncated events.
const ENTRIES: usize = 4096;

/// One piece of what is known of streams. The parts of a stream or list follow its head.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum StreamPiece {
    /// A stream.
    Stream {
        /// Its name.
        name: StreamName,
        /// The first revision that is kept.
        first: u64,
        /// The revision of the next event.
        next: u64,
        /// The revision of the first place.
        base: u64,
    },
    /// Events by a word.
    List {
        /// What the word is: see [`ListOf`].
        of: ListOf,
        /// The word; empty where there is only one list.
        word: Arc<str>,
    },
    /// Some places of the stream or list before it.
    Part {
        /// The first one.
        first: u64,
        /// The last one.
        last: u64,
        /// How many.
        count: u32,
        /// The differences between them.
        deltas: Bytes,
    },
    /// Ids of events appended lately.
    Ids {
        /// Of the older generation.
        old: bool,
        /// Marks, and where their events stand.
        entries: Vec<(u64, Found)>,
    },
    /// Truncated events that still stand in the lists.
    Gone(Vec<u64>),
}

/// What the word of a list is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ListOf {
    /// A category with its namespace.
    Category,
    /// A type.
    Kind,
    /// A tag.
    Tag,
    /// Every event.
    All,
    /// The times of every event.
    Times,
}

fn parts(places: &Places, each: &mut dyn FnMut(StreamPiece)) {
    for part in places.parts() {
        let Part { first, last, count, deltas } = part;
        each(StreamPiece::Part { first, last, count, deltas: Bytes::copy_from_slice(deltas) });
    }
}

impl Streams {
    /// Calls `each` with every piece, in an order that [`Streams::restore`] takes.
    pub(crate) fn pieces(&self, each: &mut dyn FnMut(StreamPiece)) {
        for stream in self.streams.iter() {
            let Stream { name, first, next, base, places, .. } = stream;
            each(StreamPiece::Stream { name: name.clone(), first: *first, next: *next, base: *base });
            parts(places, each);
        }
        let lists =
            [(ListOf::Category, &self.categories), (ListOf::Kind, &self.kinds), (ListOf::Tag, &self.tags)];
        for (of, lists) in lists {
            for list in lists.lists.iter() {
                each(StreamPiece::List { of, word: list.word.clone() });
                parts(&list.places, each);
            }
        }
        for (of, places) in [(ListOf::All, &self.all), (ListOf::Times, &self.times)] {
            if places.len() > 0 {
                each(StreamPiece::List { of, word: "".into() });
                parts(places, each);
            }
        }
        for old in [true, false] {
            for entries in self.ids.entries(old).chunks(ENTRIES) {
                each(StreamPiece::Ids { old, entries: entries.to_vec() });
            }
        }
        let mut gone: Vec<u64> = self.gone.iter().copied().collect();
        gone.sort_unstable();
        gone.chunks(ENTRIES).for_each(|places| each(StreamPiece::Gone(places.to_vec())));
    }

    /// Takes one piece.
    pub(crate) fn restore(&mut self, piece: StreamPiece) {
        match piece {
            StreamPiece::Stream { name, first, next, base } => {
                let number = self.next_stream();
                self.named(number, &name);
                if let Some(restored) = self.streams.get_mut(number.0) {
                    (restored.first, restored.next, restored.base) = (first, next, base);
                }
                self.restoring = Restoring::Stream(number.0);
            }
            StreamPiece::List { of, word } => {
                let number = match of {
                    ListOf::Category => self.categories.number(&word),
                    ListOf::Kind => self.kinds.number(&word),
                    ListOf::Tag => self.tags.number(&word),
                    ListOf::All | ListOf::Times => 0,
                };
                self.restoring = Restoring::List(of, number);
            }
            StreamPiece::Part { first, last: end, count, deltas } => {
                let part = Part { first, last: end, count, deltas: &deltas };
                if let Some(places) = self.restored_places() {
                    places.push_part(part);
                }
            }
            StreamPiece::Ids { old, entries } => self.ids.restore(old, entries),
            StreamPiece::Gone(places) => Arc::make_mut(&mut self.gone).extend(places),
        }
    }

    /// The places that parts are for.
    fn restored_places(&mut self) -> Option<&mut Places> {
        let (of, number) = match self.restoring {
            Restoring::Nothing => return None,
            Restoring::Stream(number) => {
                return self.streams.get_mut(number).map(|stream| &mut stream.places);
            }
            Restoring::List(of, number) => (of, number),
        };
        let lists = match of {
            ListOf::Category => &mut self.categories,
            ListOf::Kind => &mut self.kinds,
            ListOf::Tag => &mut self.tags,
            ListOf::All => return Some(&mut self.all),
            ListOf::Times => return Some(&mut self.times),
        };
        lists.lists.get_mut(number).map(|list| &mut list.places)
    }
}

/// What the parts of a snapshot that is being read belong to.
#[derive(Debug, Clone, Copy, Default)]
pub(super) enum Restoring {
    #[default]
    Nothing,
    Stream(u32),
    List(ListOf, u32),
}
