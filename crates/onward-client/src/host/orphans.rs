//! What the processes of an earlier host's time still hold.

use super::processes::Processes;
use crate::process::{Life, life};
use onward_core::{
    Capability, Engine, FindBy, Inlet, MessageQuery, MessageState, PAGE_MAX, ProcessId, Result,
};
use std::{collections::HashSet, sync::Arc};

/// Ends the leases of processes that are dead, and watches over those that live. Of others, nothing is known here:
/// their leases run their term.
pub(super) async fn end_dead(engine: &dyn Engine, processes: &Arc<Processes>, me: &ProcessId) -> Result<()> {
    if !engine.capabilities().has(Capability::Browse) {
        return Ok(());
    }
    for process in holders(engine).await?.into_iter().filter(|process| process != me) {
        match life(&process) {
            Life::Dead => processes.end(&process, true).await,
            Life::Alive(handle) => processes.adopt(process, handle),
            Life::Unknown => {}
        }
    }
    Ok(())
}

/// Every process that holds a lease, however many leases stand before its own.
async fn holders(engine: &dyn Engine) -> Result<HashSet<ProcessId>> {
    let mut holders = HashSet::new();
    for (inlet, _) in engine.topology().await?.inlets {
        holders_of(engine, inlet, &mut holders).await?;
    }
    Ok(holders)
}

async fn holders_of(engine: &dyn Engine, inlet: Inlet, holders: &mut HashSet<ProcessId>) -> Result<()> {
    let by = FindBy::State(MessageState::Leased);
    let mut query = MessageQuery { inlet, by, after: None, limit: PAGE_MAX };
    loop {
        let page = engine.find(query.clone()).await?;
        holders
            .extend(page.items.into_iter().filter_map(|view| view.lease.map(|lease| lease.holder.process)));
        match page.next {
            Some(next) if query.after.as_ref() != Some(&next) => query.after = Some(next),
            _ => return Ok(()),
        }
    }
}
