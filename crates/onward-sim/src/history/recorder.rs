//! Writing a history down while it happens.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::{Answer, Contract, Event, History, Moment, What};

/// Takes down events from many clients; clones write into the same history.
#[derive(Clone, Debug, Default)]
pub struct Recorder {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    order: u64,
    events: Vec<Event>,
}

impl Recorder {
    /// The present moment, for [`Event::called`] and [`Event::ended`]; `at` is the test's own time.
    pub fn moment(&self, at: Duration) -> Moment {
        let mut inner = self.inner.lock();
        inner.order += 1;
        Moment { at, order: inner.order }
    }

    /// Takes down an event.
    pub fn add(&self, event: Event) {
        self.inner.lock().events.push(event);
    }

    /// Takes down something that happened at once.
    pub fn note(&self, at: Duration, what: What) {
        let moment = self.moment(at);
        let (called, ended) = (moment, moment);
        self.add(Event { process: 0, called, ended, answer: Answer::Ok, commit: None, what });
    }

    /// How many events there are.
    pub fn len(&self) -> usize {
        self.inner.lock().events.len()
    }

    /// Whether nothing was taken down.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What was taken down, in the order of the calls.
    pub fn history(&self, contract: Contract) -> History {
        let mut events = self.inner.lock().events.clone();
        events.sort_by_key(|event| event.called);
        History { contract, events, left: None }
    }
}
