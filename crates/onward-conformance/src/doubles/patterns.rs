//! What doubles do wrong with the messages of patterns: what is staged in an outbox, requests and replies.

use super::{Double, Fault};
use onward_core::{Accepted, Delivery, Durability, LeaseToken, Message, Op, Receipt, Result};
use onward_patterns::{
    outbox::STAGED_HEADER,
    reply::{REPLY_TO_HEADER, REPLY_TYPE},
};

impl Double {
    /// Receipts of messages that are accepted and not kept.
    pub(super) fn lose(&self, ops: &[Op], receipts: &mut [Option<Receipt>]) {
        let header = match self.fault {
            Fault::LosesStaged if ops.iter().any(|op| matches!(op, Op::PutRecord { .. })) => STAGED_HEADER,
            Fault::LosesRequests => REPLY_TO_HEADER,
            _ => return,
        };
        for (op, receipt) in ops.iter().zip(receipts) {
            let Op::Enqueue { message, .. } = op else { continue };
            if message.headers.contains_key(header) {
                let (id, durability) = (message.id.clone(), Durability::OsBuffer);
                let accepted = Accepted { id, duplicate: false, declared: false, position: None, durability };
                *receipt = Some(Receipt::Accepted(accepted));
            }
        }
    }

    /// Whether what is leased so was staged in an outbox.
    pub(super) fn is_staged(&self, token: &LeaseToken) -> bool {
        let staged = |d: &Delivery| d.message.headers.contains_key(STAGED_HEADER);
        self.memory.lock().out.iter().any(|d| d.token == *token && staged(d))
    }

    pub(super) fn bend_pattern(&self, message: &mut Message) {
        match self.fault {
            Fault::DropsPatternHeaders => message.headers.retain(|name, _| !name.starts_with("onward-")),
            Fault::StagesUnordered if message.headers.contains_key(STAGED_HEADER) => message.order_key = None,
            Fault::LosesCausation if is_reply(message) => message.causation_id = None,
            _ => {}
        }
    }

    /// Replies of a commit that was refused.
    pub(super) async fn send_stale(&self, ops: &[Op]) -> Result<()> {
        for op in ops {
            if matches!(op, Op::Enqueue { message, .. } if is_reply(message)) {
                self.commit_one(op.clone()).await?;
            }
        }
        Ok(())
    }
}

pub(super) fn is_reply(message: &Message) -> bool {
    *message.kind == *REPLY_TYPE
}

/// The first two replies change places.
pub(super) fn cross(deliveries: &mut [Delivery]) {
    let mut replies = deliveries.iter_mut().filter(|delivery| is_reply(&delivery.message));
    if let (Some(one), Some(two)) = (replies.next(), replies.next()) {
        std::mem::swap(&mut one.message.causation_id, &mut two.message.causation_id);
    }
}
