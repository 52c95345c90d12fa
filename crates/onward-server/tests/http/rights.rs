//! Tokens: who may do what, and where.

use crate::client::Server;
use onward_proves::proves;
use onward_server::{Grants, ServerOptions, serve, token_hash};
use std::net::SocketAddr;
use tokio::net::TcpListener;

async fn guarded() -> Server {
    let grant = |name: &str, actions: &str, names: &str| {
        let hash = token_hash(name);
        format!(r#"{{"name":"{name}","hashes":["{hash}"],"actions":{actions},"names":{names}}}"#)
    };
    let grants = format!(
        "[{},{},{}]",
        grant("shop", r#"["publish"]"#, r#"["shop/*"]"#),
        grant("mailer", r#"["work"]"#, r#"["shop/emails"]"#),
        grant("root", r#"["admin"]"#, "[]")
    );
    let grants = Grants::from_json(grants.as_bytes()).unwrap();
    Server::with(ServerOptions { grants, ..ServerOptions::default() }).await
}

async fn call(server: &Server, token: &str, method: &str, path: &str, body: &str) -> u16 {
    let bearer = format!("Bearer {token}");
    server.call(method, path, &[("authorization", &bearer)], body.as_bytes()).await.status
}

#[tokio::test]
async fn a_token_does_what_it_allows_where_it_allows_it_and_nothing_else() {
    let server = guarded().await;
    let message = r#"{"id":"1","type":"t","data":1}"#;
    assert_eq!(call(&server, "shop", "POST", "/v1/queues/shop%2Femails/messages", message).await, 202);
    assert_eq!(call(&server, "shop", "POST", "/v1/queues/emails/messages", message).await, 403);
    assert_eq!(call(&server, "shop", "GET", "/v1/queues/shop%2Femails", "").await, 403);
    let lease = r#"{"inlets":["shop/emails"],"worker":"w"}"#;
    assert_eq!(call(&server, "shop", "POST", "/v1/lease", lease).await, 403);
    assert_eq!(call(&server, "mailer", "POST", "/v1/lease", lease).await, 200);
    assert_eq!(
        call(&server, "mailer", "POST", "/v1/queues/shop%2Femails/purge", r#"{"what":"waiting"}"#).await,
        403
    );
    assert_eq!(call(&server, "root", "GET", "/v1/queues/shop%2Femails", "").await, 200);
    assert_eq!(call(&server, "root", "POST", "/v1/queues/shop%2Femails/pause", "").await, 204);
}

#[tokio::test]
async fn without_a_known_token_everything_but_liveness_is_refused_before_it_is_read() {
    let server = guarded().await;
    for path in ["/v1/queues", "/v1/queues/shop%2Femails", "/metrics", "/v1/jobs/x"] {
        let answer = server.get(path).await;
        assert_eq!(answer.status, 401, "{path}");
        assert!(answer.header("www-authenticate").is_some(), "{path}");
    }
    assert_eq!(call(&server, "guess", "GET", "/v1/queues", "").await, 401);
    assert_eq!(server.get("/health/live").await.status, 204);
}

#[tokio::test]
async fn one_caller_can_neither_see_nor_take_the_job_of_another_by_its_key() {
    let server = guarded().await;
    let headers = [("authorization", "Bearer shop"), ("idempotency-key", "k")];
    let job = server.call("POST", "/v1/jobs/shop%2Freport", &headers, b"1").await;
    assert_eq!(job.status, 202, "{}", job.text());
    let at = job.header("location").unwrap();
    assert_eq!(call(&server, "shop", "GET", at, "").await, 200);
    assert_eq!(call(&server, "mailer", "GET", at, "").await, 404);
    let headers = [("authorization", "Bearer root"), ("idempotency-key", "k")];
    let other = server.call("POST", "/v1/jobs/shop%2Freport", &headers, b"2").await;
    assert_eq!(other.status, 202, "the same key of another caller is another key");
    assert_ne!(other.json()["job_id"], job.json()["job_id"]);
}

#[tokio::test]
#[proves("T53")]
async fn a_public_address_without_tokens_is_refused() {
    let listener = TcpListener::bind(SocketAddr::from(([0, 0, 0, 0], 0))).await.unwrap();
    let onward = onward::connect("memory:").await.unwrap();
    let refused =
        serve(listener, onward, ServerOptions::default(), std::future::pending()).await.unwrap_err();
    assert!(refused.to_string().contains("--tokens"), "{refused}");
}
