//! Every check, once, by group.

mod agreement;
mod claim_check;
mod core_leases;
mod core_messages;
mod dedup;
mod lifecycle;
mod limits;
mod looking;
mod order;
mod outbox;
mod priority;
mod records;
mod reply;
mod retry_dead;
mod schedules;
mod servers;
mod slots;
mod streams;
mod streams_read;
mod streams_support;
mod stress;
mod time;
mod topics;
mod transactions;

use crate::Check;

/// The whole suite.
#[derive(Debug)]
pub struct Suite;

impl Suite {
    /// Every check, group by group.
    pub fn checks() -> impl Iterator<Item = &'static Check> {
        [
            core_messages::CHECKS,
            core_leases::CHECKS,
            retry_dead::CHECKS,
            time::CHECKS,
            schedules::CHECKS,
            order::CHECKS,
            dedup::CHECKS,
            topics::CHECKS,
            limits::CHECKS,
            slots::CHECKS,
            priority::CHECKS,
            claim_check::CHECKS,
            records::CHECKS,
            streams::CHECKS,
            streams_read::CHECKS,
            transactions::CHECKS,
            outbox::CHECKS,
            reply::CHECKS,
            looking::CHECKS,
            lifecycle::CHECKS,
            servers::CHECKS,
            agreement::CHECKS,
            stress::CHECKS,
        ]
        .into_iter()
        .flatten()
    }
}
