//! A subscription of the model: the copies that it gets, and what a seek does to them.

use super::{Item, Now, Queue, topics::Published};
use onward_core::{Lag, MessageState, Position};
use std::time::Duration;

impl Queue {
    pub(super) fn take_copy(&mut self, published: &Published, replay: u32, now: Now) {
        let mut item = Item::new(published.message.clone(), published.arrival, now);
        (item.accepted_at, item.accepted, item.replay) = (published.at, published.on, replay);
        self.items.push(item);
        self.counts.accepted += 1;
        let index = self.items.len() - 1;
        if self.behind_dead(index) {
            self.set_aside(index, now);
        }
    }

    /// What waits and was never begun is passed over: counted as shed, or as purged.
    pub(super) fn pass_over(&mut self, which: &dyn Fn(&Item) -> bool, now: Now, shed: bool) {
        for item in &mut self.items {
            if item.is_here() && item.attempts == 0 && which(item) {
                item.gone(MessageState::Cancelled, now);
                item.passed_over = true;
                if shed {
                    self.counts.shed += 1;
                } else {
                    self.counts.purged += 1;
                }
            }
        }
    }

    /// Ends every lease, and forgets what was done or waits from there on; dead letters stay.
    pub(super) fn begin_again(&mut self, from: u64, now: Now) {
        if let Some(reader) = &mut self.reader {
            reader.replay += 1;
        }
        for item in &mut self.items {
            if item.held().is_some() {
                item.put_back(Duration::ZERO, now);
            }
            if item.arrival >= from && !item.is_dead() {
                if item.is_here() {
                    item.gone(MessageState::Cancelled, now);
                    self.counts.purged += 1;
                }
                item.passed_over = true;
            }
        }
    }

    pub(crate) fn lag(&self) -> Option<Lag> {
        let reader = self.reader.as_ref()?;
        let here: Vec<&Item> = self.items.iter().filter(|i| i.is_here()).collect();
        let unreached = here.iter().filter(|i| i.attempts == 0);
        let next = unreached.clone().min_by_key(|i| i.arrival);
        Some(Lag {
            messages: here.len() as u64,
            unreached: unreached.count() as u64,
            oldest: here.iter().map(|i| i.accepted_at).min(),
            next: next.map(|i| Position(i.arrival)),
            replay: reader.replay,
        })
    }
}
