//! A client that reaches an engine on a folder by way of a proxy, which drops answers on demand.

use onward::core::{
    Delivery, ErrorKind, Holder, Inlet, LeaseRequest, Message, Op, Receipt, RequestId, Result, RetryHint,
};
use onward::{Engine, SystemEnv};
use onward_client::{
    Client, ClientOptions, Host, HostOptions,
    frame::{FrameReader, decode},
    wire::ToClient,
};
use onward_embedded::{EmbeddedEngine, OpenOptions};
use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
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

pub(crate) fn message(id: &str) -> Message {
    Message::builder("mail.wanted").id(id.try_into().unwrap()).json(&1).build(&SystemEnv).unwrap()
}

pub(crate) struct Setup {
    pub(crate) client: Client,
    armed: Arc<AtomicBool>,
    folder: tempfile::TempDir,
    served: Option<(Host, Arc<EmbeddedEngine>)>,
}

impl Setup {
    pub(crate) async fn new() -> Self {
        let (folder, env) = (tempfile::tempdir().unwrap(), SystemEnv::shared());
        let served = Some(serve(&folder).await);
        let (socket, armed) = (folder.path().join("s"), Arc::new(AtomicBool::new(false)));
        let by = {
            let armed = armed.clone();
            move || dial(socket.clone(), armed.clone())
        };
        let client = Client::connect_by(by, ClientOptions::new("w", &*env), env).await.unwrap();
        Self { client, armed, folder, served }
    }

    /// The process that holds the folder ends in good order, and another one opens it.
    pub(crate) async fn reopen(&mut self) {
        if let Some((host, engine)) = self.served.take() {
            host.close(Duration::from_secs(5)).await;
            engine.close(Duration::from_secs(5)).await.unwrap();
        }
        self.served = Some(serve(&self.folder).await);
        // The connection of before is found broken by the first call, which is one that only asks.
        while let Err(error) = self.client.topology().await {
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        }
    }

    /// Tries once with a lost answer, which must be `Unknown`, and once more.
    pub(crate) async fn twice<T: std::fmt::Debug, F: Future<Output = Result<T>>>(
        &self,
        call: impl Fn() -> F,
    ) -> Result<T> {
        self.armed.store(true, Ordering::SeqCst);
        let error = call().await.unwrap_err();
        assert_eq!((error.kind(), error.retry_hint()), (ErrorKind::Unavailable, RetryHint::Unknown));
        call().await
    }

    pub(crate) async fn once(&self, op: Op) -> Result<Receipt> {
        Ok(self.client.commit(self.client.prepare(vec![op])?).await?.remove(0))
    }

    /// Commits an operation whose first answer is lost; the receipt is that of the second.
    pub(crate) async fn commit(&self, op: Op) -> Result<Receipt> {
        let op = self.client.prepare(vec![op])?;
        Ok(self.twice(|| self.client.commit(op.clone())).await?.remove(0))
    }

    pub(crate) async fn put(&self, id: &str) -> Receipt {
        let op = Op::Enqueue { queue: "emails".parse().unwrap(), message: Box::new(message(id)) };
        self.commit(op).await.unwrap()
    }

    /// The one delivery that a lease request gets whose first answer was lost.
    pub(crate) async fn take(&self, inlet: Inlet) -> Delivery {
        let holder = Holder { worker: "w".into(), process: onward::this_process(&SystemEnv) };
        let request = LeaseRequest::one(inlet, holder, RequestId::generate(&SystemEnv));
        let mut got = self.twice(|| self.client.lease(request.clone())).await.unwrap();
        assert_eq!(got.len(), 1);
        got.remove(0)
    }
}

pub(crate) fn emails() -> Inlet {
    Inlet::queue("emails").unwrap()
}

async fn serve(folder: &tempfile::TempDir) -> (Host, Arc<EmbeddedEngine>) {
    let env = SystemEnv::shared();
    let options = OpenOptions { segment_bytes: 1 << 20, reserve_bytes: 1 << 20, ..OpenOptions::default() };
    let engine = EmbeddedEngine::open(&folder.path().join("data"), options, env.clone()).unwrap();
    let engine = Arc::new(engine);
    let host =
        Host::serve(engine.clone(), &folder.path().join("s"), HostOptions::new(&*env), env).await.unwrap();
    (host, engine)
}
