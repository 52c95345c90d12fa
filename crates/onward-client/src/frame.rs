//! Frames on a byte stream: four bytes of length, most significant first, then one MessagePack value.

use bytes::{Buf, BytesMut};
use onward_core::{Error, Result};
use serde::{Serialize, de::DeserializeOwned};
use tokio::io::{AsyncRead, AsyncReadExt};

/// Largest frame, in bytes: a commit of the largest size with all that stands around it.
pub const FRAME_BYTES_MAX: usize = 64 * 1024 * 1024;
const HEAD: usize = 4;
/// Read buffers grow by this many bytes at a time, so that a length alone allocates nothing.
const STEP: usize = 64 * 1024;

/// Writes a value as one frame.
///
/// # Errors
/// `Invalid` when it is longer than [`FRAME_BYTES_MAX`]; `Internal` when it can't be written as MessagePack.
pub fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>> {
    let mut frame = vec![0; HEAD];
    rmp_serde::encode::write_named(&mut frame, value)
        .map_err(|e| Error::internal(format!("a message can't be written as MessagePack: {e}")))?;
    let body = frame.len() - HEAD;
    if body > FRAME_BYTES_MAX {
        return Err(Error::invalid(format!("{body} bytes in one message, more than {FRAME_BYTES_MAX}"))
            .mend("send or ask for less at a time"));
    }
    frame[..HEAD].copy_from_slice(&(body as u32).to_be_bytes());
    Ok(frame)
}

/// Reads a frame's body as a value.
///
/// # Errors
/// `Invalid` with the reason.
pub fn decode<T: DeserializeOwned>(body: &[u8]) -> Result<T> {
    rmp_serde::from_slice(body).map_err(|e| Error::invalid(format!("a message can't be read: {e}")))
}

/// Reads frames from a byte stream.
#[derive(Debug)]
pub struct FrameReader<R> {
    stream: R,
    buffer: BytesMut,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    /// Reads from a stream that is at the beginning of a frame.
    pub fn new(stream: R) -> Self {
        Self { stream, buffer: BytesMut::with_capacity(STEP) }
    }

    /// The next frame's body; `None` when the stream ended between two frames.
    ///
    /// # Errors
    /// `Unavailable` when the stream fails or ends within a frame; `Invalid` for a length above [`FRAME_BYTES_MAX`],
    /// which is refused before anything is allocated.
    ///
    /// # Cancel safety
    /// Safe: what was read so far is kept for the next call.
    pub async fn next(&mut self) -> Result<Option<BytesMut>> {
        loop {
            if let Some(length) = self.length()? {
                if self.buffer.len() >= HEAD + length {
                    self.buffer.advance(HEAD);
                    return Ok(Some(self.buffer.split_to(length)));
                }
                self.buffer.reserve((HEAD + length - self.buffer.len()).min(STEP));
            } else {
                self.buffer.reserve(STEP);
            }
            let read = self.stream.read_buf(&mut self.buffer).await;
            match read.map_err(|e| Error::unknown(format!("the connection failed: {e}")))? {
                0 if self.buffer.is_empty() => return Ok(None),
                0 => return Err(Error::unknown("the connection ended within a message")),
                _ => {}
            }
        }
    }

    fn length(&self) -> Result<Option<usize>> {
        let Some(head) = self.buffer.first_chunk::<HEAD>() else { return Ok(None) };
        let length = u32::from_be_bytes(*head) as usize;
        if length > FRAME_BYTES_MAX {
            return Err(Error::invalid(format!("a message of {length} bytes, more than {FRAME_BYTES_MAX}")));
        }
        Ok(Some(length))
    }
}
