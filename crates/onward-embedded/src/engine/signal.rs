//! Telling waiting lease requests and watchers that something may be there.

use onward_core::{BoxStream, Hint, Inlet, Interest};
use tokio::sync::{
    Notify,
    broadcast::{self, error::RecvError},
};

/// Hints that a watcher may have outstanding; when more come, it gets [`Hint::Somewhere`] for those it missed.
pub const HINTS_MAX: usize = 256;

/// What wakes those who wait at one inlet.
#[derive(Debug)]
pub(crate) struct Signal {
    pub(crate) inlet: Inlet,
    /// Requests that take anything: one is woken per message.
    pub(crate) any: Notify,
    /// Requests that may be unable to take what is there: all are woken each time.
    pub(crate) choosy: Notify,
    hints: broadcast::Sender<Hint>,
}

impl Signal {
    pub(crate) fn new(inlet: Inlet, hints: broadcast::Sender<Hint>) -> Self {
        Self { inlet, any: Notify::new(), choosy: Notify::new(), hints }
    }

    /// Something came of which `count` requests may get something.
    pub(crate) fn fire(&self, count: u32) {
        const ONE_BY_ONE_MAX: u32 = 64;
        if count > ONE_BY_ONE_MAX {
            self.any.notify_waiters();
        }
        (0..count.clamp(1, ONE_BY_ONE_MAX)).for_each(|_| self.any.notify_one());
        self.choosy.notify_waiters();
        if self.hints.receiver_count() > 0 {
            // Nobody listening any more is no failure.
            let _ = self.hints.send(Hint::Inlet(self.inlet.clone()));
        }
    }
}

/// The hints that somebody is interested in.
pub(crate) fn watch(hints: broadcast::Receiver<Hint>, interest: Interest) -> BoxStream<Hint> {
    Box::pin(futures::stream::unfold((hints, interest), |(mut hints, interest)| async move {
        loop {
            match hints.recv().await {
                Ok(hint) if concerns(&interest, &hint) => return Some((hint, (hints, interest))),
                Ok(_) => {}
                Err(RecvError::Lagged(_)) => return Some((Hint::Somewhere, (hints, interest))),
                Err(RecvError::Closed) => return None,
            }
        }
    }))
}

fn concerns(interest: &Interest, hint: &Hint) -> bool {
    match (interest, hint) {
        (Interest::Everything, _) | (_, Hint::Somewhere) => true,
        (Interest::Inlets(inlets) | Interest::Dead(inlets), Hint::Inlet(inlet)) => inlets.contains(inlet),
        (Interest::Stream(wanted), Hint::Stream(stream)) => wanted == stream,
        _ => false,
    }
}
