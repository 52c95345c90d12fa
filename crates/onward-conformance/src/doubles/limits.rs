//! What doubles do wrong about limits on handing out.

use super::{Double, Fault};
use onward_core::{Delivery, Inlet, InletConfig, LeaseRequest, Result, TopologyChange};

impl Double {
    fn declared(&self, request: &LeaseRequest) -> Option<InletConfig> {
        self.memory.lock().declared.get(&request.inlets.first()?.inlet).cloned()
    }

    pub(super) fn has_limits(&self, request: &LeaseRequest) -> bool {
        self.declared(request).is_some_and(|c| {
            c.concurrency_max.is_some()
                || c.concurrency_per_key_max.is_some()
                || c.rate.is_some()
                || c.rate_per_key.is_some()
        })
    }

    /// How many slots are free by a count of its own; every lease that ended unheard is still counted.
    pub(super) fn slots_left(&self, request: &LeaseRequest) -> Option<u32> {
        let most = self.declared(request)?.concurrency_max.filter(|_| self.is(Fault::CountsSlots))?;
        Some(most.saturating_sub(self.memory.lock().slots))
    }

    pub(super) fn count_slots(&self, deliveries: &[Delivery]) {
        self.memory.lock().slots += deliveries.len() as u32;
    }

    pub(super) fn free_slot(&self) {
        let mut memory = self.memory.lock();
        memory.slots = memory.slots.saturating_sub(1);
    }

    /// After an opening, the limits that this double forgets begin anew: here by leaving them out.
    pub(super) async fn forget_limits(&self, request: &LeaseRequest) -> Result<()> {
        let forgets = self.is(Fault::ForgetsSlots) || self.is(Fault::ForgetsRates);
        let again = forgets && self.memory.lock().opened_again;
        let Some((config, Inlet::Queue(name))) =
            self.declared(request).filter(|_| again).zip(request.inlets.first().map(|w| w.inlet.clone()))
        else {
            return Ok(());
        };
        let config = match self.fault {
            Fault::ForgetsSlots => InletConfig { concurrency_max: None, ..config },
            _ => InletConfig { rate: None, ..config },
        };
        let change = TopologyChange::Queue { name, config: Box::new(config), update: true };
        self.inner.declare(change).await.map(drop)
    }
}
