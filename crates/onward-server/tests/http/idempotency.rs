//! A request that is repeated is done once; a key that is reused for another is refused.

use crate::client::Server;
use onward_proves::proves;
use serde_json::json;

#[tokio::test]
#[proves("IK1")]
async fn without_id_and_key_nothing_is_accepted() {
    let server = Server::start().await;
    for path in ["/v1/jobs/report", "/v1/queues/report/messages"] {
        let answer = server.post(path, r#"{"type":"t","data":1}"#).await;
        assert_eq!(answer.status, 400, "{path}");
        assert!(answer.text().contains("Idempotency-Key"), "{}", answer.text());
    }
    assert!(server.onward.engine().topology().await.unwrap().inlets.is_empty());
}

#[tokio::test]
#[proves("IK1")]
#[proves("T56")]
#[proves("G6")]
async fn sixty_parallel_requests_with_one_key_make_one_job_and_another_payload_is_refused() {
    let server = Server::start().await;
    let key = [("idempotency-key", "k")];
    let all = (0..60).map(|_| server.call("POST", "/v1/jobs/report", &key, br#"{"n":1}"#));
    let answers = futures::future::join_all(all).await;
    assert!(
        answers.iter().all(|answer| answer.status == 202),
        "{:?}",
        answers.iter().map(|a| a.text()).collect::<Vec<_>>()
    );
    let new = answers.iter().filter(|answer| answer.json().get("duplicate").is_none()).count();
    assert_eq!(new, 1);
    assert!(answers.iter().all(|answer| answer.json()["job_id"] == answers[0].json()["job_id"]));
    assert_eq!(server.onward.stats("report").await.unwrap().books.accepted, 1);
    let other = server.call("POST", "/v1/jobs/report", &key, br#"{"n":2}"#).await;
    assert_eq!(other.status, 422, "{}", other.text());
}

#[tokio::test]
async fn a_message_with_a_key_is_enqueued_once_and_with_both_id_and_key_refused() {
    let server = Server::start().await;
    let key = [("idempotency-key", "k")];
    let enqueue =
        |body: &'static str| server.call("POST", "/v1/queues/emails/messages", &key, body.as_bytes());
    let (first, again) =
        (enqueue(r#"{"type":"t","data":1}"#).await, enqueue(r#"{"type":"t","data":1}"#).await);
    assert_eq!((first.status, again.status), (202, 202), "{}", again.text());
    assert_eq!(again.json()["duplicate"], true);
    assert_eq!(first.json()["id"], again.json()["id"]);
    assert_eq!(enqueue(r#"{"type":"t","data":2}"#).await.status, 422);
    assert_eq!(enqueue(r#"{"id":"1","type":"t","data":1}"#).await.status, 400);
}

#[tokio::test]
async fn the_same_id_with_other_content_is_a_conflict() {
    let server = Server::start().await;
    assert_eq!(server.post("/v1/jobs/report?id=a", r#"{"n":1}"#).await.status, 202);
    assert_eq!(server.post("/v1/jobs/report?id=a", r#"{"n":1}"#).await.json()["duplicate"], json!(true));
    assert_eq!(server.post("/v1/jobs/report?id=a", r#"{"n":2}"#).await.status, 409);
    assert_eq!(server.post("/v1/jobs/other?id=a", r#"{"n":1}"#).await.status, 409);
}
