//! The envelope: what is accepted, what is refused, and that the data stays byte for byte.

mod support;

use onward_core::{ErrorKind, Message, Payload};
use onward_proves::proves;
use proptest::prelude::*;
use support::StillEnv;

const SAMPLE: &str = r#"{
  "id": "msg_abc123",
  "type": "order.placed",
  "version": 1,
  "timestamp": "2024-03-15T10:23:45Z",
  "source": "order-service",
  "correlation_id": "req_xyz789",
  "data": {
    "order_id": "ord_123",
    "user_id": "usr_456",
    "total_cents": 5000
  }
}"#;

#[test]
#[proves("F1")]
fn the_sample_message_is_accepted_as_it_stands() {
    let message = Message::from_json(SAMPLE.as_bytes()).expect("the sample is right");
    assert_eq!(message.id.as_str(), "msg_abc123");
    assert_eq!(&*message.kind, "order.placed");
    assert_eq!((message.version, &*message.source), (1, "order-service"));
    assert_eq!(message.timestamp.to_string(), "2024-03-15T10:23:45Z");
    assert_eq!(message.correlation(), "req_xyz789");
    let data: serde_json::Value = message.data.parse().expect("the data is JSON");
    assert_eq!(data["total_cents"], 5000);
}

#[test]
#[proves("F1", "L5")]
fn an_envelope_written_and_read_again_is_the_same_message() {
    let message = Message::from_json(SAMPLE.as_bytes()).expect("right");
    let line = message.to_json();
    assert!(!line.contains('\n'), "one line: {line}");
    let again = Message::from_json(line.as_bytes()).expect("own output is right");
    assert_eq!((again.id, again.timestamp, again.headers), (message.id, message.timestamp, message.headers));
}

#[test]
#[proves("L5")]
fn numbers_beyond_double_precision_and_decimals_keep_every_digit() {
    let data = r#"{"big":9007199254740993,"huge":123456789012345678901234567890,"dec":0.10,"exp":1E+2}"#;
    let text = format!(
        r#"{{"id":"1","type":"t","version":1,"timestamp":"2024-03-15T10:23:45Z","source":"s","data":{data}}}"#
    );
    let message = Message::from_json(text.as_bytes()).expect("right");
    assert_eq!(message.data.as_bytes(), data.as_bytes());
    assert!(message.to_json().contains(data));
}

#[test]
#[proves("T53")]
fn an_unknown_field_is_refused_with_the_nearest_known_one() {
    for (wrong, meant) in [("piority", "priority"), ("correlationId", "correlation_id"), ("Data", "data")] {
        let text = format!(r#"{{"type":"t","{wrong}":1}}"#);
        let error = Message::from_json(text.as_bytes()).expect_err("unknown field");
        assert_eq!(error.kind(), ErrorKind::Invalid);
        let shown = error.to_string();
        assert!(shown.contains(wrong) && shown.contains(meant), "{shown}");
    }
}

#[test]
#[proves("F1")]
fn every_missing_required_field_is_named() {
    let whole: serde_json::Map<_, _> = serde_json::from_str(SAMPLE).expect("JSON");
    for field in ["id", "type", "version", "timestamp", "source", "data"] {
        let mut part = whole.clone();
        part.remove(field);
        let text = serde_json::to_vec(&part).expect("JSON");
        let error = Message::from_json(&text).expect_err("a field is missing");
        assert!(error.what().contains(&format!("`{field}`")), "{error}");
    }
}

#[test]
fn missing_fields_are_filled_in_where_the_caller_says_so() {
    let env = StillEnv::default();
    let defaults = Message::builder("email.welcome").source("cli");
    let message =
        Message::from_json_with(br#"{"data":{"to":"a@example.com"}}"#, defaults, &env).expect("right");
    assert_eq!((&*message.kind, &*message.source, message.version), ("email.welcome", "cli", 1));
    assert_eq!(message.id.as_str().len(), 36);
}

#[test]
#[proves("T53")]
fn what_is_not_right_says_which_field_and_why() {
    let base = |extra: &str| {
        format!(
            r#"{{"id":"1","type":"t","version":1,"timestamp":"2024-03-15T10:23:45Z","source":"s","data":1{extra}}}"#
        )
    };
    for (extra, part) in [
        (r#","priority":10"#, "above 9"),
        (r#","due":"tomorrow""#, "RFC 3339"),
        (r#","order_key":"""#, "empty"),
        (r#","data_base64":"AA==""#, "both"),
        (r#","due":"2024-03-16T00:00:00Z","expiry":"2024-03-15T00:00:00Z""#, "`expiry`"),
        (r#","content_type":"text/plain""#, "content_type"),
        (r#","edition":0"#, "`edition`"),
    ] {
        let error = Message::from_json(base(extra).as_bytes()).expect_err(extra);
        assert!(error.to_string().contains(part), "{extra}: {error}");
    }
    for broken in ["", "[]", "null", "{", "{\"id\":}", "\u{0}"] {
        let error = Message::from_json(broken.as_bytes()).expect_err(broken);
        assert_eq!(error.kind(), ErrorKind::Invalid, "{broken}");
    }
}

#[test]
fn data_that_only_claims_to_be_json_does_not_break_the_envelope() {
    let env = StillEnv::default();
    let adopted = Payload::trusted("not json".into(), None);
    let message = Message::builder("t").data(adopted).build(&env).expect("right");
    let again: serde_json::Value = serde_json::from_str(&message.to_json()).expect("one JSON object");
    assert_eq!(again["data_base64"], "bm90IGpzb24=");
}

#[test]
#[proves("F2")]
fn what_a_message_causes_carries_its_correlation_and_its_id() {
    let env = StillEnv::default();
    let first = Message::builder("a").build(&env).expect("right");
    let second = Message::builder("b").caused_by(&first).build(&env).expect("right");
    let third = Message::builder("c").caused_by(&second).build(&env).expect("right");
    assert_eq!(third.correlation(), first.id.as_str());
    assert_eq!(third.causation_id.as_deref(), Some(second.id.as_str()));
}

#[test]
#[proves("F2")]
fn generated_ids_are_version_7_and_never_repeat() {
    let env = StillEnv::default();
    let ids: std::collections::BTreeSet<String> =
        (0..1_000).map(|_| onward_core::MessageId::generate(&env).to_string()).collect();
    assert_eq!(ids.len(), 1_000);
    assert!(
        ids.iter().all(|id| id.as_bytes()[14] == b'7' && id.starts_with("018e41a3-9b68")),
        "{:?}",
        ids.first()
    );
}

proptest! {
    #[test]
    #[proves("F1", "L5")]
    fn any_bytes_travel_through_the_envelope_unchanged(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let env = StillEnv::default();
        let data = Payload::bytes(bytes.clone(), "application/octet-stream").expect("a content type");
        let message = Message::builder("t").data(data).build(&env).expect("right");
        let again = Message::from_json(message.to_json().as_bytes()).expect("own output is right");
        prop_assert_eq!(again.data.as_bytes().as_ref(), bytes.as_slice());
    }

    #[test]
    #[proves("T53")]
    fn no_input_makes_reading_an_envelope_panic(text in ".{0,200}") {
        let _ = Message::from_json(text.as_bytes()).map_err(|e| e.to_string());
    }
}
