//! Working over HTTP: lease, extend, settle, and the next lease in the same call.

use crate::client::Server;
use onward_proves::proves;
use serde_json::{Value, json};

async fn enqueue(server: &Server, id: &str) {
    let message = json!({"id": id, "type": "t", "data": {"n": 1}}).to_string();
    assert_eq!(server.post("/v1/queues/emails/messages", &message).await.status, 202);
}

async fn lease(server: &Server, more: Value) -> Value {
    let mut asked = json!({"inlets": ["emails"], "worker": "w"});
    asked.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let answer = server.post("/v1/lease", &asked.to_string()).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()["deliveries"].clone()
}

async fn settle(server: &Server, settlement: Value) -> Value {
    let answer = server.post("/v1/settle", &json!({"settlements": [settlement]}).to_string()).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()["results"][0].clone()
}

#[tokio::test]
#[proves("B2")]
async fn what_is_leased_and_acknowledged_never_returns() {
    let server = Server::start().await;
    enqueue(&server, "1").await;
    let given = lease(&server, json!({})).await;
    assert_eq!((&given[0]["attempt"], &given[0]["message"]["id"]), (&json!(1), &json!("1")));
    let said = json!({"token": given[0]["token"], "outcome": "ack"});
    assert_eq!(settle(&server, said.clone()).await["state"], "done");
    assert_eq!(settle(&server, said).await["already"], true);
    assert_eq!(lease(&server, json!({})).await, json!([]));
    let other = json!({"token": given[0]["token"], "outcome": "release"});
    assert_eq!(settle(&server, other).await["error"]["status"], 409);
}

#[tokio::test]
async fn the_same_request_id_gets_the_same_deliveries_and_burns_no_attempt() {
    let server = Server::start().await;
    enqueue(&server, "1").await;
    let asked = json!({"request_id": "0197f0a2-0000-7000-8000-000000000001"});
    let (first, again) = (lease(&server, asked.clone()).await, lease(&server, asked).await);
    assert_eq!(first[0]["token"], again[0]["token"]);
    assert_eq!(again[0]["attempt"], 1);
    assert_eq!(server.onward.stats("emails").await.unwrap().books.leased, 1);
}

#[tokio::test]
async fn a_waiting_lease_gets_what_comes_in_meanwhile_and_settling_leases_the_next() {
    let server = Server::start().await;
    server.call("PUT", "/v1/queues/emails", &[], b"{}").await;
    let (given, ()) = tokio::join!(lease(&server, json!({"wait_ms": 60_000})), enqueue(&server, "1"));
    assert_eq!(given[0]["message"]["id"], "1");
    enqueue(&server, "2").await;
    let both = json!({
        "settlements": [{"token": given[0]["token"], "outcome": "ack"}],
        "lease": {"inlets": ["emails"], "worker": "w"}
    });
    let answer = server.post("/v1/settle", &both.to_string()).await.json();
    assert_eq!(answer["results"][0]["state"], "done");
    assert_eq!(answer["deliveries"][0]["message"]["id"], "2");
}

#[tokio::test]
#[proves("H3")]
async fn a_rejected_message_is_a_dead_letter_with_its_error_and_works_again_when_edited_and_redriven() {
    let server = Server::start().await;
    enqueue(&server, "1").await;
    let given = lease(&server, json!({})).await;
    let said = json!({"token": given[0]["token"], "outcome": "reject", "error": "no such address"});
    assert_eq!(settle(&server, said).await["state"], "dead");
    let dead = server.get("/v1/queues/emails/dead").await.json();
    let cause = &dead["messages"][0]["causes"][0];
    assert_eq!(
        (&cause["error"], &cause["worker"], &cause["attempt"]),
        (&json!("no such address"), &json!("w"), &json!(1))
    );
    let edited = server.call("PATCH", "/v1/queues/emails/dead/1", &[], br#"{"data":{"n":2}}"#).await;
    assert_eq!(edited.json()["edition"], 2, "{}", edited.text());
    assert_eq!(server.post("/v1/queues/emails/dead/redrive", "{}").await.json()["done"], 1);
    let given = lease(&server, json!({})).await;
    assert_eq!(given[0]["message"]["data"]["n"], 2);
    assert_eq!(given[0]["causes"][0]["error"], "no such address");
}

#[tokio::test]
async fn extending_answers_for_each_lease_and_tells_of_a_cancellation() {
    let server = Server::start().await;
    enqueue(&server, "1").await;
    let given = lease(&server, json!({})).await;
    let token = given[0]["token"].as_str().unwrap().to_owned();
    let cancelled = server.call("DELETE", "/v1/queues/emails/messages/1", &[], b"").await;
    assert_eq!(cancelled.json()["outcome"], "requested");
    let extended =
        server.post("/v1/extend", &json!({"tokens": [token], "by_ms": 20_000}).to_string()).await.json();
    assert_eq!(extended["results"][0]["cancel_requested"], true);
    assert!(extended["results"][0]["lease_ms"].as_u64().unwrap() > 10_000);
    let wrong = server.post("/v1/extend", r#"{"tokens":["nonsense"],"by_ms":1000}"#).await;
    assert_eq!(wrong.status, 400);
}

#[tokio::test]
async fn a_field_that_an_outcome_has_no_use_for_is_refused_and_nothing_is_settled() {
    let server = Server::start().await;
    enqueue(&server, "1").await;
    let given = lease(&server, json!({})).await;
    let said = json!({"token": given[0]["token"], "outcome": "ack", "delay_ms": 5});
    let refused = settle(&server, said).await;
    assert_eq!(refused["error"]["place"], "`delay_ms`");
    assert_eq!(server.onward.stats("emails").await.unwrap().books.leased, 1);
}
