//! Queues: declare, enqueue, look, operate.

use crate::client::Server;
use onward_proves::proves;
use serde_json::json;

#[tokio::test]
async fn the_sample_message_is_accepted_as_it_stands_and_found_again() {
    let server = Server::start().await;
    let message = r#"{"id":"msg_123abc","type":"order.placed","version":1,"timestamp":"2024-03-15T10:23:45Z",
        "source":"order-service","correlation_id":"req_456def","data":{"orderId":"ord_789","total":9999999999999999999.10}}"#;
    let answer = server.post("/v1/queues/orders/messages", message).await;
    assert_eq!(answer.status, 202, "{}", answer.text());
    assert_eq!(answer.json()["id"], "msg_123abc");
    assert_eq!(answer.json()["duplicate"], false);
    let found = server.get("/v1/queues/orders/messages/msg_123abc").await;
    assert_eq!(found.status, 200);
    assert_eq!(found.json()["state"], "waiting");
    assert!(found.text().contains("9999999999999999999.10"), "a number lost digits: {}", found.text());
}

#[tokio::test]
#[proves("T54")]
async fn a_get_never_claims_work() {
    let server = Server::start().await;
    server.post("/v1/queues/emails/messages", r#"{"id":"1","type":"t","data":1}"#).await;
    for path in
        ["/v1/queues", "/v1/queues/emails", "/v1/queues/emails/messages", "/v1/queues/emails/messages/1"]
    {
        assert_eq!(server.get(path).await.status, 200, "{path}");
    }
    assert_eq!(server.call("GET", "/v1/lease", &[], b"").await.status, 405);
    let stats = server.onward.stats("emails").await.unwrap();
    assert_eq!((stats.books.waiting, stats.deliveries), (1, 0));
}

#[tokio::test]
async fn each_line_of_many_has_its_own_result_and_a_wrong_one_spoils_no_other() {
    let server = Server::start().await;
    let lines = "{\"id\":\"1\",\"type\":\"t\",\"data\":1}\n\n{\"id\":\"2\",\"tpye\":\"t\"}\n{\"type\":\"t\",\"data\":1}\n{\"id\":\"3\",\"type\":\"t\",\"data\":3}";
    let headers = [("content-type", "application/x-ndjson")];
    let answer = server.call("POST", "/v1/queues/emails/messages", &headers, lines.as_bytes()).await;
    assert_eq!(answer.status, 200);
    let text = answer.text();
    let results: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(results.len(), 4);
    assert_eq!((&results[0]["line"], &results[0]["id"]), (&json!(1), &json!("1")));
    assert_eq!((&results[1]["line"], &results[1]["error"]["status"]), (&json!(3), &json!(400)));
    assert!(results[1]["error"]["detail"].as_str().unwrap().contains("tpye"), "{text}");
    assert!(results[2]["error"]["mend"].as_str().unwrap().contains("repeat"), "{text}");
    assert_eq!(results[3]["id"], "3");
    assert_eq!(server.onward.stats("emails").await.unwrap().books.waiting, 2);
}

#[tokio::test]
#[proves("I3")]
async fn a_full_queue_answers_429_with_retry_after() {
    let server = Server::start().await;
    let declared = server.call("PUT", "/v1/queues/small", &[], br#"{"depth_max":1}"#).await;
    assert_eq!(declared.json()["created"], true, "{}", declared.text());
    assert_eq!(
        server.post("/v1/queues/small/messages", r#"{"id":"1","type":"t","data":1}"#).await.status,
        202
    );
    let full = server.post("/v1/queues/small/messages", r#"{"id":"2","type":"t","data":1}"#).await;
    assert_eq!(full.status, 429, "{}", full.text());
    assert_eq!(full.header("retry-after"), Some("1"));
    assert_eq!(full.header("content-type"), Some("application/problem+json"));
}

#[tokio::test]
#[proves("PD1")]
async fn every_refusal_is_a_problem_whose_status_is_the_responses_and_whose_title_is_its_kinds() {
    let server = Server::start().await;
    let wrong = [
        ("GET", "/nothing", "", 404),
        ("GET", "/v1/queues/none", "", 404),
        ("GET", "/v1/queues/NOT%20A%20NAME", "", 400),
        ("PATCH", "/v1/queues", "", 405),
        ("GET", "/v1/queues?limit=0", "", 400),
        ("GET", "/v1/queues?limt=1", "", 400),
        ("POST", "/v1/queues/q/messages", "{", 400),
        ("POST", "/v1/queues/q/messages", r#"{"type":"t"}"#, 400),
        ("PUT", "/v1/queues/q", r#"{"lease_sm":1}"#, 400),
        ("POST", "/v1/lease", "[]", 400),
        ("POST", "/v1/settle", r#"{"settlements":[],"x":1}"#, 400),
        ("GET", "/v1/jobs/none", "", 404),
    ];
    let mut titles = std::collections::BTreeMap::new();
    for (method, path, body, status) in wrong {
        let answer = server.call(method, path, &[], body.as_bytes()).await;
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.text());
        assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{method} {path}");
        let problem = answer.json();
        assert_eq!(problem["status"], status, "{method} {path}");
        assert!(problem["detail"].is_string());
        let title = titles.entry(problem["type"].to_string()).or_insert_with(|| problem["title"].clone());
        assert_eq!(*title, problem["title"]);
    }
}

#[tokio::test]
async fn pause_resume_purge_and_drop_do_what_they_say() {
    let server = Server::start().await;
    server.post("/v1/queues/emails/messages", r#"{"id":"1","type":"t","data":1}"#).await;
    assert_eq!(server.post("/v1/queues/emails/pause", "").await.status, 204);
    assert!(server.onward.stats("emails").await.unwrap().paused);
    assert_eq!(server.post("/v1/queues/emails/resume", "").await.status, 204);
    assert!(!server.onward.stats("emails").await.unwrap().paused);
    assert_eq!(server.call("DELETE", "/v1/queues/emails", &[], b"").await.status, 409);
    let counted = server.post("/v1/queues/emails/purge", r#"{"what":"waiting","dry_run":true}"#).await;
    assert_eq!((counted.json()["matched"].clone(), counted.json()["done"].clone()), (json!(1), json!(0)));
    let purged = server.post("/v1/queues/emails/purge", r#"{"what":"waiting"}"#).await;
    assert_eq!(purged.json()["done"], 1);
    assert_eq!(server.call("DELETE", "/v1/queues/emails", &[], b"").await.status, 204);
    assert_eq!(server.get("/v1/queues/emails").await.status, 404);
}

#[tokio::test]
async fn a_list_goes_on_where_the_page_before_ended() {
    let server = Server::start().await;
    for name in ["a", "b", "c"] {
        server.call("PUT", &format!("/v1/queues/{name}"), &[], b"{}").await;
    }
    let mut seen = Vec::new();
    let mut path = "/v1/queues?limit=2".to_owned();
    loop {
        let page = server.get(&path).await.json();
        let names = page["queues"]
            .as_array()
            .unwrap()
            .iter()
            .map(|queue| queue["inlet"].as_str().unwrap().to_owned());
        seen.extend(names);
        let Some(next) = page["next"].as_str() else { break };
        path = format!("/v1/queues?limit=2&after={next}");
    }
    assert_eq!(seen, ["a", "b", "c"]);
}

#[tokio::test]
async fn the_description_names_every_path_that_is_served_and_the_metrics_show_the_queues() {
    let server = Server::start().await;
    server.post("/v1/queues/emails/messages", r#"{"id":"1","type":"t","data":1}"#).await;
    let description = server.get("/openapi.json").await.json();
    assert_eq!(description["openapi"], "3.1.0");
    for path in ["/v1/lease", "/v1/settle", "/v1/jobs/{job}", "/v1/queues/{queue}/messages", "/health/ready"]
    {
        assert!(description["paths"][path].is_object(), "{path} is not described");
    }
    let metrics = server.get("/metrics").await.text();
    assert!(metrics.contains("onward_queue_depth{namespace=\"default\",queue=\"emails\"} 1\n"), "{metrics}");
    assert_eq!(server.get("/health/live").await.status, 204);
    assert_eq!(server.get("/health/ready").await.json()["writable"], true);
}
