//! Stopping, pausing and cancelling.

use crate::stage::{QUEUE, SECOND, run};
use onward::{
    core::{CancelOutcome, MessageState, Op},
    work::{Context, State, Stop},
};
use onward_env::pass;
use std::{sync::atomic::Ordering::SeqCst, time::Duration};
use tokio::sync::mpsc;

async fn sleep_for(seconds: u64, context: Context) {
    pass(&**context.onward().env(), Duration::from_secs(seconds)).await;
}

/// Runs until it is told why to stop, and passes that on.
async fn until_told(context: Context, tell: State<mpsc::UnboundedSender<Stop>>) {
    tell.send(context.cancelled().await).unwrap();
}

on_each_engine! {
    #[proves("B8")]
    async fn a_stop_leases_nothing_more_and_lets_what_runs_end(stage: Stage) {
        let mut worker = run(stage.worker().concurrency(2).handle(QUEUE, sleep_for));
        let ids = [stage.send_data("a", &10u64).await, stage.send_data("b", &12u64).await, stage.send_data("c", &1u64).await];
        stage.pass(SECOND).await;
        worker.begin_stop();
        let report = worker.report().await;
        assert_eq!((report.done, report.interrupted, report.lost), (2, 0, 0));
        assert_eq!(stage.view(&ids[2]).await.attempts, 0);
        assert_eq!(stage.state(&ids[2]).await, Some(MessageState::Waiting));
    }

    #[proves("T35", "B8")]
    async fn what_was_leased_and_not_started_goes_back_at_once_when_the_worker_stops(stage: Stage) {
        let ids = [stage.send_data("a", &1u64).await, stage.send_data("b", &1u64).await];
        stage.faults.hold_lease_answers.store(true, SeqCst);
        let mut worker = run(stage.worker().handle(QUEUE, sleep_for));
        stage.pass(SECOND).await;
        assert_eq!(stage.onward.stats(QUEUE).await.unwrap().books.leased, 2);
        let begun = stage.now();
        worker.begin_stop();
        stage.pass(SECOND / 10).await;
        stage.faults.go.notify_one();
        let report = worker.report().await;
        assert_eq!((report.released, report.done), (2, 0));
        assert!(stage.now() - begun < SECOND);
        for id in &ids {
            let view = stage.view(id).await;
            assert_eq!((view.state, view.attempts), (MessageState::Waiting, 0));
        }
    }

    #[proves("T36", "B8")]
    async fn what_does_not_end_in_time_is_interrupted_and_its_attempt_does_not_count(stage: Stage) {
        let (tell, mut told) = mpsc::unbounded_channel::<Stop>();
        let worker = stage.worker().state(tell).drain(20 * SECOND).handle(QUEUE, until_told);
        let (mut worker, id) = (run(worker), stage.send("a").await);
        stage.pass(SECOND).await;
        let begun = stage.now();
        worker.begin_stop();
        let report = worker.report().await;
        assert_eq!(told.recv().await, Some(Stop::Shutdown));
        let took = stage.now() - begun;
        assert!((20 * SECOND..22 * SECOND).contains(&took), "{took:?}");
        // It returned without an error once it was told: it is done.
        assert_eq!((report.done, report.interrupted), (1, 0));

        let worker = stage.worker().drain(20 * SECOND).grace(3 * SECOND).handle(QUEUE, async || std::future::pending::<()>().await);
        let (worker, deaf) = (run(worker), stage.send("deaf").await);
        stage.pass(SECOND).await;
        let begun = stage.now();
        let report = worker.stop().await;
        let took = stage.now() - begun;
        assert!((23 * SECOND..25 * SECOND).contains(&took), "drain and grace: {took:?}");
        assert_eq!((report.done, report.interrupted, report.failed), (0, 1, 0));
        let view = stage.view(&deaf).await;
        assert_eq!((view.attempts, view.causes.len()), (0, 0));
        stage.reaches(&deaf, MessageState::Waiting).await;
        assert_eq!(stage.state(&id).await, Some(MessageState::Done));
    }

    #[proves("B8")]
    async fn a_running_message_can_be_cancelled(stage: Stage) {
        let worker = run(stage.worker().handle(QUEUE, async || std::future::pending::<()>().await));
        let id = stage.send("a").await;
        stage.pass(SECOND).await;
        assert_eq!(stage.onward.cancel(QUEUE, &id).await.unwrap(), CancelOutcome::Requested);
        stage.reaches(&id, MessageState::Cancelled).await;
        assert_eq!(worker.stop().await.cancelled, 1);
    }

    #[proves("T37")]
    async fn cancelling_works_while_draining(stage: Stage) {
        let (tell, mut told) = mpsc::unbounded_channel::<Stop>();
        let worker = stage.worker().state(tell).drain(600 * SECOND);
        let mut worker = run(worker.handle(QUEUE, |context: Context, tell: State<mpsc::UnboundedSender<Stop>>| async move {
            until_told(context, tell).await;
            std::future::pending::<()>().await
        }));
        let id = stage.send("a").await;
        stage.pass(SECOND).await;
        worker.begin_stop();
        stage.pass(5 * SECOND).await;
        let begun = stage.now();
        assert_eq!(stage.onward.cancel(QUEUE, &id).await.unwrap(), CancelOutcome::Requested);
        assert_eq!(worker.report().await.cancelled, 1);
        assert_eq!(told.recv().await, Some(Stop::CancelRequested));
        assert!(stage.now() - begun < 20 * SECOND);
        assert_eq!(stage.state(&id).await, Some(MessageState::Cancelled));
    }

    #[proves("B8")]
    async fn a_paused_queue_hands_out_nothing_until_it_is_resumed(stage: Stage) {
        stage.commit(Op::Pause { inlet: QUEUE.parse().unwrap() }).await;
        let worker = run(stage.worker().handle(QUEUE, async || {}));
        let id = stage.send("a").await;
        stage.pass(100 * SECOND).await;
        assert_eq!(stage.view(&id).await.attempts, 0);
        stage.onward.resume(QUEUE).await.unwrap();
        stage.reaches(&id, MessageState::Done).await;
        worker.stop().await;
    }

    async fn a_worker_of_a_closed_engine_ends_with_the_reason(stage: Stage) {
        let worker = run(stage.worker().handle(QUEUE, async || {}));
        stage.onward.engine().close(SECOND).await.unwrap();
        assert_eq!(worker.error().await.kind(), onward::ErrorKind::Closed);
    }
}
