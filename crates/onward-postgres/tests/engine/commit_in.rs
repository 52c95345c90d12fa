//! Messages in the caller's own transaction, from Rust and from SQL.

use crate::support::{Instance, client, enqueue, server};
use onward_core::{Engine, ErrorKind, Receipt};
use onward_proves::proves;

async fn orders(instance: &Instance) {
    let table = format!("create table \"{}\".orders (id text primary key)", instance.schema);
    instance.client.batch_execute(&table).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
#[proves("G5")]
async fn a_business_change_and_its_message_are_committed_together() {
    let instance = Instance::new().await;
    orders(&instance).await;
    let mut client = client(&server()).await;
    let insert = format!("insert into \"{}\".orders values ('o-1')", instance.schema);

    let transaction = client.transaction().await.unwrap();
    transaction.batch_execute(&insert).await.unwrap();
    let ops = instance.engine.prepare(vec![enqueue("emails", "o-1")]).unwrap();
    let receipts = instance.engine.commit_in(&transaction, ops).await.unwrap();
    assert!(matches!(&receipts[..], [Receipt::Accepted(accepted)] if !accepted.duplicate));
    transaction.commit().await.unwrap();
    assert_eq!(instance.ids("emails").await, ["o-1"]);
    instance.end().await;
}

#[tokio::test(flavor = "multi_thread")]
#[proves("G5")]
async fn a_message_of_a_transaction_that_is_rolled_back_never_comes() {
    let instance = Instance::new().await;
    let mut client = client(&server()).await;
    let transaction = client.transaction().await.unwrap();
    let ops = instance.engine.prepare(vec![enqueue("emails", "never")]).unwrap();
    instance.engine.commit_in(&transaction, ops).await.unwrap();
    transaction.rollback().await.unwrap();
    instance.enqueue("emails", "after").await;
    assert_eq!(instance.ids("emails").await, ["after"]);
    instance.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_transaction_has_put_in_is_not_seen_and_holds_up_nothing_until_it_commits() {
    let instance = Instance::new().await;
    instance.enqueue("emails", "before").await;
    let mut client = client(&server()).await;
    let transaction = client.transaction().await.unwrap();
    let ops = instance.engine.prepare(vec![enqueue("emails", "open")]).unwrap();
    instance.engine.commit_in(&transaction, ops).await.unwrap();
    instance.enqueue("emails", "meanwhile").await;
    assert_eq!(instance.ids("emails").await, ["before", "meanwhile"]);
    transaction.commit().await.unwrap();
    assert_eq!(instance.ids("emails").await, ["open"]);
    instance.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trigger_enqueues_and_a_repeat_answers_the_first_id() {
    let instance = Instance::new().await;
    orders(&instance).await;
    let schema = &instance.schema;
    let trigger = format!(
        "create function \"{schema}\".told() returns trigger language plpgsql as $$ begin
           perform \"{schema}\".enqueue('emails', 'order.placed', json_build_object('order', new.id), id => new.id,
             headers => '{{\"tenant\": \"größe\"}}');
           return new; end $$;
         create trigger told after insert on \"{schema}\".orders for each row execute function \"{schema}\".told();
         insert into \"{schema}\".orders values ('o-7')"
    );
    instance.client.batch_execute(&trigger).await.unwrap();
    let again = format!(
        "select \"{schema}\".enqueue('emails', 'order.placed', json_build_object('order', 'o-7'), id => 'o-7')"
    );
    let id: String = instance.client.query_one(&again, &[]).await.unwrap().get(0);
    assert_eq!(id, "o-7");

    let deliveries = instance.take("emails", 10).await;
    assert_eq!(deliveries.len(), 1);
    let message = &deliveries[0].message;
    assert_eq!((&*message.kind, message.source.as_ref()), ("order.placed", "sql"));
    assert_eq!(message.headers.get("tenant").map(String::as_str), Some("größe"));
    assert_eq!(message.data.as_bytes().as_ref(), br#"{"order" : "o-7"}"#);
    message.check().unwrap();
    instance.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_sql_gets_wrong_is_refused_and_nothing_is_there() {
    let instance = Instance::new().await;
    let schema = &instance.schema;
    for arguments in [
        "'No Name', 't'",
        "'q', ''",
        "'q', null",
        "'q', 't', null",
        "'q', 't', priority => 10",
        "'q', 't', id => E'a\\nb'",
        "'q', 't', order_key => repeat('k', 256)",
    ] {
        let text = format!("select \"{schema}\".enqueue({arguments})");
        let error = instance.client.query(&text, &[]).await.expect_err(arguments);
        assert_eq!(error.code().map(|c| c.code()), Some("OW004"), "{arguments}: {error}");
    }
    assert!(instance.engine.topology().await.unwrap().inlets.is_empty());
    instance.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operation_that_can_not_be_refuses_the_whole_and_names_its_kind() {
    let instance = Instance::new().await;
    let other = onward_core::InletConfig { depth_max: 1, ..onward_core::InletConfig::default() };
    let change = onward_core::TopologyChange::Queue {
        name: "small".parse().unwrap(),
        config: Box::new(other),
        update: false,
    };
    instance.engine.declare(change).await.unwrap();
    let ops = vec![enqueue("emails", "a"), enqueue("small", "b"), enqueue("small", "c")];
    let error = instance.engine.commit(instance.engine.prepare(ops).unwrap()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Full, "{error}");
    assert!(instance.engine.topology().await.unwrap().inlets.iter().all(|(i, _)| i.to_string() != "emails"));
    instance.end().await;
}
