//! One connection, from its first byte to its last.

use super::{
    Shared,
    processes::Member,
    session::{LAST_CALLS, Session},
};
use crate::{
    frame::{FrameReader, decode, encode},
    watches::WATCHES_MAX,
    wire::{Hello, PROTOCOL, PROTOCOL_OLDEST, ToClient, ToHost, Welcome},
    within,
    write::{OUTGOING_MAX, write_all},
};
use onward_core::{Error, Result};
use std::{pin::pin, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt},
    sync::mpsc,
};

/// Serves one connection. `peer` is what the kernel says of its other end.
pub(super) async fn serve<S>(shared: Arc<Shared>, stream: S, peer: Option<i32>)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    shared.sessions.send_modify(|count| *count += 1);
    let _counted = Counted(shared.clone());
    let (read, mut write) = tokio::io::split(stream);
    let mut reader = FrameReader::new(read);
    let limit = Duration::from_millis(shared.options.hello_ms);
    let greeted = within(&*shared.env, limit, greet(&shared, &mut reader, peer)).await;
    let (member, _permit, welcome) = match greeted {
        Some(Ok(greeted)) => greeted,
        Some(Err(error)) => {
            let refusal = encode(&ToClient::Refused(error)).unwrap_or_default();
            let _ = within(&*shared.env, limit, write.write_all(&refusal)).await;
            return;
        }
        None => return,
    };
    let (outgoing, queue) = mpsc::channel(OUTGOING_MAX);
    if let Ok(frame) = encode(&ToClient::Welcome(Box::new(welcome.clone()))) {
        let _ = outgoing.send(frame).await;
    }
    let write_limit = Duration::from_millis(shared.options.write_ms);
    let mut session = Session::new(&shared, outgoing, welcome.health);
    let mut writing = pin!(write_all(write, queue, &*shared.env, write_limit));
    let end = tokio::select! {
        end = session.talk(&mut reader, &member) => end,
        error = &mut writing => {
            error.inspect(|error| tracing::info!(%error, "dropped a client"));
            session.finish(LAST_CALLS, false).await;
            return;
        }
    };
    // The queue's only sender goes with the session, so that writing ends when all is written.
    let ((), _) = tokio::join!(session.end(end, member), writing);
}

struct Counted(Arc<Shared>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.sessions.send_modify(|count| *count -= 1);
    }
}

type Greeted = (Member, tokio::sync::OwnedSemaphorePermit, Welcome);

async fn greet<R: AsyncRead + Unpin>(
    shared: &Shared,
    reader: &mut FrameReader<R>,
    peer: Option<i32>,
) -> Result<Greeted> {
    let body = reader.next().await?.ok_or_else(|| Error::invalid("the connection ended before the hello"))?;
    let Ok(ToHost::Hello(hello)) = decode(&body) else {
        return Err(Error::invalid("the first message is not a hello").mend("see docs/protocol.md"));
    };
    let protocol = choose(&hello)?;
    let permit = shared.clients.clone().try_acquire_owned().map_err(|_| {
        Error::full(format!("{} clients are connected", shared.options.clients_max))
            .mend("close some, or raise `clients_max`")
    })?;
    let member = shared.processes.join(&hello.process, peer)?;
    tracing::debug!(worker = &*hello.worker, pid = hello.pid, "a client connected");
    let welcome = Welcome {
        protocol,
        process: shared.options.process.clone(),
        capabilities: shared.engine.capabilities(),
        health: shared.engine.health(),
        calls_max: shared.options.calls_max,
        waits_max: shared.options.waits_max,
        watches_max: WATCHES_MAX as u32,
    };
    Ok((member, permit, welcome))
}

/// The newest protocol version that both speak.
fn choose(hello: &Hello) -> Result<u32> {
    let newest = hello.protocol.min(PROTOCOL);
    if newest >= hello.protocol_oldest.max(PROTOCOL_OLDEST) {
        return Ok(newest);
    }
    Err(Error::unsupported(format!(
        "the client speaks protocol {} to {}, this host {PROTOCOL_OLDEST} to {PROTOCOL}",
        hello.protocol_oldest, hello.protocol
    ))
    .mend("bring both programs to the same version of Onward"))
}
