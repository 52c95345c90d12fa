//! Every check, once, by group.

mod core_leases;
mod core_messages;
mod dedup;
mod limits;
mod order;
mod records;
mod retry_dead;
mod time;

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
            order::CHECKS,
            dedup::CHECKS,
            limits::CHECKS,
            records::CHECKS,
        ]
        .into_iter()
        .flatten()
    }
}
