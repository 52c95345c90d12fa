//! Which events a read is about: their places, in order, without the events.

use super::{
    places::{Cursor, Places},
    streams::{Stream, Streams, category_word, time_number},
};
use onward_core::{
    Direction, Error, EventQuery, EventRead, EventScope, Position, ReadFrom, Result, Timestamp,
};
use std::{collections::BinaryHeap, ops::Range};

/// Places of events, in the order of the read.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Selected {
    pub(crate) places: Vec<u64>,
    /// More of them follow.
    pub(crate) more: bool,
    /// Where new events will begin, of a read from behind the newest.
    pub(crate) behind: Option<ReadFrom>,
    /// The newest event that may be shown.
    pub(crate) head: Option<Position>,
}

/// Goes over the places that a query is about, in either direction.
enum Walk<'a> {
    Nothing,
    One(Cursor<'a>),
    /// What stands in all of them.
    Every(Vec<Walk<'a>>),
    /// What stands in any of them.
    Any(Vec<Walk<'a>>),
}

impl<'a> Walk<'a> {
    fn of(places: Option<&'a Places>) -> Self {
        places.map_or(Self::Nothing, |places| Self::One(Cursor::new(places)))
    }

    fn at_or_after(&mut self, place: u64) -> Option<u64> {
        match self {
            Self::Nothing => None,
            Self::One(cursor) => cursor.at_or_after(place),
            Self::Any(walks) => walks.iter_mut().filter_map(|walk| walk.at_or_after(place)).min(),
            Self::Every(walks) => {
                let mut at = place;
                loop {
                    let mut furthest = at;
                    for walk in walks.iter_mut() {
                        furthest = furthest.max(walk.at_or_after(furthest)?);
                    }
                    if furthest == at {
                        return Some(at);
                    }
                    at = furthest;
                }
            }
        }
    }

    fn at_or_before(&mut self, place: u64) -> Option<u64> {
        match self {
            Self::Nothing => None,
            Self::One(cursor) => cursor.at_or_before(place),
            Self::Any(walks) => walks.iter_mut().filter_map(|walk| walk.at_or_before(place)).max(),
            Self::Every(walks) => {
                let mut at = place;
                loop {
                    let mut furthest = at;
                    for walk in walks.iter_mut() {
                        furthest = furthest.min(walk.at_or_before(furthest)?);
                    }
                    if furthest == at {
                        return Some(at);
                    }
                    at = furthest;
                }
            }
        }
    }
}

impl Streams {
    /// The first event behind `after` that matches a query.
    pub(crate) fn first_match(&self, query: &EventQuery, after: Option<Position>) -> Option<u64> {
        let mut walk = self.query(query);
        let mut from = after.map_or(0, |after| after.0.saturating_add(1));
        loop {
            let place = walk.at_or_after(from)?;
            if !self.gone.contains(&place) {
                return Some(place);
            }
            from = place + 1;
        }
    }

    /// Calls `each` with the place of every event that stands in this stretch of the log.
    pub(crate) fn each_in(&self, positions: Range<u64>, each: &mut dyn FnMut(u64)) {
        let mut cursor = Cursor::new(&self.all);
        let mut from = positions.start;
        while let Some(place) = cursor.at_or_after(from).filter(|place| *place < positions.end) {
            if !self.gone.contains(&place) {
                each(place);
            }
            from = place + 1;
        }
    }

    /// The places that a read is about, among those before `visible`.
    ///
    /// # Errors
    /// `Invalid` for a revision where no stream is read.
    pub(crate) fn select(&self, read: &EventRead, visible: u64) -> Result<Selected> {
        let newest = Cursor::new(&self.all).at_or_before(visible.saturating_sub(1));
        let head = newest.map(Position);
        // No event stands at 0, so that is how far there are none.
        let by_then = read.as_of.map_or(u64::MAX, |time| self.last_by(time).unwrap_or(0));
        let most = newest.unwrap_or(0).min(by_then);
        if let EventScope::Heads { prefix } = &read.scope {
            return Ok(Selected { head, ..self.heads(read, prefix, most) });
        }
        let (mut walk, stream) = match &read.scope {
            EventScope::Stream(name) => {
                let found = self.find(name).map(|(_, stream)| stream);
                (Walk::of(found.map(|stream| &stream.places)), found)
            }
            EventScope::Category { namespace, category } => {
                (Walk::of(self.categories.places(&category_word(namespace, category))), None)
            }
            EventScope::Query(query) => (self.query(query), None),
            EventScope::All => (Walk::of(Some(&self.all)), None),
            other => return Err(Error::internal(format!("{other:?} is not read from streams"))),
        };
        let least = stream.map_or(0, |stream| stream.place(stream.first).unwrap_or(u64::MAX));
        let mut selected = Selected { head, ..Selected::default() };
        match self.start(read, stream, least, most)? {
            Start::At(start) => self.collect(&mut walk, read, start, (least, most), &mut selected),
            Start::Nowhere => {}
            Start::Behind(from) => selected.behind = Some(from),
        }
        Ok(selected)
    }

    fn collect(
        &self,
        walk: &mut Walk<'_>,
        read: &EventRead,
        start: u64,
        (least, most): (u64, u64),
        selected: &mut Selected,
    ) {
        let forward = read.direction == Direction::Forward;
        let mut at = start;
        loop {
            let found = if forward {
                walk.at_or_after(at.max(least)).filter(|place| *place <= most)
            } else {
                walk.at_or_before(at.min(most)).filter(|place| *place >= least)
            };
            let Some(place) = found else { return };
            if !self.gone.contains(&place) {
                if selected.places.len() == read.limit {
                    selected.more = true;
                    return;
                }
                selected.places.push(place);
            }
            let next = if forward { place.checked_add(1) } else { place.checked_sub(1) };
            let Some(next) = next else { return };
            at = next;
        }
    }

    fn start(&self, read: &EventRead, stream: Option<&Stream>, least: u64, most: u64) -> Result<Start> {
        let forward = read.direction == Direction::Forward;
        let somewhere = |place: Option<u64>| place.map_or(Start::Nowhere, Start::At);
        Ok(match read.from {
            ReadFrom::Start => Start::At(least),
            ReadFrom::End if forward => Start::Behind(match (&read.scope, stream) {
                (EventScope::Stream(_), stream) => ReadFrom::Revision(stream.map_or(0, |stream| stream.next)),
                _ => ReadFrom::Position(Position(most + 1)),
            }),
            ReadFrom::End => Start::At(most),
            ReadFrom::Position(position) => Start::At(position.0),
            ReadFrom::Time(time) if forward => somewhere(self.first_since(time)),
            ReadFrom::Time(time) => somewhere(self.last_by(time)),
            ReadFrom::Revision(revision) => {
                if !matches!(read.scope, EventScope::Stream(_)) {
                    return Err(Error::invalid("a revision is a place in one stream")
                        .at("`from`")
                        .mend("read a stream, or begin at a position or time"));
                }
                let Some(stream) = stream.filter(|stream| stream.next > 0) else { return Ok(Start::Nowhere) };
                let kept = if forward { revision.max(stream.first) } else { revision.min(stream.next - 1) };
                somewhere(stream.place(kept))
            }
        })
    }

    /// The newest events of streams, in the order of their places.
    fn heads(&self, read: &EventRead, prefix: &str, most: u64) -> Selected {
        let forward = read.direction == Direction::Forward;
        let (from, to) = match (read.from, forward) {
            (ReadFrom::Position(position), true) => (position.0, most),
            (ReadFrom::Position(position), false) => (0, most.min(position.0)),
            (ReadFrom::Time(time), true) => (self.first_since(time).unwrap_or(u64::MAX), most),
            (ReadFrom::Time(time), false) => (0, self.last_by(time).unwrap_or(0).min(most)),
            _ => (0, most),
        };
        let named = |stream: &&Stream| prefix.is_empty() || stream.name.to_string().starts_with(prefix);
        let newest = |stream: &Stream| {
            let place = Cursor::new(&stream.places).at_or_before(most)?;
            (stream.place(stream.first)? <= place).then_some(place)
        };
        let heads = self.streams.iter().filter(named).filter_map(newest);
        let mut best = BinaryHeap::new();
        for place in heads.filter(|place| (from..=to).contains(place)) {
            // The heap gives the one to leave out.
            best.push(if forward { place } else { !place });
            if best.len() > read.limit + 1 {
                best.pop();
            }
        }
        let mut places: Vec<u64> = best.into_sorted_vec();
        if !forward {
            places.iter_mut().for_each(|place| *place = !*place);
        }
        let more = places.len() > read.limit;
        places.truncate(read.limit);
        Selected { places, more, ..Selected::default() }
    }

    fn query<'a>(&'a self, query: &EventQuery) -> Walk<'a> {
        let tags = query.tags.iter().map(|tag| Walk::of(self.tags.places(tag.as_str())));
        let kinds = query.types.iter().map(|kind| Walk::of(self.kinds.places(kind)));
        let mut every: Vec<Walk<'a>> = tags.collect();
        if !query.types.is_empty() {
            every.push(Walk::Any(kinds.collect()));
        }
        if every.is_empty() { Walk::of(Some(&self.all)) } else { Walk::Every(every) }
    }

    /// The first event that was recorded at or after a time.
    fn first_since(&self, time: Timestamp) -> Option<u64> {
        self.all.get(self.times.rank(time_number(time), false))
    }

    /// The last event that was recorded at or before a time.
    fn last_by(&self, time: Timestamp) -> Option<u64> {
        self.all.get(self.times.rank(time_number(time), true).checked_sub(1)?)
    }
}

/// Where a read begins.
enum Start {
    At(u64),
    Nowhere,
    Behind(ReadFrom),
}
