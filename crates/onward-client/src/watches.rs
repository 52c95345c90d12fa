//! The watches of a client: they outlive its connections, and their hints are merged for slow readers.

use crate::hints::Hints;
use futures_core::Stream;
use onward_core::{BoxStream, Hint, Interest};
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    fmt,
    pin::Pin,
    sync::{Arc, Weak},
    task::{Context, Poll, Waker},
};

/// Most watches of one client; further ones never hint, and polling does.
pub(crate) const WATCHES_MAX: usize = 256;

/// Every watch of one client, by its number.
#[derive(Debug, Default)]
pub(crate) struct Watches {
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    next_id: u64,
    watches: HashMap<u64, Watch>,
    ended: bool,
}

#[derive(Debug)]
struct Watch {
    interest: Interest,
    hints: Hints,
    reader: Option<Waker>,
}

impl Watches {
    /// What is watched.
    pub(crate) fn all(&self) -> Vec<(u64, Interest)> {
        self.table.lock().watches.iter().map(|(id, watch)| (*id, watch.interest.clone())).collect()
    }

    /// Something may have happened for one watch.
    pub(crate) fn hint(&self, id: u64, hint: Hint) {
        if let Some(watch) = self.table.lock().watches.get_mut(&id) {
            watch.push(hint);
        }
    }

    /// Something may have happened for every watch: hints were lost with a connection.
    pub(crate) fn hint_all(&self) {
        self.table.lock().watches.values_mut().for_each(|watch| watch.push(Hint::Somewhere));
    }

    /// No hint comes any more: every stream ends.
    pub(crate) fn end(&self) {
        let mut table = self.table.lock();
        table.ended = true;
        table.watches.values_mut().filter_map(|watch| watch.reader.take()).for_each(Waker::wake);
    }

    /// A new watch and the stream of its hints. `changed` is told its number when it begins and when it ends.
    pub(crate) fn begin<F>(self: &Arc<Self>, interest: Interest, changed: F) -> BoxStream<Hint>
    where
        F: Fn(u64, Option<Interest>) + Send + Sync + 'static,
    {
        let mut table = self.table.lock();
        table.next_id += 1;
        let id = table.next_id;
        if table.watches.len() < WATCHES_MAX {
            let watch = Watch { interest: interest.clone(), hints: Hints::default(), reader: None };
            table.watches.insert(id, watch);
            drop(table);
            changed(id, Some(interest));
        }
        Box::pin(Watching { id, watches: Arc::downgrade(self), changed: Box::new(changed) })
    }

    fn poll(&self, id: u64, context: &Context<'_>) -> Poll<Option<Hint>> {
        let mut table = self.table.lock();
        if table.ended {
            return Poll::Ready(None);
        }
        let Some(watch) = table.watches.get_mut(&id) else { return Poll::Pending };
        match watch.hints.pop() {
            Some(hint) => Poll::Ready(Some(hint)),
            None => {
                watch.reader = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Watch {
    fn push(&mut self, hint: Hint) {
        self.hints.push(hint);
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }
}

/// The stream of one watch; the watch ends with it.
struct Watching {
    id: u64,
    watches: Weak<Watches>,
    changed: Box<dyn Fn(u64, Option<Interest>) + Send + Sync>,
}

impl fmt::Debug for Watching {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Watching({})", self.id)
    }
}

impl Stream for Watching {
    type Item = Hint;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Hint>> {
        self.watches.upgrade().map_or(Poll::Ready(None), |watches| watches.poll(self.id, context))
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let watched = self.watches.upgrade().and_then(|w| w.table.lock().watches.remove(&self.id));
        if watched.is_some() {
            (self.changed)(self.id, None);
        }
    }
}
