//! The events of a history, sorted by the message that they are about.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use onward_core::{Inlet, LeaseToken, MessageId};

use super::{
    Answer, Contract, Delivered, Event, History, How, InletRules, Left, Moment, Restart, Sent, Settled,
    Tally, What,
};

pub(super) type Of<'a, T> = Vec<(&'a Event, &'a T)>;

/// Everything that happened to one id of one inlet.
#[derive(Debug)]
pub(super) struct Life<'a> {
    pub(super) inlet: &'a Inlet,
    pub(super) id: &'a MessageId,
    pub(super) rules: InletRules,
    pub(super) sends: Of<'a, Sent>,
    /// By the moment of receipt; a lease that was received twice stands here twice.
    pub(super) deliveries: Of<'a, Delivered>,
    pub(super) settles: Of<'a, Settled>,
    pub(super) extends: Vec<(&'a Event, &'a LeaseToken, Duration)>,
    pub(super) cancels: Vec<(&'a Event, bool)>,
    pub(super) redrives: Vec<&'a Event>,
    pub(super) purges: Vec<&'a Event>,
    pub(super) edits: Vec<u64>,
    pub(super) left: Option<Left>,
}

#[derive(Debug)]
pub(super) struct Lives<'a> {
    pub(super) contract: &'a Contract,
    pub(super) drained: bool,
    lives: BTreeMap<(&'a Inlet, &'a MessageId), Life<'a>>,
    pub(super) restarts: Vec<(&'a Event, Restart)>,
    pub(super) process_ends: Vec<(&'a Event, u32)>,
    /// Lease requests whose answer was lost.
    pub(super) lost_leases: Vec<(&'a Event, &'a [Inlet])>,
    pub(super) events: &'a [Event],
    pub(super) end: Moment,
}

impl<'a> Lives<'a> {
    pub(super) fn of(history: &'a History) -> Lives<'a> {
        let mut lives = Lives {
            contract: &history.contract,
            drained: history.left.is_some(),
            lives: BTreeMap::new(),
            restarts: Vec::new(),
            process_ends: Vec::new(),
            lost_leases: Vec::new(),
            events: &history.events,
            end: history.events.iter().map(|event| event.ended).max().unwrap_or_default(),
        };
        history.events.iter().for_each(|event| lives.take(event));
        // What is about several messages is added once all of them are known.
        history.events.iter().for_each(|event| lives.take_bulk(event));
        for ((inlet, id), left) in history.left.iter().flatten() {
            lives.life(inlet, id).left = Some(*left);
        }
        for life in lives.lives.values_mut() {
            life.deliveries.sort_by_key(|(event, _)| event.ended);
        }
        lives
    }

    fn life(&mut self, inlet: &'a Inlet, id: &'a MessageId) -> &mut Life<'a> {
        let rules = self.contract.inlets.get(inlet).cloned().unwrap_or_default();
        self.lives.entry((inlet, id)).or_insert_with(|| Life {
            inlet,
            id,
            rules,
            sends: Vec::new(),
            deliveries: Vec::new(),
            settles: Vec::new(),
            extends: Vec::new(),
            cancels: Vec::new(),
            redrives: Vec::new(),
            purges: Vec::new(),
            edits: Vec::new(),
            left: None,
        })
    }

    fn take(&mut self, event: &'a Event) {
        match &event.what {
            What::Enqueue(sent) => self.life(&sent.inlet, &sent.id).sends.push((event, sent)),
            What::Deliver(delivered) => {
                self.life(&delivered.token.inlet, &delivered.token.id).deliveries.push((event, delivered));
            }
            What::Settle(settled) => {
                self.life(&settled.token.inlet, &settled.token.id).settles.push((event, settled));
            }
            What::Extend { token, lease } => {
                self.life(&token.inlet, &token.id).extends.push((event, token, *lease));
            }
            What::Cancel { inlet, id, gone } => self.life(inlet, id).cancels.push((event, *gone)),
            What::Edit { inlet, id, content } if event.maybe() => self.life(inlet, id).edits.push(*content),
            What::Restart(restart) => self.restarts.push((event, *restart)),
            What::EndProcess { process } if event.maybe() => self.process_ends.push((event, *process)),
            What::Lease { inlets } if event.answer == Answer::Unknown => {
                self.lost_leases.push((event, inlets));
            }
            _ => {}
        }
    }

    fn take_bulk(&mut self, event: &'a Event) {
        let (inlet, ids, redrive) = match &event.what {
            What::Redrive { inlet, ids } => (inlet, ids, true),
            What::Purge { inlet, ids } => (inlet, ids, false),
            _ => return,
        };
        if !event.maybe() {
            return;
        }
        let ids: BTreeSet<&MessageId> = ids.iter().collect();
        let concerned = self.lives.values_mut().filter(|life| life.inlet == inlet);
        for life in concerned.filter(|life| ids.is_empty() || ids.contains(life.id)) {
            if redrive { life.redrives.push(event) } else { life.purges.push(event) }
        }
    }

    pub(super) fn each(&self) -> impl Iterator<Item = &Life<'a>> {
        self.lives.values()
    }

    pub(super) fn get<'s>(&'s self, inlet: &'s Inlet, id: &'s MessageId) -> Option<&'s Life<'a>> {
        let lives: &BTreeMap<(&'s Inlet, &'s MessageId), Life<'a>> = &self.lives;
        lives.get(&(inlet, id))
    }

    /// Restarts that ended after `from` and before `to`.
    pub(super) fn restarts_between(
        &self,
        from: Moment,
        to: Moment,
    ) -> impl Iterator<Item = &(&'a Event, Restart)> {
        self.restarts.iter().filter(move |(event, _)| event.ended > from && event.called < to)
    }

    pub(super) fn tally(&self) -> Tally {
        let mut tally = Tally { restarts: self.restarts.len() as u64, ..Tally::default() };
        for life in self.each() {
            tally.sends += life.sends.len() as u64;
            for (event, sent) in &life.sends {
                match event.answer {
                    Answer::Ok if sent.duplicate_of.is_some() => tally.duplicates_recognised += 1,
                    Answer::Ok => tally.accepted += 1,
                    Answer::Unknown => tally.sends_unknown += 1,
                    Answer::Refused => {}
                }
            }
            let handed_out = life.leases().len() as u64;
            tally.deliveries += handed_out;
            tally.redeliveries += handed_out.saturating_sub(1);
            for (event, _) in &life.settles {
                match event.answer {
                    Answer::Ok => tally.settled += 1,
                    Answer::Refused => tally.settles_refused += 1,
                    Answer::Unknown => {}
                }
            }
        }
        tally
    }
}

impl<'a> Life<'a> {
    /// The leases in the order of receipt, each with its first receipt.
    pub(super) fn leases(&self) -> Of<'a, Delivered> {
        let mut seen = Vec::new();
        let fresh = |(_, delivered): &&(&Event, &'a Delivered)| {
            let new = !seen.contains(&&delivered.token);
            seen.push(&delivered.token);
            new
        };
        self.deliveries.iter().filter(fresh).copied().collect()
    }

    /// When and how long a lease was last told to last, before `by`.
    pub(super) fn told(&self, token: &LeaseToken, by: Moment) -> (Moment, Duration) {
        let received = self.deliveries.iter().filter(|(_, delivered)| delivered.token == *token);
        let received = received.map(|(event, delivered)| (event.ended, delivered.lease));
        let extended =
            self.extends.iter().filter(|(event, of, _)| *of == token && event.answer == Answer::Ok);
        let extended = extended.map(|(event, _, lease)| (event.ended, *lease));
        let told = received.chain(extended).filter(|(at, _)| *at <= by);
        told.max_by_key(|(at, _)| *at).unwrap_or_default()
    }

    /// When a lease ends by its holder's clock.
    pub(super) fn until(&self, token: &LeaseToken, by: Moment) -> Duration {
        let (at, lease) = self.told(token, by);
        at.at + lease
    }

    /// Settlements of a lease that happened, or may have.
    pub(super) fn settled(&self, token: &LeaseToken) -> impl Iterator<Item = &(&'a Event, &'a Settled)> {
        self.settles.iter().filter(move |(event, settled)| settled.token == *token && event.maybe())
    }

    /// The earliest moment at which the message can have been gone: acknowledged, cancelled, purged or expired.
    pub(super) fn gone_at_the_earliest(&self) -> Option<Moment> {
        let acks = self.settles.iter().filter(|(event, s)| event.maybe() && s.how == How::Ack);
        let acks = acks.map(|(event, _)| event.called);
        let cancels = self.cancels.iter().filter(|(event, _)| event.maybe()).map(|(event, _)| event.called);
        let purges = self.purges.iter().map(|event| event.called);
        let expiry = self.sends.iter().filter_map(|(_, sent)| sent.not_after);
        let expiry = expiry.map(|at| Moment { at, order: 0 });
        let once = self.deliveries.iter().filter(|_| self.rules.at_most_once).map(|(event, _)| event.called);
        acks.chain(cancels).chain(purges).chain(expiry).chain(once).min()
    }

    /// Whether it was accepted for sure; who is told of a duplicate is told that it is there, too.
    pub(super) fn accepted(&self) -> bool {
        let here = |sent: &Sent| sent.duplicate_of.as_ref().is_none_or(|first| first == self.id);
        self.sends.iter().any(|(event, sent)| event.answer == Answer::Ok && here(sent))
    }

    /// Whether anybody saw it in the engine.
    pub(super) fn seen(&self) -> bool {
        !self.deliveries.is_empty() || self.left.is_some()
    }

    /// Whether a send after `finished` may have made a second message of this id: the id was forgotten by then.
    pub(super) fn reborn(&self, finished: Moment, by: Moment) -> bool {
        let again = |(event, sent): &(&Event, &Sent)| {
            event.maybe()
                && sent.duplicate_of.is_none()
                && event.called < by
                && self.forgotten(finished, event.ended)
        };
        self.sends.iter().any(again)
    }

    /// Whether an id that was finished at `finished` may be forgotten by then: its window is over, or the
    /// message was purged.
    pub(super) fn forgotten(&self, finished: Moment, by: Moment) -> bool {
        let purged = self.purges.iter().any(|purge| purge.called < by);
        purged || by.at >= finished.at + self.rules.dedup_window
    }
}
