//! The binary form of what facts are made of.

use super::wire::{Decoded, Input, Malformed, Wire, wire_enum, wire_struct};
use crate::{At, BulkMark, End, Given, InletId, Marks, MessageRef, Removal, Said};
use onward_core::{BulkReport, InletConfig};

wire_struct!(At { inlet, message });
wire_struct!(Given { at, attempt, nonce });
wire_struct!(BulkMark { id, report });
wire_struct!(BulkReport { matched, done, finished });
wire_enum!(Removal { Expired = 0, Cancelled = 1, Purged = 2, Shed = 3, Retired = 4, Forgotten = 5 });
wire_enum!(Said { Ack = 0, Retry = 1, Release = 2, Reject = 3 });

impl Wire for InletId {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
    }

    fn get(input: &mut Input<'_>) -> Decoded<Self> {
        Wire::get(input).map(Self)
    }
}

impl Wire for MessageRef {
    /// A hash has no short form.
    fn put(&self, out: &mut Vec<u8>) {
        self.seq.put(out);
        out.extend_from_slice(&self.id_hash.to_le_bytes());
    }

    fn get(input: &mut Input<'_>) -> Decoded<Self> {
        Ok(Self { seq: Wire::get(input)?, id_hash: u64::from_le_bytes(input.array()?) })
    }
}

impl Wire for Marks {
    fn put(&self, out: &mut Vec<u8>) {
        [self.id, self.dedup, self.fingerprint]
            .iter()
            .for_each(|hash| out.extend_from_slice(&hash.to_le_bytes()));
    }

    fn get(input: &mut Input<'_>) -> Decoded<Self> {
        let mut hash = || Ok(u64::from_le_bytes(input.array()?));
        Ok(Self { id: hash()?, dedup: hash()?, fingerprint: hash()? })
    }
}

impl Wire for End {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Acked { result: None } => out.push(0),
            Self::Acked { result: Some(result) } => {
                out.push(1);
                result.put(out);
            }
            Self::Retried { due, cause } => {
                out.push(2);
                due.put(out);
                cause.put(out);
            }
            Self::Released { due } => {
                out.push(3);
                due.put(out);
            }
            Self::Died { cause } => {
                out.push(4);
                cause.put(out);
            }
            Self::Suspected => out.push(5),
            Self::Crashed { due, cause } => {
                out.push(6);
                due.put(out);
                cause.put(out);
            }
            Self::Cancelled => out.push(7),
            Self::Lost { cause, copy } => {
                out.push(8);
                cause.put(out);
                copy.put(out);
            }
        }
    }

    fn get(input: &mut Input<'_>) -> Decoded<Self> {
        Ok(match input.byte()? {
            0 => Self::Acked { result: None },
            1 => Self::Acked { result: Some(Wire::get(input)?) },
            2 => Self::Retried { due: Wire::get(input)?, cause: Wire::get(input)? },
            3 => Self::Released { due: Wire::get(input)? },
            4 => Self::Died { cause: Wire::get(input)? },
            5 => Self::Suspected,
            6 => Self::Crashed { due: Wire::get(input)?, cause: Wire::get(input)? },
            7 => Self::Cancelled,
            8 => Self::Lost { cause: Wire::get(input)?, copy: Wire::get(input)? },
            _ => return Err(Malformed("a lease ended in a way that this version does not know")),
        })
    }
}

/// Rules are rare and grow with time: they carry the names of their fields, and those missing have their default.
impl Wire for InletConfig {
    fn put(&self, out: &mut Vec<u8>) {
        let named = rmp_serde::to_vec_named(self).expect("plain data into memory can't fail");
        super::wire::put_bytes(&named, out);
    }

    fn get(input: &mut Input<'_>) -> Decoded<Self> {
        rmp_serde::from_slice(input.bytes()?).map_err(|_| Malformed("an inlet's rules can't be read"))
    }
}
