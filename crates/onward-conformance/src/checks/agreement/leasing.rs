//! Leasing in the comparison: the engine chooses among what the model allows, and the model does the same.

use super::{Pair, answers::now};
use crate::bench::{holder, millis};
use crate::check::{ensure, ensure_eq};
use crate::model::Now;
use crate::{Bench, Done, Stop};
use onward_core::{CauseKind, Delivery, LeaseRequest, Result};
use std::{collections::BTreeSet, time::Duration};

impl Pair {
    pub(super) async fn lease(&mut self, b: &Bench) -> Done {
        let count_max = 1 + self.random(3) as u32;
        let long = self.random(2) == 0;
        let request = LeaseRequest {
            count_max,
            lease: Some(if long { Duration::from_secs(60) } else { millis(30 * (1 + self.random(4))) }),
            holder: holder("w", &self.process()),
            ..b.request(&self.queue)
        };
        self.follow(b, &request).await?;
        if self.random(5) == 0 {
            self.repeat(b, &request).await?;
        }
        Ok(())
    }

    /// The engine chooses among what the model allows; the model then does the same.
    async fn follow(&mut self, b: &Bench, request: &LeaseRequest) -> Done {
        let now = now(b);
        self.model.tick(now);
        let theirs = b.engine().lease(request.clone()).await?;
        let ids: Vec<_> = theirs.iter().map(|d| d.message.id.to_string()).collect();
        self.tell(format!("lease {} -> {}", request.count_max, ids.join(" ")));
        ensure!(theirs.len() <= request.count_max as usize, "{} came of {}", theirs.len(), request.count_max);
        for delivery in &theirs {
            let index = self.allowed(delivery, request, now)?;
            let inlet = self.inlet.clone();
            let ours = self.model.hand_out(&inlet, index, request, now)?;
            same_delivery(delivery, &ours, self.item(&delivery.message.id).is_some_and(|i| i.redriven))?;
            self.tokens.push((delivery.token.clone(), ours.token));
        }
        if theirs.len() < request.count_max as usize {
            let queue = self.model.queue(&self.inlet)?;
            let left = queue.pick(request, true, now).map(|i| queue.items[i].message.id.clone());
            ensure!(left.is_none(), "{left:?} was not handed out and might have been");
        }
        Ok(())
    }

    fn allowed(&mut self, delivery: &Delivery, request: &LeaseRequest, now: Now) -> Result<usize, Stop> {
        let (id, fair) = (&delivery.message.id, self.fair);
        let ageing = self.model.queue(&self.inlet)?.config.ageing_ms;
        let queue = self.model.queue(&self.inlet)?;
        let may: Vec<usize> =
            (0..queue.items.len()).filter(|i| queue.may_hand_out(*i, request, true, now)).collect();
        let found = may.iter().copied().find(|i| queue.items[*i].message.id == *id);
        let Some(index) = found else { return Err(Stop::Failed(format!("{id} may not be handed out"))) };
        let rank = |i: usize| queue.items[i].rank(ageing, now);
        // Among those never handed out, arrival decides; where a retried one stands is not laid down.
        let plain = |i: usize| {
            let item = &queue.items[i];
            !fair && item.attempts == 0 && item.message.due.is_none() && !item.redriven
        };
        let before = may.iter().find(|i| {
            let earlier = plain(**i) && plain(index) && queue.items[**i].arrival < queue.items[index].arrival;
            rank(**i) > rank(index) || rank(**i) == rank(index) && earlier
        });
        match before {
            Some(i) => {
                Err(Stop::Failed(format!("{id} was handed out before {}", queue.items[*i].message.id)))
            }
            None => Ok(index),
        }
    }

    async fn repeat(&mut self, b: &Bench, request: &LeaseRequest) -> Done {
        let now = now(b);
        self.model.tick(now);
        let ours = self.model.lease(&LeaseRequest { count_max: 0, ..request.clone() }, now)?;
        if ours.is_empty() {
            return Ok(());
        }
        // Where the count goes on after a redrive is not laid down.
        let seen = |pair: &Self, deliveries: &[Delivery]| {
            let of = |d: &Delivery| {
                let id = d.message.id.clone();
                let redriven = pair.item(&id).is_some_and(|item| item.redriven);
                (id, if redriven { 0 } else { d.attempt })
            };
            deliveries.iter().map(of).collect::<BTreeSet<_>>()
        };
        let theirs = b.engine().lease(request.clone()).await?;
        let (theirs, ours) = (seen(self, &theirs), seen(self, &ours));
        ensure_eq!(theirs, ours, "the repeat of a lease request");
        Ok(())
    }
}

fn same_delivery(theirs: &Delivery, ours: &Delivery, redriven: bool) -> Done {
    let id = &ours.message.id;
    ensure_eq!(theirs.message, ours.message, "the message {id}");
    if !redriven {
        ensure_eq!(theirs.attempt, ours.attempt, "the attempt of {id}");
    }
    let kinds = |d: &Delivery| -> Vec<CauseKind> { d.causes.iter().map(|c| c.failure.kind).collect() };
    ensure_eq!(kinds(theirs), kinds(ours), "the causes of {id}");
    ensure_eq!(theirs.lease, ours.lease, "the lease of {id}");
    Ok(())
}
