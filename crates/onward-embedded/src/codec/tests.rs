use super::samples::{MARKS, TIME, facts, full, plain};
use super::{decode, decode_body, encode};
use crate::{Fact, InletId};
use bytes::Bytes;
use onward_core::{Message, Timestamp};
use onward_proves::proves;
use proptest::prelude::*;
use std::{collections::BTreeMap, sync::Arc};

fn record(fact: &Fact) -> (u8, Bytes) {
    let mut fields = vec![0xee; 3];
    let encoded = encode(fact, TIME, &mut fields);
    let bytes = [&fields[encoded.fields.clone()], encoded.data].concat();
    assert_eq!(bytes.len(), encoded.len());
    (encoded.kind, bytes.into())
}

#[test]
#[proves("LOG17")]
fn every_fact_reads_back_as_it_was_written() {
    for fact in facts() {
        let (kind, bytes) = record(&fact);
        assert_eq!(decode(kind, &bytes).as_ref(), Ok(&fact));
    }
}

#[test]
fn a_body_is_read_without_its_fact_and_with_the_time_it_was_accepted() {
    let enqueued = Fact::Enqueued { inlet: InletId(1), marks: MARKS, skew_us: 3, message: Arc::new(full()) };
    let (kind, bytes) = record(&enqueued);
    let stored = decode_body(kind, &bytes).unwrap();
    assert_eq!((stored.message.as_ref(), stored.accepted_at), (&full(), TIME));
    let (kind, bytes) = record(&Fact::Opened { epoch: 1 });
    assert!(decode_body(kind, &bytes).is_err());
}

#[test]
#[proves("LOG9")]
fn a_record_cut_at_any_byte_is_refused_or_shorter_and_never_panics() {
    for fact in facts() {
        let (kind, bytes) = record(&fact);
        for cut in 0..bytes.len() {
            // Data that runs to the end of the record may be cut unseen here: the log's checksum sees it.
            if let Ok(shorter) = decode(kind, &bytes.slice(..cut)) {
                assert_ne!(shorter, fact);
            }
        }
    }
}

#[test]
#[proves("LOG21")]
fn an_unknown_kind_is_an_error_that_says_so() {
    for kind in [0, 20, 41, 51, 67, 255] {
        let error = decode(kind, &Bytes::from_static(&[0; 64])).unwrap_err();
        assert!(error.0.contains("does not know"), "{}", error.0);
    }
}

/// The bytes of each sample. It changes only with the format, and where rules get a new field, which those of before
/// lack: the test below prints what it would be.
const GOLDEN: &str = include_str!("golden.txt");

fn golden() -> String {
    let line = |fact: &Fact| {
        let (kind, bytes) = record(fact);
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{kind} {hex}\n")
    };
    facts().iter().map(line).collect()
}

#[test]
#[proves("LOG21")]
fn the_bytes_of_every_kind_are_those_of_format_1() {
    assert_eq!(golden(), GOLDEN, "the bytes of facts have changed: see `persist::folder::FORMAT`");
}

prop_compose! {
    fn message()(
        texts in proptest::collection::vec("[a-zA-Z0-9 ä-ü.]{1,40}", 8),
        given in proptest::collection::vec(any::<bool>(), 8),
        headers in proptest::collection::btree_map("[a-z]{1,9}", ".{0,20}", 0..5),
        numbers in (1..u32::MAX, 1..u32::MAX, 0u8..10),
        times in (any::<i64>(), any::<i64>(), any::<i64>()),
        data in proptest::collection::vec(any::<u8>(), 0..300),
    ) -> Message {
        let mut message = plain();
        let key = |at: usize| given[at].then(|| texts[at].as_str().try_into().unwrap());
        message.id = texts[0].as_str().try_into().unwrap();
        message.kind = texts[1].as_str().into();
        message.source = texts[2].as_str().into();
        message.correlation_id = given[0].then(|| texts[3].as_str().into());
        message.causation_id = given[1].then(|| texts[4].as_str().into());
        message.headers = headers.into_iter().collect::<BTreeMap<_, _>>();
        (message.order_key, message.dedup_key) = (key(4), key(5));
        (message.fairness_key, message.unique_key) = (key(6), key(7));
        (message.version, message.edition) = (numbers.0, numbers.1);
        message.priority = numbers.2.try_into().unwrap();
        message.timestamp = Timestamp::from_micros(times.0);
        message.due = given[2].then(|| Timestamp::from_micros(times.1));
        message.expiry = given[3].then(|| Timestamp::from_micros(times.2));
        let content_type = given[4].then(|| texts[7].as_str().into());
        message.data = onward_core::Payload::trusted(data.into(), content_type);
        message
    }
}

proptest! {
    #[test]
    #[proves("LOG17", "L5")]
    fn any_message_reads_back_byte_for_byte(message in message(), accepted in any::<i64>()) {
        let accepted_at = Timestamp::from_micros(accepted);
        let at = crate::At { inlet: InletId(1), message: crate::MessageRef { seq: 1, id_hash: 2 } };
        let fact = Fact::Moved { at, edition: false, accepted_at, message: Arc::new(message) };
        let (kind, bytes) = record(&fact);
        prop_assert_eq!(decode(kind, &bytes), Ok(fact));
    }

    #[test]
    #[proves("LOG9")]
    fn any_bytes_are_read_or_refused(kind in any::<u8>(), bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let bytes = Bytes::from(bytes);
        if let Ok(fact) = decode(kind, &bytes) {
            let (again, written) = record(&fact);
            prop_assert_eq!((kind, decode(again, &written)), (again, Ok(fact)));
        }
    }
}
