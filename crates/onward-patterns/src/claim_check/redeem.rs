//! On the way out: each delivery gets its payload back, or is not handed out.

use super::{CLAIM_HEADER, ClaimCheck, Reference};
use crate::Destination;
use onward_core::{
    Capability, CauseKind, Delivery, DeliveryGuarantee, Error, ErrorKind, Failure, LeaseRequest, Op, Outcome,
    Payload, Result, RetryDelay, Topology,
};
use std::time::Duration;

/// How long a message is put back for while its payload can't be fetched.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

impl ClaimCheck {
    pub(super) async fn lease_redeemed(&self, request: LeaseRequest) -> Result<Vec<Delivery>> {
        let bytes_max = request.bytes_max;
        let deliveries = self.inner.lease(request).await?;
        if !deliveries.iter().any(|delivery| delivery.message.headers.contains_key(CLAIM_HEADER)) {
            return Ok(deliveries);
        }
        let received = self.env.monotonic();
        let (mut ready, mut bytes) = (Vec::new(), 0u64);
        for delivery in deliveries {
            bytes = bytes.saturating_add(size(&delivery));
            if !ready.is_empty() && bytes > bytes_max && self.takes_back(&delivery).await {
                self.end(&delivery, Outcome::Release { delay: Duration::ZERO }).await;
                continue;
            }
            match self.redeem(&delivery).await {
                Ok(payload) => ready.push(with(delivery, payload)),
                Err(error) => self.end(&delivery, self.outcome_of(&error)).await,
            }
        }
        // The leases ran while payloads were fetched.
        let took = self.env.monotonic().saturating_sub(received);
        ready.iter_mut().for_each(|delivery| delivery.lease = delivery.lease.saturating_sub(took));
        ready.retain(|delivery| !delivery.lease.is_zero());
        Ok(ready)
    }

    async fn redeem(&self, delivery: &Delivery) -> Result<Option<Payload>> {
        let Some((reference, serial)) = Reference::of(&delivery.message)? else { return Ok(None) };
        let owner = (Destination::of(&delivery.token.inlet), delivery.message.id.clone());
        let bytes = self.payloads.get(&owner, serial).await?;
        reference.redeem(bytes).map(Some).map_err(|error| error.at(&delivery.message.id))
    }

    fn outcome_of(&self, error: &Error) -> Outcome {
        let failure = |kind| Failure::new(kind, error.to_string());
        match error.kind() {
            ErrorKind::NotFound | ErrorKind::Corrupt | ErrorKind::Invalid => {
                Outcome::Reject { failure: failure(CauseKind::Undecodable) }
            }
            // A store that is away is not the message's failure.
            _ if self.has_release() => Outcome::Release { delay: AGAIN_AFTER },
            _ => Outcome::Retry {
                delay: RetryDelay::After(AGAIN_AFTER),
                failure: failure(CauseKind::Transient),
            },
        }
    }

    fn has_release(&self) -> bool {
        self.inner.capabilities().has(Capability::Release)
    }

    /// Whether a message that is more than was asked for can be put back without harm: an at-most-once inlet can't.
    async fn takes_back(&self, delivery: &Delivery) -> bool {
        let of = |topology: Topology| {
            let found = topology.inlets.into_iter().find(|(inlet, _)| *inlet == delivery.token.inlet);
            found.is_some_and(|(_, config)| config.guarantee == DeliveryGuarantee::AtLeastOnce)
        };
        self.has_release() && self.inner.topology().await.is_ok_and(of)
    }

    /// Settles what is not handed out. Where that fails the lease ends by itself, and the message comes again.
    async fn end(&self, delivery: &Delivery, outcome: Outcome) {
        let op = Op::Settle { token: delivery.token.clone(), outcome };
        if let Ok(prepared) = self.inner.prepare(vec![op]) {
            let _ = self.inner.commit(prepared).await;
        }
    }
}

/// What a delivery will hold in memory, in bytes.
fn size(delivery: &Delivery) -> u64 {
    match Reference::of(&delivery.message) {
        Ok(Some((reference, _))) => reference.bytes,
        _ => delivery.message.size() as u64,
    }
}

/// The delivery as its handler gets it; one whose data was edited has its own, and no payload aside any more.
fn with(mut delivery: Delivery, payload: Option<Payload>) -> Delivery {
    delivery.message.headers.remove(CLAIM_HEADER);
    if let Some(payload) = payload {
        delivery.message.data = payload;
    }
    delivery
}
