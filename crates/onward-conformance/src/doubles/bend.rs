//! What a double makes of a call before the honest engine sees it, and of an answer before the caller does.

use super::{Double, Fault, wrapper::LONG};
use onward_core::{
    CatchUp, Cause, CauseKind, Delivery, DeliveryGuarantee, Failure, Inlet, LeaseRequest, Message,
    MessageState, MessageView, Name, Op, OrderPolicy, Outcome, Overflow, Overlap, Payload, Priority,
    RecordExpect, RequestId, RetryDelay, Schedule, ScheduleWhen, StuckHead,
};
use std::time::Duration;

impl Double {
    /// What the double makes of the operations before the engine sees them.
    pub(super) fn bend(&self, op: Op) -> Op {
        match op {
            Op::Enqueue { queue, message } => self.bend_message(queue, *message),
            Op::Publish { topic, mut message } => {
                self.bend_pattern(&mut message);
                Op::Publish { topic, message }
            }
            Op::Settle { token, outcome } => Op::Settle { outcome: self.bend_outcome(outcome), token },
            Op::PutRecord { key, value, expect, ttl } => Op::PutRecord {
                key,
                value,
                expect: if self.is(Fault::IgnoresExpectation) { RecordExpect::Any } else { expect },
                ttl: ttl.filter(|_| !self.is(Fault::IgnoresTtl)),
            },
            Op::DeleteRecord { key, .. } if self.is(Fault::IgnoresExpectation) => {
                Op::DeleteRecord { key, expect: RecordExpect::Any }
            }
            Op::EndProcess { process, .. } if self.is(Fault::IgnoresCrashes) => {
                Op::EndProcess { process, died: false }
            }
            Op::PutSchedule { name, schedule: Some(schedule) } => {
                Op::PutSchedule { name, schedule: Some(Box::new(self.bend_schedule(*schedule))) }
            }
            Op::Redrive { .. } | Op::Purge { .. } => self.bend_bulk(op),
            Op::Seek { inlet, to, mode } => self.bend_seek(inlet, to, mode),
            Op::Append { .. } => self.bend_append(op),
            other => other,
        }
    }

    fn bend_schedule(&self, mut schedule: Schedule) -> Schedule {
        match (self.fault, &mut schedule.when) {
            (Fault::MakesUpForAll, _) => schedule.catch_up = CatchUp::Backfill(1_000),
            (Fault::IgnoresZone, ScheduleWhen::Cron { zone, .. }) => *zone = "UTC".into(),
            (Fault::IgnoresOverlap, _) => schedule.overlap = Overlap::Allow,
            (Fault::IgnoresUntil, _) => schedule.until = None,
            _ => {}
        }
        schedule
    }

    pub(super) fn bend_message(&self, queue: Name, original: Message) -> Op {
        let mut message = original.clone();
        match self.fault {
            Fault::IgnoresOrderKey => message.order_key = None,
            Fault::IgnoresPriority => message.priority = Priority::default(),
            Fault::IgnoresExpiry => message.expiry = None,
            Fault::IgnoresDue => message.due = None,
            Fault::IgnoresFairness => message.fairness_key = None,
            Fault::IgnoresUnique => message.unique_key = None,
            Fault::EndsAtNul => message.data = until_nul(&message.data),
            Fault::AsciiHeaders => {
                let ascii = |text: String| text.chars().filter(char::is_ascii).collect::<String>();
                message.headers = message.headers.into_iter().map(|(n, v)| (n, ascii(v))).collect();
            }
            Fault::CutsOversize => message.data = self.cut(&queue, &message),
            _ => self.bend_pattern(&mut message),
        }
        let is_kept = matches!(
            self.fault,
            Fault::IgnoresOrderKey
                | Fault::IgnoresPriority
                | Fault::IgnoresExpiry
                | Fault::IgnoresDue
                | Fault::IgnoresFairness
                | Fault::IgnoresUnique
        );
        if is_kept {
            let key = (Inlet::Queue(queue.clone()), original.id.clone());
            self.memory.lock().messages.entry(key).or_insert(original);
        }
        Op::Enqueue { queue, message: Box::new(message) }
    }

    /// Shows the field that was left out on the way in: only the rule is broken, not the message.
    pub(super) fn restore(&self, message: &mut Message, original: &Message) {
        match self.fault {
            Fault::IgnoresOrderKey => message.order_key = original.order_key.clone(),
            Fault::IgnoresPriority => message.priority = original.priority,
            Fault::IgnoresExpiry => message.expiry = original.expiry,
            Fault::IgnoresDue => message.due = original.due,
            Fault::IgnoresFairness => message.fairness_key = original.fairness_key.clone(),
            Fault::IgnoresUnique => message.unique_key = original.unique_key.clone(),
            _ => {}
        }
    }

    /// The data within the bound of the queue, silently.
    pub(super) fn cut(&self, queue: &Name, message: &Message) -> Payload {
        let memory = self.memory.lock();
        let most =
            memory.declared.get(&Inlet::Queue(queue.clone())).map_or(u64::MAX, |c| c.payload_bytes_max);
        let over = (message.size() as u64).saturating_sub(most) as usize;
        let bytes = message.data.as_bytes();
        let kept = bytes.slice(..bytes.len().saturating_sub(over));
        let content_type = (!message.data.is_json()).then(|| message.data.content_type().into());
        Payload::trusted(kept, content_type)
    }

    pub(super) fn bend_outcome(&self, outcome: Outcome) -> Outcome {
        let released = || Failure::new(CauseKind::Transient, "released");
        match (self.fault, outcome) {
            (Fault::NoDelayOnRetry, Outcome::Retry { failure, .. }) => {
                Outcome::Retry { delay: RetryDelay::After(Duration::ZERO), failure }
            }
            (Fault::DropsUndecodable, Outcome::Reject { failure })
                if failure.kind == CauseKind::Undecodable =>
            {
                Outcome::Ack { result: None }
            }
            (Fault::LosesResult, Outcome::Ack { .. }) => Outcome::Ack { result: None },
            (Fault::ReleaseCounts, Outcome::Release { delay }) => {
                Outcome::Retry { delay: RetryDelay::After(delay), failure: released() }
            }
            (_, outcome) => outcome,
        }
    }

    pub(super) fn bend_bulk(&self, op: Op) -> Op {
        let mut op = op;
        if let Op::Redrive { selection, bulk, dry_run, .. } | Op::Purge { selection, bulk, dry_run, .. } =
            &mut op
        {
            match self.fault {
                Fault::RepeatsBulk => bulk.0 = bulk.0.wrapping_add(u128::from(self.next())),
                Fault::IgnoresSelection => *selection = onward_core::Selection::default(),
                Fault::DryRunIsWet => *dry_run = false,
                _ => {}
            }
        }
        op
    }

    pub(super) fn bend_config(&self, name: &Name, config: &mut onward_core::InletConfig) {
        self.memory.lock().declared.insert(Inlet::Queue(name.clone()), config.clone());
        match self.fault {
            Fault::WindowNeverEnds => config.dedup_window_ms = 1_000_000_000,
            Fault::SetsAsideInsteadOfWaiting if config.order != OrderPolicy::Unordered => {
                config.order = OrderPolicy::ByKey { stuck_head: StuckHead::SetAside };
            }
            Fault::WaitsInsteadOfSettingAside if config.order != OrderPolicy::Unordered => {
                config.order = OrderPolicy::ByKey { stuck_head: StuckHead::Wait };
            }
            Fault::NeverAges => config.ageing_ms = u64::MAX / 4,
            Fault::AtMostOnceRedelivers => config.guarantee = DeliveryGuarantee::AtLeastOnce,
            Fault::IgnoresBounds => (config.depth_max, config.bytes_max) = (1_000_000, 1 << 40),
            Fault::NeverSheds => config.overflow = Overflow::Refuse,
            Fault::IgnoresConcurrency => config.concurrency_max = None,
            Fault::CountsSlots => config.concurrency_max = None,
            Fault::IgnoresConcurrencyPerKey => config.concurrency_per_key_max = None,
            Fault::IgnoresRate => config.rate = None,
            Fault::IgnoresRatePerKey => config.rate_per_key = None,
            Fault::IgnoresDeadMax if config.dead_max > 0 => config.dead_max = 1_000_000,
            Fault::RetriesForEver => config.retry.attempts_max = 1_000_000,
            Fault::IgnoresLeaseTotal => config.lease_total_max_ms = None,
            Fault::NoDelayOnRetry => config.retry.delay_min_ms = 1,
            _ => {}
        }
    }

    pub(super) fn bend_request(&self, mut request: LeaseRequest) -> LeaseRequest {
        match self.fault {
            Fault::ForgetsRequestId => {
                request.request_id = RequestId(request.request_id.0.wrapping_add(u128::from(self.next())));
            }
            Fault::OneTooMany if (2..100).contains(&request.count_max) => request.count_max += 1,
            Fault::IgnoresAccepts => request.accepts.clear(),
            Fault::GivesUpAtLimits if self.has_limits(&request) => request.wait = Duration::ZERO,
            Fault::LeaseEndsEarly => request.lease = request.lease.map(|asked| asked / 2),
            _ => {}
        }
        request
    }

    pub(super) fn bend_delivery(&self, mut delivery: Delivery) -> Delivery {
        match self.fault {
            Fault::DropsCauses => keep_last(&mut delivery.causes),
            Fault::HidesReplayEpoch => delivery.replay = 0,
            Fault::AttemptsFromZero if delivery.lease == LONG => delivery.attempt -= 1,
            _ => {}
        }
        let memory = self.memory.lock();
        let key = (delivery.token.inlet.clone(), delivery.token.id.clone());
        if let Some(original) = memory.messages.get(&key) {
            self.restore(&mut delivery.message, original);
        }
        delivery
    }

    pub(super) fn bend_view(&self, mut view: MessageView) -> MessageView {
        match self.fault {
            Fault::DropsCauses => keep_last(&mut view.causes),
            Fault::DeadLetterLosesHeaders if view.state == MessageState::Dead => view.message.headers.clear(),
            _ => {}
        }
        let memory = self.memory.lock();
        if let Some(message) = memory.messages.get(&(view.inlet.clone(), view.message.id.clone())) {
            self.restore(&mut view.message, message);
        }
        view
    }
}

fn keep_last(causes: &mut Vec<Cause>) {
    causes.drain(..causes.len().saturating_sub(1));
}

fn until_nul(data: &Payload) -> Payload {
    let bytes = data.as_bytes();
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    Payload::trusted(bytes.slice(..end), (!data.is_json()).then(|| data.content_type().into()))
}
