//! Buffers at addresses that direct writes accept, and a bounded store of used ones.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

/// What the address of a direct write's buffer is a multiple of.
const ALIGNMENT: usize = 4096;
/// Used buffers kept for reuse, in bytes.
const KEPT_BYTES_MAX: usize = 8 << 20;

/// Bytes that begin at a multiple of 4096.
#[derive(Debug)]
pub(crate) struct AlignedBuf {
    bytes: Vec<u8>,
    from: usize,
    home: Weak<BufferStore>,
}

impl AlignedBuf {
    /// `capacity` zeros.
    pub(crate) fn zeroed(capacity: usize) -> AlignedBuf {
        let bytes = vec![0; capacity + ALIGNMENT];
        let from = bytes.as_ptr().align_offset(ALIGNMENT);
        AlignedBuf { bytes, from, home: Weak::new() }
    }

    /// Memory that it takes, in bytes.
    pub(crate) fn held(&self) -> u64 {
        self.bytes.len() as u64
    }
}

impl Deref for AlignedBuf {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.bytes[self.from..self.bytes.len() + self.from - ALIGNMENT]
    }
}

impl DerefMut for AlignedBuf {
    fn deref_mut(&mut self) -> &mut [u8] {
        let end = self.bytes.len() + self.from - ALIGNMENT;
        &mut self.bytes[self.from..end]
    }
}

impl AsRef<[u8]> for AlignedBuf {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Drop for AlignedBuf {
    fn drop(&mut self) {
        if let Some(home) = self.home.upgrade() {
            home.keep(std::mem::take(&mut self.bytes), self.from);
        }
    }
}

/// Used buffers by size class; a buffer comes back when its last reader lets go of it.
#[derive(Debug, Default)]
pub(crate) struct BufferStore {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    bytes: usize,
    /// By the power of two of the capacity.
    classes: [Vec<(Vec<u8>, usize)>; 32],
}

impl BufferStore {
    /// A buffer of at least `bytes`, rounded up to a power of two from 4096; its content is anything.
    pub(crate) fn take(self: &Arc<Self>, bytes: usize) -> AlignedBuf {
        let capacity = bytes.next_power_of_two().max(ALIGNMENT);
        let reused = {
            let mut kept = self.kept.lock();
            let found = kept.classes[class(capacity)].pop();
            if found.is_some() {
                kept.bytes -= capacity;
            }
            found
        };
        let mut buffer = match reused {
            Some((bytes, from)) => AlignedBuf { bytes, from, home: Weak::new() },
            None => AlignedBuf::zeroed(capacity),
        };
        buffer.home = Arc::downgrade(self);
        buffer
    }

    fn keep(&self, bytes: Vec<u8>, from: usize) {
        let capacity = bytes.len() - ALIGNMENT;
        let mut kept = self.kept.lock();
        if kept.bytes + capacity <= KEPT_BYTES_MAX {
            kept.bytes += capacity;
            kept.classes[class(capacity)].push((bytes, from));
        }
    }
}

fn class(capacity: usize) -> usize {
    capacity.trailing_zeros() as usize
}
