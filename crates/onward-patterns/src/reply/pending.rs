//! Who waits for which reply. Pure.

use futures::channel::oneshot;
use onward_core::{Error, Message, MessageId, Result};
use std::collections::{HashMap, VecDeque};

/// Most requests that are remembered after they ended; a reply to an older one counts as an orphan.
pub const GIVEN_UP_MAX: usize = 10_000;

/// What became of replies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReplyCounts {
    /// Handed to whoever waited.
    pub answered: u64,
    /// Discarded: whoever had asked waited no longer.
    pub late: u64,
    /// Discarded: the request was answered before.
    pub duplicate: u64,
    /// Discarded: nobody here had asked, or so long ago that it is forgotten.
    pub orphan: u64,
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Ended {
    Answered,
    GivenUp,
}

/// The requests that wait, and the last ones that ended.
#[derive(Debug, Default)]
pub(super) struct Pending {
    waiting: HashMap<MessageId, oneshot::Sender<Message>>,
    ended: HashMap<MessageId, Ended>,
    /// Oldest first, each once.
    order: VecDeque<MessageId>,
    pub(super) counts: ReplyCounts,
}

impl Pending {
    /// Begins to wait.
    pub(super) fn wait(&mut self, id: &MessageId) -> Result<oneshot::Receiver<Message>> {
        if self.waiting.contains_key(id) {
            return Err(Error::conflict("somebody waits for the reply to this request already").at(id));
        }
        let (sender, receiver) = oneshot::channel();
        self.waiting.insert(id.clone(), sender);
        Ok(receiver)
    }

    /// Waits no longer, unless it was answered meanwhile.
    pub(super) fn give_up(&mut self, id: &MessageId) {
        if self.waiting.remove(id).is_some() {
            self.end(id.clone(), Ended::GivenUp);
        }
    }

    /// Hands a reply over, or counts why nobody gets it.
    pub(super) fn take(&mut self, reply: Message) {
        let request = reply.causation_id.as_deref().and_then(|id| MessageId::try_from(id).ok());
        let Some(request) = request else {
            self.counts.orphan += 1;
            return;
        };
        if let Some(waiter) = self.waiting.remove(&request) {
            // Whoever waited may be gone without a word: then it was given up.
            let heard = waiter.send(reply).is_ok();
            *if heard { &mut self.counts.answered } else { &mut self.counts.late } += 1;
            return self.end(request, if heard { Ended::Answered } else { Ended::GivenUp });
        }
        *match self.ended.get(&request) {
            Some(Ended::Answered) => &mut self.counts.duplicate,
            Some(Ended::GivenUp) => &mut self.counts.late,
            None => &mut self.counts.orphan,
        } += 1;
    }

    fn end(&mut self, id: MessageId, how: Ended) {
        if self.ended.insert(id.clone(), how).is_none() {
            self.order.push_back(id);
        }
        if self.order.len() > GIVEN_UP_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.ended.remove(&oldest);
        }
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::still::StillEnv;

    fn id(text: &str) -> MessageId {
        MessageId::try_from(text).unwrap()
    }

    fn reply_to(request: &str) -> Message {
        Message::builder(super::super::REPLY_TYPE).causation_id(request).build(&StillEnv).unwrap()
    }

    #[test]
    fn each_reply_goes_to_the_one_who_asked_and_to_nobody_twice() {
        let mut pending = Pending::default();
        let (mut a, mut b) = (pending.wait(&id("a")).unwrap(), pending.wait(&id("b")).unwrap());
        pending.take(reply_to("b"));
        pending.take(reply_to("b"));
        assert_eq!(b.try_recv().unwrap().unwrap().causation_id.as_deref(), Some("b"));
        assert_eq!(a.try_recv().unwrap(), None);
        assert_eq!(pending.counts, ReplyCounts { answered: 1, duplicate: 1, ..ReplyCounts::default() });
    }

    #[test]
    fn late_and_orphan_replies_are_told_apart() {
        let mut pending = Pending::default();
        let _gone = pending.wait(&id("a")).unwrap();
        pending.give_up(&id("a"));
        drop(pending.wait(&id("dropped")).unwrap());
        for request in ["a", "dropped", "never"] {
            pending.take(reply_to(request));
        }
        pending.take(Message::builder(super::super::REPLY_TYPE).build(&StillEnv).unwrap());
        assert_eq!(pending.counts, ReplyCounts { late: 2, orphan: 2, ..ReplyCounts::default() });
    }

    #[test]
    fn two_can_not_wait_for_one_reply() {
        let mut pending = Pending::default();
        let _first = pending.wait(&id("a")).unwrap();
        assert_eq!(pending.wait(&id("a")).unwrap_err().kind(), onward_core::ErrorKind::Conflict);
    }

    #[test]
    fn what_ended_is_remembered_up_to_its_bound() {
        let mut pending = Pending::default();
        for index in 0..GIVEN_UP_MAX + 10 {
            let id = id(&format!("r{index}"));
            drop(pending.wait(&id).unwrap());
            pending.give_up(&id);
        }
        assert_eq!(
            (pending.waiting(), pending.ended.len(), pending.order.len()),
            (0, GIVEN_UP_MAX, GIVEN_UP_MAX)
        );
    }
}
