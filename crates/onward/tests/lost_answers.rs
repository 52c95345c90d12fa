//! Answers that are lost on their way: what a caller makes of it, and that a repeat with the same ids is safe.

#![allow(clippy::unwrap_used, reason = "a test")]

use onward::core::{
    Delivery, ErrorKind, Failure, Holder, Inlet, LeaseRequest, Message, Op, Outcome, Receipt, RequestId,
    Result, RetryHint,
};
use onward::{Engine, SystemEnv};
use onward_client::{
    Client, ClientOptions, Host, HostOptions,
    frame::{FrameReader, decode},
    wire::ToClient,
};
use onward_core::{CauseKind, Prepared};
use onward_embedded::{MemoryEngine, Options};
use onward_proves::proves;
use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio::{io::AsyncWriteExt, net::UnixStream};

/// Connects by way of a proxy that, once armed, drops the next answer and with it the connection.
async fn dial(socket: PathBuf, armed: Arc<AtomicBool>) -> Result<UnixStream> {
    let (mut from_host, mut to_host) = UnixStream::connect(&socket).await.unwrap().into_split();
    let (near, far) = UnixStream::pair().unwrap();
    let (mut from_client, mut to_client) = far.into_split();
    let forth = tokio::spawn(async move { tokio::io::copy(&mut from_client, &mut to_host).await });
    tokio::spawn(async move {
        let mut frames = FrameReader::new(&mut from_host);
        while let Ok(Some(body)) = frames.next().await {
            let is_answer = matches!(decode(&body), Ok(ToClient::Answer { .. }));
            if is_answer && armed.swap(false, Ordering::SeqCst) {
                break;
            }
            let length = u32::try_from(body.len()).unwrap().to_be_bytes();
            to_client.write_all(&[&length[..], &body].concat()).await.unwrap();
        }
        forth.abort();
    });
    Ok(near)
}

struct Setup {
    client: Client,
    armed: Arc<AtomicBool>,
    _host: Host,
    _folder: tempfile::TempDir,
}

async fn setup() -> Setup {
    let (folder, env) = (tempfile::tempdir().unwrap(), SystemEnv::shared());
    let (socket, armed) = (folder.path().join("s"), Arc::new(AtomicBool::new(false)));
    let engine = Arc::new(MemoryEngine::new(env.clone(), Options::default()));
    let host = Host::serve(engine, &socket, HostOptions::new(&*env), env.clone()).await.unwrap();
    let by = {
        let armed = armed.clone();
        move || dial(socket.clone(), armed.clone())
    };
    let client = Client::connect_by(by, ClientOptions::new("w", &*env), env).await.unwrap();
    Setup { client, armed, _host: host, _folder: folder }
}

impl Setup {
    /// Tries once with a lost answer, which must be `Unknown`, and once more.
    async fn twice<T: std::fmt::Debug, F: Future<Output = Result<T>>>(
        &self,
        call: impl Fn() -> F,
    ) -> Result<T> {
        self.armed.store(true, Ordering::SeqCst);
        let error = call().await.unwrap_err();
        assert_eq!((error.kind(), error.retry_hint()), (ErrorKind::Unavailable, RetryHint::Unknown));
        call().await
    }

    fn prepare(&self, op: Op) -> Prepared {
        self.client.prepare(vec![op]).unwrap()
    }

    async fn put(&self, id: &str) -> Receipt {
        let message =
            Message::builder("mail.wanted").id(id.try_into().unwrap()).json(&1).build(&SystemEnv).unwrap();
        let op = self.prepare(Op::Enqueue { queue: "emails".parse().unwrap(), message: Box::new(message) });
        self.twice(|| self.client.commit(op.clone())).await.unwrap().remove(0)
    }

    async fn take(&self) -> Delivery {
        let holder = Holder { worker: "w".into(), process: onward::this_process(&SystemEnv) };
        let inlet = Inlet::queue("emails").unwrap();
        let request = LeaseRequest::one(inlet, holder, RequestId::generate(&SystemEnv));
        let mut got = self.twice(|| self.client.lease(request.clone())).await.unwrap();
        assert_eq!(got.len(), 1);
        got.remove(0)
    }
}

#[tokio::test]
#[proves("T51", "AD2")]
async fn a_repeated_publish_answers_the_first_receipt() {
    let setup = setup().await;
    let Receipt::Accepted(accepted) = setup.put("m1").await else { panic!("another receipt") };
    assert!(accepted.duplicate && accepted.id.as_str() == "m1");
}

#[tokio::test]
#[proves("AD14")]
async fn a_repeated_lease_request_gets_the_same_delivery_and_burns_no_attempt() {
    let setup = setup().await;
    setup.put("m1").await;
    let delivery = setup.take().await;
    assert_eq!((delivery.message.id.as_str(), delivery.attempt), ("m1", 1));
}

#[tokio::test]
#[proves("AD14", "AD4")]
async fn a_repeated_settlement_is_told_so_and_another_outcome_is_a_conflict() {
    let setup = setup().await;
    setup.put("m1").await;
    let token = setup.take().await.token;
    let ack = setup.prepare(Op::Settle { token: token.clone(), outcome: Outcome::Ack { result: None } });
    let receipts = setup.twice(|| setup.client.commit(ack.clone())).await.unwrap();
    assert!(matches!(&receipts[..], [Receipt::Settled(settled)] if settled.already), "{receipts:?}");
    let failure = Failure::new(CauseKind::Permanent, "no");
    let reject = setup.prepare(Op::Settle { token, outcome: Outcome::Reject { failure } });
    assert_eq!(setup.client.commit(reject).await.unwrap_err().kind(), ErrorKind::Conflict);
}
