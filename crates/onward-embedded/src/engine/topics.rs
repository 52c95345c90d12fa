//! Topics and subscriptions: taking messages over, waking those who wait, reading what is kept.

use super::{Bodies, Core, Inner, Matches, core::signal_of};
use crate::{
    AppendError, InletId, Store, TopicId,
    plan::{self, Draft, Drawing},
};
use hashbrown::HashMap;
use onward_core::{ErrorKind, Hint, Inlet, LeaseRequest, Result};

/// Messages of a topic that are taken over before somebody looks for one of them.
const LOOK_AHEAD: u64 = 10_000;
/// Most holds of the lock for that.
const LOOKS_MAX: usize = 128;
/// Most steps of taking over under one hold of the lock.
const STEPS_MAX: usize = 8;

/// Which subscriptions somebody waits at, by topic: publishing wakes these and looks at no others.
#[derive(Debug, Default)]
pub(super) struct Awaited {
    by_topic: HashMap<TopicId, HashMap<InletId, u32>>,
}

impl Awaited {
    fn add(&mut self, topic: TopicId, inlet: InletId) {
        *self.by_topic.entry(topic).or_default().entry(inlet).or_default() += 1;
    }

    fn remove(&mut self, topic: TopicId, inlet: InletId) {
        let Some(inlets) = self.by_topic.get_mut(&topic) else { return };
        if let Some(count) = inlets.get_mut(&inlet) {
            *count -= 1;
            if *count == 0 {
                inlets.remove(&inlet);
            }
        }
        if inlets.is_empty() {
            self.by_topic.remove(&topic);
        }
    }
}

/// Says that somebody waits at subscriptions, until it is dropped. Never dropped under the engine's lock.
pub(super) struct Waiter<'a, S: Store> {
    core: &'a Core<S>,
    at: Vec<(TopicId, InletId)>,
}

impl<S: Store> Drop for Waiter<'_, S> {
    fn drop(&mut self) {
        if !self.at.is_empty() {
            let mut inner = self.core.inner.lock();
            self.at.iter().for_each(|(topic, inlet)| inner.awaited.remove(*topic, *inlet));
        }
    }
}

/// What came of taking messages over.
pub(super) enum Drawn {
    /// Nothing was, or could be, taken.
    Nothing,
    /// Something was.
    Something,
    /// Bodies at these positions must be read first, without the lock.
    NeedsBodies(Vec<u64>),
}

impl<S: Store> Core<S> {
    /// Says that a request waits at its subscriptions, before it looks.
    pub(super) fn waiter(&self, request: &LeaseRequest) -> Waiter<'_, S> {
        let is_subscription = |inlet: &Inlet| matches!(inlet, Inlet::Subscription { .. });
        let mut at = Vec::new();
        if !request.wait.is_zero() && request.inlets.iter().any(|w| is_subscription(&w.inlet)) {
            let mut inner = self.inner.lock();
            let Inner { state, awaited, signals, end, .. } = &mut *inner;
            for queue in request.inlets.iter().filter_map(|weighted| state.find(&weighted.inlet)) {
                let (Some(reader), Some(topic)) = (&queue.reader, state.topic_of(queue)) else { continue };
                awaited.add(reader.topic, queue.id);
                at.push((reader.topic, queue.id));
                if reader.unreached(topic) > 0 {
                    // Published before this request was listed, and perhaps not durable when it looks.
                    let signal = signal_of(signals, queue.id.0 as usize, &queue.name, &self.hints);
                    self.waits.signal_after(*end, &signal, 1);
                }
            }
        }
        Waiter { core: self, at }
    }

    /// Wakes those who wait at subscriptions of topics that got messages.
    pub(super) fn fire_published(&self, inner: &mut Inner) {
        for (topic, count) in inner.state.take_published() {
            let Inner { state, awaited, signals, end, .. } = &mut *inner;
            if let Some(inlets) = awaited.by_topic.get(&topic) {
                for queue in inlets.keys().filter_map(|inlet| state.queue(*inlet)) {
                    let signal = signal_of(signals, queue.id.0 as usize, &queue.name, &self.hints);
                    self.waits.signal_after(*end, &signal, count);
                }
            }
            let has_readers = state.topic(topic).is_some_and(|topic| topic.readers_count() > 0);
            if has_readers && self.hints.receiver_count() > 0 {
                // One hint for all of them; nobody listening any more is no failure.
                let _ = self.hints.send(Hint::Somewhere);
            }
        }
    }

    /// Takes messages over for the subscriptions of a request, so that as many can be handed out as it asks for.
    pub(super) fn draw_for(
        &self,
        inner: &mut Inner,
        request: &LeaseRequest,
        more: bool,
        bodies: &Bodies,
    ) -> Result<Drawn, AppendError> {
        let mut drawn = Drawn::Nothing;
        for weighted in &request.inlets {
            let Some(queue) = inner.state.find(&weighted.inlet) else { continue };
            if !plan::may_draw_more(queue) {
                continue;
            }
            let ready = if more { queue.ready.len() as u64 } else { 0 };
            match self.draw(inner, queue.id, ready + u64::from(request.count_max), bodies)? {
                Drawn::Nothing => {}
                Drawn::Something => drawn = Drawn::Something,
                needs => return Ok(needs),
            }
        }
        Ok(drawn)
    }

    /// Takes messages over into one subscription until `want` can be handed out, a few steps at a time.
    fn draw(
        &self,
        inner: &mut Inner,
        inlet: InletId,
        want: u64,
        bodies: &Bodies,
    ) -> Result<Drawn, AppendError> {
        let mut drawn = Drawn::Nothing;
        for _ in 0..STEPS_MAX {
            let (mut random, matches) = (|| self.env.random(), Matches::new());
            let ctx = self.context(&mut random, None, bodies, &matches);
            let mut draft = Draft::new();
            match plan::draw(&inner.state, &mut draft, inlet, want, &ctx) {
                Drawing::Nothing => return Ok(drawn),
                Drawing::NeedsBodies(positions) => return Ok(Drawn::NeedsBodies(positions)),
                Drawing::Drafted => {
                    let now = ctx.now;
                    self.append(inner, &draft, now)?;
                    drawn = Drawn::Something;
                }
            }
        }
        Ok(drawn)
    }

    /// Reads bodies for planning, without the lock. What was moved meanwhile is asked for again at its new place.
    pub(super) fn read_for_drawing(&self, positions: &[u64], bodies: &mut Bodies) -> Result<()> {
        bodies.clear();
        for (position, stored) in self.each_body(positions) {
            match stored {
                Ok(stored) => drop(bodies.insert(position, stored)),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Before somebody looks at, or changes, messages of a subscription by what they are: takes what comes next over.
    /// A store that refuses shows what was taken before.
    pub(super) fn look_ahead(&self, inlet: &Inlet) -> Result<()> {
        if !matches!(inlet, Inlet::Subscription { .. }) {
            return Ok(());
        }
        let mut bodies = Bodies::new();
        for _ in 0..LOOKS_MAX {
            let positions = {
                let mut inner = self.inner.lock();
                let Some(queue) = inner.state.find(inlet) else { return Ok(()) };
                let id = queue.id;
                match self.draw(&mut inner, id, LOOK_AHEAD, &bodies) {
                    Ok(Drawn::NeedsBodies(positions)) => positions,
                    Ok(Drawn::Something) => continue,
                    Ok(Drawn::Nothing) | Err(_) => return Ok(()),
                }
            };
            self.read_for_drawing(&positions, &mut bodies)?;
        }
        Ok(())
    }
}
