//! The form in which an entry lies in memory: as few bytes as hold it whole, since there are millions.

use super::slab::{Entry, Queued, Status};
use crate::Marks;
use onward_core::Timestamp;

const KIND_BITS: u32 = 12;
const FLAG_BITS: u32 = 12;
/// How far behind its base an entry's time of acceptance can be said, in bits of microseconds: 12 days.
const TIME_BITS: u32 = 64 - KIND_BITS - FLAG_BITS;
/// This number of a type says that type and time of acceptance stand elsewhere.
const ELSEWHERE: u64 = (1 << KIND_BITS) - 1;

const STATUSES: [Status; 8] = {
    use Status::*;
    [Waiting, Delayed, Leased, Gone, Dead, Kept, Waiting, Waiting]
};
const QUEUED: [Queued; 4] = [Queued::No, Queued::Fresh, Queued::Returned, Queued::Suspect];

/// An entry in 40 bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Packed {
    seq: u64,
    id: u64,
    dedup: u64,
    /// From the lowest bit: flags, type, time of acceptance behind the base.
    rest: u64,
    /// Half of the hash: it only decides about a message that is known to be there already.
    fingerprint: u32,
    size: u32,
}

/// What of an entry the packed form can't always hold.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rest {
    pub(super) accepted_at: Timestamp,
    pub(super) kind: u32,
}

impl Packed {
    /// Packs an entry; answers also whether type and time of acceptance must be kept elsewhere.
    #[inline]
    pub(super) fn of(entry: &Entry, base: Timestamp) -> (Self, bool) {
        let fits = fits(entry.accepted_at, base) && u64::from(entry.kind) < ELSEWHERE;
        let behind = entry.accepted_at.as_micros().wrapping_sub(base.as_micros()) as u64;
        let (kind, behind) = if fits { (u64::from(entry.kind), behind) } else { (ELSEWHERE, 0) };
        let packed = Self {
            seq: entry.seq,
            id: entry.marks.id,
            dedup: entry.marks.dedup,
            rest: behind << (KIND_BITS + FLAG_BITS) | kind << FLAG_BITS | flags(entry),
            fingerprint: entry.marks.fingerprint as u32,
            size: entry.size,
        };
        (packed, !fits)
    }

    pub(super) fn seq(&self) -> u64 {
        self.seq
    }

    pub(super) fn id_hash(&self) -> u64 {
        self.id
    }

    pub(super) fn is_vacant(&self) -> bool {
        self.rest & VACANT != 0
    }

    /// The entry, with what `elsewhere` answers where that is needed.
    #[inline]
    pub(super) fn entry(&self, base: Timestamp, elsewhere: impl FnOnce() -> Rest) -> Entry {
        let rest = self.rest;
        let Rest { accepted_at, kind } = match rest >> FLAG_BITS & ELSEWHERE {
            ELSEWHERE => elsewhere(),
            kind => {
                let behind = rest >> (KIND_BITS + FLAG_BITS);
                let accepted_at = Timestamp::from_micros(base.as_micros().wrapping_add(behind as i64));
                Rest { accepted_at, kind: kind as u32 }
            }
        };
        Entry {
            seq: self.seq(),
            marks: Marks { id: self.id, dedup: self.dedup, fingerprint: u64::from(self.fingerprint) },
            accepted_at,
            size: self.size,
            kind,
            priority: (rest & 0xf) as u8,
            status: STATUSES[(rest >> 4 & 7) as usize],
            queued: QUEUED[(rest >> 7 & 3) as usize],
            in_line: rest & IN_LINE != 0,
            has_side: rest & HAS_SIDE != 0,
            vacant: rest & VACANT != 0,
        }
    }
}

/// Whether a time of acceptance can be said as one behind `base`.
pub(super) fn fits(accepted_at: Timestamp, base: Timestamp) -> bool {
    let behind = accepted_at.as_micros().checked_sub(base.as_micros());
    behind.is_some_and(|behind| (0..1 << TIME_BITS).contains(&behind))
}

const IN_LINE: u64 = 1 << 9;
const HAS_SIDE: u64 = 1 << 10;
const VACANT: u64 = 1 << 11;

fn flags(entry: &Entry) -> u64 {
    let flag = |there: bool, flag: u64| if there { flag } else { 0 };
    u64::from(entry.priority & 0xf)
        | (entry.status as u64) << 4
        | (entry.queued as u64) << 7
        | flag(entry.in_line, IN_LINE)
        | flag(entry.has_side, HAS_SIDE)
        | flag(entry.vacant, VACANT)
}

// Four bits for the priority, three for the status, two for where it is queued.
const _: () = assert!(onward_core::PRIORITY_MAX < 16 && size_of::<Packed>() == 40);
