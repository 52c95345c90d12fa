//! What is checked before a worker starts: mistakes that would otherwise show in production.

use super::{Handling, handling::Effects, inbox, routes::Routes, states::States};
use onward_core::{
    Capabilities, Capability, Error, Inlet, InletConfig, OrderPolicy, Result, RetryPolicy, Topology,
};
use std::time::Duration;

/// A setting that works but that one will be sorry for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// Where.
    pub inlet: Inlet,
    /// What is wrong with it, and the mend.
    pub what: String,
}

/// Checks every handler against its inlet and the engine.
///
/// # Errors
/// The first thing with which a worker must not start; it names the mend.
pub(crate) fn check(
    routes: &Routes,
    states: &States,
    topology: &Topology,
    capabilities: &Capabilities,
) -> Result<Vec<Warning>> {
    if routes.inlets.is_empty() {
        return Err(Error::invalid("the worker has nothing to do").mend("add a handler with `handle`"));
    }
    let mut warnings = Vec::new();
    for (inlet, route) in &routes.inlets {
        let declared = topology.inlets.iter().find(|(name, _)| name == inlet);
        let config = declared.map(|(_, config)| config.clone()).unwrap_or_default();
        if route.handlings().next().is_none() {
            return Err(Error::invalid("it has bounds but no handler")
                .at(inlet)
                .mend("add one with `handle`"));
        }
        for handling in route.handlings() {
            handling.handler.check(states).map_err(|e| e.at(inlet))?;
            check_effects(inlet, handling)?;
            check_order(inlet, handling, &config)?;
            handling.versions.check(inlet)?;
            check_time(inlet, handling, &config, capabilities)?;
            warnings.extend(check_inbox(inlet, handling, &config, capabilities)?);
        }
    }
    Ok(warnings)
}

fn check_effects(inlet: &Inlet, handling: &Handling) -> Result<()> {
    if handling.effects != Effects::Declared || handling.idempotency.is_some() {
        return Ok(());
    }
    Err(Error::invalid("a handler has effects and is not idempotent: a redelivery would repeat them")
        .at(inlet)
        .mend("add `.idempotent()` or `.idempotent_by(..)`, or say `.effects_may_repeat()`"))
}

fn check_order(inlet: &Inlet, handling: &Handling, config: &InletConfig) -> Result<()> {
    if !handling.ordered || config.order != OrderPolicy::Unordered {
        return Ok(());
    }
    Err(Error::invalid("a handler relies on order, and the inlet keeps none")
        .at(inlet)
        .mend("declare the queue with `order: ByKey`, or take `.ordered()` away"))
}

fn check_time(
    inlet: &Inlet,
    handling: &Handling,
    config: &InletConfig,
    capabilities: &Capabilities,
) -> Result<()> {
    let timeout = handling.timeout;
    if timeout.is_zero() {
        return Err(Error::invalid("the handler's timeout is zero").at(inlet).mend("give it some time"));
    }
    let of_inlet = config.lease_total_max_ms.map(Duration::from_millis);
    let total = of_inlet.into_iter().chain(capabilities.limits.lease_total_max).min();
    match total {
        Some(total) if total < timeout => Err(Error::invalid(format!(
            "a handler may take {timeout:?}, but its lease ends for good after {total:?}"
        ))
        .at(inlet)
        .mend("shorten `.timeout(..)`, or raise the inlet's `lease_total_max_ms`")),
        _ => Ok(()),
    }
}

fn check_inbox(
    inlet: &Inlet,
    handling: &Handling,
    config: &InletConfig,
    capabilities: &Capabilities,
) -> Result<Option<Warning>> {
    let Some(idempotency) = &handling.idempotency else { return Ok(None) };
    capabilities.require(Capability::Records, "an idempotent handler")?;
    capabilities.require(Capability::RecordTtl, "an idempotent handler")?;
    inbox::fits(inlet)?;
    let horizon = retry_horizon(config, handling.timeout);
    let short = idempotency.ttl < horizon;
    Ok(short.then(|| Warning {
        inlet: inlet.clone(),
        what: format!(
            "processed keys are forgotten after {:?}, but a message may be retried for {horizon:?}: raise `.remember(..)`",
            idempotency.ttl
        ),
    }))
}

/// The longest time over which one message can be attempted, dead letters left aside.
fn retry_horizon(config: &InletConfig, timeout: Duration) -> Duration {
    let RetryPolicy { attempts_max, delay_max_ms, .. } = config.retry;
    let one = timeout.max(Duration::from_millis(config.lease_ms)) + Duration::from_millis(delay_max_ms);
    one.saturating_mul(attempts_max)
}
