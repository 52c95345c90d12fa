//! Slow, dead, large and rude clients: each is refused within its bound, and good ones are served meanwhile.

use crate::client::{Server, read};
use onward_proves::proves;
use onward_server::ServerOptions;
use std::time::Duration;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

async fn is_well(server: &Server) {
    assert_eq!(server.get("/health/live").await.status, 204);
}

#[tokio::test]
#[proves("T54")]
async fn a_body_that_says_it_is_too_large_is_refused_before_it_comes() {
    let server = Server::start().await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let head = "POST /v1/queues/q/messages HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 99999999999\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let answer = read(stream).await;
    assert_eq!(answer.status, 413, "{}", answer.head);
    is_well(&server).await;
}

#[tokio::test]
async fn a_body_of_unknown_length_is_cut_at_the_bound() {
    let server = Server::with(ServerOptions { body_bytes_max: 10_000, ..ServerOptions::default() }).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let head = "POST /v1/queues/q/messages HTTP/1.1\r\nhost: x\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    for _ in 0..20 {
        let chunk = format!("400\r\n{}\r\n", "x".repeat(1024));
        if stream.write_all(chunk.as_bytes()).await.is_err() {
            break;
        }
    }
    assert_eq!(read(stream).await.status, 413);
    is_well(&server).await;
}

#[tokio::test]
async fn a_body_that_stands_still_is_given_up_and_others_are_served_meanwhile() {
    let options = ServerOptions { body_timeout: Duration::from_millis(300), ..ServerOptions::default() };
    let server = Server::with(options).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let head =
        "POST /v1/queues/q/messages HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 10\r\n\r\n{";
    stream.write_all(head.as_bytes()).await.unwrap();
    is_well(&server).await;
    assert_eq!(read(stream).await.status, 408);
}

#[tokio::test]
async fn a_head_that_never_ends_or_is_too_large_is_given_up() {
    let options = ServerOptions { head_timeout: Duration::from_millis(300), ..ServerOptions::default() };
    let server = Server::with(options).await;
    let mut slow = TcpStream::connect(server.address).await.unwrap();
    slow.write_all(b"GET / HTTP/1.1\r\nhost: ").await.unwrap();
    let mut large = TcpStream::connect(server.address).await.unwrap();
    let head = format!("GET /health/live HTTP/1.1\r\nhost: x\r\nx: {}\r\n\r\n", "y".repeat(200_000));
    let _ = large.write_all(head.as_bytes()).await;
    is_well(&server).await;
    let (mut first, mut second) = (Vec::new(), Vec::new());
    let _ = slow.read_to_end(&mut first).await;
    let _ = large.read_to_end(&mut second).await;
    assert!(!String::from_utf8_lossy(&first).contains("204"));
    assert!(!String::from_utf8_lossy(&second).contains("204"));
}

#[tokio::test]
async fn bodies_that_would_take_all_memory_are_told_to_come_again() {
    let options = ServerOptions { bodies_bytes_max: 64 * 1024, ..ServerOptions::default() };
    let server = Server::with(options).await;
    let mut held = TcpStream::connect(server.address).await.unwrap();
    let head = "POST /v1/queues/q/messages HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 60000\r\n\r\n";
    held.write_all(head.as_bytes()).await.unwrap();
    // It is being read once the server says so.
    let mut go_on = [0; 12];
    held.read_exact(&mut go_on).await.unwrap();
    assert_eq!(&go_on, b"HTTP/1.1 100");
    let refused = server.post("/v1/queues/q/messages", &"x".repeat(20_000)).await;
    assert_eq!(refused.status, 503, "{}", refused.text());
    assert_eq!(refused.header("retry-after"), Some("1"));
    drop(held);
}

#[tokio::test]
async fn when_it_stops_a_waiting_lease_is_answered_and_new_connections_are_refused() {
    let mut server = Server::start().await;
    server.call("PUT", "/v1/queues/emails", &[], b"{}").await;
    let mut waiting = TcpStream::connect(server.address).await.unwrap();
    let body = r#"{"inlets":["emails"],"worker":"w","wait_ms":60000}"#;
    let head = format!(
        "POST /v1/lease HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nexpect: 100-continue\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    waiting.write_all(head.as_bytes()).await.unwrap();
    let mut go_on = [0; 25];
    waiting.read_exact(&mut go_on).await.unwrap();
    waiting.write_all(body.as_bytes()).await.unwrap();
    server.ask_to_stop();
    let answer = read(waiting).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.json()["deliveries"], serde_json::json!([]));
    let address = server.address;
    server.stop().await;
    assert!(TcpStream::connect(address).await.is_err());
}
