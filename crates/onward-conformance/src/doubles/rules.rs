//! Which double breaks which rule, which check catches it, and which others rest on the same rule.

use super::{Fault, Rule};

macro_rules! doubles {
    ($($name:ident: $fault:ident => $caught_by:ident $(, also $($also:ident)+)?;)+) => {
        /// Every double.
        pub const DOUBLES: &[Rule] = &[$(Rule {
            name: stringify!($name),
            fault: Fault::$fault,
            caught_by: stringify!($caught_by),
            also: &[$($(stringify!($also)),+)?],
        }),+];
    };
}

doubles! {
    loses_ack: LosesAck => ack_never_returns;
    loses_a_message: LosesAMessage => every_id_is_accounted_for;
    delivers_twice: DeliversTwice => ack_never_returns;
    accepts_stale_tokens: AcceptsStaleTokens => stale_token_refused;
    no_delay_on_retry: NoDelayOnRetry => retry_requeues_after_delay;
    forgets_dedup: ForgetsDedup => same_id_in_window_once;
    ignores_fingerprint: IgnoresFingerprint => same_id_other_body_conflicts;
    dedups_over_queues: DedupsOverQueues => dedup_is_per_queue;
    window_never_ends: WindowNeverEnds => window_expires;
    ignores_order_key: IgnoresOrderKey => key_order_under_n_consumers;
    sets_aside_instead_of_waiting: SetsAsideInsteadOfWaiting => stuck_head_wait;
    waits_instead_of_setting_aside: WaitsInsteadOfSettingAside => stuck_head_set_aside;
    batch_backward: BatchBackward => fifo_with_one_consumer;
    ignores_priority: IgnoresPriority => priority_order_and_ageing;
    never_ages: NeverAges => priority_order_and_ageing;
    drops_causes: DropsCauses => dead_letter_keeps_body_headers_id_causes;
    attempts_from_zero: AttemptsFromZero => attempt_starts_at_1;
    cuts_oversize: CutsOversize => oversize_refused_before_io;
    ends_at_nul: EndsAtNul => payload_bytes_exact;
    ascii_headers: AsciiHeaders => headers_roundtrip_unicode;
    dead_letter_loses_headers: DeadLetterLosesHeaders => dead_letter_keeps_body_headers_id_causes;
    drops_undecodable: DropsUndecodable => permanent_goes_at_once;
    dead_comes_again: DeadComesAgain => reject_dead_letters_now;
    release_counts: ReleaseCounts => release_counts_no_attempt;
    at_most_once_redelivers: AtMostOnceRedelivers => at_most_once_never_twice;
    ignores_expiry: IgnoresExpiry => expired_not_delivered;
    ignores_due: IgnoresDue => delay_is_a_floor;
    ignores_cancel: IgnoresCancel => cancel_before_due;
    ignores_reschedule: IgnoresReschedule => reschedule_moves_due;
    ignores_ttl: IgnoresTtl => ttl;
    ignores_expectation: IgnoresExpectation => compare_and_set;
    ignores_guards: IgnoresGuards => guard_refuses_the_whole;
    partial_commit: PartialCommit => aborted_invisible;
    submit_stops: SubmitStops => submit_spoils_no_other;
    ignores_extend: IgnoresExtend => lease_extend;
    lease_ends_early: LeaseEndsEarly => unacked_returns_after_lease;
    forgets_request_id: ForgetsRequestId => lost_lease_answer_burns_no_attempt;
    one_too_many: OneTooMany => prefetch_bound_holds;
    ignores_bounds: IgnoresBounds => full_queue_rejects_or_blocks;
    never_sheds: NeverSheds => full_queue_sheds_lowest;
    ignores_pause: IgnoresPause => pause_resume;
    ignores_concurrency: IgnoresConcurrency => concurrency_limit_holds;
    ignores_rate: IgnoresRate => rate_limit_holds;
    ignores_fairness: IgnoresFairness => fairness_one_round;
    ignores_accepts: IgnoresAccepts => leases_only_accepted_types;
    ignores_unique: IgnoresUnique => unique_key_one_unfinished;
    loses_progress: LosesProgress => progress_reaches_next_attempt;
    loses_result: LosesResult => result_is_kept;
    repeats_bulk: RepeatsBulk => redrive_once;
    ignores_selection: IgnoresSelection => redrive_filtered;
    dry_run_is_wet: DryRunIsWet => redrive_filtered;
    ignores_edit: IgnoresEdit => edit_makes_an_edition;
    ignores_dead_max: IgnoresDeadMax => dead_letters_full_never_loses;
    retries_for_ever: RetriesForEver => exactly_n_attempts_then_dead_once;
    ignores_crashes: IgnoresCrashes => crash_counts_as_attempt;
    cumulative_ack: CumulativeAck => out_of_order_ack;
    swallows_conflict: SwallowsConflict => settle_twice_same_outcome_is_ok_other_conflicts;
    forgets_settlements: ForgetsSettlements => lost_settle_answer_retried;
    updates_silently: UpdatesSilently => redeclare_conflict_is_an_error;
    never_closes: NeverCloses => concurrent_close;
    ignores_lease_total: IgnoresLeaseTotal => lease_total_bound_holds;
    drops_what_is_full: DropsWhatIsFull => drop_refuses_what_is_not_empty;
    same_page_again: SamePageAgain => prefix_pages;
    books_lose_purged: BooksLosePurged => books_balance;
}
