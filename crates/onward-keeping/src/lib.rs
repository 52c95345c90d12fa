//! Keeping data folders of the embedded engine safe: backups while they are worked on, shipping, restores, standbys.
//!
//! A folder is read from outside, whoever has it open: nothing has to be asked of that process. What is at a
//! destination is described in `docs/adr/0007-keeping.md`.

mod backup;
mod check;
mod claim;
mod copy;
mod cut;
mod destination;
mod file;
mod manifest;
mod names;
mod restore;
mod retain;
mod ship;
mod source;
mod standby;
mod upgrade;
mod write;

pub use backup::{BackedUp, backup};
pub use check::{Checked, check};
pub use copy::{Progress, Watch};
pub use destination::Destination;
pub use restore::{Restored, Target, restore};
pub use ship::{ShipOptions, Shipped, Shipper, ship};
pub use standby::{Followed, Promoted, Standby, promote};
pub use upgrade::{Upgraded, upgrade};
