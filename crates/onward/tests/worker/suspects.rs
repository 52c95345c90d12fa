//! Messages that were in flight when their process died.

use crate::{
    gauge::{Gauge, run_for},
    stage::{QUEUE, SECOND, run},
};
use onward::{
    Process,
    core::{CauseKind, InletConfig, LeaseRequest, MessageState, Op, RequestId},
    work::{Context, State, Worker},
};
use onward_env::pass;
use std::{
    sync::{Arc, atomic::Ordering::SeqCst},
    time::Duration,
};

on_each_engine! {
    #[proves("T13")]
    async fn a_suspect_waits_for_what_runs_and_holds_up_what_comes(stage: Stage) {
        let gauge = Arc::new(Gauge::default());
        for n in 0..3 {
            stage.send_data(&format!("before{n}"), &20u64).await;
        }
        let worker = run(stage.worker().state(gauge.clone()).handle(QUEUE, alone));
        stage.pass(5 * SECOND).await;
        // An engine that hands a suspect to a process that is at work, and goes on handing out.
        *stage.faults.suspect.lock().unwrap() = Some("killer".into());
        let killer = stage.send_data("killer", &20u64).await;
        stage.pass(2 * SECOND).await;
        for n in 0..3 {
            stage.send_data(&format!("after{n}"), &1u64).await;
        }
        let done = stage.reaches(&killer, MessageState::Done).await;
        assert_eq!((done.attempts, done.causes.len()), (1, 0), "its lease was kept while it waited");
        stage.pass(10 * SECOND).await;
        assert_eq!(worker.stop().await.done, 7);
        let starts = gauge.starts();
        assert_eq!(starts[3], "killer", "{starts:?}");
        assert!(!starts.contains(&"beside a suspect".to_owned()), "{starts:?}");
    }

    #[proves("T13", "T14", "H5")]
    async fn a_message_that_kills_its_process_is_found_by_running_suspects_alone(stage: Stage) {
        // The error policy allows one attempt only: deaths are counted apart from it.
        stage.declare(QUEUE, InletConfig { crashes_max: 2, ..InletConfig::default() }).await;
        let ids = [stage.send_data("innocent", &3u64).await, stage.send_data("killer", &3u64).await];
        // A process takes both and dies with them.
        let dying = Process::named("dying");
        let holder = onward::core::Holder { worker: "dying".into(), process: dying.id().clone() };
        let inlet = QUEUE.parse().unwrap();
        let request = LeaseRequest { count_max: 10, ..LeaseRequest::one(inlet, holder, RequestId(1)) };
        assert_eq!(stage.onward.engine().lease(request).await.unwrap().len(), 2);
        stage.commit(Op::EndProcess { process: dying.id().clone(), died: true }).await;
        for n in 0..5 {
            stage.send_data(&format!("other{n}"), &3u64).await;
        }
        // Each round is a process that dies when the killer has started in it.
        let gauge = Arc::new(Gauge::default());
        for round in 0..2 {
            let process = Process::named(&format!("round{round}"));
            let worker = Worker::new(&stage.onward.as_process(process.clone())).concurrency(8);
            let worker = run(worker.state(gauge.clone()).handle(QUEUE, alone));
            while !gauge.starts().ends_with(&["killer".to_owned()]) {
                stage.pass(SECOND).await;
            }
            worker.kill().await;
            gauge.running.store(0, SeqCst);
            gauge.enter("death");
            gauge.leave();
            stage.commit(Op::EndProcess { process: process.id().clone(), died: true }).await;
        }
        let dead = stage.reaches(&ids[1], MessageState::Dead).await;
        assert_eq!(dead.causes.last().unwrap().failure.kind, CauseKind::Crashed);
        assert_eq!(dead.crashes, 2);
        let worker = run(stage.worker().state(gauge.clone()).handle(QUEUE, run_for));
        let innocent = stage.reaches(&ids[0], MessageState::Done).await;
        assert_eq!((innocent.crashes, innocent.attempts), (0, 1));
        assert!(!gauge.starts().contains(&"beside a suspect".to_owned()), "{:?}", gauge.starts());
        worker.stop().await;
    }
}

/// Runs as long as it says, and notes when something runs or starts beside a suspect.
async fn alone(seconds: u64, context: Context, gauge: State<Arc<Gauge>>) {
    let suspect = ["innocent", "killer"].contains(&context.id().as_str());
    gauge.enter(context.id().as_str());
    let (beside, before) = (gauge.running.load(SeqCst) - 1, gauge.starts().len());
    pass(&**context.onward().env(), Duration::from_secs(seconds)).await;
    if suspect && (beside > 0 || gauge.starts().len() > before) {
        gauge.enter("beside a suspect");
    }
    gauge.leave();
}
