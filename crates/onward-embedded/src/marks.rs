//! The keyed hashes by which messages are indexed and recognised.

use crate::Marks;
use onward_core::{Message, MessageId, StreamName};
use siphasher::sip::SipHasher13;
use std::hash::Hasher;
use xxhash_rust::xxh3::Xxh3;

/// Makes hashes with the store's own secret, so that nobody can choose ids that collide.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Marker {
    secret: [u64; 2],
}

impl Marker {
    pub(crate) fn new(secret: [u64; 2]) -> Self {
        Self { secret }
    }

    pub(crate) fn id(&self, id: &MessageId) -> u64 {
        self.hash(b'i', &[id.as_str()])
    }

    pub(crate) fn message(&self, message: &Message) -> Marks {
        let dedup = match &message.dedup_key {
            Some(key) => self.hash(b'k', &[key.as_str()]),
            None => self.hash(b's', &[&message.source, message.id.as_str()]),
        };
        Marks { id: self.id(&message.id), dedup, fingerprint: self.fingerprint(message) }
    }

    /// Of an event in its stream.
    pub(crate) fn event(&self, stream: &StreamName, id: &MessageId) -> u64 {
        self.hash(b'e', &[stream.namespace(), stream.local(), id.as_str()])
    }

    /// Of what a repeat must have the same: type, version, content type and data.
    fn fingerprint(&self, message: &Message) -> u64 {
        let mut hasher = Xxh3::with_seed(self.secret[0] ^ self.secret[1].rotate_left(17));
        hasher.update(&(message.kind.len() as u32).to_le_bytes());
        hasher.update(message.kind.as_bytes());
        hasher.update(&message.version.to_le_bytes());
        let content_type = message.data.content_type();
        hasher.update(&(content_type.len() as u32).to_le_bytes());
        hasher.update(content_type.as_bytes());
        hasher.update(message.data.as_bytes());
        hasher.digest()
    }

    fn hash(&self, domain: u8, parts: &[&str]) -> u64 {
        let mut hasher = SipHasher13::new_with_keys(self.secret[0], self.secret[1]);
        hasher.write(&[domain]);
        for part in parts {
            hasher.write(&(part.len() as u32).to_le_bytes());
            hasher.write(part.as_bytes());
        }
        hasher.finish()
    }
}
