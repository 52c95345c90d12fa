//! The reconciler: finds work whose message was never staged, and stages it.

use super::{Destination, Outbox};
use onward_core::{Engine, Env, Error, Message, MessageId, Prepared, Receipt, Result, Timestamp};
use std::time::Duration;

/// Most messages that are staged at once.
const AT_ONCE: usize = 256;

/// What a reconciliation found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reconciled {
    /// Never staged before: they are now.
    pub never_sent: Vec<MessageId>,
    /// Staged before, sent or still to be sent: nothing was done.
    pub known: u64,
    /// Older than the outbox remembers, so that sending them might send them twice: nothing was done.
    pub too_old: Vec<MessageId>,
    /// Not to be staged, and why: most often an id that was staged with other content.
    pub refused: Vec<(MessageId, Error)>,
}

impl Outbox {
    /// Stages those of `expected` that were never staged. Safe to repeat, and beside everything else.
    ///
    /// `expected` are the messages that business state says must have been sent, made as the change itself makes them:
    /// with ids that follow from the change, and with the time of the change as `timestamp`. The outbox recognises what
    /// it has staged by those ids for as long as it remembers them, and leaves older ones alone.
    ///
    /// # Errors
    /// The store's; what was staged before stands.
    pub async fn reconcile(
        &self,
        store: &dyn Engine,
        env: &dyn Env,
        expected: Vec<(Destination, Message)>,
    ) -> Result<Reconciled> {
        let window = Duration::from_millis(self.stats(store).await?.dedup_window_ms);
        let oldest = env.now().minus(window);
        let mut found = Reconciled::default();
        let mut ready = Vec::new();
        for (to, message) in expected {
            let id = message.id.clone();
            match self.prepare(store, &to, message, oldest) {
                Ok(Some(prepared)) => ready.push((id, prepared)),
                Ok(None) => found.too_old.push(id),
                Err(error) => found.refused.push((id, error)),
            }
        }
        for some in ready.chunks(AT_ONCE) {
            let (ids, commits): (Vec<_>, Vec<_>) = some.iter().cloned().unzip();
            for (id, answer) in ids.into_iter().zip(store.submit(commits).await?) {
                found.note(id, answer);
            }
        }
        Ok(found)
    }

    fn prepare(
        &self,
        store: &dyn Engine,
        to: &Destination,
        message: Message,
        oldest: Timestamp,
    ) -> Result<Option<Prepared>> {
        if message.timestamp < oldest {
            return Ok(None);
        }
        store.prepare(vec![self.stage(to, message)?]).map(Some)
    }
}

impl Reconciled {
    fn note(&mut self, id: MessageId, answer: Result<Vec<Receipt>>) {
        match answer.map(|mut receipts| receipts.pop()) {
            Ok(Some(Receipt::Accepted(accepted))) if accepted.duplicate => self.known += 1,
            Ok(_) => self.never_sent.push(id),
            Err(error) => self.refused.push((id, error)),
        }
    }
}
