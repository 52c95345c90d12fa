//! How messages are shown: a table of many, or one in full.

use crate::{
    context::Context,
    output::{Table, ago, one_line, span, until},
};
use onward::{event_json, view_json};
use onward_core::{Message, MessageView, Payload, RecordedEvent, Timestamp};

/// Most characters of data or error in a table.
const PREVIEW_CHARS: usize = 60;

/// Shows messages, as a table or as JSON lines.
pub(crate) fn list(context: &Context, views: &[MessageView]) {
    if context.out.is_json() {
        views.iter().for_each(|view| context.out.object(&view_json(view)));
        return;
    }
    let now = context.env.now();
    let mut table = Table::new(&["ID", "TYPE", "STATE", ">ATTEMPTS", ">AGE", "DATA"]);
    for view in views {
        let data = preview(&view.message.data);
        let age = span(now.since(view.accepted_at));
        table.row(vec![id(view), kind(view), state(view, now), view.attempts.to_string(), age, data]);
    }
    context.out.write(table.render(context.out.style()).as_bytes());
}

/// Shows dead letters with their last error, as a table or as JSON lines.
pub(crate) fn dead(context: &Context, views: &[MessageView]) {
    if context.out.is_json() {
        views.iter().for_each(|view| context.out.object(&view_json(view)));
        return;
    }
    let now = context.env.now();
    let mut table = Table::new(&["QUEUE", "ID", "TYPE", ">ATTEMPTS", ">DEAD FOR", "CAUSE", "ERROR"]);
    for view in views {
        let since = span(now.since(view.ended_at.unwrap_or(view.accepted_at)));
        let (cause, error) = match view.causes.last() {
            Some(last) => (last.failure.kind.to_string(), one_line(&last.failure.error, PREVIEW_CHARS)),
            None => ("-".to_owned(), "-".to_owned()),
        };
        let inlet = view.inlet.to_string();
        table.row(vec![inlet, id(view), kind(view), view.attempts.to_string(), since, cause, error]);
    }
    context.out.write(table.render(context.out.style()).as_bytes());
}

/// Shows events, as a table or as JSON lines; the heading stands above the first of them.
pub(crate) fn events(context: &Context, events: &[RecordedEvent], first: bool) {
    if context.out.is_json() {
        events.iter().for_each(|recorded| context.out.object(&event_json(recorded)));
        return;
    }
    if events.is_empty() {
        return;
    }
    let mut table = Table::new(&[">POSITION", "STREAM", ">REVISION", "TIME", "TYPE", "DATA"]);
    for recorded in events {
        let message = &recorded.event.message;
        table.row(vec![
            recorded.position.to_string(),
            one_line(&recorded.stream.to_string(), PREVIEW_CHARS),
            recorded.revision.to_string(),
            recorded.recorded_at.to_string(),
            one_line(&message.kind, PREVIEW_CHARS),
            preview(&message.data),
        ]);
    }
    let text = table.render(context.out.style());
    let rows = if first { &text[..] } else { text.split_once('\n').map_or("", |(_, rows)| rows) };
    context.out.write(rows.as_bytes());
}

/// Shows one message in full.
pub(crate) fn full(context: &Context, view: &MessageView) {
    if context.out.is_json() {
        context.out.object(&view_json(view));
        return;
    }
    let now = context.env.now();
    let message = &view.message;
    let mut lines = vec![
        ("id", id(view)),
        ("queue", view.inlet.to_string()),
        ("type", format!("{} (version {})", kind(view), message.version)),
        ("state", state(view, now)),
        ("attempts", view.attempts.to_string()),
        ("accepted", ago(view.accepted_at, now)),
    ];
    lines.extend(view.due.map(|due| ("due", until(due, now))));
    lines.extend(view.ended_at.map(|at| ("ended", ago(at, now))));
    lines.extend(view.lease.as_ref().map(|l| ("held by", format!("{} until {}", l.holder.worker, l.until))));
    lines.extend(keys(message));
    if view.original.is_some() {
        lines.push(("edition", message.edition.to_string()));
    }
    for (name, text) in lines {
        context.out.line(format_args!("{:<15} {}", format!("{name}:"), one_line(&text, 1_000)));
    }
    for cause in &view.causes {
        let failure = &cause.failure;
        let error = one_line(&failure.error, 1_000);
        context.out.line(format_args!(
            "attempt {:<7} {} by {}, {}: {error}",
            format!("{}:", cause.attempt),
            failure.kind,
            one_line(&cause.worker, 100),
            ago(cause.at, now)
        ));
        if let Some(detail) = &failure.detail {
            detail.lines().for_each(|line| context.out.line(format_args!("    | {}", one_line(line, 1_000))));
        }
    }
    payload(context, "data", &message.data);
    if let Some(original) = &view.original {
        payload(context, "original data", &original.data);
    }
    if let Some(result) = &view.result {
        payload(context, "result", result);
    }
}

fn keys(message: &Message) -> impl Iterator<Item = (&'static str, String)> {
    let text = |key: &Option<onward_core::Key>| key.as_ref().map(ToString::to_string);
    let all = [
        ("source", Some(message.source.to_string())),
        ("made at", Some(message.timestamp.to_string())),
        ("correlation id", Some(message.correlation().to_owned())),
        ("causation id", message.causation_id.as_deref().map(str::to_owned)),
        ("order key", text(&message.order_key)),
        ("dedup key", text(&message.dedup_key)),
        ("unique key", text(&message.unique_key)),
        ("fairness key", text(&message.fairness_key)),
        ("priority", Some(message.priority.get().to_string())),
        ("expiry", message.expiry.map(|at| at.to_string())),
    ];
    all.into_iter().filter_map(|(name, value)| value.map(|value| (name, value)))
}

/// Text as it stands, so that no digit is lost; anything else is only measured.
fn payload(context: &Context, name: &str, payload: &Payload) {
    match std::str::from_utf8(payload.as_bytes()) {
        Ok(text) => context.out.line(format_args!("{name}:\n{}", harmless(text))),
        Err(_) => context.out.line(format_args!("{name}: {payload:?}")),
    }
}

/// Text with its line ends, without what a terminal would obey.
fn harmless(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\n' && c != '\t' { ' ' } else { c }).collect()
}

fn preview(payload: &Payload) -> String {
    match std::str::from_utf8(payload.as_bytes()) {
        Ok(text) => one_line(text, PREVIEW_CHARS),
        Err(_) => format!("({payload:?})"),
    }
}

fn id(view: &MessageView) -> String {
    view.message.id.to_string()
}

fn kind(view: &MessageView) -> String {
    one_line(&view.message.kind, PREVIEW_CHARS)
}

fn state(view: &MessageView, now: Timestamp) -> String {
    let marks =
        [(view.blocked, "blocked"), (view.suspect, "suspect"), (view.cancel_requested, "cancel requested")];
    let mut text = view.state.to_string();
    if let Some(due) = view.due.filter(|due| *due > now) {
        text += &format!(" in {}", span(due.since(now)));
    }
    for (_, mark) in marks.iter().filter(|(set, _)| *set) {
        text += &format!(", {mark}");
    }
    text
}
