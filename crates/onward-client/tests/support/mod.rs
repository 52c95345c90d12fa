//! A stub of an engine, its host and its clients.
#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    clippy::unwrap_used,
    reason = "each test file uses a part of it"
)]

mod stub;

use onward_client::{Client, ClientOptions, Host, HostOptions};
use onward_core::*;
use onward_env::SystemEnv;
use std::{path::PathBuf, sync::Arc, time::Duration};
#[allow(unused_imports, reason = "each test file uses a part of it")]
pub use stub::{State, Stub};
use tempfile::TempDir;

pub fn queue() -> Inlet {
    Inlet::queue("emails").unwrap()
}

pub fn message(id: &str) -> Message {
    Message::builder("mail.wanted").id(id.try_into().unwrap()).json(&1).build(&SystemEnv).unwrap()
}

pub fn enqueue(queue: &str, id: &str) -> Op {
    Op::Enqueue { queue: queue.parse().unwrap(), message: Box::new(message(id)) }
}

pub fn request(process: &ProcessId, wait: Duration) -> LeaseRequest {
    let holder = Holder { worker: "w".into(), process: process.clone() };
    LeaseRequest { wait, ..LeaseRequest::one(queue(), holder, RequestId::generate(&SystemEnv)) }
}

/// A stub, its host, and where it listens.
pub struct Setup {
    pub stub: Arc<Stub>,
    pub host: Host,
    pub socket: PathBuf,
    pub folder: TempDir,
}

pub async fn setup(change: impl FnOnce(&mut HostOptions)) -> Setup {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("s.sock");
    let stub = Arc::new(Stub::default());
    let host = serve(&stub, &socket, change).await;
    Setup { stub, host, socket, folder }
}

pub async fn serve(stub: &Arc<Stub>, socket: &PathBuf, change: impl FnOnce(&mut HostOptions)) -> Host {
    let mut options = HostOptions::new(&SystemEnv);
    change(&mut options);
    Host::serve(stub.clone(), socket, options, SystemEnv::shared()).await.unwrap()
}

pub fn options(name: &str) -> ClientOptions {
    let mut options = ClientOptions::new(name, &SystemEnv);
    options.process = ProcessId(name.into());
    options
}

pub async fn connect(socket: &PathBuf, options: ClientOptions) -> Result<Client> {
    Client::connect(socket, options, SystemEnv::shared()).await
}
