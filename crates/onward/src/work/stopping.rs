//! The end of a worker: what was not started goes back, what runs may end, what does not end is interrupted.

use super::{
    decide::{Count, release},
    run::{GIVE_BACK_MAX, Runner},
    settle::{settle_op, within},
};
use onward_core::{Delivery, Env, Result};
use std::time::Duration;

/// What settling may take after the grace of a stop, before a task is dropped as it stands.
const LAST_WORDS: Duration = Duration::from_secs(5);

impl Runner {
    /// Gives back what was not started. What is gone from its inlet once handed out has to run instead.
    pub(super) async fn give_back(&mut self, deliveries: Vec<Delivery>, sent: Duration) {
        let (run, back): (Vec<_>, Vec<_>) =
            deliveries.into_iter().partition(|d| self.at_most_once.contains(&d.token.inlet));
        self.start_all(run, sent);
        let engine = self.shared.onward.engine().clone();
        let ops = back.iter().map(|d| engine.prepare(vec![settle_op(&d.token, release(Duration::ZERO))]));
        let commits: Vec<_> = ops.filter_map(Result::ok).collect();
        if commits.is_empty() {
            return;
        }
        let env = self.shared.onward.env().clone();
        match within(&*env, GIVE_BACK_MAX, engine.submit(commits)).await {
            Some(Ok(answers)) => {
                self.report
                    .add(Count::Released, answers.iter().filter(|answer| answer.is_ok()).count() as u64);
            }
            _ => tracing::warn!(
                "what was not started could not be given back; it comes again when its lease ends"
            ),
        }
    }

    /// Lets what runs end; interrupts it after the time to drain; drops it after the grace.
    pub(super) async fn wind_down(&mut self) {
        let env = self.shared.onward.env().clone();
        tracing::info!(running = self.tasks.len(), drain = ?self.options.drain, "stopping");
        self.join_all(&*env, self.options.drain).await;
        self.shared.interrupt.send_replace(true);
        self.join_all(&*env, self.options.grace + LAST_WORDS).await;
        if !self.tasks.is_empty() {
            tracing::error!(
                left = self.tasks.len(),
                "dropped what did not stop; it comes again when its lease ends"
            );
        }
        self.report.add(Count::Lost, self.tasks.len() as u64);
        self.tasks.shutdown().await;
    }

    async fn join_all(&mut self, env: &dyn Env, span: Duration) {
        let over = env.sleep(span);
        tokio::pin!(over);
        loop {
            tokio::select! {
                biased;
                ended = self.tasks.join_next() => match ended {
                    Some(ended) => self.ended(ended),
                    None => return,
                },
                () = &mut over => return,
            }
        }
    }
}
