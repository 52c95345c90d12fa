//! The inbox: what was processed, kept as records beside the work, so that an effect happens once.
//!
//! Record, effect and acknowledgement are one commit, on engines whose commits reach over the whole store. The worker's
//! idempotent handlers keep their records in the same places, so both know what the other did.

use onward_core::{
    Delivery, Engine, Error, ErrorKind, Guarded, Inlet, KEY_BYTES_MAX, Op, Outcome, RECORD_KEY_BYTES_MAX,
    RecordExpect, RecordKey, RecordQuery, Result,
};
use std::time::Duration;

/// How long processed keys are remembered where nothing else is said.
pub const REMEMBER_DEFAULT: Duration = Duration::from_secs(7 * 24 * 3600);

const PREFIX: &str = "onward.inbox/";
/// Longest part of a record key that names a replay epoch, in bytes: `@` and a number.
const REPLAY_BYTES_MAX: usize = 11;
/// As the worker writes of a key that is processed, without a result.
const PROCESSED: &[u8] = br#"{"claimed_by":null,"result":null}"#;

/// How a delivery was processed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Once {
    /// By this call.
    Now,
    /// Before, under the same key: the effects were left out, and the delivery was acknowledged.
    Before,
}

/// Processes a delivery once: its effects, the record that its key was processed, and its acknowledgement in one commit.
///
/// Guarantees: the effects of one key happen once, however often its message comes, for as long as the key is
/// remembered; a stale lease changes nothing. Remember keys for longer than a message can come again: its retries, its
/// time as a dead letter, a replay.
///
/// # Errors
/// `LeaseLost` for a stale lease, and for a repeat of a call that was done: the message comes again if it was not.
/// `Unsupported` where commits don't reach over messages and records. `Unavailable` while a worker has claimed the key:
/// let the message come again. Those of the effects.
///
/// # Cancel safety
/// Dropped, it was done or it wasn't; the message comes again if it wasn't.
pub async fn once(
    engine: &dyn Engine,
    delivery: &Delivery,
    key: &str,
    remember: Duration,
    effects: Vec<Op>,
) -> Result<Once> {
    let token = delivery.token.clone();
    let record = record_key(&token.inlet, delivery.replay, key)?;
    let ack = Op::Settle { token: token.clone(), outcome: Outcome::Ack { result: None } };
    // The guard stands first, so that a stale lease is told as one and not as a key that is there.
    let mut ops = vec![Op::Guard(Guarded::Lease { token })];
    ops.push(Op::PutRecord {
        key: record.clone(),
        value: PROCESSED.into(),
        expect: RecordExpect::Absent,
        ttl: Some(remember),
    });
    ops.extend(effects);
    ops.push(ack.clone());
    match engine.commit(engine.prepare(ops)?).await {
        Ok(_) => Ok(Once::Now),
        Err(error) if error.kind() == ErrorKind::Conflict => match is_processed(engine, &record).await? {
            Some(true) => engine.commit(engine.prepare(vec![ack])?).await.map(|_| Once::Before),
            Some(false) => {
                Err(Error::unavailable("another delivery of this key is being worked on").at(record))
            }
            None => Err(error),
        },
        Err(error) => Err(error),
    }
}

/// Whether a key was processed; `None` where nothing is known of it.
async fn is_processed(engine: &dyn Engine, key: &RecordKey) -> Result<Option<bool>> {
    let found = engine.get_records(RecordQuery::Keys(vec![key.clone()])).await?.items.pop();
    let claimed = |value: &[u8]| -> Result<bool> {
        let entry: serde_json::Value = serde_json::from_slice(value)
            .map_err(|e| Error::corrupt(format!("an inbox entry can't be read: {e}")).at(key))?;
        Ok(!entry["claimed_by"].is_null())
    };
    found.map(|record| claimed(&record.value).map(|claimed| !claimed)).transpose()
}

/// The record of a key of one inlet and replay epoch: fan-out copies do not suppress each other, and a rewind that is to
/// process again runs handlers again.
///
/// # Errors
/// `Invalid` for a key that is empty, too long or has control characters.
pub fn record_key(inlet: &Inlet, replay: u32, key: &str) -> Result<RecordKey> {
    match replay {
        0 => RecordKey::try_from(format!("{PREFIX}{inlet}/{key}")),
        replay => RecordKey::try_from(format!("{PREFIX}{inlet}@{replay}/{key}")),
    }
}

/// Whether every key of an inlet fits into a record key.
///
/// # Errors
/// `Invalid` for a name that is too long.
pub fn fits(inlet: &Inlet) -> Result<()> {
    let bytes = PREFIX.len() + inlet.to_string().len() + REPLAY_BYTES_MAX + 1 + KEY_BYTES_MAX;
    if bytes <= RECORD_KEY_BYTES_MAX {
        return Ok(());
    }
    Err(Error::invalid("the name is too long for an idempotent handler").at(inlet).mend("shorten it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inlets_and_replay_epochs_have_keys_of_their_own() {
        let inlet = |text: &str| text.parse::<Inlet>().unwrap();
        let key = |text: &str, replay| record_key(&inlet(text), replay, "k").unwrap().to_string();
        let keys = [key("orders:a", 0), key("orders:b", 0), key("orders:a", 1), key("orders", 0)];
        assert_eq!(keys[0], "onward.inbox/orders:a/k");
        assert!((1..keys.len()).all(|index| !keys[..index].contains(&keys[index])), "{keys:?}");
    }

    #[test]
    fn what_fits_leaves_room_for_the_longest_key() {
        let inlet: Inlet = format!("{}/{}", "n".repeat(120), "q".repeat(100)).parse().unwrap();
        let longest = "k".repeat(KEY_BYTES_MAX);
        assert_eq!(fits(&inlet).is_ok(), record_key(&inlet, u32::MAX, &longest).is_ok());
        let short: Inlet = "orders".parse().unwrap();
        assert!(fits(&short).is_ok() && record_key(&short, u32::MAX, &longest).is_ok());
    }
}
