//! Delayed messages become ready without a look at those that are not due.

use super::State;
use crate::{Fact, InletId, Marks};
use onward_core::{Inlet, Message, Timestamp};
use std::{sync::Arc, time::Duration};

const INLET: InletId = InletId(0);
const COUNT: u64 = 1_000_000;

fn second(number: u64) -> Timestamp {
    Timestamp::from_micros(0).plus(Duration::from_secs(number))
}

/// So many delayed messages, one due each second, in an order without order.
fn delayed() -> State {
    let mut state = State::new();
    let name = Inlet::queue("work").unwrap();
    state.apply(&Fact::Declared { inlet: INLET, name, config: Box::default() }, 1, second(0));
    for n in 0..COUNT {
        let due = second(n * 7919 % COUNT + 1);
        let message = Arc::new(Message::builder("a.b").due(due).build(&crate::test_env::FixedEnv).unwrap());
        let marks = Marks { id: n, dedup: n, fingerprint: n };
        state.apply(&Fact::Enqueued { inlet: INLET, message, marks, skew_us: 0 }, n + 2, second(0));
    }
    state
}

#[test]
fn of_a_million_delayed_messages_only_those_that_are_due_are_looked_at() {
    let mut state = delayed();
    let mut promoted = 0;
    for now in [0, 1, 2, 2, 50, 10_000, COUNT - 1, COUNT, COUNT + 1] {
        let queue = state.queue_mut(INLET).unwrap();
        let due = now.min(COUNT) - promoted;
        let looked_at = queue.promote(second(now), COUNT + 2) as u64;
        promoted += due;
        let one_more = u64::from(promoted < COUNT);
        assert_eq!(looked_at, due + one_more, "at second {now}");
        let waiting = state.queue(INLET).unwrap().ready.len() as u64;
        assert_eq!(waiting, promoted, "at second {now}");
        // When the clock is to look again is told without a look at the others too.
        let next = crate::plan::next_of(state.queue(INLET).unwrap());
        assert_eq!(next, (promoted < COUNT).then(|| second(promoted + 1)));
    }
}
