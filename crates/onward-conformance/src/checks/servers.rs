//! Lifecycle, where the engine speaks to a server: it restarts, the engine stays.

use crate::bench::{PATIENCE, commit, millis, rules};
use crate::check::{checks, ensure_eq};
use crate::{Bench, Done, Need::Durable, Need::Has, Need::Server, Stop};
use onward_core::{Capability::Queues, Delivery, ErrorKind, Name, Op};

checks! { group "lifecycle";
    server_restart_midstream,
        "A server that restarts in the middle of work loses nothing that it acknowledged, and work goes on.",
        [Has(Queues), Durable, Server], [];
    reconnect_keeps_subscription,
        "After a restart of the server the same engine goes on leasing from its inlet, without being made anew.",
        [Has(Queues), Server], [];
}

/// Takes until nothing is left or patience ends, over errors that a restart brings; acknowledges each.
async fn drain(b: &Bench, queue: &Name, count: usize) -> Result<Vec<Delivery>, Stop> {
    let mut taken: Vec<Delivery> = Vec::new();
    let start = b.monotonic();
    while taken.len() < count && b.monotonic() - start < PATIENCE {
        match b.take(queue).await {
            Ok(Some(delivery)) => {
                let op = Op::Settle { token: delivery.token.clone(), outcome: crate::bench::ack() };
                if commit(&*b.engine(), vec![op]).await.is_ok() {
                    taken.push(delivery);
                }
            }
            Ok(None) => b.pass(millis(10)).await,
            Err(error) if error.kind() == ErrorKind::Unavailable => b.pass(millis(10)).await,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(taken)
}

async fn server_restart_midstream(b: &mut Bench) -> Done {
    let queue = b.queue(rules()).await?;
    for round in 0..3 {
        for index in 0..10 {
            b.put(&queue, &format!("m{round}-{index}")).await?;
        }
        drain(b, &queue, 5).await?;
        b.subject.bounce_server().await?;
    }
    let rest = drain(b, &queue, 15).await?;
    ensure_eq!(rest.len(), 15, "messages that came after three restarts");
    let books = b.stats(&queue).await?.books;
    ensure_eq!((books.accepted, books.done), (30, 30), "accepted and done");
    Ok(())
}

async fn reconnect_keeps_subscription(b: &mut Bench) -> Done {
    let queue = b.queue(rules()).await?;
    b.put(&queue, "before").await?;
    ensure_eq!(drain(b, &queue, 1).await?.len(), 1, "messages before the restart");
    b.subject.bounce_server().await?;
    let start = b.monotonic();
    loop {
        match b.put(&queue, "after").await {
            Ok(()) => break,
            Err(error) if error.kind() == ErrorKind::Unavailable && b.monotonic() - start < PATIENCE => {
                b.pass(millis(10)).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
    let came = drain(b, &queue, 1).await?;
    ensure_eq!(
        came.first().map(|d| d.message.id.clone()),
        Some(b.id("after")),
        "what came after the restart"
    );
    Ok(())
}
