//! Numbers for Prometheus: of every queue, all of one moment.

use crate::{
    app::App,
    auth::{Action, Caller},
    problem::Answer,
};
use axum::{extract::State, http::header, response::IntoResponse};
use onward_core::{Inlet, Stats};
use std::fmt::Write;

/// One family of numbers.
struct Family {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    value: fn(&Stats, i64) -> Option<f64>,
}

const FAMILIES: &[Family] = &[
    gauge("onward_queue_depth", "Messages waiting.", |s, _| count(s.books.waiting)),
    gauge("onward_queue_delayed", "Messages not due yet.", |s, _| count(s.books.delayed)),
    gauge("onward_queue_leased", "Messages held by workers.", |s, _| count(s.books.leased)),
    gauge("onward_queue_dead", "Dead letters.", |s, _| count(s.books.dead)),
    gauge("onward_queue_blocked", "Messages waiting behind their order key.", |s, _| count(s.blocked)),
    gauge("onward_queue_bytes", "Bytes of unfinished messages.", |s, _| count(s.bytes)),
    gauge("onward_queue_oldest_age_seconds", "How long the oldest waiting message waits.", |s, now| {
        Some(s.oldest_waiting.map_or(0.0, |at| (now - at.as_micros()).max(0) as f64 / 1e6))
    }),
    gauge("onward_queue_paused", "1 while it hands out nothing.", |s, _| count(u64::from(s.paused))),
    gauge("onward_queue_stopped_dead_full", "1 while it stands since its dead letters are full.", |s, _| {
        count(u64::from(s.stopped_dead_full))
    }),
    counter("onward_queue_accepted_total", "Messages accepted.", |s, _| count(s.books.accepted)),
    counter("onward_queue_done_total", "Messages finished.", |s, _| count(s.books.done)),
    counter("onward_queue_expired_total", "Messages that ran out of time.", |s, _| count(s.books.expired)),
    counter("onward_queue_cancelled_total", "Messages cancelled.", |s, _| count(s.books.cancelled)),
    counter("onward_queue_purged_total", "Messages purged.", |s, _| count(s.books.purged)),
    counter("onward_queue_shed_total", "Messages shed for higher priorities.", |s, _| count(s.books.shed)),
    counter("onward_queue_deliveries_total", "Messages handed out.", |s, _| count(s.deliveries)),
    counter("onward_queue_failures_total", "Attempts that failed.", |s, _| count(s.failures)),
];

const fn gauge(name: &'static str, help: &'static str, value: fn(&Stats, i64) -> Option<f64>) -> Family {
    Family { name, kind: "gauge", help, value }
}

const fn counter(name: &'static str, help: &'static str, value: fn(&Stats, i64) -> Option<f64>) -> Family {
    Family { name, kind: "counter", help, value }
}

fn count(number: u64) -> Option<f64> {
    Some(number as f64)
}

/// The numbers in the text format 0.0.4, of the queues that the token may read.
pub(crate) async fn show(State(app): State<App>, caller: Caller) -> Answer<impl IntoResponse> {
    let engine = app.onward.engine();
    let mut stats = engine.stats(Vec::new()).await?;
    stats.retain(|one| caller.on(Action::Read, &one.inlet).is_ok());
    let health = engine.health();
    let mut text = render(&stats, app.onward.env().now().as_micros());
    for (name, help, well) in [
        ("onward_engine_readable", "1 while the engine answers reads.", health.readable),
        ("onward_engine_writable", "1 while the engine accepts writes.", health.writable),
    ] {
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge\n{name} {}", u8::from(well));
    }
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text))
}

fn render(stats: &[Stats], now: i64) -> String {
    let mut text = String::new();
    for family in FAMILIES {
        let Family { name, kind, help, value } = family;
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for one in stats {
            if let Some(number) = value(one, now) {
                // Writing into a string can't fail.
                let _ = writeln!(text, "{name}{{{}}} {number}", labels(&one.inlet));
            }
        }
    }
    text
}

/// Names have no character that would have to be escaped.
fn labels(inlet: &Inlet) -> String {
    match inlet {
        Inlet::Queue(name) => format!("namespace=\"{}\",queue=\"{}\"", name.namespace(), name.local()),
        Inlet::Subscription { topic, name } => {
            format!("namespace=\"{}\",queue=\"{}:{name}\"", topic.namespace(), topic.local())
        }
    }
}
