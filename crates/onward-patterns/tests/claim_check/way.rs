//! The way of a large payload: aside on the way in, back on the way out, or a dead letter that says why not.

use crate::stage::{OVER, Stage, message, payload};
use onward_core::{
    CauseKind, DeadEdit, DeliveryGuarantee, Engine, ErrorKind, Failure, Inlet, InletConfig, MessageState, Op,
    Outcome, Payload, Selection,
};
use onward_env::SystemEnv;
use onward_patterns::claim_check::{CLAIM_CONTENT_TYPE, CLAIM_HEADER};
use onward_proves::proves;
use std::time::Duration;

#[proves("F3")]
#[tokio::test]
async fn the_engine_has_a_reference_and_the_handler_the_payload() {
    let small = InletConfig { payload_bytes_max: 4_000, ..InletConfig::default() };
    let (stage, queue) = Stage::with_queue(small).await;
    stage.put(&queue, "large", 500_000).await.unwrap();
    let kept = stage.view(&queue, "large").await.message;
    assert_eq!(kept.data.content_type(), CLAIM_CONTENT_TYPE);
    assert!(kept.size() < 1_000, "{} bytes", kept.size());
    let delivery = stage.take_one("pictures").await;
    assert_eq!(delivery.message.data, payload(500_000));
    assert!(delivery.message.headers.is_empty(), "{:?}", delivery.message.headers);
}

#[tokio::test]
async fn what_is_small_goes_with_its_message() {
    let (stage, queue) = Stage::with_queue(InletConfig::default()).await;
    stage.put(&queue, "small", OVER).await.unwrap();
    assert_eq!(stage.view(&queue, "small").await.message.data, payload(OVER));
    assert_eq!(stage.files().len(), 0);
    assert_eq!(stage.take_one("pictures").await.message.data, payload(OVER));
}

#[tokio::test]
async fn a_repeat_is_known_as_one_and_leaves_no_payload_behind() {
    let (stage, queue) = Stage::with_queue(InletConfig::default()).await;
    assert!(!stage.put(&queue, "m", 5_000).await.unwrap().duplicate);
    assert!(stage.put(&queue, "m", 5_000).await.unwrap().duplicate);
    assert_eq!(stage.put(&queue, "m", 5_001).await.unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(stage.files().len(), 1);
    assert_eq!(stage.take_one("pictures").await.message.data, payload(5_000));
}

#[tokio::test]
async fn commits_sent_together_keep_each_its_own_answer_and_payload() {
    let (stage, queue) = Stage::with_queue(InletConfig { depth_max: 2, ..InletConfig::default() }).await;
    let op = |id: &str| Op::Enqueue { queue: queue.clone(), message: Box::new(message(id, 5_000)) };
    let commits = ["a", "b", "full"].map(|id| stage.engine.prepare(vec![op(id)]).unwrap().by("ada"));
    let answers = stage.engine.submit(commits.to_vec()).await.unwrap();
    assert_eq!(answers.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, true, false]);
    assert_eq!(stage.files().len(), 2);
    let all = stage.take("pictures", 5, u64::MAX).await;
    assert!(all.iter().all(|delivery| delivery.message.data == payload(5_000)));
}

#[tokio::test]
async fn a_payload_that_is_gone_or_changed_makes_a_dead_letter_that_says_so() {
    let (stage, queue) = Stage::with_queue(InletConfig::default()).await;
    stage.put(&queue, "gone", 5_000).await.unwrap();
    std::fs::remove_file(&stage.files()[0]).unwrap();
    stage.put(&queue, "changed", 5_000).await.unwrap();
    std::fs::write(&stage.files()[0], vec![7; 5_000]).unwrap();
    assert_eq!(stage.take("pictures", 5, u64::MAX).await.len(), 0);
    for (id, word) in [("gone", "not found"), ("changed", "not the one")] {
        let view = stage.view(&queue, id).await;
        assert_eq!(view.state, MessageState::Dead, "{id}");
        assert_eq!(view.causes[0].failure.kind, CauseKind::Undecodable, "{id}");
        assert!(view.causes[0].failure.error.contains(word), "{}", view.causes[0].failure.error);
    }
}

#[tokio::test]
async fn while_the_store_is_away_messages_are_put_back_without_an_attempt() {
    let (stage, queue) = Stage::with_queue(InletConfig::default()).await;
    stage.put(&queue, "m", 5_000).await.unwrap();
    // A file where the store looks for a folder: it can't be read, which does not say that the payload is gone.
    let file = stage.files().remove(0);
    let folder = file.parent().unwrap().to_owned();
    let aside = stage.folder.path().join("aside");
    std::fs::rename(&folder, &aside).unwrap();
    std::fs::write(&folder, "in the way").unwrap();
    assert_eq!(stage.take("pictures", 1, u64::MAX).await.len(), 0);
    let view = stage.view(&queue, "m").await;
    assert_eq!((view.state, view.attempts), (MessageState::Delayed, 0));
    std::fs::remove_file(&folder).unwrap();
    std::fs::rename(&aside, &folder).unwrap();
    let now = onward_core::Env::now(&*SystemEnv::shared());
    let inlet = Inlet::Queue(queue.clone());
    stage.op(Op::Reschedule { inlet, id: view.message.id, due: now }).await.unwrap();
    let delivery = stage.take_one("pictures").await;
    assert_eq!((delivery.attempt, delivery.message.data), (1, payload(5_000)));
}

#[tokio::test]
async fn a_request_for_so_many_bytes_gets_no_more_of_them() {
    let (stage, queue) = Stage::with_queue(InletConfig::default()).await;
    for id in ["a", "b", "c"] {
        stage.put(&queue, id, 5_000).await.unwrap();
    }
    for id in ["a", "b", "c"] {
        let got = stage.take("pictures", 3, 7_000).await;
        let ids: Vec<_> = got.iter().map(|one| (one.message.id.as_str(), one.attempt)).collect();
        assert_eq!(ids, [(id, 1)]);
        stage.ack(&got[0]).await;
    }
}

#[tokio::test]
async fn an_at_most_once_inlet_hands_out_what_it_can_not_take_back() {
    let once = InletConfig { guarantee: DeliveryGuarantee::AtMostOnce, ..InletConfig::default() };
    let (stage, queue) = Stage::with_queue(once).await;
    for id in ["a", "b"] {
        stage.put(&queue, id, 5_000).await.unwrap();
    }
    assert_eq!(stage.take("pictures", 3, 7_000).await.len(), 2);
}

#[tokio::test]
async fn a_dead_letter_whose_data_was_edited_comes_with_its_new_data() {
    let (stage, queue) = Stage::with_queue(InletConfig::default()).await;
    stage.put(&queue, "m", 5_000).await.unwrap();
    let failure = Failure::new(CauseKind::Permanent, "no");
    stage.settle(&stage.take_one("pictures").await, Outcome::Reject { failure }).await;
    let data = Some(Payload::json("mended").unwrap());
    let inlet = Inlet::Queue(queue.clone());
    let id = message("m", 1).id;
    let edit = DeadEdit { data: data.clone(), ..DeadEdit::default() };
    stage.op(Op::EditDead { inlet: inlet.clone(), id, edit }).await.unwrap();
    let (selection, bulk) = (Selection::default(), onward_core::BulkId(1));
    let redrive = Op::Redrive { inlet, selection, spacing: Duration::ZERO, bulk, dry_run: false };
    stage.op(redrive).await.unwrap();
    let delivery = stage.take_one("pictures").await;
    assert_eq!(Some(delivery.message.data), data);
    assert!(!delivery.message.headers.contains_key(CLAIM_HEADER));
}

#[tokio::test]
async fn a_claim_that_we_did_not_make_is_refused() {
    let (stage, queue) = Stage::with_queue(InletConfig::default()).await;
    let mut forged = message("m", 10);
    forged.headers.insert(CLAIM_HEADER.into(), "../../etc/passwd".into());
    let error = stage.engine.prepare(vec![Op::Enqueue { queue, message: Box::new(forged) }]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
}
