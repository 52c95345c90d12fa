//! Bulk operations and edits of the model: redrive, purge, edit.

use super::{Item, Model, Now, Place};
use onward_core::{
    BulkId, BulkReport, CancelOutcome, DeadEdit, Error, Inlet, MessageId, MessageState, PurgeWhat, Result,
    Selection, Timestamp,
};
use std::time::Duration;

impl Model {
    fn report(&mut self, bulk: BulkId, dry_run: bool, matched: usize) -> BulkReport {
        let matched = matched as u64;
        let report = BulkReport { matched, done: if dry_run { 0 } else { matched }, finished: true };
        if !dry_run {
            self.bulks.push((bulk, report));
        }
        report
    }

    fn reported(&self, bulk: BulkId) -> Option<BulkReport> {
        self.bulks.iter().find(|(id, _)| *id == bulk).map(|(_, report)| *report)
    }

    pub(crate) fn redrive(
        &mut self,
        inlet: &Inlet,
        selection: &Selection,
        spacing: Duration,
        bulk: BulkId,
        dry_run: bool,
        now: Now,
    ) -> Result<BulkReport> {
        if let Some(report) = self.reported(bulk) {
            return Ok(report);
        }
        let queue = self.queue(inlet)?;
        let chosen = choose(&queue.items, selection, Item::is_dead);
        for (place, index) in chosen.iter().enumerate().filter(|_| !dry_run) {
            let item = &mut queue.items[*index];
            (item.place, item.tries, item.crashes) = (Place::Here, 0, 0);
            (item.suspect, item.redriven) = (false, true);
            item.ready = now.monotonic + spacing * place as u32;
        }
        Ok(self.report(bulk, dry_run, chosen.len()))
    }

    pub(crate) fn purge(
        &mut self,
        inlet: &Inlet,
        what: PurgeWhat,
        selection: &Selection,
        bulk: BulkId,
        dry_run: bool,
        now: Now,
    ) -> Result<BulkReport> {
        if let Some(report) = self.reported(bulk) {
            return Ok(report);
        }
        let queue = self.queue(inlet)?;
        let about = match what {
            PurgeWhat::Waiting => Item::is_here,
            PurgeWhat::Dead => Item::is_dead,
        };
        let chosen = choose(&queue.items, selection, about);
        for index in chosen.iter().filter(|_| !dry_run) {
            queue.items[*index].passed_over = !queue.items[*index].is_dead();
            queue.items[*index].gone(MessageState::Cancelled, now);
            queue.counts.purged += 1;
        }
        Ok(self.report(bulk, dry_run, chosen.len()))
    }

    pub(crate) fn edit(&mut self, inlet: &Inlet, id: &MessageId, edit: &DeadEdit) -> Result<u32> {
        let items = &mut self.queue(inlet)?.items;
        let item = items.iter_mut().find(|i| i.message.id == *id && i.is_dead());
        let item = item.ok_or_else(|| Error::not_found(format!("{id} is no dead letter")))?;
        item.original.get_or_insert_with(|| Box::new(item.message.clone()));
        let message = &mut item.message;
        if let Some(data) = &edit.data {
            message.data = data.clone();
        }
        if let Some(kind) = &edit.kind {
            message.kind = kind.clone();
        }
        message.version = edit.version.unwrap_or(message.version);
        for (name, value) in &edit.headers {
            match value {
                Some(value) => message.headers.insert(name.clone(), value.clone()),
                None => message.headers.remove(name),
            };
        }
        message.edition += 1;
        Ok(message.edition)
    }

    pub(crate) fn cancel(&mut self, inlet: &Inlet, id: &MessageId, now: Now) -> Result<CancelOutcome> {
        let items = &mut self.queue(inlet)?.items;
        let found = items.iter_mut().rev().find(|i| i.message.id == *id);
        let item = found.ok_or_else(|| Error::not_found(format!("{id} is not in {inlet}")))?;
        Ok(match item.place {
            Place::Here => {
                item.gone(MessageState::Cancelled, now);
                CancelOutcome::Cancelled
            }
            Place::Leased(_) => {
                item.cancel = true;
                CancelOutcome::Requested
            }
            Place::Dead(_) | Place::Gone { .. } => CancelOutcome::AlreadyFinished,
        })
    }

    pub(crate) fn reschedule(
        &mut self,
        inlet: &Inlet,
        id: &MessageId,
        due: Timestamp,
        now: Now,
    ) -> Result<()> {
        let items = &mut self.queue(inlet)?.items;
        let found = items.iter_mut().find(|i| i.message.id == *id && i.is_here());
        let item = found.ok_or_else(|| Error::not_found(format!("{id} does not wait in {inlet}")))?;
        item.ready = now.until(due);
        Ok(())
    }
}

/// The items of one kind that every part of the selection fits, oldest first.
fn choose(items: &[Item], selection: &Selection, about: fn(&Item) -> bool) -> Vec<usize> {
    let fits = |item: &Item| {
        let message = &item.message;
        let last = item.causes.last();
        let text = |wanted: &str| last.is_some_and(|c| c.failure.error.contains(wanted));
        let since = match item.place {
            Place::Dead(at) => at,
            _ => item.accepted_at,
        };
        about(item)
            && (selection.ids.is_empty() || selection.ids.contains(&message.id))
            && selection.kind.as_ref().is_none_or(|kind| *kind == message.kind)
            && selection.correlation_id.as_ref().is_none_or(|id| message.correlation_id.as_ref() == Some(id))
            && selection.order_key.as_ref().is_none_or(|key| message.order_key.as_ref() == Some(key))
            && selection.cause.is_none_or(|kind| last.is_some_and(|c| c.failure.kind == kind))
            && selection.error_contains.as_ref().is_none_or(|wanted| text(wanted))
            && selection.before.is_none_or(|before| since < before)
    };
    let mut chosen: Vec<usize> = (0..items.len()).filter(|i| fits(&items[*i])).collect();
    chosen.sort_by_key(|i| items[*i].arrival);
    chosen.truncate(selection.limit.unwrap_or(u64::MAX).min(usize::MAX as u64) as usize);
    chosen
}
