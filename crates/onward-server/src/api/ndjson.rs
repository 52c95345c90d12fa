//! Many messages in one request, one a line, with a result a line.

use super::messages::{AcceptedBody, NDJSON, message_of};
use crate::{
    app::App,
    auth::Caller,
    problem::{Answer, Problem, Refusal},
};
use axum::{
    http::header,
    response::{IntoResponse, Response},
};
use onward::core::{Message, Name};
use serde::Serialize;

/// Messages that go to the engine together.
const TOGETHER: usize = 1_000;

#[derive(Serialize)]
#[serde(untagged)]
enum Line {
    Accepted {
        line: usize,
        #[serde(flatten)]
        accepted: AcceptedBody,
    },
    Refused {
        line: usize,
        error: Problem,
    },
}

/// Enqueues every line by itself: one that is refused spoils no other.
pub(super) async fn enqueue(app: &App, caller: &Caller, queue: &Name, text: &[u8]) -> Answer<Response> {
    let lines = text.split(|byte| *byte == b'\n').enumerate();
    let lines: Vec<(usize, &[u8])> =
        lines.map(|(at, line)| (at + 1, line.trim_ascii())).filter(|(_, line)| !line.is_empty()).collect();
    let mut out = Vec::with_capacity(lines.len() * 96);
    for together in lines.chunks(TOGETHER) {
        for line in some(app, caller, queue, together).await {
            serde_json::to_writer(&mut out, &line).map_err(|e| onward::Error::internal(e.to_string()))?;
            out.push(b'\n');
        }
    }
    Ok(([(header::CONTENT_TYPE, NDJSON)], out).into_response())
}

async fn some(app: &App, caller: &Caller, queue: &Name, lines: &[(usize, &[u8])]) -> Vec<Line> {
    let read: Vec<(usize, Answer<Message>)> =
        lines.iter().map(|(line, text)| (*line, message_of(app, caller, text, None))).collect();
    let good: Vec<Message> = read.iter().filter_map(|(_, message)| message.as_ref().ok().cloned()).collect();
    let (mut answers, mut failed) = (Vec::new().into_iter(), None);
    match app.onward.enqueue_batch(&queue.to_string(), good).await {
        Ok(each) => answers = each.into_iter(),
        Err(error) => failed = Some(error),
    }
    let lost = || onward::Error::internal("the engine answered too few");
    let answer = |(line, message): (usize, Answer<Message>)| {
        let answered = message.and_then(|_| match answers.next() {
            Some(answer) => answer.map_err(Refusal::from),
            None => Err(failed.clone().unwrap_or_else(lost).into()),
        });
        match answered {
            Ok(accepted) => Line::Accepted { line, accepted: accepted.into() },
            Err(refusal) => Line::Refused { line, error: refusal.problem() },
        }
    };
    read.into_iter().map(answer).collect()
}
