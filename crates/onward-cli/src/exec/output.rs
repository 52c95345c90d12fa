//! What a command writes: passed on line by line, and its end kept for whoever asks why it failed.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Most bytes of a command's output kept with a failure; its end is kept.
pub(super) const TAIL_BYTES_MAX: usize = onward_core::FAILURE_BYTES_MAX - 64;
/// A line longer than this is passed on in pieces.
const LINE_BYTES_MAX: usize = 64 * 1024;

/// The last bytes of what both streams wrote, in the order in which they were read.
#[derive(Debug, Default)]
pub(super) struct Tail {
    bytes: Mutex<(VecDeque<u8>, bool)>,
}

impl Tail {
    fn push(&self, chunk: &[u8]) {
        let mut guard = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let (bytes, cut) = &mut *guard;
        bytes.extend(&chunk[chunk.len().saturating_sub(TAIL_BYTES_MAX)..]);
        let over = bytes.len().saturating_sub(TAIL_BYTES_MAX);
        *cut |= over > 0 || chunk.len() > TAIL_BYTES_MAX;
        bytes.drain(..over);
    }

    /// What was kept, as text; says so where the begin is missing.
    pub(super) fn text(&self) -> String {
        let guard = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = guard.0.iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        if guard.1 { format!("[only the end was kept]\n{text}") } else { text.into_owned() }
    }
}

/// The whole of stdout up to a bound, for results.
#[derive(Debug)]
pub(super) struct Kept {
    bytes: Vec<u8>,
    bytes_max: usize,
    over: bool,
}

impl Kept {
    /// Keeps up to so many bytes.
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { bytes: Vec::new(), bytes_max, over: false }
    }

    fn push(&mut self, chunk: &[u8]) {
        self.over |= self.bytes.len() + chunk.len() > self.bytes_max;
        if !self.over {
            self.bytes.extend_from_slice(chunk);
        }
    }

    /// All of it, or `None` when it was more than the bound.
    pub(super) fn whole(self) -> Option<Vec<u8>> {
        (!self.over).then_some(self.bytes)
    }
}

/// Where a command's stream goes on to; one for all commands, so that lines never mix.
pub(super) type Onto = tokio::sync::Mutex<Box<dyn AsyncWrite + Send + Unpin>>;

/// Reads a stream to its end. A reader of ours that goes away stops nothing.
pub(super) async fn pump(
    stream: Option<impl AsyncRead + Unpin>,
    tail: &Tail,
    mut kept: Option<&mut Kept>,
    onto: Option<&Onto>,
) {
    let Some(mut stream) = stream else { return };
    let mut chunk = vec![0; 16 * 1024];
    let mut line = Vec::new();
    while let Ok(read @ 1..) = stream.read(&mut chunk).await {
        tail.push(&chunk[..read]);
        if let Some(kept) = kept.as_deref_mut() {
            kept.push(&chunk[..read]);
        }
        let Some(onto) = onto else { continue };
        line.extend_from_slice(&chunk[..read]);
        let whole = line.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let ready = if whole == 0 && line.len() > LINE_BYTES_MAX { line.len() } else { whole };
        pass_on(onto, &line[..ready]).await;
        line.drain(..ready);
    }
    if let (Some(onto), false) = (onto, line.is_empty()) {
        line.push(b'\n');
        pass_on(onto, &line).await;
    }
}

async fn pass_on(onto: &Onto, bytes: &[u8]) {
    if bytes.is_empty() {
        return;
    }
    let mut onto = onto.lock().await;
    if onto.write_all(bytes).await.is_ok() {
        let _ = onto.flush().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_end_of_long_output_is_kept_within_the_bound_and_said_to_be_cut() {
        let long = [vec![b'a'; 3 * TAIL_BYTES_MAX], b"the reason".to_vec()].concat();
        let tail = Tail::default();
        pump(Some(long.as_slice()), &tail, None, None).await;
        let text = tail.text();
        assert!(text.starts_with("[only the end was kept]"));
        assert!(text.ends_with("the reason"));
        assert!(text.len() <= onward_core::FAILURE_BYTES_MAX);
    }

    #[tokio::test]
    async fn output_beyond_the_bound_of_a_result_is_no_result_at_all() {
        let (tail, mut kept) = (Tail::default(), Kept::new(10));
        pump(Some(&b"12345678901"[..]), &tail, Some(&mut kept), None).await;
        assert_eq!(kept.whole(), None);
    }
}
