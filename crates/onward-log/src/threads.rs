//! The threads that write: several groups under way at once, and segments made ahead.

use std::io;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::MutexGuard;

use crate::disk::Mode;
use crate::head::Head;
use crate::io::Writer;
use crate::log::Log;

/// How often a full disk is asked again.
const ASK_AGAIN: Duration = Duration::from_millis(250);

impl Log {
    /// Starts the threads that write, and one that makes segments ahead.
    ///
    /// Errors: a thread can't be started.
    pub fn spawn_io(&self) -> io::Result<IoThreads> {
        let mut threads = IoThreads { log: self.clone(), threads: Vec::new() };
        for number in 0..self.shared.config.groups_in_flight {
            threads.spawn(format!("log-write-{number}"), Log::write_groups)?;
        }
        threads.spawn("log-segments".to_owned(), Log::make_segments)?;
        Ok(threads)
    }

    fn write_groups(&self) {
        let mut writer = Writer::new(Mode::Direct);
        while let Some(head) = self.wait_for_group() {
            // A failure poisons the log and is told to the observer; nothing more is to be done here.
            let Ok(group) = self.take(head, &mut writer) else { return };
            if group.write().and_then(|()| group.sync()).is_err() {
                return;
            }
        }
    }

    /// Waits until there is a group worth taking; nothing when the log closes or has failed.
    fn wait_for_group(&self) -> Option<MutexGuard<'_, Head>> {
        let shared = &*self.shared;
        let mut head = shared.head.lock();
        loop {
            if head.poisoned.is_some() {
                return None;
            }
            if shared.worth_taking(&head) {
                return Some(head);
            }
            if head.closed && head.open.is_empty() && !head.hurrying {
                // One that waits behind a group under way may be woken by nothing else any more.
                shared.work.notify_all();
                return None;
            }
            head.idle_threads += 1;
            shared.work.wait(&mut head);
            head.idle_threads -= 1;
        }
    }

    fn make_segments(&self) {
        let shared = &*self.shared;
        loop {
            let full = self.maintain().is_err_and(|error| error.is_full());
            let mut head = shared.head.lock();
            if head.closed || head.poisoned.is_some() {
                return;
            }
            if full {
                shared.shortage.wait_for(&mut head, ASK_AGAIN);
            } else if shared.missing_segment(&head, shared.config.ready_segments()).is_none() {
                shared.shortage.wait(&mut head);
            }
        }
    }
}

/// The threads that write a log; they end when this is dropped, after writing what was appended.
#[derive(Debug)]
pub struct IoThreads {
    log: Log,
    threads: Vec<JoinHandle<()>>,
}

impl IoThreads {
    fn spawn(&mut self, name: String, run: impl Fn(&Log) + Send + 'static) -> io::Result<()> {
        let log = self.log.clone();
        self.threads.push(std::thread::Builder::new().name(name).spawn(move || run(&log))?);
        Ok(())
    }
}

impl Drop for IoThreads {
    fn drop(&mut self) {
        self.log.shared.head.lock().closed = true;
        self.log.shared.work.notify_all();
        self.log.shared.shortage.notify_all();
        for thread in self.threads.drain(..) {
            // A thread that panicked has nothing more to write.
            let _ = thread.join();
        }
        // Attests what is durable; if that fails, the next opening finds out by itself.
        if self.log.attest() {
            let _ = self.log.begin().and_then(|group| match group {
                Some(group) => group.write().and_then(|()| group.sync()),
                None => Ok(()),
            });
        }
    }
}
