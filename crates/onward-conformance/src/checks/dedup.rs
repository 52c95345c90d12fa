//! Deduplication: the same id once, told as a repeat; and unique work.

use crate::bench::{accepted, commit, enqueue, millis, rules};
use crate::check::{checks, ensure, ensure_eq};
use crate::{Bench, Done, Need::Durable, Need::Has, Stop};
use onward_core::{
    Accepted,
    Capability::{Dedup, Queues, Unique},
    ErrorKind, InletConfig, Message, Name,
};

checks! { group "dedup";
    same_id_in_window_once,
        "A repeat within the window adds nothing and answers the first id as a duplicate, also from 60 callers at once.",
        [Has(Queues), Has(Dedup)], ["T56"];
    same_id_other_body_conflicts,
        "The same id with other content is a conflict, and changes nothing.",
        [Has(Queues), Has(Dedup)], ["G6"];
    window_expires,
        "A finished id is forgotten when the window has passed, and is new again.",
        [Has(Queues), Has(Dedup)], [];
    retry_returns_original_position,
        "A repeat answers the place of the first, while it waits, while it is worked on, and when it is done.",
        [Has(Queues), Has(Dedup)], ["AD2"];
    dedup_is_per_queue,
        "The same id in two queues is two messages.",
        [Has(Queues), Has(Dedup)], [];
    dedup_key_stands_for_id,
        "A message's own dedup key is what counts, where it has one; the id alone, where another source made it, is not.",
        [Has(Queues), Has(Dedup)], [];
    dedup_survives_crash,
        "Ids of waiting and of finished messages are remembered over a crash.",
        [Has(Queues), Has(Dedup), Durable], [];
    unique_key_one_unfinished,
        "Of 100 concurrent enqueues of one unique key 1 is created and 99 are told its id; once it is finished, one more may come.",
        [Has(Queues), Has(Unique)], ["T43", "T44"];
}

/// Commits each message from a task of its own; all of them run at once.
async fn all_at_once(b: &Bench, queue: &Name, messages: Vec<Message>) -> Result<Vec<Accepted>, Stop> {
    let tasks: Vec<_> = messages
        .into_iter()
        .map(|message| {
            let (engine, op) = (b.engine(), enqueue(queue, message));
            tokio::spawn(async move { commit(&*engine, vec![op]).await })
        })
        .collect();
    let mut answers = Vec::new();
    for task in tasks {
        let receipts = task.await.map_err(|e| Stop::Failed(e.to_string()))??;
        answers.push(accepted(receipts.into_iter().next().unwrap_or(onward_core::Receipt::Done))?);
    }
    Ok(answers)
}

async fn same_id_in_window_once(b: &mut Bench) -> Done {
    let queue = b.queue(rules()).await?;
    let message = b.message("m").build(b.env())?;
    let answers = all_at_once(b, &queue, vec![message.clone(); 60]).await?;
    ensure_eq!(answers.iter().filter(|a| !a.duplicate).count(), 1, "enqueues that are no duplicates");
    ensure!(answers.iter().all(|a| a.id == message.id), "a duplicate is told another id");
    // Twice in one commit, too.
    let twice = b.commit(vec![enqueue(&queue, message.clone()), enqueue(&queue, message.clone())]).await?;
    for receipt in twice {
        ensure!(accepted(receipt)?.duplicate, "a repeat within one commit is no duplicate");
    }
    let delivery = b.must_take(&queue).await?;
    ensure!(
        b.enqueue(&queue, message.clone()).await?.duplicate,
        "a repeat while it is leased is no duplicate"
    );
    b.ack(&delivery).await?;
    ensure!(b.enqueue(&queue, message).await?.duplicate, "a repeat after it is done is no duplicate");
    b.nothing_for(&queue, b.brief()).await?;
    let stats = b.stats(&queue).await?;
    ensure_eq!((stats.books.accepted, stats.duplicates), (1, 63), "accepted and duplicates");
    Ok(())
}

async fn same_id_other_body_conflicts(b: &mut Bench) -> Done {
    let queue = b.queue(rules()).await?;
    let first = b.message("m").json(&"one").build(b.env())?;
    b.enqueue(&queue, first.clone()).await?;
    for other in [b.message("m").json(&"two"), b.message("m").json(&"one").version(2)] {
        match b.enqueue(&queue, other.build(b.env())?).await {
            Err(error) => ensure_eq!(error.kind(), ErrorKind::Conflict, "other content under the same id"),
            Ok(accepted) => return Err(Stop::Failed(format!("other content was accepted: {accepted:?}"))),
        }
    }
    let delivery = b.must_take(&queue).await?;
    ensure_eq!(delivery.message, first, "the message after the conflicts");
    ensure!(b.take(&queue).await?.is_none(), "a conflict left a message");
    Ok(())
}

async fn window_expires(b: &mut Bench) -> Done {
    let window = b.brief();
    let config = InletConfig { dedup_window_ms: window.as_millis() as u64, ..rules() };
    let queue = b.queue(config).await?;
    let message = b.message("m").build(b.env())?;
    b.enqueue(&queue, message.clone()).await?;
    b.pass(window * 2).await;
    let waiting = b.enqueue(&queue, message.clone()).await?;
    ensure!(waiting.duplicate, "an unfinished message's id is forgotten");
    let delivery = b.must_take(&queue).await?;
    b.ack(&delivery).await?;
    b.pass(window + millis(100)).await;
    ensure!(!b.enqueue(&queue, message).await?.duplicate, "a finished id is remembered beyond the window");
    ensure_eq!(b.must_take(&queue).await?.attempt, 1, "the attempt of the new message");
    Ok(())
}

async fn retry_returns_original_position(b: &mut Bench) -> Done {
    let queue = b.queue(rules()).await?;
    b.put(&queue, "before").await?;
    let message = b.message("m").build(b.env())?;
    let first = b.enqueue(&queue, message.clone()).await?;
    b.put(&queue, "after").await?;
    let same = |answer: &Accepted| (answer.id.clone(), answer.position) == (first.id.clone(), first.position);
    let waiting = b.enqueue(&queue, message.clone()).await?;
    ensure!(waiting.duplicate && same(&waiting), "while waiting a repeat answers {waiting:?}");
    let deliveries = b.take_many(&queue, 3).await?;
    ensure_eq!(deliveries.len(), 3, "deliveries");
    let leased = b.enqueue(&queue, message.clone()).await?;
    ensure!(leased.duplicate && same(&leased), "while leased a repeat answers {leased:?}");
    for delivery in &deliveries {
        b.ack(delivery).await?;
    }
    let done = b.enqueue(&queue, message).await?;
    ensure!(done.duplicate && same(&done), "when done a repeat answers {done:?}, not {first:?}");
    Ok(())
}

async fn dedup_is_per_queue(b: &mut Bench) -> Done {
    let message = b.message("m").build(b.env())?;
    for _ in 0..2 {
        let queue = b.queue(rules()).await?;
        ensure!(
            !b.enqueue(&queue, message.clone()).await?.duplicate,
            "an id of another queue is a duplicate"
        );
        ensure_eq!(b.must_take(&queue).await?.message.id, message.id, "what is handed out");
    }
    Ok(())
}

async fn dedup_key_stands_for_id(b: &mut Bench) -> Done {
    let queue = b.queue(rules()).await?;
    let keyed = |id: &str| b.message(id).json(&"same").dedup_key("k").build(b.env());
    b.enqueue(&queue, keyed("first")?).await?;
    let second = b.enqueue(&queue, keyed("second")?).await?;
    ensure_eq!(
        (second.duplicate, second.id.as_str()),
        (true, "first"),
        "the same dedup key under another id"
    );
    ensure!(b.take_many(&queue, 5).await?.len() == 1, "the same dedup key was handed out twice");
    Ok(())
}

async fn dedup_survives_crash(b: &mut Bench) -> Done {
    let queue = b.queue(rules()).await?;
    let (done, waiting) = (b.message("done").build(b.env())?, b.message("waiting").build(b.env())?);
    b.enqueue(&queue, done.clone()).await?;
    let delivery = b.must_take(&queue).await?;
    b.ack(&delivery).await?;
    b.enqueue(&queue, waiting.clone()).await?;
    b.subject.crash().await?;
    for message in [done, waiting] {
        let id = message.id.clone();
        ensure!(b.enqueue(&queue, message).await?.duplicate, "{id} is forgotten after a crash");
    }
    ensure_eq!(b.take_many(&queue, 5).await?.len(), 1, "messages after the crash");
    Ok(())
}

async fn unique_key_one_unfinished(b: &mut Bench) -> Done {
    let queue = b.queue(rules()).await?;
    let mut messages = Vec::new();
    for index in 0..100 {
        messages.push(b.message(&format!("m{index}")).unique_key("k").build(b.env())?);
    }
    let answers = all_at_once(b, &queue, messages).await?;
    let created: Vec<_> = answers.iter().filter(|a| !a.duplicate).map(|a| a.id.clone()).collect();
    ensure_eq!(created.len(), 1, "enqueues of one unique key that were created");
    ensure!(
        answers.iter().all(|a| a.id == created[0]),
        "a duplicate is told another id than the existing one"
    );
    let mut bulk = Vec::new();
    for index in 0..10 {
        let message = b.message(&format!("b{index}")).unique_key("k").build(b.env())?;
        bulk.push(b.engine().prepare(vec![enqueue(&queue, message)])?);
    }
    for answer in b.engine().submit(bulk).await? {
        let told = accepted(answer?.into_iter().next().unwrap_or(onward_core::Receipt::Done))?;
        ensure!(told.duplicate && told.id == created[0], "in bulk it answers {told:?}");
    }
    let held = b.must_take(&queue).await?;
    let again = b.enqueue(&queue, b.message("x").unique_key("k").build(b.env())?).await?;
    ensure!(again.duplicate, "while it is leased another of its key is accepted");
    b.ack(&held).await?;
    let next = b.enqueue(&queue, b.message("y").unique_key("k").build(b.env())?).await?;
    ensure!(!next.duplicate, "after it is done no other of its key is accepted");
    failed_commit_claims_nothing(b).await?;
    Ok(())
}

/// A commit that fails leaves no claim behind: the key is free.
async fn failed_commit_claims_nothing(b: &Bench) -> Done {
    let queue = b.queue(InletConfig { depth_max: 1, ..rules() }).await?;
    let claim = enqueue(&queue, b.message("claim").unique_key("free").build(b.env())?);
    let too_many = enqueue(&queue, b.message("too-many").build(b.env())?);
    if b.commit(vec![claim.clone(), too_many]).await.is_ok() {
        return Err(Stop::Failed("a commit beyond the queue's depth was accepted".into()));
    }
    ensure!(!accepted(b.op(claim).await?)?.duplicate, "a commit that failed left its claim");
    Ok(())
}
