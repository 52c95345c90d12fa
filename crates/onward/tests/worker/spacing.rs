//! Messages spaced in time by a key.

use crate::stage::{QUEUE, SECOND, run};
use onward::{
    Message, Spaced,
    core::{MessageBuilder, MessageState},
    work::{Context, State},
};
use onward_env::pass;
use std::sync::{Arc, Mutex};

fn message(data: &str) -> MessageBuilder {
    Message::builder("test.kind").json(data)
}

/// What ran, and when.
type Ran = Arc<Mutex<Vec<(String, u64)>>>;

async fn note(data: String, context: Context, ran: State<Ran>) {
    let now = context.onward().env().monotonic().as_secs();
    ran.lock().unwrap().push((data, now));
    pass(&**context.onward().env(), SECOND).await;
}

on_each_engine! {
    #[proves("B6")]
    async fn of_one_key_one_is_taken_in_a_window(stage: Stage) {
        let throttle = async |key: &str, data: &str| stage.onward.throttle(QUEUE, key, 60 * SECOND, message(data)).await.unwrap();
        assert!(matches!(throttle("k", "first").await, Spaced::Accepted(_)));
        stage.pass(50 * SECOND).await;
        assert_eq!(throttle("k", "second").await, Spaced::LeftOut);
        assert!(matches!(throttle("other", "third").await, Spaced::Accepted(_)));
        stage.pass(15 * SECOND).await;
        assert!(matches!(throttle("k", "fourth").await, Spaced::Accepted(_)));
        assert_eq!(stage.onward.stats(QUEUE).await.unwrap().books.accepted, 3);
    }

    #[proves("B6")]
    async fn after_quiet_the_latest_runs_once(stage: Stage) {
        let ran = Ran::default();
        let worker = run(stage.worker().state(ran.clone()).handle(QUEUE, note));
        let begun = stage.now().as_secs();
        for n in 0..5 {
            stage.onward.debounce(QUEUE, "doc", 10 * SECOND, 600 * SECOND, message(&format!("edit {n}"))).await.unwrap();
            stage.pass(5 * SECOND).await;
        }
        stage.pass(60 * SECOND).await;
        let ran = ran.lock().unwrap().clone();
        assert_eq!(ran.len(), 1, "{ran:?}");
        assert_eq!(ran[0].0, "edit 4");
        assert!((30..=32).contains(&(ran[0].1 - begun)), "10 s after the last edit at 20 s: {ran:?}");
        assert_eq!(worker.stop().await.done, 1);
    }

    async fn without_quiet_it_runs_once_in_the_longest_time_and_one_that_runs_is_left_alone(stage: Stage) {
        let ran = Ran::default();
        let worker = run(stage.worker().state(ran.clone()).handle(QUEUE, note));
        let mut last = None;
        for n in 0..60 {
            let edit = message(&format!("edit {n}"));
            last = Some(stage.onward.debounce(QUEUE, "doc", 2 * SECOND, 20 * SECOND, edit).await.unwrap().id);
            stage.pass(SECOND).await;
        }
        stage.reaches(&last.unwrap(), MessageState::Done).await;
        let ran = ran.lock().unwrap().clone();
        assert!((3..=5).contains(&ran.len()), "{ran:?}");
        assert_eq!(ran.last().unwrap().0, "edit 59");
        let report = worker.stop().await;
        assert_eq!((report.done as usize, report.cancelled), (ran.len(), 0));
    }

    #[proves("T44")]
    async fn one_unfinished_message_of_a_key_is_there_at_a_time(stage: Stage) {
        let first = stage.onward.enqueue_unique(QUEUE, "k", message("a")).await.unwrap();
        let second = stage.onward.enqueue_unique(QUEUE, "k", message("b")).await.unwrap();
        assert_eq!((second.duplicate, &second.id), (true, &first.id));
        let worker = run(stage.worker().handle(QUEUE, async || {}));
        stage.reaches(&first.id, MessageState::Done).await;
        assert!(!stage.onward.enqueue_unique(QUEUE, "k", message("c")).await.unwrap().duplicate);
        worker.stop().await;
    }
}
