//! Judges subscriptions: each replay epoch of one as a queue is judged, and what a seek brings, ends and passes over.

use std::collections::{BTreeSet, HashMap};

use onward_core::{Inlet, LeaseToken, MessageId, Name, Position};

use super::lives::Lives;
use super::{Answer, Delivered, Event, FaultKind, History, How, Report, Sent, Sought, What, judge};

/// The history without what is about messages of subscriptions.
pub(super) fn without(history: &History) -> History {
    let of_queue = |event: &&Event| inlet_of(&event.what).is_none_or(is_queue);
    let counts = |event: &&Event| matches!(event.what, What::Count { .. });
    let events = history.events.iter().filter(|event| of_queue(event) || counts(event)).cloned().collect();
    let left = history.left.as_ref().map(|left| {
        left.iter().filter(|((inlet, _), _)| is_queue(inlet)).map(|(at, left)| (at.clone(), *left)).collect()
    });
    History { contract: history.contract.clone(), events, left }
}

fn is_queue(inlet: &Inlet) -> bool {
    matches!(inlet, Inlet::Queue(_))
}

fn inlet_of(what: &What) -> Option<&Inlet> {
    match what {
        What::Deliver(delivered) => Some(&delivered.token.inlet),
        What::Settle(settled) => Some(&settled.token.inlet),
        What::Extend { token, .. } => Some(&token.inlet),
        What::Cancel { inlet, .. } | What::Edit { inlet, .. } | What::Count { inlet, .. } => Some(inlet),
        What::Redrive { inlet, .. } | What::Purge { inlet, .. } => Some(inlet),
        What::Seek(sought) => Some(&sought.inlet),
        _ => None,
    }
}

pub(super) fn check(history: &History, report: &mut Report) {
    let all = history.events.iter().flat_map(|event| match &event.what {
        What::Publish { takers, .. } => takers.clone(),
        what => inlet_of(what).cloned().into_iter().collect(),
    });
    let all: BTreeSet<Inlet> = all.filter(|inlet| !is_queue(inlet)).collect();
    for inlet in &all {
        let Inlet::Subscription { topic, .. } = inlet else { continue };
        let subscription = Subscription::of(history, inlet, topic);
        subscription.epochs(report);
        subscription.over_seeks(report);
        subscription.at_the_end(report);
    }
}

/// What happened to one subscription.
struct Subscription<'a> {
    history: &'a History,
    inlet: &'a Inlet,
    topic: &'a Name,
    sends: Vec<(&'a Event, &'a Sent)>,
    deliveries: Vec<(&'a Event, &'a Delivered)>,
    /// Moves that happened, or may have.
    seeks: Vec<(&'a Event, &'a Sought)>,
    /// The epoch of each lease.
    epochs: HashMap<&'a LeaseToken, u32>,
}

impl<'a> Subscription<'a> {
    fn of(history: &'a History, inlet: &'a Inlet, topic: &'a Name) -> Self {
        let (sends, deliveries, seeks) = (Vec::new(), Vec::new(), Vec::new());
        let mut all =
            Subscription { history, inlet, topic, sends, deliveries, seeks, epochs: HashMap::new() };
        for event in history.events.iter().filter(|event| event.maybe()) {
            match &event.what {
                What::Publish { sent, takers, .. } if takers.contains(inlet) => all.sends.push((event, sent)),
                What::Deliver(delivered) if delivered.token.inlet == *inlet => {
                    all.deliveries.push((event, delivered));
                    all.epochs.insert(&delivered.token, delivered.replay);
                }
                What::Seek(sought) if sought.inlet == *inlet => all.seeks.push((event, sought)),
                _ => {}
            }
        }
        all
    }

    /// Within an epoch a subscription is a queue into which everything was sent that its topic took.
    fn epochs(&self, report: &mut Report) {
        let epochs: BTreeSet<u32> = self.epochs.values().copied().collect();
        for epoch in epochs {
            let events = self.history.events.iter().flat_map(|event| self.seen_in(epoch, event)).collect();
            let history = History { contract: self.history.contract.clone(), events, left: None };
            let lives = Lives::of(&history);
            report.tally.redeliveries += lives.tally().redeliveries;
            judge(&lives, report);
        }
    }

    /// What an event is in the life of one epoch.
    fn seen_in(&self, epoch: u32, event: &Event) -> Vec<Event> {
        let as_it_is = || vec![event.clone()];
        let with = |what| Event { what, ..event.clone() };
        match &event.what {
            What::Publish { sent, takers, .. } if takers.contains(self.inlet) => {
                vec![with(What::Enqueue(Sent { inlet: self.inlet.clone(), ..sent.clone() }))]
            }
            // A move may pass over whatever waits, and may bring back whatever was passed over.
            What::Seek(sought) if sought.inlet == *self.inlet => {
                let (inlet, ids) = (self.inlet.clone(), Vec::new());
                let gone = What::Purge { inlet: inlet.clone(), ids: ids.clone() };
                vec![with(gone), with(What::Redrive { inlet, ids })]
            }
            What::Deliver(Delivered { token, .. }) | What::Extend { token, .. } => {
                if self.epochs.get(token) == Some(&epoch) { as_it_is() } else { Vec::new() }
            }
            What::Settle(settled) if self.epochs.get(&settled.token) == Some(&epoch) => as_it_is(),
            What::Redrive { inlet, .. } | What::Purge { inlet, .. } if inlet == self.inlet => as_it_is(),
            What::Lease { .. } | What::EndProcess { .. } | What::Restart(_) => as_it_is(),
            _ => Vec::new(),
        }
    }

    /// The place of a message, where it is known for sure.
    fn place(&self, id: &MessageId) -> Option<Position> {
        let of = |(event, sent): &&(&Event, &Sent)| sent.id == *id && event.answer == Answer::Ok;
        self.sends.iter().find(of).and_then(|(_, sent)| sent.position)
    }

    fn over_seeks(&self, report: &mut Report) {
        for (event, delivered) in &self.deliveries {
            let begun = self.seeks.iter().filter(|(seek, sought)| sought.again && seek.called < event.ended);
            if delivered.replay as usize > begun.count() {
                let what =
                    format!("{}: handed out in epoch {}, which nobody began", self.inlet, delivered.replay);
                report.fault(FaultKind::Phantom, &[&delivered.token.id], what);
            }
        }
        let sure = self.seeks.iter().filter(|(event, sought)| sought.again && event.answer == Answer::Ok);
        for (seek, sought) in sure {
            let Some(next) = sought.answer.and_then(|answer| answer.next) else { continue };
            self.stale_behind(seek, next, report);
        }
    }

    /// Starting over ends every lease from the new place on.
    fn stale_behind(&self, seek: &Event, next: Position, report: &mut Report) {
        for event in
            self.history.events.iter().filter(|event| event.answer == Answer::Ok && event.called > seek.ended)
        {
            let What::Settle(settled) = &event.what else { continue };
            let received = self.deliveries.iter().find(|(_, held)| held.token == settled.token);
            let Some((received, held)) = received.filter(|_| !settled.already) else { continue };
            let behind = self.place(&held.token.id).is_some_and(|place| place >= next);
            // A dead letter that was moved back keeps its epoch.
            if received.ended < seek.called && behind && !self.moved_back(seek) {
                let what = format!("a settlement was accepted at {:?} over a start anew", event.called.at);
                report.fault(FaultKind::StaleSettle, &[&held.token.id], what);
            }
        }
    }

    fn moved_back(&self, since: &Event) -> bool {
        self.bulk_since(Some(since), |what| matches!(what, What::Redrive { .. }))
    }

    /// Whether a bulk change of this kind may have happened behind a seek.
    fn bulk_since(&self, since: Option<&Event>, kind: impl Fn(&What) -> bool) -> bool {
        let mut events = self.history.events.iter().filter(|event| event.maybe());
        events.any(|event| {
            inlet_of(&event.what) == Some(self.inlet)
                && kind(&event.what)
                && since.is_none_or(|since| event.ended > since.called)
        })
    }

    /// Everything that the last move was to bring has been processed, or is among the dead.
    fn at_the_end(&self, report: &mut Report) {
        let Some(left) = &self.history.left else { return };
        for ((_, id), state) in left.iter().filter(|((inlet, _), _)| inlet == self.inlet) {
            if *state == super::Left::Unfinished {
                let what = format!("is unfinished in {} though everything was drained", self.inlet);
                report.fault(FaultKind::Stuck, &[id], what);
            }
        }
        let last = self.seeks.iter().max_by_key(|(event, _)| event.ended);
        // Of two that were under way at once, the one answered last need not be the one that happened last.
        let beside =
            |last: &Event| self.seeks.iter().filter(|(seek, _)| seek.ended > last.called).count() > 1;
        let known = last.is_none_or(|(event, _)| event.answer == Answer::Ok && !beside(event));
        if !known || !self.history.contract.keeping.contains(self.topic) {
            return;
        }
        let sure = self
            .sends
            .iter()
            .filter(|(event, sent)| event.answer == Answer::Ok && sent.duplicate_of.is_none());
        for (event, sent) in sure {
            let due = last.is_none_or(|(seek, sought)| {
                let next = sought.answer.and_then(|answer| answer.next);
                match (next, sent.position) {
                    (Some(next), Some(place)) => place >= next,
                    _ => event.called > seek.ended,
                }
            });
            if due && !self.finished(sent, last.copied()) {
                let what =
                    format!("was published for {} at {:?} and never processed", self.inlet, event.ended.at);
                report.fault(FaultKind::Lost, &[&sent.id], what);
            }
        }
    }

    fn finished(&self, sent: &Sent, last: Option<(&Event, &Sought)>) -> bool {
        let dead =
            self.history.left.iter().flatten().any(|((inlet, id), _)| inlet == self.inlet && *id == sent.id);
        let again = last.filter(|(_, sought)| sought.again);
        let epoch = again.and_then(|(_, sought)| sought.answer).map_or(0, |answer| answer.replay);
        let redriven = self.bulk_since(None, |what| matches!(what, What::Redrive { .. }));
        let acked = self.history.events.iter().filter(|event| event.maybe()).any(|event| match &event.what {
            What::Settle(settled) => {
                let recent = self.epochs.get(&settled.token).is_some_and(|of| *of >= epoch);
                // A dead letter stays where it is over a start anew; moved back, it keeps its epoch.
                let recent = recent || (redriven && last.is_none_or(|(seek, _)| event.ended > seek.called));
                settled.how == How::Ack && settled.token.id == sent.id && recent
            }
            _ => false,
        });
        let purged = |event: &Event| {
            matches!(&event.what, What::Purge { inlet, ids }
                if inlet == self.inlet && (ids.is_empty() || ids.contains(&sent.id)))
        };
        // What was purged as a dead letter was processed: filling gaps does not bring it again.
        let since = |event: &&Event| again.is_none_or(|(seek, _)| event.ended > seek.called);
        let purged = self.history.events.iter().filter(|event| event.maybe()).filter(since).any(purged);
        dead || acked || purged || sent.not_after.is_some()
    }
}
