//! The handle of a lease token: what the engine reads in it.

use crate::state::LeaseMark;
use bytes::Bytes;
use onward_core::{Error, Inlet, LeaseToken, MessageId, Result};

const FORM: u8 = 1;
const BYTES: usize = 21;

/// A token of the lease that the mark names.
pub(crate) fn seal(inlet: Inlet, id: MessageId, mark: LeaseMark) -> LeaseToken {
    let mut handle = [0u8; BYTES];
    handle[0] = FORM;
    handle[1..5].copy_from_slice(&mark.epoch.to_le_bytes());
    handle[5..9].copy_from_slice(&mark.attempt.to_le_bytes());
    handle[9..13].copy_from_slice(&mark.nonce.to_le_bytes());
    handle[13..21].copy_from_slice(&mark.seq.to_le_bytes());
    LeaseToken { inlet, id, handle: Bytes::copy_from_slice(&handle) }
}

/// The lease that a token names.
///
/// # Errors
/// `Invalid` when this engine can't have made it.
pub(crate) fn open(token: &LeaseToken) -> Result<LeaseMark> {
    let handle: &[u8; BYTES] =
        token.handle.as_ref().try_into().ok().filter(|handle: &&[u8; BYTES]| handle[0] == FORM).ok_or_else(
            || {
                Error::invalid("this engine did not make it")
                    .at("the lease token")
                    .mend("use the delivery's own")
            },
        )?;
    let number = |at: usize| u32::from_le_bytes([handle[at], handle[at + 1], handle[at + 2], handle[at + 3]]);
    let seq = u64::from(number(13)) | u64::from(number(17)) << 32;
    Ok(LeaseMark { seq, epoch: number(1), attempt: number(5), nonce: number(9) })
}
