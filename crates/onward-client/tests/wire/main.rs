//! Everything that goes over the wire comes out as it went in, and versions that differ still understand each other.

#![allow(clippy::unwrap_used, reason = "a test")]

mod answers;
mod samples;

use answers::answers;
use bytes::Bytes;
use onward_client::{
    frame::{FRAME_BYTES_MAX, FrameReader, decode, encode},
    wire::*,
};
use onward_core::*;
use onward_proves::proves;
use samples::*;
use serde::{Serialize, de::DeserializeOwned};
use std::{fmt::Debug, sync::Arc, time::Duration};

fn through<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: T) {
    let frame = encode(&value).unwrap();
    let back: T = decode(&frame[4..]).unwrap_or_else(|error| panic!("{value:?}: {error}"));
    assert_eq!(back, value);
}

#[test]
#[proves("L5")]
fn every_call_arrives_as_it_was_made() {
    for (id, call) in calls().into_iter().enumerate() {
        through(ToHost::Call { id: id as u64, call });
    }
}

#[test]
#[proves("L5")]
fn every_answer_arrives_as_it_was_given() {
    for answer in answers() {
        through(ToClient::Answer { id: u64::MAX, answer: Ok(answer) });
    }
    let kinds = [
        Error::invalid("w"),
        Error::unsupported("w").at("p"),
        Error::unavailable("w").mend("m"),
        Error::lease_lost("w").retry(RetryHint::Now),
        Error::poisoned("w").retry(RetryHint::Unknown),
    ];
    for error in kinds {
        through(ToClient::Answer { id: 0, answer: Err(error) });
    }
}

#[test]
fn everything_around_calls_and_answers_arrives_too() {
    let health = Health {
        readable: true,
        writable: false,
        durability: Durability::OsBuffer,
        problems: vec![Problem { what: "w".into(), since: at(1), mend: "m".into() }],
    };
    let limits = EngineLimits {
        payload_bytes_max: 1,
        delay_max: Some(Duration::MAX),
        lease_total_max: None,
        dedup_window_max: Some(Duration::ZERO),
        ops_max: usize::MAX,
    };
    let capabilities = Capabilities::all("x", Durability::Memory, AtomicScope::Inlet, limits)
        .refuse(Capability::Fairness, "it has none");
    let process = ProcessId("h/1/2/3".into());
    let welcome = Welcome {
        protocol: 1,
        process: process.clone(),
        capabilities,
        health: health.clone(),
        calls_max: 1,
        waits_max: 2,
        watches_max: 3,
    };
    let interests = vec![
        Interest::Inlets(vec![queue()]),
        Interest::Dead(vec![]),
        Interest::Stream("a-1".parse().unwrap()),
        Interest::Topic("t".parse().unwrap()),
        Interest::Everything,
    ];
    interests.into_iter().for_each(|interest| through(ToHost::Watch { id: 1, interest }));
    let worker: Arc<str> = "w".into();
    through(ToHost::Hello(Hello { protocol: 1, protocol_oldest: 1, process, pid: 1, worker }));
    let others =
        [ToHost::Drop { id: 1 }, ToHost::Unwatch { id: 2 }, ToHost::Ping { number: 3 }, ToHost::Goodbye];
    others.into_iter().for_each(through);
    through(ToClient::Welcome(Box::new(welcome)));
    through(ToClient::Health(health));
    let hints = [Hint::Inlet(queue()), Hint::Stream("a-1".parse().unwrap()), Hint::Somewhere];
    hints.into_iter().for_each(|hint| through(ToClient::Hint { id: 1, hint }));
    [ToClient::Pong { number: 1 }, ToClient::Goodbye].into_iter().for_each(through);
    through(ToClient::Refused(Error::full("w")));
}

/// A hello of a later version: more fields, in another order.
#[derive(Serialize)]
struct LaterHello {
    later: Vec<u32>,
    worker: &'static str,
    pid: u32,
    process: &'static str,
    protocol_oldest: u32,
    protocol: u32,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Later {
    Hello(LaterHello),
}

#[test]
#[proves("T46")]
fn fields_of_a_later_version_are_skipped_and_their_order_does_not_matter() {
    let later =
        LaterHello { later: vec![1], worker: "w", pid: 3, process: "p", protocol_oldest: 1, protocol: 2 };
    let frame = encode(&Later::Hello(later)).unwrap();
    let ToHost::Hello(hello) = decode(&frame[4..]).unwrap() else { panic!("not a hello") };
    assert_eq!((hello.protocol, hello.pid, &*hello.worker, &*hello.process.0), (2, 3, "w", "p"));
}

#[tokio::test]
#[proves("T54")]
async fn a_length_above_the_bound_is_refused_before_anything_is_read() {
    let length = (FRAME_BYTES_MAX as u32 + 1).to_be_bytes();
    let error = FrameReader::new(&length[..]).next().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let error = encode(&Bytes::from(vec![0; FRAME_BYTES_MAX])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
}

#[tokio::test]
async fn frames_come_out_whole_however_they_are_cut() {
    let frames: Vec<u8> =
        [ToHost::Goodbye, ToHost::Ping { number: 7 }].iter().flat_map(|f| encode(f).unwrap()).collect();
    for cut in 0..=frames.len() {
        use tokio::io::AsyncReadExt;
        let mut reader = FrameReader::new(frames[..cut].chain(&frames[cut..]));
        assert_eq!(decode::<ToHost>(&reader.next().await.unwrap().unwrap()).unwrap(), ToHost::Goodbye);
        assert_eq!(
            decode::<ToHost>(&reader.next().await.unwrap().unwrap()).unwrap(),
            ToHost::Ping { number: 7 }
        );
        assert!(reader.next().await.unwrap().is_none());
        let ended = FrameReader::new(&frames[..cut.min(7)]).next().await;
        assert_eq!(ended.is_ok(), cut == 0, "a stream that ends within a frame is an error");
    }
}

#[test]
#[proves("T54")]
fn bodies_that_are_not_messages_are_refused_without_a_panic() {
    let call = calls().into_iter().find(|call| matches!(call, Call::Lease(_))).unwrap();
    let good = encode(&ToHost::Call { id: 1, call }).unwrap();
    for end in 4..good.len() {
        assert!(decode::<ToHost>(&good[4..end]).is_err(), "cut at {end}");
    }
    for (place, bit) in (4..good.len()).flat_map(|place| (0..8).map(move |bit| (place, bit))) {
        let mut bent = good.clone();
        bent[place] ^= 1 << bit;
        let _ = decode::<ToHost>(&bent[4..]);
    }
}
