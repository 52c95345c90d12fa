//! Every check, once, by group.

mod core_leases;
mod core_messages;

use crate::Check;

/// The whole suite.
#[derive(Debug)]
pub struct Suite;

impl Suite {
    /// Every check, group by group.
    pub fn checks() -> impl Iterator<Item = &'static Check> {
        [core_messages::CHECKS, core_leases::CHECKS].into_iter().flatten()
    }
}
