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
    loses_ack: LosesAck => ack_never_returns,
        also leases_are_shown each_once_within_a_subscription;
    loses_a_message: LosesAMessage => every_id_is_accounted_for,
        also slow_subscription_blocks_nobody outbox_purges;
    delivers_twice: DeliversTwice => ack_never_returns;
    accepts_stale_tokens: AcceptsStaleTokens => stale_token_refused,
        also rewind_reprocess_runs_handlers rebalance_never_commits_past_gap attempt_survives_restart_and_other_instance old_tokens_stay_stale;
    no_delay_on_retry: NoDelayOnRetry => retry_requeues_after_delay,
        also delay_survives_crash clock_jump key_waits_while_retrying other_keys_progress books_balance key_order_in_a_subscription;
    forgets_dedup: ForgetsDedup => same_id_in_window_once,
        also window_expires retry_returns_original_position dedup_key_stands_for_id dedup_survives_crash full_queue_rejects_or_blocks
            claim_check_roundtrip_and_collection crash_between_commit_and_dispatch;
    ignores_fingerprint: IgnoresFingerprint => same_id_other_body_conflicts;
    dedups_over_queues: DedupsOverQueues => dedup_is_per_queue,
        also window_expires;
    window_never_ends: WindowNeverEnds => window_expires;
    ignores_order_key: IgnoresOrderKey => key_order_under_n_consumers,
        also key_waits_while_retrying stuck_head_wait stuck_head_set_aside set_aside_redriven_in_order other_keys_progress order_across_restart outbox_order_per_key;
    sets_aside_instead_of_waiting: SetsAsideInsteadOfWaiting => stuck_head_wait;
    waits_instead_of_setting_aside: WaitsInsteadOfSettingAside => stuck_head_set_aside,
        also set_aside_redriven_in_order;
    batch_backward: BatchBackward => fifo_with_one_consumer,
        also out_of_order_ack full_queue_sheds_lowest purge_by_selection rebalance_never_commits_past_gap missed_ticks_go_by_the_policy outbox_order_per_key;
    ignores_priority: IgnoresPriority => priority_order_and_ageing,
        also full_queue_sheds_lowest priority_holds_through_limits;
    never_ages: NeverAges => priority_order_and_ageing,
        also priority_holds_through_limits;
    drops_causes: DropsCauses => dead_letter_keeps_body_headers_id_causes,
        also redrive_once crash_counts_as_attempt subscription_retries_and_dead_letters;
    attempts_from_zero: AttemptsFromZero => attempt_starts_at_1;
    cuts_oversize: CutsOversize => oversize_refused_before_io;
    ends_at_nul: EndsAtNul => payload_bytes_exact,
        also dead_letter_keeps_body_headers_id_causes;
    ascii_headers: AsciiHeaders => headers_roundtrip_unicode,
        also dead_letter_keeps_body_headers_id_causes;
    drops_pattern_headers: DropsPatternHeaders => claim_check_roundtrip_and_collection,
        also claim_check_over_topics crash_between_commit_and_dispatch outbox_order_per_key outbox_purges
            reply_by_correlation late_reply_discarded thousand_concurrent_no_crossing responder_crash;
    loses_staged: LosesStaged => crash_between_commit_and_dispatch;
    stages_unordered: StagesUnordered => outbox_order_per_key;
    keeps_staged: KeepsStaged => outbox_purges,
        also crash_between_commit_and_dispatch outbox_order_per_key;
    loses_causation: LosesCausation => reply_by_correlation,
        also late_reply_discarded thousand_concurrent_no_crossing responder_crash;
    crosses_replies: CrossesReplies => thousand_concurrent_no_crossing,
        also reply_by_correlation;
    repeats_replies: RepeatsReplies => late_reply_discarded,
        also responder_crash;
    loses_requests: LosesRequests => timeout_typed,
        also reply_by_correlation late_reply_discarded thousand_concurrent_no_crossing responder_crash;
    sends_stale_replies: SendsStaleReplies => responder_crash;
    hides_leased: HidesLeased => claim_check_roundtrip_and_collection,
        also claim_check_over_topics;
    dead_letter_loses_headers: DeadLetterLosesHeaders => dead_letter_keeps_body_headers_id_causes,
        also subscription_retries_and_dead_letters;
    drops_undecodable: DropsUndecodable => permanent_goes_at_once;
    dead_comes_again: DeadComesAgain => reject_dead_letters_now;
    release_counts: ReleaseCounts => release_counts_no_attempt;
    at_most_once_redelivers: AtMostOnceRedelivers => at_most_once_never_twice;
    ignores_expiry: IgnoresExpiry => expired_not_delivered,
        also books_balance;
    ignores_due: IgnoresDue => delay_is_a_floor,
        also delay_beyond_native_cap_bridged_or_refused delay_survives_crash ready_is_promoted_past_delayed books_balance;
    ignores_cancel: IgnoresCancel => cancel_before_due;
    ignores_reschedule: IgnoresReschedule => reschedule_moves_due;
    ignores_ttl: IgnoresTtl => ttl;
    ignores_expectation: IgnoresExpectation => compare_and_set,
        also one_winner_of_many conditions_see_earlier_operations submit_spoils_no_other inbox_effect_once crash_between_commit_and_dispatch;
    ignores_guards: IgnoresGuards => guard_refuses_the_whole,
        also inbox_effect_once;
    partial_commit: PartialCommit => aborted_invisible,
        also unique_key_one_unfinished settle_and_publish_atomic conditions_see_earlier_operations
            append_expected_by_tag_query crash_between_commit_and_dispatch responder_crash;
    submit_stops: SubmitStops => submit_spoils_no_other,
        also outbox_order_per_key;
    ignores_extend: IgnoresExtend => lease_extend,
        also lease_total_bound_holds cancel_before_due;
    lease_ends_early: LeaseEndsEarly => unacked_returns_after_lease,
        also lease_runs_from_receipt;
    forgets_request_id: ForgetsRequestId => lost_lease_answer_burns_no_attempt,
        also dropped_future_is_safe;
    one_too_many: OneTooMany => prefetch_bound_holds,
        also lost_lease_answer_burns_no_attempt concurrency_limit_holds_over_processes books_balance books_of_a_subscription_balance rebalance_never_commits_past_gap dropped_future_is_safe;
    ignores_bounds: IgnoresBounds => full_queue_rejects_or_blocks,
        also unique_key_one_unfinished full_queue_sheds_lowest slow_consumer_bounds_memory aborted_invisible outbox_order_per_key;
    never_sheds: NeverSheds => full_queue_sheds_lowest;
    ignores_pause: IgnoresPause => pause_resume,
        also slow_subscription_blocks_nobody;
    ignores_concurrency: IgnoresConcurrency => concurrency_limit_holds,
        also concurrency_limit_holds_over_processes concurrency_limit_survives_crash limit_wakes_who_waits
            priority_holds_through_limits;
    counts_slots: CountsSlots => concurrency_limit_holds,
        also concurrency_limit_holds_over_processes concurrency_limit_survives_crash limit_wakes_who_waits;
    ignores_concurrency_per_key: IgnoresConcurrencyPerKey => concurrency_limit_per_key_holds,
        also limit_wakes_who_waits priority_holds_through_limits;
    forgets_slots: ForgetsSlots => concurrency_limit_survives_crash;
    ignores_rate: IgnoresRate => rate_limit_holds,
        also rate_limit_survives_crash limit_wakes_who_waits;
    ignores_rate_per_key: IgnoresRatePerKey => rate_limit_per_key_holds,
        also limit_wakes_who_waits;
    forgets_rates: ForgetsRates => rate_limit_survives_crash;
    gives_up_at_limits: GivesUpAtLimits => limit_wakes_who_waits;
    ignores_fairness: IgnoresFairness => fairness_one_round,
        also rate_limit_per_key_holds concurrency_limit_per_key_holds limit_wakes_who_waits
            priority_holds_through_limits;
    ignores_accepts: IgnoresAccepts => leases_only_accepted_types;
    ignores_unique: IgnoresUnique => unique_key_one_unfinished;
    loses_progress: LosesProgress => progress_reaches_next_attempt;
    loses_result: LosesResult => result_is_kept;
    repeats_bulk: RepeatsBulk => redrive_once,
        also purge_by_selection;
    ignores_selection: IgnoresSelection => redrive_filtered,
        also books_balance purge_by_selection;
    dry_run_is_wet: DryRunIsWet => redrive_filtered,
        also purge_by_selection;
    ignores_edit: IgnoresEdit => edit_makes_an_edition;
    ignores_dead_max: IgnoresDeadMax => dead_letters_full_never_loses;
    retries_for_ever: RetriesForEver => exactly_n_attempts_then_dead_once;
    ignores_crashes: IgnoresCrashes => crash_counts_as_attempt,
        also crash_suspects_go_alone;
    cumulative_ack: CumulativeAck => out_of_order_ack,
        also other_keys_progress rebalance_never_commits_past_gap key_order_in_a_subscription;
    swallows_conflict: SwallowsConflict => settle_twice_same_outcome_is_ok_other_conflicts;
    forgets_settlements: ForgetsSettlements => lost_settle_answer_retried,
        also settle_twice_same_outcome_is_ok_other_conflicts;
    updates_silently: UpdatesSilently => redeclare_conflict_is_an_error;
    never_closes: NeverCloses => concurrent_close;
    ignores_lease_total: IgnoresLeaseTotal => lease_total_bound_holds;
    drops_what_is_full: DropsWhatIsFull => drop_refuses_what_is_not_empty;
    same_page_again: SamePageAgain => prefix_pages;
    ignores_stream_expectation: IgnoresStreamExpectation => append_expected_revision,
        also concurrent_appends_one_winner truncated_events_are_gone streams_survive_crash;
    ignores_append_condition: IgnoresAppendCondition => append_expected_by_tag_query;
    forgets_events: ForgetsEvents => append_same_event_twice,
        also streams_survive_crash;
    every_append_wins: EveryAppendWins => concurrent_appends_one_winner,
        also append_expected_revision append_expected_by_tag_query append_same_event_twice truncated_events_are_gone
            streams_survive_crash;
    reads_forward_only: ReadsForwardOnly => read_forward_backward,
        also as_of_time category_and_query_reads topic_is_read_both_ways;
    skips_an_event: SkipsAnEvent => positions_rise_and_no_committed_one_is_skipped;
    ignores_as_of: IgnoresAsOf => as_of_time;
    ignores_truncate: IgnoresTruncate => truncated_events_are_gone,
        also streams_survive_crash;
    ignores_tags: IgnoresTags => category_and_query_reads;
    schedules_twice: SchedulesTwice => one_message_for_each_tick,
        also tick_once_over_a_crash cron_goes_by_its_zone missed_ticks_go_by_the_policy overlap_skips_while_unfinished clock_step_fires_none_twice no_tick_after_until removed_schedule_is_silent schedule_put_again_fires_none_again;
    makes_up_for_all: MakesUpForAll => missed_ticks_go_by_the_policy,
        also cron_goes_by_its_zone;
    ignores_zone: IgnoresZone => cron_goes_by_its_zone;
    ignores_overlap: IgnoresOverlap => overlap_skips_while_unfinished;
    ignores_until: IgnoresUntil => no_tick_after_until;
    keeps_schedules: KeepsSchedules => removed_schedule_is_silent,
        also missed_ticks_go_by_the_policy;
    books_lose_purged: BooksLosePurged => books_balance,
        also purge_by_selection books_of_a_subscription_balance;
    repeats_in_subscription: RepeatsInSubscription => each_once_within_a_subscription;
    shares_across_subscriptions: SharesAcrossSubscriptions => every_subscription_gets_all,
        also late_subscription_start_policy rewind_fill_gaps_skips_processed slow_subscription_blocks_nobody filter_by_type_and_attribute subscription_retries_and_dead_letters retention_by_age retention_by_size claim_check_over_topics;
    publishes_twice: PublishesTwice => published_twice_is_one;
    starts_now: StartsNow => late_subscription_start_policy,
        also unknown_position_refused retention_by_size;
    rewinds_position_to_beginning: RewindsPositionToBeginning => rewind_to_position,
        also unknown_position_refused;
    rewinds_time_to_beginning: RewindsTimeToBeginning => rewind_to_time,
        also retention_by_age;
    hides_replay_epoch: HidesReplayEpoch => rewind_reprocess_runs_handlers;
    fill_gaps_reprocesses: FillGapsReprocesses => rewind_fill_gaps_skips_processed;
    accepts_unknown_position: AcceptsUnknownPosition => unknown_position_refused;
    commits_past_gap: CommitsPastGap => rebalance_never_commits_past_gap;
    slow_holds_up_all: SlowHoldsUpAll => slow_subscription_blocks_nobody,
        also retention_by_age;
    ignores_filter: IgnoresFilter => filter_by_type_and_attribute;
    subscriptions_unordered: SubscriptionsUnordered => key_order_in_a_subscription;
    subscriptions_retry_for_ever: SubscriptionsRetryForEver => subscription_retries_and_dead_letters;
    ignores_retention_age: IgnoresRetentionAge => retention_by_age,
        also claim_check_over_topics;
    ignores_retention_bytes: IgnoresRetentionBytes => retention_by_size,
        also books_of_a_subscription_balance;
    books_lose_shed: BooksLoseShed => books_of_a_subscription_balance,
        also retention_by_age retention_by_size;
    reads_topics_forward: ReadsTopicsForward => topic_is_read_both_ways;
}
