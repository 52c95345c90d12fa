//! Writing queued frames, with a bound on how long the other end may take them.

use crate::within::within;
use onward_core::{Env, Error};
use std::time::Duration;
use tokio::{
    io::{AsyncWrite, AsyncWriteExt},
    sync::mpsc,
};

/// Most frames that wait to be written to one connection; whoever adds more waits.
pub(crate) const OUTGOING_MAX: usize = 64;
/// Small frames are written together up to so many bytes; larger ones in pieces of it.
const PIECE_BYTES: usize = 64 * 1024;

/// Writes until the queue ends, which is no error, or the other end fails or takes nothing for `limit`.
pub(crate) async fn write_all<W: AsyncWrite + Unpin>(
    mut write: W,
    mut queue: mpsc::Receiver<Vec<u8>>,
    env: &dyn Env,
    limit: Duration,
) -> Option<Error> {
    while let Some(mut bytes) = queue.recv().await {
        while bytes.len() < PIECE_BYTES
            && let Ok(next) = queue.try_recv()
        {
            bytes.extend_from_slice(&next);
        }
        for piece in bytes.chunks(PIECE_BYTES) {
            match within(env, limit, write.write_all(piece)).await {
                Some(Ok(())) => {}
                Some(Err(error)) => return Some(Error::unknown(format!("the connection failed: {error}"))),
                None => return Some(Error::unknown(format!("the other end took nothing for {limit:?}"))),
            }
        }
    }
    None
}
