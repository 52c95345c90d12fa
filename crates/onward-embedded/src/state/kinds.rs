//! Message types as small numbers, counted, so that an entry needs not hold text.

use hashbrown::HashMap;
use std::sync::Arc;

/// The types of the messages that are there; one with no message left is forgotten.
#[derive(Debug, Default, Clone)]
pub(crate) struct Kinds {
    numbers: HashMap<Arc<str>, u32>,
    names: Vec<(Arc<str>, u64)>,
    free: Vec<u32>,
    /// The one that was entered last.
    latest: u32,
}

impl Kinds {
    pub(crate) fn enter(&mut self, kind: &Arc<str>) -> u32 {
        // As a rule the same text as before, of a type that is known.
        if let Some((name, count)) = self.names.get_mut(self.latest as usize)
            && *count > 0
            && Arc::ptr_eq(name, kind)
        {
            *count += 1;
            return self.latest;
        }
        self.latest = self.number_for(kind);
        self.latest
    }

    fn number_for(&mut self, kind: &Arc<str>) -> u32 {
        if let Some(&number) = self.numbers.get(kind) {
            self.names[number as usize].1 += 1;
            return number;
        }
        let number = self.free.pop().unwrap_or(self.names.len() as u32);
        if number as usize == self.names.len() {
            self.names.push((kind.clone(), 1));
        } else {
            self.names[number as usize] = (kind.clone(), 1);
        }
        self.numbers.insert(kind.clone(), number);
        number
    }

    pub(crate) fn leave(&mut self, number: u32) {
        /// Types without messages that stay known, since more of them are likely to come.
        const UNUSED_KEPT_MAX: usize = 32;
        let (name, count) = &mut self.names[number as usize];
        *count -= 1;
        if *count == 0 && self.numbers.len() > UNUSED_KEPT_MAX {
            self.numbers.remove(name);
            self.free.push(number);
        }
    }

    pub(crate) fn number(&self, kind: &str) -> Option<u32> {
        self.numbers.get(kind).copied()
    }

    pub(crate) fn name(&self, number: u32) -> &Arc<str> {
        &self.names[number as usize].0
    }
}
