//! The inbox by hand and the worker's idempotent handlers know what the other did.

use onward::{
    Message,
    core::{Holder, Inlet, LeaseRequest, RequestId},
    inbox::{self, Once},
    work::{self, State, Worker, handler},
};
use std::{
    sync::atomic::{AtomicU32, Ordering::SeqCst},
    time::Duration,
};

async fn charge(_order: String, charges: State<AtomicU32>) -> work::Result {
    charges.fetch_add(1, SeqCst);
    Ok(())
}

#[tokio::test]
async fn what_was_processed_by_hand_no_worker_processes_again() {
    let onward = onward::connect("memory:").await.unwrap();
    for id in ["first", "second"] {
        let message = Message::builder("charge").id(id.try_into().unwrap()).json("o1");
        onward.enqueue("charges", message).await.unwrap();
    }
    let process = onward::this_process(&**onward.env());
    let holder = Holder { worker: "by-hand".into(), process };
    let inlet: Inlet = "charges".parse().unwrap();
    let request = LeaseRequest::one(inlet, holder, RequestId::generate(&**onward.env()));
    let delivery = onward.engine().lease(request).await.unwrap().pop().unwrap();
    let remember = Duration::from_secs(60);
    let done = inbox::once(&**onward.engine(), &delivery, "o1", remember, Vec::new()).await.unwrap();
    assert_eq!(done, Once::Now);
    let handling = handler(charge).with_effects().idempotent_by(String::clone);
    let worker = Worker::new(&onward).state(AtomicU32::new(0)).handle("charges", handling);
    let report = worker.run_until_empty().await.unwrap();
    assert_eq!((report.done, report.skipped), (0, 1), "{report:?}");
}
