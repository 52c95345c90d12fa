//! Whose turn it is to run: a suspect of a process's death runs alone.

use futures::future::Either;
use std::sync::Arc;
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

/// The turn of one delivery: shared with the others of this process, or alone.
pub(super) type Turn = Either<OwnedRwLockReadGuard<()>, OwnedRwLockWriteGuard<()>>;

/// Waits until the delivery may run. A suspect waits for all that run, and nothing starts until it has ended.
pub(super) async fn take_turn(gate: &Arc<RwLock<()>>, suspect: bool) -> Turn {
    match suspect {
        true => Either::Right(gate.clone().write_owned().await),
        false => Either::Left(gate.clone().read_owned().await),
    }
}
