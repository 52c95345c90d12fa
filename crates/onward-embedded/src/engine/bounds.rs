//! What a lease request may ask for.

use onward_core::{Error, LEASE_COUNT_MAX, LEASE_INLETS_MAX, LEASE_WAIT_SECS_MAX, LeaseRequest, Result};
use std::time::Duration;

/// Shortest lease.
const LEASE_MIN: Duration = Duration::from_millis(10);
/// Longest term of a lease; extensions may go on for ever.
const LEASE_MAX: Duration = Duration::from_secs(12 * 3600);
/// Most types of one request.
const ACCEPTS_MAX: usize = 256;

/// Checks counts, waits and terms against their limits.
///
/// # Errors
/// `Invalid`, naming the field.
pub(super) fn check(request: &LeaseRequest) -> Result<()> {
    let must = |holds: bool, field: &str, what: String| match holds {
        true => Ok(()),
        false => Err(Error::invalid(what).at(format!("`{field}`"))),
    };
    let count = request.count_max as usize;
    must(
        (1..=LEASE_COUNT_MAX).contains(&count),
        "count_max",
        format!("is {count}; use 1 to {LEASE_COUNT_MAX}"),
    )?;
    let inlets = request.inlets.len();
    must(
        (1..=LEASE_INLETS_MAX).contains(&inlets),
        "inlets",
        format!("has {inlets}; name 1 to {LEASE_INLETS_MAX}"),
    )?;
    let wait = request.wait;
    must(
        wait <= Duration::from_secs(LEASE_WAIT_SECS_MAX),
        "wait",
        format!("is {wait:?}; wait at most {LEASE_WAIT_SECS_MAX} s, then ask again"),
    )?;
    must(request.inlets.iter().all(|inlet| inlet.weight >= 1), "weight", "is 0; use at least 1".to_owned())?;
    let accepts = request.accepts.len();
    must(accepts <= ACCEPTS_MAX, "accepts", format!("has {accepts} types; name at most {ACCEPTS_MAX}"))?;
    request.lease.map_or(Ok(()), check_term)
}

/// Checks the length of a lease.
pub(super) fn check_term(term: Duration) -> Result<()> {
    if (LEASE_MIN..=LEASE_MAX).contains(&term) {
        return Ok(());
    }
    Err(Error::invalid(format!("is {term:?}"))
        .at("the lease")
        .mend("use 10 ms to 12 h, and extend it while at work"))
}
