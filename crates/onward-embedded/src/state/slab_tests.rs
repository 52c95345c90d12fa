use super::*;
use proptest::prelude::*;

const DAY: i64 = 86_400_000_000;

fn entry(seq: u64, days: i64, kind: u32) -> Entry {
    Entry {
        seq,
        marks: Marks { id: seq, dedup: u64::MAX - seq, fingerprint: u64::from(u32::MAX) - seq },
        accepted_at: Timestamp::from_micros(days * DAY),
        size: u32::MAX,
        kind,
        priority: 9,
        status: Status::Kept,
        queued: Queued::Suspect,
        in_line: false,
        has_side: true,
        vacant: false,
    }
}

proptest! {
    #[test]
    fn what_is_put_in_comes_out_whatever_its_time_and_type(
        put in proptest::collection::vec((-40i64..4_000, 0u32..5_000, any::<bool>()), 1..200),
    ) {
        let (mut slab, mut there) = (Slab::default(), HashMap::new());
        for (number, (days, kind, remove)) in put.into_iter().enumerate() {
            let entry = entry(number as u64, days, kind);
            let slot = slab.insert(entry);
            there.insert(slot, entry);
            if remove && let Some(slot) = there.keys().next().copied() {
                slab.remove(slot);
                there.remove(&slot);
            }
            let frozen = slab.frozen();
            for (slot, entry) in &there {
                prop_assert_eq!(&slab.get(*slot), entry);
                prop_assert_eq!(&frozen.get(*slot), entry);
            }
            let mut slots: Vec<u32> = there.keys().copied().collect();
            slots.sort_unstable();
            prop_assert_eq!(slab.slots().collect::<Vec<_>>(), slots);
        }
    }
}

#[test]
fn only_the_unusual_costs_more() {
    let mut slab = Slab::default();
    for seq in 0..5_000u64 {
        slab.insert(entry(seq, seq as i64 / 500, 4_094));
    }
    assert!(slab.elsewhere.is_empty());
    // Its type's number is too high, and the next comes a year later: the chunk goes on from there.
    let strange = slab.insert(entry(5_000, 10, 4_095));
    assert_eq!(slab.elsewhere.len(), 1);
    slab.remove(strange);
    assert!(slab.elsewhere.is_empty());
    slab.insert(entry(5_001, 375, 1));
    let old = slab.elsewhere.len();
    assert_eq!(old, 5_000 - CHUNK);
    slab.insert(entry(5_002, 376, 1));
    assert_eq!(slab.elsewhere.len(), old);
}
