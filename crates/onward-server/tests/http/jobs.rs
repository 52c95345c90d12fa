//! Jobs: accepted is apart from completed, and both are told.

use crate::client::Server;
use onward::work::{self, Context, Json, Permanent, Worker};
use onward_proves::proves;
use serde_json::{Value, json};

const KEY: (&str, &str) = ("idempotency-key", "report-1");

async fn report(data: Value) -> work::Result<Json<Value>> {
    match data["fail"].as_str() {
        Some(why) => Err(Permanent(why.to_owned()))?,
        None => Ok(Json(json!({"url": "https://example.org/report.pdf", "pages": 3}))),
    }
}

async fn work_off(server: &Server) {
    Worker::new(&server.onward).handle("report", report).run_until_empty().await.unwrap();
}

#[tokio::test]
#[proves("D1")]
#[proves("A1")]
async fn a_job_is_pending_when_accepted_and_completed_with_its_url_when_done() {
    let server = Server::start().await;
    let submitted = server.call("POST", "/v1/jobs/report", &[KEY], br#"{"month":"2024-03"}"#).await;
    assert_eq!(submitted.status, 202, "{}", submitted.text());
    let job = submitted.json();
    assert_eq!(job["status"], "pending");
    assert!(job.get("result").is_none());
    let at = submitted.header("location").unwrap().to_owned();
    assert_eq!(at, format!("/v1/jobs/{}", job["job_id"].as_str().unwrap()));
    work_off(&server).await;
    let done = server.get(&at).await.json();
    assert_eq!(
        (&done["status"], &done["url"]),
        (&json!("completed"), &json!("https://example.org/report.pdf"))
    );
    assert_eq!(done["result"]["pages"], 3);
}

#[tokio::test]
#[proves("D1")]
async fn a_job_that_fails_for_good_is_failed_with_the_reason_and_one_that_is_cancelled_says_so() {
    let server = Server::start().await;
    let at = |answer: &crate::client::Answer| answer.header("location").unwrap().to_owned();
    let failing = server.call("POST", "/v1/jobs/report", &[KEY], br#"{"fail":"no such month"}"#).await;
    work_off(&server).await;
    let failed = server.get(&at(&failing)).await.json();
    assert_eq!((&failed["status"], &failed["failure"]["error"]), (&json!("failed"), &json!("no such month")));
    let other = server.call("POST", "/v1/jobs/report?id=two", &[], b"{}").await;
    let cancelled = server.post("/v1/jobs/two/cancel", "").await;
    assert_eq!(cancelled.json()["outcome"], "cancelled", "{}", cancelled.text());
    assert_eq!(server.get(&at(&other)).await.json()["status"], "cancelled");
}

#[tokio::test]
#[proves("PR1")]
#[proves("PR2")]
#[proves("PR3")]
#[proves("A3")]
async fn a_caller_that_prefers_to_wait_gets_the_result_or_after_the_wait_the_job_which_goes_on() {
    let server = Server::start().await;
    let now = [KEY, ("prefer", "wait=0, colour=blue")];
    let timed_out = server.call("POST", "/v1/jobs/report", &now, b"{}").await;
    assert_eq!((timed_out.status, &timed_out.json()["status"]), (202, &json!("pending")));
    let patient = [KEY, ("prefer", "wait=60")];
    let (answer, ()) =
        tokio::join!(server.call("POST", "/v1/jobs/report", &patient, b"{}"), work_off(&server));
    assert_eq!((answer.status, &answer.json()["status"]), (200, &json!("completed")), "{}", answer.text());
    assert_eq!(answer.json()["job_id"], timed_out.json()["job_id"]);
    assert_eq!(answer.header("preference-applied"), Some("wait=60"));
    let async_ = server.call("POST", "/v1/jobs/report?id=three", &[("prefer", "respond-async")], b"{}").await;
    assert_eq!((async_.status, async_.header("preference-applied")), (202, Some("respond-async")));
}

async fn slow(_: Value, context: Context) -> work::Result<Json<u32>> {
    context.save_progress(&json!({"percent": 50})).await?;
    Ok(Json(7))
}

#[tokio::test]
#[proves("D3")]
async fn whoever_follows_a_job_sees_it_end_and_the_stream_ends_then() {
    let server = Server::start().await;
    server.call("POST", "/v1/jobs/slow?id=one", &[], b"{}").await;
    let work = async {
        Worker::new(&server.onward).handle("slow", slow).run_until_empty().await.unwrap();
    };
    let (followed, ()) = tokio::join!(server.get("/v1/jobs/one/events"), work);
    assert_eq!(followed.header("content-type"), Some("text/event-stream"));
    let text = followed.text();
    let events: Vec<Value> = text
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|data| serde_json::from_str(data).unwrap())
        .collect();
    let last = events.last().unwrap();
    assert_eq!(
        (&last["status"], &last["result"], &last["progress"]["percent"]),
        (&json!("completed"), &json!(7), &json!(50))
    );
}
