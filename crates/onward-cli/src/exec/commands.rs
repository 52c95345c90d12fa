//! The handler that runs a command for each message, and tells what became of it.

use super::{
    child::{Job, Report, Runner, Streams},
    stopping::Stopping,
    verdict::{follows, reason, verdict, word},
};
use crate::output::{Output, one_line, span};
use onward::work::{Context, Release, Stop, Verdict};
use onward_core::{Env, Inlet, MessageId};
use serde::Serialize;
use std::{path::PathBuf, sync::Arc, time::Duration};

/// How what commands do is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    /// Their output goes on to the worker's streams; one note for each attempt.
    Text,
    /// One object for each attempt, with the end of the output in it.
    Json,
}

/// The commands of one worker.
pub(crate) struct Commands {
    runner: Runner,
    streams: Streams,
    stopping: Arc<Stopping>,
    out: Arc<Output>,
    data_dir: PathBuf,
}

/// What `--json` says of one attempt.
#[derive(Serialize)]
struct Attempt<'a> {
    event: &'static str,
    queue: &'a Inlet,
    id: &'a MessageId,
    #[serde(rename = "type")]
    kind: &'a str,
    attempt: u32,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    millis: u64,
    output: &'a str,
}

impl Commands {
    /// Commands run by `runner`. `data_dir` is told to them, so that they enqueue into the same folder.
    pub(crate) fn new(
        runner: Runner,
        stopping: Arc<Stopping>,
        out: Arc<Output>,
        shown: Shown,
        data_dir: PathBuf,
    ) -> Self {
        let streams = match shown {
            Shown::Text => Streams::own(),
            Shown::Json => Streams::nowhere(),
        };
        Self { runner, streams, stopping, out, data_dir }
    }

    /// Runs the command for one message.
    pub(crate) async fn handle(&self, context: Context) -> Verdict {
        if self.stopping.drains() {
            return Verdict::Failed(Release(Duration::ZERO).into());
        }
        let _running = self.stopping.begin();
        let env: &dyn Env = &*self.runner.env;
        let begun = env.monotonic();
        let stop = async {
            tokio::select! {
                why = context.cancelled() => why,
                () = self.stopping.interrupted() => Stop::Shutdown,
            }
        };
        let report = self.runner.run(self.job(&context), stop, &self.streams).await;
        self.tell(&context, &report, env.monotonic().saturating_sub(begun));
        verdict(&report.ended, &report.tail, report.result)
    }

    fn job(&self, context: &Context) -> Job {
        let message = context.message();
        let variables = vec![
            ("ONWARD_ID", message.id.to_string()),
            ("ONWARD_TYPE", message.kind.to_string()),
            ("ONWARD_VERSION", message.version.to_string()),
            ("ONWARD_SOURCE", message.source.to_string()),
            ("ONWARD_CORRELATION_ID", message.correlation().to_owned()),
            ("ONWARD_QUEUE", context.inlet().to_string()),
            ("ONWARD_ATTEMPT", context.attempt().to_string()),
            ("ONWARD_DATA_DIR", self.data_dir.display().to_string()),
        ];
        Job { variables, line: message.to_json() }
    }

    fn tell(&self, context: &Context, report: &Report, took: Duration) {
        let (message, outcome) = (context.message(), word(&report.ended, context.is_last_attempt()));
        let reason = reason(&report.ended, &report.tail);
        let attempt = context.attempt();
        if report.result_too_long {
            self.out.note(format_args!("{}: stdout is too long to be kept as a result", message.id));
        }
        if self.out.is_json() {
            self.out.object(&Attempt {
                event: "attempt",
                queue: context.inlet(),
                id: &message.id,
                kind: &message.kind,
                attempt,
                outcome,
                reason,
                millis: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
                output: &report.tail,
            });
            return;
        }
        let reason = reason.map(|reason| format!(": {}", one_line(&reason, 200))).unwrap_or_default();
        let kind = one_line(&message.kind, 60);
        self.out.note(format_args!(
            "{} {kind} attempt {attempt} of {} ran {}, {}{reason}",
            message.id,
            context.attempts_max(),
            span(took),
            follows(outcome)
        ));
    }
}
