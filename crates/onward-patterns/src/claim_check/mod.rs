//! The claim check: a payload over a size goes aside into object storage, and the message carries a reference.
//!
//! [`ClaimCheck`] wraps an engine. Enqueued or published through it, a large payload is stored first and then named in
//! the message, by length and hash; leased through it, the message has its payload again. Handlers see no difference.
//! [`ClaimCheck::collect`] removes the payloads whose messages are gone, and never one that is still needed.
//!
//! Each message has a payload of its own, also where two hold the same bytes: one that is shared could be found unused
//! just when another message begins to use it.

mod collect;
mod commit;
mod engine;
mod payloads;
mod redeem;
mod reference;

use reference::Reference;

pub use collect::Collected;
pub use engine::{CLAIM_BYTES_DEFAULT, ClaimCheck};
pub use object_store;
pub use payloads::Payloads;
pub use reference::{CLAIM_CONTENT_TYPE, CLAIM_HEADER};

use std::time::Duration;

/// How old a payload must be to be collected where nothing else is said: far longer than from its storing to the answer
/// of its message's commit.
pub const GRACE_DEFAULT: Duration = Duration::from_secs(24 * 3600);
