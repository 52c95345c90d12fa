//! Request-reply over the engine: each reply reaches whoever asked, once, or is discarded and counted.

use crate::bench::{PATIENCE, ack, commit, enqueue, holder, millis, rules};
use crate::check::{checks, ensure, ensure_eq};
use crate::{Answer, Bench, Done, Need::Atomic, Need::Has, Stop};
use futures::future::{Either, join_all, select};
use onward_core::{
    AtomicScope::{Messages, Operation},
    Capability::{Browse, Queues},
    Delivery, ErrorKind, LeaseRequest, Message, Name, Op, Payload, Result, RetryHint,
};
use onward_patterns::reply::{Exchange, ReplyCounts, reply};
use std::{future::Future, pin::pin, time::Duration};

checks! { group "reply";
    reply_by_correlation,
        "Each reply reaches the request that it answers, whatever the order, and carries its correlation on.",
        [Has(Queues)], [];
    timeout_typed,
        "Without a reply in time the caller is told that the outcome is unknown; the request stays where it is.",
        [Has(Queues), Has(Browse)], [];
    late_reply_discarded,
        "A reply that nobody waits for any more is discarded and counted, and the next request gets its own.",
        [Has(Queues), Has(Browse)], ["D4"];
    thousand_concurrent_no_crossing,
        "A thousand requests at once get each its own reply.",
        [Has(Queues)], [];
    responder_crash,
        "A request whose responder dies is answered once by another; what the dead one sends later is refused.",
        [Has(Queues), Atomic(Messages)], [];
}

/// Who asks, and the queue that is asked.
struct Desk {
    exchange: Exchange,
    queue: Name,
    replies: Name,
}

impl Desk {
    async fn new(b: &Bench) -> Answer<Self> {
        let replies: Name = format!("check-replies-{}", b.next()).parse()?;
        let exchange = Exchange::new(b.engine(), b.clock().env(), replies.clone(), holder("asker", "asker"));
        exchange.declare().await?;
        Ok(Self { exchange, queue: b.queue(rules()).await?, replies })
    }

    async fn ask(&self, b: &Bench, id: &str, timeout: Duration) -> Result<Message> {
        self.exchange.request(&self.queue, b.message(id).build(b.env())?, timeout).await
    }

    /// Hands over until so many replies came.
    async fn receives(&self, b: &Bench, count: usize) -> Done {
        let (start, mut came) = (b.monotonic(), 0);
        while came < count {
            ensure!(b.monotonic() - start < PATIENCE, "{came} of {count} replies came");
            came += self.exchange.receive(Duration::ZERO).await?;
            b.pass(millis(1)).await;
        }
        Ok(())
    }
}

/// The commits that answer a request with its id: one, where the engine can.
fn answers(b: &Bench, request: &Delivery) -> Answer<Vec<Vec<Op>>> {
    let reply = reply(&request.message, Payload::json(request.message.id.as_str())?, b.env())?;
    let settle = Op::Settle { token: request.token.clone(), outcome: ack() };
    let scope = b.engine().capabilities().atomic;
    Ok(if scope >= Messages && scope != Operation {
        vec![vec![reply, settle]]
    } else {
        vec![vec![reply], vec![settle]]
    })
}

async fn respond(b: &Bench, request: &Delivery) -> Done {
    for ops in answers(b, request)? {
        commit(&*b.engine(), ops).await?;
    }
    Ok(())
}

/// What those who ask get while others respond. Whoever gets nothing is told so by the time that passes afterwards.
async fn together<T>(
    b: &Bench,
    asked: impl Future<Output = T>,
    others: impl Future<Output = Done>,
) -> Answer<T> {
    let (asked, others) = (pin!(asked), pin!(others));
    let asked = match select(asked, others).await {
        Either::Left((answer, others)) => {
            others.await?;
            return Ok(answer);
        }
        Either::Right((done, asked)) => done.map(|()| asked)?,
    };
    match select(asked, pin!(b.pass(PATIENCE * 3))).await {
        Either::Left((answer, _)) => Ok(answer),
        Either::Right(((), asked)) => Ok(asked.await),
    }
}

/// Whether this answers the request of this id.
fn answers_it(reply: &Result<Message>, id: &str) -> Done {
    let reply = reply.as_ref().map_err(Clone::clone)?;
    ensure_eq!(reply.data.parse::<String>()?, id, "the request whose reply came to {id}");
    ensure_eq!(reply.causation_id.as_deref(), Some(id), "what the reply names as its cause");
    Ok(())
}

async fn reply_by_correlation(b: &mut Bench) -> Done {
    let desk = Desk::new(b).await?;
    let ids = ["r0", "r1", "r2"];
    let asked = join_all(ids.map(|id| desk.ask(b, id, PATIENCE * 2)));
    let responder = async {
        let mut requests = Vec::new();
        for _ in ids {
            requests.push(b.await_take(&desk.queue).await?);
        }
        for request in requests.iter().rev() {
            respond(b, request).await?;
        }
        desk.receives(b, ids.len()).await
    };
    let replies = together(b, asked, responder).await?;
    for (reply, id) in replies.iter().zip(ids) {
        answers_it(reply, id)?;
        ensure_eq!(reply.as_ref().map_err(Clone::clone)?.correlation(), id, "the correlation of a reply");
    }
    ensure_eq!(
        desk.exchange.counts(),
        ReplyCounts { answered: 3, ..ReplyCounts::default() },
        "what came of replies"
    );
    let plain = b.message("plain").build(b.env())?;
    let refused = reply(&plain, Payload::json(&1)?, b.env());
    ensure!(refused.is_err_and(|e| e.kind() == ErrorKind::Invalid), "what asks for no reply can be answered");
    Ok(())
}

/// Asks, and lets the time run out once the request was accepted.
async fn times_out(b: &Bench, desk: &Desk, id: &str) -> Done {
    let time = async {
        let start = b.monotonic();
        while b.find(&desk.queue, id).await?.is_none() {
            ensure!(b.monotonic() - start < PATIENCE, "the request {id} never came");
            b.pass(millis(1)).await;
        }
        b.pass(PATIENCE * 3).await;
        Done::Ok(())
    };
    let answer = together(b, desk.ask(b, id, PATIENCE * 2), time).await?;
    match answer {
        Err(error) => {
            ensure_eq!(error.kind(), ErrorKind::Unavailable, "the error's kind");
            ensure_eq!(error.retry_hint(), RetryHint::Unknown, "whether it may have happened");
            ensure_eq!(error.place(), Some(id), "what the error is about");
        }
        Ok(_) => return Err(Stop::Failed("nobody answered, and a reply came".into())),
    }
    ensure_eq!(desk.exchange.waiting(), 0, "requests that wait after the timeout");
    Ok(())
}

async fn timeout_typed(b: &mut Bench) -> Done {
    let desk = Desk::new(b).await?;
    times_out(b, &desk, "m").await?;
    let request = b.await_take(&desk.queue).await?;
    ensure_eq!((request.message.id.as_str(), request.attempt), ("m", 1), "what is still there to be done");
    Ok(())
}

async fn late_reply_discarded(b: &mut Bench) -> Done {
    let desk = Desk::new(b).await?;
    times_out(b, &desk, "late").await?;
    let request = b.await_take(&desk.queue).await?;
    respond(b, &request).await?;
    desk.receives(b, 1).await?;
    let orphan = Message::builder("check").causation_id("never-asked").json(&1).build(b.env())?;
    b.op(enqueue(&desk.replies, orphan)).await?;
    desk.receives(b, 1).await?;
    let next = async {
        respond(b, &b.await_take(&desk.queue).await?).await?;
        desk.receives(b, 1).await
    };
    let answer = together(b, desk.ask(b, "next", PATIENCE * 2), next).await?;
    answers_it(&answer, "next")?;
    let expected = ReplyCounts { answered: 1, late: 1, orphan: 1, duplicate: 0 };
    ensure_eq!(desk.exchange.counts(), expected, "what came of replies");
    let books = b.stats(&desk.replies).await?.books;
    ensure_eq!(
        (books.done, books.waiting, books.leased, books.delayed),
        (3, 0, 0, 0),
        "replies done and left"
    );
    Ok(())
}

async fn thousand_concurrent_no_crossing(b: &mut Bench) -> Done {
    let desk = Desk::new(b).await?;
    // The doubles, of which there are many, are looked at with fewer.
    let count = if b.messages >= 1_000 { 1_000 } else { b.messages / 10 };
    let ids: Vec<String> = (0..count).map(|index| format!("r{index}")).collect();
    let asked = join_all(ids.iter().map(|id| desk.ask(b, id, PATIENCE * 2)));
    let responder = async {
        let (start, mut left) = (b.monotonic(), ids.len());
        while left > 0 {
            ensure!(b.monotonic() - start < PATIENCE, "{left} of {count} requests never came");
            let requests = b.take_many(&desk.queue, 100).await?;
            left -= requests.len();
            for request in requests.iter().rev() {
                respond(b, request).await?;
            }
            b.pass(millis(1)).await;
        }
        desk.receives(b, ids.len()).await
    };
    let replies = together(b, asked, responder).await?;
    ids.iter().zip(&replies).try_for_each(|(id, reply)| answers_it(reply, id))?;
    ensure_eq!(
        desk.exchange.counts(),
        ReplyCounts { answered: count, ..ReplyCounts::default() },
        "what came of replies"
    );
    Ok(())
}

async fn responder_crash(b: &mut Bench) -> Done {
    let desk = Desk::new(b).await?;
    let responders = async {
        let brief = LeaseRequest { lease: Some(b.brief()), ..b.request(&desk.queue) };
        let dead = b.await_request(brief).await?;
        let second = b.await_take(&desk.queue).await?;
        ensure_eq!(second.attempt, 2, "the attempt of the second responder");
        for ops in answers(b, &dead)? {
            let late = commit(&*b.engine(), ops).await;
            ensure!(
                late.is_err_and(|e| e.kind() == ErrorKind::LeaseLost),
                "a dead responder's answer was taken"
            );
        }
        respond(b, &second).await?;
        desk.receives(b, 1).await?;
        b.nothing_for(&desk.replies, b.brief()).await
    };
    let answer = together(b, desk.ask(b, "m", PATIENCE * 2), responders).await?;
    answers_it(&answer, "m")?;
    ensure_eq!(
        desk.exchange.counts(),
        ReplyCounts { answered: 1, ..ReplyCounts::default() },
        "what came of replies"
    );
    Ok(())
}
