//! Leasing: one call of the server, and waiting for work without asking it all the time.

use crate::{core::Core, deliver::delivery, error::Effect, settle::micros, sql::Param};
use onward_core::{
    Delivery, Error, LEASE_COUNT_MAX, LEASE_INLETS_MAX, LEASE_WAIT_SECS_MAX, LeaseRequest, Result,
};
use std::{sync::Arc, time::Duration};
use tokio_postgres::types::Type;
use uuid::Uuid;

const TERM_MIN: Duration = Duration::from_millis(10);
const TERM_MAX: Duration = Duration::from_secs(12 * 3600);
/// Most types of one request.
const ACCEPTS_MAX: usize = 256;
/// Longest name of a worker or a process, in bytes.
const HOLDER_BYTES_MAX: usize = 1_024;

impl Core {
    /// Hands out, waiting for the first up to `request.wait`.
    pub(crate) async fn lease(self: Arc<Self>, request: LeaseRequest) -> Result<Vec<Delivery>> {
        let running = self.begin()?;
        check(&request)?;
        let names: Vec<String> = request.inlets.iter().map(|weighted| weighted.inlet.to_string()).collect();
        let start = self.env.monotonic();
        loop {
            // Listening begins before looking, so that nothing slips between them.
            let mut hints = self.hub.listen(&names, !request.wait.is_zero());
            let deliveries = self.lease_now(&request).await?;
            let left = request.wait.saturating_sub(self.env.monotonic().saturating_sub(start));
            if !deliveries.is_empty() || left.is_zero() {
                drop(running);
                return Ok(deliveries);
            }
            tokio::select! {
                () = hints.next() => {}
                () = self.env.sleep(left) => {}
            }
            if self.closed.load(std::sync::atomic::Ordering::Acquire) {
                return Err(Error::closed("this engine was closed"));
            }
        }
    }

    async fn lease_now(&self, request: &LeaseRequest) -> Result<Vec<Delivery>> {
        let (names, quotas) = self.shares(request);
        let id = Uuid::from_u128(request.request_id.0);
        let count = i32::try_from(request.count_max).unwrap_or(i32::MAX);
        let bytes = i64::try_from(request.bytes_max).unwrap_or(i64::MAX);
        let term = request.lease.map(micros);
        let accepts: Vec<&str> =
            request.accepts.iter().map(|kind| &**kind).filter(|k| !k.contains('\0')).collect();
        if accepts.is_empty() && !request.accepts.is_empty() {
            return Ok(Vec::new());
        }
        let (process, worker) = (&*request.holder.process.0, &*request.holder.worker);
        let params: [Param<'_>; 10] = [
            (&id, Type::UUID),
            (&process, Type::TEXT),
            (&worker, Type::TEXT),
            (&names, Type::TEXT_ARRAY),
            (&quotas, Type::INT4_ARRAY),
            (&self.defaults, Type::TEXT),
            (&count, Type::INT4),
            (&bytes, Type::INT8),
            (&term, Type::INT8),
            (&accepts, Type::TEXT_ARRAY),
        ];
        let text = format!(
            "select * from \"{}\".lease($1, $2, $3, $4, $5, $6::jsonb, $7, $8, $9, $10)",
            self.schema()
        );
        let rows = self.statement(Effect::Maybe, &text, &params).await?;
        rows.iter().map(delivery).collect()
    }

    /// The inlets in an order that chance gives them by their weights, and the share of each.
    fn shares(&self, request: &LeaseRequest) -> (Vec<String>, Vec<i32>) {
        let total: u64 = request.inlets.iter().map(|w| u64::from(w.weight)).sum();
        let mut inlets: Vec<(f64, String, i32)> = request
            .inlets
            .iter()
            .map(|weighted| {
                let share = u64::from(request.count_max) * u64::from(weighted.weight);
                let quota = i32::try_from(share.div_ceil(total.max(1))).unwrap_or(i32::MAX);
                let random = (self.env.random() >> 11) as f64 / (1u64 << 53) as f64;
                // The smallest of independent waits falls to each in proportion to its rate.
                let wait = -(1.0 - random).ln() / f64::from(weighted.weight);
                (wait, weighted.inlet.to_string(), quota)
            })
            .collect();
        inlets.sort_by(|a, b| a.0.total_cmp(&b.0));
        inlets.into_iter().map(|(_, name, quota)| (name, quota)).unzip()
    }
}

fn check(request: &LeaseRequest) -> Result<()> {
    let must = |holds: bool, field: &str, what: String| match holds {
        true => Ok(()),
        false => Err(Error::invalid(what).at(format!("`{field}`"))),
    };
    let (count, inlets) = (request.count_max as usize, request.inlets.len());
    must(
        (1..=LEASE_COUNT_MAX).contains(&count),
        "count_max",
        format!("is {count}; use 1 to {LEASE_COUNT_MAX}"),
    )?;
    must(
        (1..=LEASE_INLETS_MAX).contains(&inlets),
        "inlets",
        format!("has {inlets}; name 1 to {LEASE_INLETS_MAX}"),
    )?;
    must(
        request.wait <= Duration::from_secs(LEASE_WAIT_SECS_MAX),
        "wait",
        format!("is {:?}; wait at most {LEASE_WAIT_SECS_MAX} s, then ask again", request.wait),
    )?;
    must(request.inlets.iter().all(|w| w.weight >= 1), "weight", "is 0; use at least 1".into())?;
    let accepts = request.accepts.len();
    must(accepts <= ACCEPTS_MAX, "accepts", format!("has {accepts} types; name at most {ACCEPTS_MAX}"))?;
    for (field, text) in [("worker", &request.holder.worker), ("process", &request.holder.process.0)] {
        let fits = text.len() <= HOLDER_BYTES_MAX && !text.contains('\0');
        must(fits, field, format!("has a NUL or more than {HOLDER_BYTES_MAX} bytes"))?;
    }
    request.lease.map_or(Ok(()), check_term)
}

/// Checks the length of a lease.
pub(crate) fn check_term(term: Duration) -> Result<()> {
    if (TERM_MIN..=TERM_MAX).contains(&term) {
        return Ok(());
    }
    Err(Error::invalid(format!("is {term:?}"))
        .at("the lease")
        .mend("use 10 ms to 12 h, and extend it while at work"))
}
