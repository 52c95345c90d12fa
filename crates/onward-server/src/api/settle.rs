//! Ending attempts, and taking the next work in the same call.

use super::leases::{Given, Lease, hand_out, tokens};
use crate::{
    app::App,
    auth::Caller,
    body,
    problem::{Answer, Problem, Refusal},
};
use axum::{Json, body::Body, extract::State, http::HeaderMap};
use onward::core::{
    CauseKind, Error, Failure, MessageState, OPS_MAX, Op, Outcome, Payload, Receipt, RetryDelay, SettledAs,
    Timestamp,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::time::Duration;
use utoipa::ToSchema;

/// Attempts to end, and what to lease then.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Settle {
    /// The attempts; each has its own result.
    settlements: Vec<Settlement>,
    /// Lease in the same call, once they are settled.
    lease: Option<Lease>,
}

/// How one attempt ended.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Settlement {
    /// The lease.
    token: String,
    /// What became of it.
    outcome: Said,
    /// With `ack`: what the job's caller gets.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    result: Option<Box<RawValue>>,
    /// With `retry`: no sooner than this, the queue's own delay by default. With `release`: after this, at once by default.
    delay_ms: Option<u64>,
    /// With `retry` and `reject`: the error in one sentence.
    error: Option<String>,
    /// With `retry` and `reject`: backtrace, output or other detail.
    detail: Option<String>,
    /// With `retry` and `reject`: its kind; `transient` and `permanent` by default.
    #[schema(value_type = Option<String>)]
    kind: Option<CauseKind>,
}

/// What became of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Said {
    /// Done.
    Ack,
    /// Failed; again after a delay, until the attempts are used up.
    Retry,
    /// Put back; counts no attempt.
    Release,
    /// To the dead letters now.
    Reject,
}

/// What became of everything in the call.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Settled {
    /// One for each settlement, in order.
    results: Vec<SettledOne>,
    /// What was leased then, where that was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    deliveries: Option<Vec<Given>>,
}

/// One settlement's result.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(super) enum SettledOne {
    /// It is settled.
    Settled {
        /// The message's state now.
        #[schema(value_type = String)]
        state: MessageState,
        /// When it comes again.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(value_type = Option<String>)]
        due: Option<Timestamp>,
        /// The same was said before; nothing changed.
        already: bool,
    },
    /// It is not.
    Refused {
        /// Why.
        error: Problem,
    },
}

/// Ends attempts, each with its own result, and leases the next work if asked.
///
/// The same token with the same outcome again answers `already`; with another outcome, or when the lease has ended, it
/// is refused and nothing changes.
#[utoipa::path(post, path = "/v1/settle", tag = "work", request_body = Settle,
    responses((status = 200, description = "A result for each settlement", body = Settled)))]
pub(super) async fn settle(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    body: Body,
) -> Answer<Json<Settled>> {
    let held = app.bodies.read(&headers, body, &**app.onward.env()).await?;
    let Settle { settlements, lease } = body::json(&headers, &held.bytes)?;
    drop(held);
    if settlements.len() > OPS_MAX {
        return Err(Error::invalid(format!("more than {OPS_MAX} in one request")).at("`settlements`").into());
    }
    let results = end_all(&app, &caller, settlements).await?;
    let deliveries = match lease {
        Some(lease) => Some(hand_out(&app, &caller, lease).await?.deliveries),
        None => None,
    };
    Ok(Json(Settled { results, deliveries }))
}

async fn end_all(app: &App, caller: &Caller, settlements: Vec<Settlement>) -> Answer<Vec<SettledOne>> {
    let engine = app.onward.engine();
    let prepare = |settlement| Ok(engine.prepare(vec![op_of(caller, settlement)?])?);
    let checked: Vec<Answer<_>> = settlements.into_iter().map(prepare).collect();
    let good = checked.iter().filter_map(|one| one.as_ref().ok().cloned()).collect::<Vec<_>>();
    let mut answers = if good.is_empty() { Vec::new() } else { engine.submit(good).await? }.into_iter();
    let answer = |one: Answer<_>| {
        let receipts = one.and_then(|_| match answers.next() {
            Some(answer) => answer.map_err(Refusal::from),
            None => Err(Error::internal("the engine answered too few").into()),
        });
        match receipts.map(|mut receipts| receipts.pop()) {
            Ok(Some(Receipt::Settled(SettledAs { state, due, already }))) => {
                SettledOne::Settled { state, due, already }
            }
            Ok(_) => {
                let error = Error::internal("the engine answered a settlement with another receipt");
                SettledOne::Refused { error: Refusal::from(error).problem() }
            }
            Err(refusal) => SettledOne::Refused { error: refusal.problem() },
        }
    };
    Ok(checked.into_iter().map(answer).collect())
}

fn op_of(caller: &Caller, settlement: Settlement) -> Answer<Op> {
    let token = tokens(caller, std::slice::from_ref(&settlement.token))?.remove(0);
    check_fields(&settlement)?;
    let delay = settlement.delay_ms.map(Duration::from_millis);
    let outcome = match settlement.outcome {
        Said::Ack => Outcome::Ack { result: settlement.result.map(|json| payload(&json)).transpose()? },
        Said::Release => Outcome::Release { delay: delay.unwrap_or_default() },
        Said::Retry => Outcome::Retry {
            delay: delay.map_or(RetryDelay::Policy, RetryDelay::After),
            failure: failure(&settlement, CauseKind::Transient),
        },
        Said::Reject => Outcome::Reject { failure: failure(&settlement, CauseKind::Permanent) },
    };
    Ok(Op::Settle { token, outcome })
}

/// Refuses fields that the outcome has no use for: they would be silently lost.
fn check_fields(settlement: &Settlement) -> Answer<()> {
    let fails = matches!(settlement.outcome, Said::Retry | Said::Reject);
    let waits = matches!(settlement.outcome, Said::Retry | Said::Release);
    let wrong = [
        ("`result`", settlement.result.is_some() && settlement.outcome != Said::Ack),
        ("`delay_ms`", settlement.delay_ms.is_some() && !waits),
        ("`error`", settlement.error.is_some() && !fails),
        ("`detail`", settlement.detail.is_some() && !fails),
        ("`kind`", settlement.kind.is_some() && !fails),
    ];
    match wrong.iter().find(|(_, wrong)| *wrong) {
        Some((field, _)) => {
            Err(Error::invalid("has no meaning with this outcome").at(field).mend("leave it out").into())
        }
        None => Ok(()),
    }
}

fn payload(json: &RawValue) -> Result<Payload, Error> {
    Payload::json_text(json.get().as_bytes().to_vec())
}

fn failure(settlement: &Settlement, kind: CauseKind) -> Failure {
    let error = settlement.error.as_deref().unwrap_or("the worker gave no reason");
    let failure = Failure::new(settlement.kind.unwrap_or(kind), error);
    match &settlement.detail {
        Some(detail) => failure.with_detail(detail),
        None => failure,
    }
}
