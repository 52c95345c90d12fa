//! Topics in snapshots: their pieces, and topics made of them again.

use super::{Piece, Queue, Reader, Remembered, Side, State, Topic, shelf::Shelved, spans::Spans};
use crate::TopicId;
use onward_core::{Filter, Name, Timestamp, TopicConfig};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A topic without its messages, which follow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TopicImage {
    /// Its number.
    pub id: TopicId,
    /// Its name.
    pub name: Name,
    /// Its rules.
    pub config: TopicConfig,
    /// The number of its oldest kept message.
    pub floor: u64,
}

/// A kept message without its body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ShelvedImage {
    /// The position of the fact that published it.
    pub seq: u64,
    /// The keyed hash of its id.
    pub id_hash: u64,
    /// When it was published.
    pub accepted_at: Timestamp,
    /// Its size in bytes.
    pub size: u32,
    /// Its type.
    pub kind: Arc<str>,
    /// Its source.
    pub source: Arc<str>,
    /// Its priority.
    pub priority: u8,
    /// Where its body stands, when it was copied forward.
    pub body: Option<u64>,
    /// What only some have.
    pub side: Option<Box<Side>>,
}

/// A subscription's place in its topic.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReaderImage {
    /// Its topic.
    pub topic: TopicId,
    /// Which messages it takes.
    pub filter: Filter,
    /// The number of the next message that it reaches.
    pub cursor: u64,
    /// Passed over before, and to come again.
    pub refill: Vec<(u64, u64)>,
    /// Passed over without being processed.
    pub gaps: Vec<(u64, u64)>,
    /// How often it was moved to process again.
    pub replay: u32,
}

impl Topic {
    pub(super) fn pieces(&self, time: Timestamp, each: &mut dyn FnMut(Piece)) {
        let floor = self.shelf.floor();
        let config = (*self.config).clone();
        each(Piece::Topic(Box::new(TopicImage { id: self.id, name: self.name.clone(), config, floor })));
        let kept = (floor..self.shelf.head()).filter_map(|number| self.shelf.get(number));
        kept.for_each(|entry| each(Piece::Shelved(Box::new(self.image(entry)))));
        let window = self.dedup_window();
        let live = |(_, what): &(u64, &Remembered)| time.since(what.at) < window;
        let mut remembered: Vec<_> =
            self.finished.each().filter(live).map(|(dedup, what)| (dedup, what.clone())).collect();
        remembered.sort_by_key(|(dedup, what)| (what.at, *dedup));
        for (dedup, what) in remembered {
            each(Piece::TopicRemembered { dedup, what });
        }
    }

    fn image(&self, entry: &Shelved) -> ShelvedImage {
        ShelvedImage {
            seq: entry.seq,
            id_hash: entry.id_hash,
            accepted_at: entry.accepted_at,
            size: entry.size,
            kind: self.kinds.name(entry.kind).clone(),
            source: self.sources.name(entry.source).clone(),
            priority: entry.priority,
            body: self.moved.get(&entry.seq).copied(),
            side: self.side(entry).map(|side| Box::new((**side).clone())),
        }
    }

    fn take_back(&mut self, image: ShelvedImage) {
        if let Some(body) = image.body {
            self.moved.insert(image.seq, body);
        }
        let entry = Shelved {
            seq: image.seq,
            id_hash: image.id_hash,
            accepted_at: image.accepted_at,
            size: image.size,
            kind: self.kinds.enter(&image.kind),
            source: self.sources.enter(&image.source),
            priority: image.priority,
            has_side: image.side.is_some(),
        };
        self.put(entry, image.side.map(Arc::from));
    }
}

impl Queue {
    pub(super) fn reader_image(&self) -> Option<ReaderImage> {
        self.reader.as_ref().map(|reader| ReaderImage {
            topic: reader.topic,
            filter: reader.filter.clone(),
            cursor: reader.cursor,
            refill: reader.refill.spans(),
            gaps: reader.gaps.spans(),
            replay: reader.replay,
        })
    }
}

impl State {
    pub(super) fn restore_topic(&mut self, image: TopicImage) {
        let mut topic = Topic::new(image.id, image.name, Box::new(image.config));
        topic.shelf = super::shelf::Shelf::beginning_at(image.floor);
        self.put_topic(topic);
    }

    pub(super) fn restore_shelved(&mut self, image: ShelvedImage) {
        if let Some(topic) = self.last_topic() {
            topic.take_back(image);
        }
    }

    pub(super) fn restore_topic_remembered(&mut self, dedup: u64, what: Remembered) {
        if let Some(topic) = self.last_topic() {
            let window = topic.dedup_window();
            topic.finished.insert(dedup, what, window, topic.config.dedup_entries_max);
        }
    }

    /// The place of a subscription that is being brought back.
    pub(super) fn restore_reader(
        &mut self,
        inlet: crate::InletId,
        image: ReaderImage,
    ) -> Option<Box<Reader>> {
        let mut reader = Reader::new(image.topic, image.filter, image.cursor);
        (reader.refill, reader.gaps) = (Spans::of(&image.refill), Spans::of(&image.gaps));
        reader.replay = image.replay;
        let topic = self.topic_mut(reader.topic)?;
        topic.set_low(inlet, reader.is_filtered(), None, Some(reader.low()));
        Some(Box::new(reader))
    }

    /// A message that a subscription has in hand is being brought back.
    pub(super) fn restore_hold(&mut self, topic: TopicId, seq: u64, body: Option<u64>) {
        if let Some(topic) = self.topic_mut(topic) {
            topic.hold(seq);
            if let Some(body) = body {
                topic.moved.insert(seq, body);
            }
        }
    }
}
