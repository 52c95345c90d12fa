//! What a run keeps of its answers, and the turns of the folder's care.

use onward_core::Receipt;

use super::calls::{Ask, Reply};
use super::parts::Part;
use super::run::Run;
use super::workload::Held;
use super::{queues, topics};

impl Run {
    /// The folder's care has its turn: it takes snapshots, moves what lives long and gives space back.
    pub(super) fn care(&mut self) {
        let cut = self.faults.cut_care(&self.folder.disk);
        let cared = self.folder.care();
        let off = cut && self.folder.disk.is_off();
        match cared {
            Ok(report) => {
                self.faults.counters.cared_for(&report);
                self.faults.cut_forwarding(&report, &self.folder.disk);
            }
            Err(error) if off || self.faults.explain(&error) => {}
            Err(error) => self.surprise(format!("the care of the folder fails: {error}")),
        }
        self.harvest();
        if off {
            self.cut_in_care();
        } else if cut {
            self.folder.disk.never_stop();
        }
    }

    /// What a client remembers of an answer.
    pub(super) fn learn(&mut self, client: usize, ask: &Ask, reply: Reply) {
        match (ask, reply) {
            (_, Reply::Lease(Ok(deliveries))) => {
                let held = deliveries.into_iter().map(|delivery| Held {
                    token: delivery.token,
                    message: delivery.message,
                    stalls: false,
                });
                self.clients[client].0.held.extend(held);
            }
            (Ask::Extend(tokens, _), Reply::Extend(Ok(results))) => {
                for (token, _) in tokens.iter().zip(&results).filter(|(_, result)| result.is_err()) {
                    self.clients[client].0.held.retain(|held| held.token != *token);
                    self.workload.keep_stale(token.clone());
                }
            }
            (Ask::Commit(parts), Reply::Commit(Ok(receipts))) => {
                parts.iter().zip(&receipts).for_each(|(part, receipt)| self.learn_receipt(part, receipt));
            }
            (Ask::Events(read), Reply::Events(Ok(slice))) => self.workload.streams.learn_slice(read, &slice),
            (_, Reply::Read(Ok(page))) => {
                for record in &page.items {
                    if let Some(index) = queues::record_index(&record.key) {
                        self.workload.revisions[index] = Some(record.revision);
                    }
                }
            }
            _ => {}
        }
    }

    fn learn_receipt(&mut self, part: &Part, receipt: &Receipt) {
        match (part, receipt) {
            (Part::Append(_, addition), Receipt::Appended(appended)) => {
                self.workload.streams.learn(&addition.stream, appended.last_revision);
            }
            (Part::Publish(_, _, topic), Receipt::Accepted(accepted)) => {
                let topic = topics::TOPICS.into_iter().find(|name| topics::name(name) == *topic);
                self.workload.places.extend(topic.zip(accepted.position));
            }
            _ => {}
        }
    }
}
