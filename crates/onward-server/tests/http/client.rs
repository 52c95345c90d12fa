//! A server of a test, and the plainest client there is.

use onward::{Onward, SystemEnv};
use onward_server::{ServerOptions, serve};
use serde_json::Value;
use std::net::SocketAddr;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::JoinHandle,
};

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) onward: Onward,
    stop: Option<oneshot::Sender<()>>,
    served: JoinHandle<onward::Result<()>>,
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        let text = String::from_utf8_lossy(&self.body);
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e} in: {text}"))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.filter(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value).next()
    }
}

impl Server {
    pub(crate) async fn start() -> Self {
        Self::with(ServerOptions::default()).await
    }

    pub(crate) async fn with(options: ServerOptions) -> Self {
        let onward = Onward::new(
            onward::engine_at("memory:", SystemEnv::shared()).await.unwrap(),
            SystemEnv::shared(),
        );
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let serving = serve(listener, onward.clone(), options, async {
            let _ = stopped.await;
        });
        let served = tokio::spawn(serving);
        Self { address, onward, stop: Some(stop), served }
    }

    /// Asks it to stop and waits until it has.
    pub(crate) async fn stop(mut self) {
        self.ask_to_stop();
        self.served.await.unwrap().unwrap();
    }

    pub(crate) fn ask_to_stop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.call("GET", path, &[], b"").await
    }

    pub(crate) async fn post(&self, path: &str, body: &str) -> Answer {
        self.call("POST", path, &[], body.as_bytes()).await
    }

    pub(crate) async fn call(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        let mut head = format!("{method} {path} HTTP/1.1\r\nhost: onward\r\nconnection: close\r\n");
        if !body.is_empty() && !headers.iter().any(|(name, _)| *name == "content-type") {
            head += "content-type: application/json\r\n";
        }
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += &format!("content-length: {}\r\n\r\n", body.len());
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        // A server that refuses early may close before it has read all.
        let _ = stream.write_all(body).await;
        read(stream).await
    }
}

/// Reads an answer to its end.
pub(crate) async fn read(mut stream: TcpStream) -> Answer {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes).await;
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let mut body = bytes.split_off(end + 4);
    if head.to_ascii_lowercase().contains("transfer-encoding: chunked") {
        body = unchunked(&body);
    }
    Answer { status, head, body }
}

fn unchunked(mut bytes: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    while let Some(end) = bytes.windows(2).position(|two| two == b"\r\n") {
        let length = usize::from_str_radix(std::str::from_utf8(&bytes[..end]).unwrap(), 16).unwrap();
        bytes = &bytes[end + 2..];
        if length == 0 {
            break;
        }
        whole.extend_from_slice(&bytes[..length]);
        bytes = &bytes[length + 2..];
    }
    whole
}
