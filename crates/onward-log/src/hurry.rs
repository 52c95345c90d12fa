//! Writing a little at once, on the thread that appended it.

use parking_lot::MutexGuard;

use crate::group::SealedGroup;
use crate::head::Head;
use crate::io::InFlight;
use crate::log::Log;

/// Bytes that are not worth a thread's waking up before they are written.
const HURRY_BYTES_MAX: usize = 64 << 10;

/// A group that its appender has written, and nobody has synced.
#[derive(Debug)]
pub(crate) struct Hurried {
    pub(crate) group: SealedGroup,
    pub(crate) number: u64,
    pub(crate) file: std::sync::Arc<dyn crate::disk::DiskFile>,
}

impl Log {
    /// Writes what was appended, at once and on this thread, if it is little and nothing else is under way.
    ///
    /// It goes through the page cache: when this returns, it survives the death of the process, without having
    /// waited for the device. A thread of the log, or the next [`Log::step`], syncs it. A hint: where it does
    /// nothing, the group is written and synced as every other. It waits for the filesystem as a buffered
    /// write does, never for a sync.
    ///
    /// A failed write poisons the log, and the observer is told.
    pub fn hurry(&self) {
        if let Some(group) = self.take_hurried() {
            self.hurried(group.write().is_ok().then_some(group));
        }
    }

    /// Writes and syncs what was appended, on this thread, if it is little and nothing else is under way: waking a
    /// thread for it, and being woken by it, can take as long as the disk.
    ///
    /// A hint: where it does nothing, a thread of the log does it. A failure poisons the log, and the observer is told.
    /// It blocks this thread for as long as the disk takes.
    pub fn write_here(&self) {
        let Some(head) = self.little_alone() else { return };
        let taken = self.take(head, &mut self.shared.here.lock());
        // A failure has poisoned the log, and woken everybody.
        if taken.and_then(|group| group.write().and_then(|()| group.sync())).is_ok() {
            // What came meanwhile waits for a thread, or they for the end.
            let head = self.shared.head.lock();
            self.go_on(&head);
        }
    }

    /// The log's end, if what is open there may be written by its appender; else a thread is woken for it.
    fn little_alone(&self) -> Option<MutexGuard<'_, Head>> {
        let head = self.shared.head.lock();
        let idle = head.in_flight == 0 && head.closed_groups.is_empty() && head.hurried.is_empty();
        let little = !head.open.is_empty() && head.open.used() <= HURRY_BYTES_MAX;
        if idle && little && !head.hurrying && head.poisoned.is_none() {
            return Some(head);
        }
        self.shared.wake(&head);
        None
    }

    /// Takes the open group if it may be written in a hurry. Until it is written, no other group is taken: a write
    /// through the page cache and one past it must not meet in one file.
    fn take_hurried(&self) -> Option<InFlight> {
        let mut head = self.little_alone()?;
        head.hurrying = true;
        let mut writer = self.shared.hurrying.lock();
        // A failure has poisoned the log: nobody takes anything any more.
        self.take(head, &mut writer).ok()
    }

    /// Lets the others go on, and one of them sync what was written.
    fn hurried(&self, written: Option<InFlight>) {
        let shared = &*self.shared;
        let mut head = shared.head.lock();
        head.hurrying = false;
        head.hurried.extend(written.map(InFlight::into_hurried));
        self.go_on(&head);
    }

    /// Wakes whoever waited for the end of what this thread wrote.
    fn go_on(&self, head: &Head) {
        if head.closed {
            self.shared.work.notify_all();
        } else {
            self.shared.wake(head);
        }
    }
}
