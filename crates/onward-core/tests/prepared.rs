//! Checks before any effect: limits of the model, capabilities of the engine, the scope of a commit.

mod support;

use onward_core::*;
use onward_proves::proves;
use std::time::Duration;
use support::StillEnv;

fn limits() -> EngineLimits {
    EngineLimits {
        payload_bytes_max: 1_000,
        delay_max: Some(Duration::from_secs(900)),
        lease_total_max: None,
        dedup_window_max: None,
        ops_max: OPS_MAX,
    }
}

fn able(scope: AtomicScope) -> Capabilities {
    Capabilities::all("test", Durability::Memory, scope, limits())
}

fn enqueue(build: impl FnOnce(MessageBuilder) -> MessageBuilder) -> Op {
    enqueue_to("q", build)
}

fn enqueue_to(queue: &str, build: impl FnOnce(MessageBuilder) -> MessageBuilder) -> Op {
    let message = build(Message::builder("t")).build(&StillEnv::default()).expect("a message");
    Op::Enqueue { queue: queue.parse().expect("a name"), message: Box::new(message) }
}

fn check(ops: Vec<Op>, capabilities: &Capabilities) -> Result<Prepared> {
    Prepared::check(ops, capabilities, StillEnv::default().now())
}

#[test]
#[proves("T49", "M10")]
fn what_a_message_asks_for_is_refused_where_the_engine_does_not_have_it() {
    type Build = fn(MessageBuilder) -> MessageBuilder;
    let cases: [(Capability, Build); 7] = [
        (Capability::Delay, |m| m.delay(Duration::from_secs(1))),
        (Capability::Expiry, |m| m.ttl(Duration::from_secs(1))),
        (Capability::OrderByKey, |m| m.order_key("k")),
        (Capability::Unique, |m| m.unique_key("k")),
        (Capability::Dedup, |m| m.dedup_key("k")),
        (Capability::Fairness, |m| m.fairness_key("k")),
        (Capability::Priority, |m| m.priority(9)),
    ];
    for (capability, build) in cases {
        let unable = able(AtomicScope::Store).refuse(capability, "it is only a test");
        let error = check(vec![enqueue(build)], &unable).expect_err(capability.name());
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("it is only a test"), "{error}");
        check(vec![enqueue(build)], &able(AtomicScope::Store)).expect("an able engine takes it");
        check(vec![enqueue(|m| m)], &unable).expect("a plain message asks for nothing");
    }
}

#[test]
#[proves("F3", "T48")]
fn a_payload_above_the_engines_bound_is_refused_before_any_effect() {
    let fits = enqueue(|m| m.data(Payload::json_text("1".repeat(1_000)).expect("JSON")));
    check(vec![fits], &able(AtomicScope::Store)).expect("exactly the bound fits");
    let over = enqueue(|m| m.data(Payload::json_text("1".repeat(1_001)).expect("JSON")));
    let error = check(vec![over], &able(AtomicScope::Store)).expect_err("one byte more");
    assert!(error.to_string().contains("claim check"), "{error}");
}

#[test]
#[proves("AD9", "T49")]
fn a_delay_above_the_native_cap_is_refused_and_one_below_is_not() {
    check(vec![enqueue(|m| m.delay(Duration::from_secs(900)))], &able(AtomicScope::Store)).expect("the cap");
    let error = check(vec![enqueue(|m| m.delay(Duration::from_secs(901)))], &able(AtomicScope::Store));
    assert_eq!(error.expect_err("above").kind(), ErrorKind::Unsupported);
}

#[test]
#[proves("M10")]
fn a_commit_wider_than_the_engines_scope_is_refused() {
    let two_queues = || vec![enqueue_to("a", |m| m), enqueue_to("b", |m| m)];
    let one_queue = || vec![enqueue_to("a", |m| m), enqueue_to("a", |m| m)];
    let record = || Op::PutRecord {
        key: RecordKey::try_from("k").expect("a key"),
        value: "v".into(),
        expect: RecordExpect::Any,
        ttl: None,
    };
    let with_record = || vec![enqueue_to("a", |m| m), record()];
    let cases = [
        (AtomicScope::Operation, [false, false, false]),
        (AtomicScope::Inlet, [false, true, false]),
        (AtomicScope::Messages, [true, true, false]),
        (AtomicScope::Store, [true, true, true]),
    ];
    for (scope, fits) in cases {
        for (ops, fits) in [two_queues(), one_queue(), with_record()].into_iter().zip(fits) {
            let answer = check(ops, &able(scope)).map(|_| ()).map_err(|e| e.kind());
            assert_eq!(answer, if fits { Ok(()) } else { Err(ErrorKind::Unsupported) }, "{scope:?}");
        }
        check(vec![enqueue(|m| m)], &able(scope)).expect("one operation always fits");
    }
}

#[test]
#[proves("T54")]
fn the_number_of_operations_and_their_bytes_are_bounded() {
    let many = vec![enqueue(|m| m); OPS_MAX + 1];
    assert_eq!(check(many, &able(AtomicScope::Store)).expect_err("too many").kind(), ErrorKind::Invalid);
    assert_eq!(check(vec![], &able(AtomicScope::Store)).expect_err("none").kind(), ErrorKind::Invalid);
}

#[test]
fn an_error_names_the_operation_that_is_wrong() {
    let mut wrong = enqueue(|m| m);
    if let Op::Enqueue { message, .. } = &mut wrong {
        message.version = 0;
    }
    let error = check(vec![enqueue(|m| m), wrong], &able(AtomicScope::Store)).expect_err("version 0");
    assert_eq!(error.place(), Some("operation 2 (enqueue, `version`)"));
}

#[test]
#[proves("T54")]
fn the_rules_of_an_inlet_are_checked_by_field() {
    type Break = fn(&mut InletConfig);
    let cases: [(&str, Break); 8] = [
        ("lease_ms", |c| c.lease_ms = 0),
        ("retry.attempts_max", |c| c.retry.attempts_max = 0),
        ("dead_max", |c| c.dead_max = 0),
        ("payload_bytes_max", |c| c.payload_bytes_max = u64::MAX),
        ("concurrency_max", |c| c.concurrency_max = Some(0)),
        ("concurrency_per_key_max", |c| c.concurrency_per_key_max = Some(0)),
        ("rate", |c| c.rate = Some(RateLimit { count: 0, per_ms: 1, burst: 1 })),
        ("causes_max", |c| c.causes_max = u32::MAX),
    ];
    InletConfig::default().check().expect("the default is right");
    for (field, broken) in cases {
        let mut config = InletConfig::default();
        broken(&mut config);
        let error = config.check().expect_err(field);
        assert_eq!(error.place(), Some(format!("`{field}`").as_str()));
    }
}

#[test]
#[proves("H3")]
fn a_long_failure_text_is_cut_at_a_character() {
    let failure = Failure::new(CauseKind::Transient, "ü".repeat(FAILURE_BYTES_MAX));
    assert_eq!(failure.error.len(), FAILURE_BYTES_MAX);
    assert!(failure.error.chars().all(|c| c == 'ü'));
}
