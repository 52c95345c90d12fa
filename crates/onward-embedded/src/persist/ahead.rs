//! Two threads for a start: one reads and checks what the other takes in.

use super::error::io_error;
use onward_core::Result;
use std::{sync::mpsc, thread};

/// Batches that wait between the two. With these and what is in one of them, the memory for it is bounded.
const BATCHES: usize = 4;

/// Gives every item that `make` makes to `take`, in order; answers what `make` answers, once all was taken.
///
/// With `ahead`, `make` runs on a thread of its own, a few batches of `batch` items ahead. Without it, as in a
/// simulation that has one order, both run in turn; the outcome is the same, as far as `make` alone can fail.
///
/// # Errors
/// `Unavailable` when the thread can't be started.
pub(super) fn ahead<T: Send, R: Send>(
    ahead: bool,
    batch: usize,
    make: impl FnOnce(&mut dyn FnMut(T)) -> R + Send,
    mut take: impl FnMut(T),
) -> Result<R> {
    if !ahead {
        return Ok(make(&mut take));
    }
    thread::scope(|scope| {
        let (sender, batches) = mpsc::sync_channel::<Vec<T>>(BATCHES);
        let making = move || {
            let mut items = Vec::with_capacity(batch);
            let made = make(&mut |item| {
                items.push(item);
                if items.len() == batch {
                    // The other side takes until there is no more; it is gone only if it panics.
                    let _ = sender.send(std::mem::replace(&mut items, Vec::with_capacity(batch)));
                }
            });
            let _ = sender.send(items);
            made
        };
        let maker = thread::Builder::new().name("onward-start".into()).spawn_scoped(scope, making);
        let maker = maker.map_err(|error| io_error("start a thread", "the data folder", &error))?;
        batches.into_iter().flatten().for_each(&mut take);
        maker.join().map_or_else(|panic| std::panic::resume_unwind(panic), Ok)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_items_are_taken_in_order_before_the_outcome_is_told() {
        for threads in [false, true] {
            for batch in [1, 7, 100] {
                let mut taken = Vec::new();
                let make = |give: &mut dyn FnMut(u32)| {
                    (0..1_000).for_each(give);
                    "made"
                };
                let made = ahead(threads, batch, make, |item| taken.push(item));
                assert_eq!(made.ok(), Some("made"));
                assert_eq!(taken, (0..1_000).collect::<Vec<_>>());
            }
        }
    }
}
