//! What a run did, as one number to compare and a few lines to read.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::Random;

/// The latest notes that are kept for reading.
const NOTES_MAX: usize = 5_000;

/// Notes of a run in the order they were made; clones are the same trace.
#[derive(Clone, Default)]
pub struct Trace {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    hash: u64,
    count: u64,
    latest: VecDeque<String>,
}

impl Trace {
    /// Notes that something happened. What is noted must follow from the seed: no addresses, no real times.
    pub fn note(&self, what: impl fmt::Display) {
        let text = what.to_string();
        let mut inner = self.inner.lock();
        inner.count += 1;
        for byte in text.bytes() {
            inner.mix(u64::from(byte));
        }
        if inner.latest.len() == NOTES_MAX {
            inner.latest.pop_front();
        }
        inner.latest.push_back(text);
    }

    /// Notes a number that needs no reading.
    pub fn count(&self, number: u64) {
        self.inner.lock().mix(number);
    }

    /// A hash of everything noted so far: two runs of one seed have the same.
    pub fn hash(&self) -> u64 {
        self.inner.lock().hash
    }

    /// How many notes were made.
    pub fn notes(&self) -> u64 {
        self.inner.lock().count
    }

    /// The latest notes, one a line.
    pub fn latest(&self) -> String {
        self.matching(|_| true)
    }

    /// Those of the latest notes that `wanted` takes, one a line.
    pub fn matching(&self, wanted: impl Fn(&str) -> bool) -> String {
        let inner = self.inner.lock();
        let lines: Vec<&str> = inner.latest.iter().map(String::as_str).filter(|line| wanted(line)).collect();
        lines.join("\n")
    }
}

impl Inner {
    fn mix(&mut self, number: u64) {
        self.hash = Random::new(self.hash ^ number).number();
    }
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = self.inner.lock();
        write!(f, "Trace({:016x}, {} notes)", inner.hash, inner.count)
    }
}
