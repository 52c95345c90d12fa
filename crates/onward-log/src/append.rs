//! Appending: what is added to the open group, and who then writes it.

use crate::group::{Unit, UnitSize};
use crate::head::{Head, Purpose};
use crate::log::Log;
use crate::{LogError, Position};

/// Where an appended unit stands, and what the caller's closure answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended<R> {
    /// The unit's first record.
    pub first: Position,
    /// Just behind its last; the unit is durable once `synced` has reached this.
    pub end: Position,
    /// The closure's answer.
    pub value: R,
}

impl Log {
    /// Appends a unit: all records that `fill` adds are kept, or none.
    ///
    /// `size` is an upper bound of what `fill` adds. It runs under the log's lock, so it should only encode,
    /// and what it puts in order (as a list of who waits) is in log order. If it fails, or panics, nothing of
    /// the unit remains. The unit is not durable yet: wait until the observer's `synced` reaches `end`.
    ///
    /// Errors: [`LogError::TooLarge`], [`LogError::Busy`], [`LogError::NoSpace`] (only for
    /// [`Purpose::Ordinary`], unless nothing at all is left), [`LogError::Poisoned`], [`LogError::Closed`];
    /// nothing was appended then.
    ///
    /// Never waits for the disk.
    pub fn append<R, E: From<LogError>>(
        &self,
        purpose: Purpose,
        size: UnitSize,
        time: i64,
        fill: impl FnOnce(&mut Unit<'_>) -> Result<R, E>,
    ) -> Result<Appended<R>, E> {
        self.append_and(purpose, size, time, fill, |head| self.shared.wake(head))
    }

    /// [`Log::append`] for one who calls [`Log::hurry`], [`Log::write_here`] or [`Log::wake`] right behind it: no thread
    /// of the log is woken for it, so that none is in the way. Until then it may lie unwritten.
    ///
    /// Errors: as of [`Log::append`].
    pub fn append_unwoken<R, E: From<LogError>>(
        &self,
        purpose: Purpose,
        size: UnitSize,
        time: i64,
        fill: impl FnOnce(&mut Unit<'_>) -> Result<R, E>,
    ) -> Result<Appended<R>, E> {
        self.append_and(purpose, size, time, fill, |_| {})
    }

    fn append_and<R, E: From<LogError>>(
        &self,
        purpose: Purpose,
        size: UnitSize,
        time: i64,
        fill: impl FnOnce(&mut Unit<'_>) -> Result<R, E>,
        then: impl FnOnce(&Head),
    ) -> Result<Appended<R>, E> {
        let shared = &*self.shared;
        let encoded = size.encoded();
        if encoded > shared.config.unit_bytes_max {
            return Err(LogError::TooLarge { bytes: encoded, max: shared.config.unit_bytes_max }.into());
        }
        let mut head = shared.head.lock();
        shared.admit(&mut head, purpose, encoded)?;
        shared.make_place(&mut head, encoded, time);
        let mut unit = head.open.unit(&shared.buffers, size, time);
        let first = unit.position();
        let value = fill(&mut unit)?;
        let end = unit.position();
        let was_empty_before = unit.finish();
        shared.flow.add_pending(was_empty_before);
        then(&head);
        Ok(Appended { first, end, value })
    }

    /// Sees to it that a thread of the log writes what was appended.
    pub fn wake(&self) {
        self.shared.wake(&self.shared.head.lock());
    }
}
