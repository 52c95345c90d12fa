//! What doubles do wrong.

/// What a double does wrong. Each breaks what its name says and leaves the rest to the honest engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// An acknowledgement is answered and not made.
    LosesAck,
    /// A message in some hundreds is acknowledged and hidden.
    LosesAMessage,
    /// What was acknowledged is handed out once more.
    DeliversTwice,
    /// A settlement under a stale lease is answered as made.
    AcceptsStaleTokens,
    /// The wait after a failure is left out.
    NoDelayOnRetry,
    /// A repeat of an id is accepted as new.
    ForgetsDedup,
    /// A repeat with other content is answered as a duplicate.
    IgnoresFingerprint,
    /// A repeat in another queue is answered as a duplicate.
    DedupsOverQueues,
    /// A finished id is remembered for ever.
    WindowNeverEnds,
    /// Order keys are not kept.
    IgnoresOrderKey,
    /// A stuck head sets its key aside where it should wait.
    SetsAsideInsteadOfWaiting,
    /// A stuck head blocks its key where it should set it aside.
    WaitsInsteadOfSettingAside,
    /// A batch is handed out backward.
    BatchBackward,
    /// Priorities are not looked at.
    IgnoresPriority,
    /// Nothing ages.
    NeverAges,
    /// Only the last cause is kept.
    DropsCauses,
    /// Attempts are counted from 0.
    AttemptsFromZero,
    /// An oversized payload is cut to the bound and accepted.
    CutsOversize,
    /// A payload ends at its first NUL.
    EndsAtNul,
    /// Headers lose what is not ASCII.
    AsciiHeaders,
    /// Headers that patterns set are left out.
    DropsPatternHeaders,
    /// Of a commit with a record, the message that is staged in an outbox is accepted and not kept.
    LosesStaged,
    /// Order keys of what is staged in an outbox are not kept.
    StagesUnordered,
    /// An acknowledgement of what is staged in an outbox is answered and not made.
    KeepsStaged,
    /// Replies do not name what they answer.
    LosesCausation,
    /// Of two replies that are handed out together, each names the request of the other.
    CrossesReplies,
    /// A reply is handed out once more when it was acknowledged.
    RepeatsReplies,
    /// A request is accepted and not kept.
    LosesRequests,
    /// A reply is sent although its commit was refused.
    SendsStaleReplies,
    /// A message that is leased is not found by its id.
    HidesLeased,
    /// A dead letter loses its headers.
    DeadLetterLosesHeaders,
    /// A message rejected as undecodable is done, not dead.
    DropsUndecodable,
    /// A rejected message is handed out once more.
    DeadComesAgain,
    /// A release counts an attempt.
    ReleaseCounts,
    /// At most once is at least once.
    AtMostOnceRedelivers,
    /// Messages expire never.
    IgnoresExpiry,
    /// Due times are not looked at.
    IgnoresDue,
    /// A cancellation is answered and not made.
    IgnoresCancel,
    /// A new due time is answered and not set.
    IgnoresReschedule,
    /// A record lives for ever.
    IgnoresTtl,
    /// A write happens whatever stands there.
    IgnoresExpectation,
    /// Conditions without a write are left out.
    IgnoresGuards,
    /// A commit that fails keeps what came before the failure.
    PartialCommit,
    /// Commits sent together stop at the first that fails.
    SubmitStops,
    /// An extension is answered and not made.
    IgnoresExtend,
    /// A lease lasts half as long as it says.
    LeaseEndsEarly,
    /// A repeated request gets new deliveries.
    ForgetsRequestId,
    /// One delivery more than was asked for.
    OneTooMany,
    /// A queue has no bound.
    IgnoresBounds,
    /// Nothing is shed.
    NeverSheds,
    /// A pause is answered and not made.
    IgnoresPause,
    /// Leases are not limited.
    IgnoresConcurrency,
    /// Slots are counted apart from leases: one that ends by itself keeps its slot.
    CountsSlots,
    /// Leases of one key are not limited.
    IgnoresConcurrencyPerKey,
    /// Leases of before an opening hold no slot.
    ForgetsSlots,
    /// Rates are not limited.
    IgnoresRate,
    /// Rates per key are not limited.
    IgnoresRatePerKey,
    /// Rates begin anew with each opening.
    ForgetsRates,
    /// A request that finds a limit does not wait.
    GivesUpAtLimits,
    /// Fairness keys are not looked at.
    IgnoresFairness,
    /// Types that a worker does not accept are handed to it.
    IgnoresAccepts,
    /// Unique keys are not looked at.
    IgnoresUnique,
    /// Progress is answered and not kept.
    LosesProgress,
    /// Results are answered and not kept.
    LosesResult,
    /// A repeated bulk operation is done again.
    RepeatsBulk,
    /// A bulk operation is about everything.
    IgnoresSelection,
    /// A dry run changes things.
    DryRunIsWet,
    /// An edit is answered and not made.
    IgnoresEdit,
    /// Dead letters have no bound.
    IgnoresDeadMax,
    /// Attempts have no bound.
    RetriesForEver,
    /// Deaths of a process are not counted.
    IgnoresCrashes,
    /// Acknowledging one settles all that were handed out before it.
    CumulativeAck,
    /// Another outcome for the same lease is answered as made.
    SwallowsConflict,
    /// A repeated settlement is answered as stale.
    ForgetsSettlements,
    /// Declaring other content takes it.
    UpdatesSilently,
    /// A closed engine goes on.
    NeverCloses,
    /// The whole term of a lease is as the queue says, whatever was asked in all.
    IgnoresLeaseTotal,
    /// A dropped call of a queue removes it although it is not empty.
    DropsWhatIsFull,
    /// Every page is the first one.
    SamePageAgain,
    /// An append happens wherever its stream stands.
    IgnoresStreamExpectation,
    /// An append happens whatever matches its condition.
    IgnoresAppendCondition,
    /// A repeated append is made again.
    ForgetsEvents,
    /// An append that lost is answered as made.
    EveryAppendWins,
    /// Reads go forward only.
    ReadsForwardOnly,
    /// A follower of everything misses an event in a hundred.
    SkipsAnEvent,
    /// Reads show what came after the time they ask for.
    IgnoresAsOf,
    /// A truncation is answered and not made.
    IgnoresTruncate,
    /// Queries look at types alone.
    IgnoresTags,
    /// Each schedule is put twice, under two names.
    SchedulesTwice,
    /// Every missed tick is made up for.
    MakesUpForAll,
    /// Cron lines go by UTC.
    IgnoresZone,
    /// Overlap is always allowed.
    IgnoresOverlap,
    /// Schedules have no end.
    IgnoresUntil,
    /// The removal of a schedule is answered and not made.
    KeepsSchedules,
    /// Numbers leave out what was purged.
    BooksLosePurged,
    /// What a subscription acknowledged is handed out there once more.
    RepeatsInSubscription,
    /// A message goes to one subscription alone, as if they were workers of one queue.
    SharesAcrossSubscriptions,
    /// A message that is published again is accepted as new.
    PublishesTwice,
    /// Every subscription begins with the next message.
    StartsNow,
    /// A rewind to a position is one to the beginning.
    RewindsPositionToBeginning,
    /// A rewind to a time is one to the beginning.
    RewindsTimeToBeginning,
    /// Deliveries do not show their replay epoch.
    HidesReplayEpoch,
    /// To fill gaps is to process again.
    FillGapsReprocesses,
    /// A position that never was is answered as done.
    AcceptsUnknownPosition,
    /// What a dead process had of subscriptions counts as processed.
    CommitsPastGap,
    /// While one subscription has a delivery out, the others of its topic get nothing.
    SlowHoldsUpAll,
    /// Subscriptions take everything.
    IgnoresFilter,
    /// Subscriptions keep no order.
    SubscriptionsUnordered,
    /// Subscriptions retry without end.
    SubscriptionsRetryForEver,
    /// Messages of topics have no age.
    IgnoresRetentionAge,
    /// Topics have no size.
    IgnoresRetentionBytes,
    /// Numbers leave out what was shed.
    BooksLoseShed,
    /// A read of a topic goes forward, whatever was asked.
    ReadsTopicsForward,
}
