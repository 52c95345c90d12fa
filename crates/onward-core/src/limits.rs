//! Every fixed bound of the message model, by name and unit. Bounds that a queue sets stand in its configuration.

/// Longest message id, in bytes.
pub const ID_BYTES_MAX: usize = 255;
/// Longest namespace or local part of a name, in bytes.
pub const NAME_PART_BYTES_MAX: usize = 120;
/// Longest message type or source, in bytes.
pub const TYPE_BYTES_MAX: usize = 255;
/// Longest key (order, dedup, fairness, unique, tag), in bytes.
pub const KEY_BYTES_MAX: usize = 255;
/// Most headers of one message.
pub const HEADERS_MAX: usize = 64;
/// Most bytes of all header names and values of one message.
pub const HEADERS_BYTES_MAX: usize = 16 * 1024;
/// Largest payload that any queue may allow, in bytes; larger ones go to object storage by claim check.
pub const PAYLOAD_BYTES_CEILING: usize = 16 * 1024 * 1024;
/// Payload bound of a queue that sets none, in bytes.
pub const PAYLOAD_BYTES_DEFAULT: usize = 256 * 1024;
/// Most operations of one commit or submit.
pub const OPS_MAX: usize = 10_000;
/// Most bytes of all payloads of one commit.
pub const COMMIT_BYTES_MAX: usize = 24 * 1024 * 1024;
/// Most deliveries of one lease request.
pub const LEASE_COUNT_MAX: usize = 10_000;
/// Most inlets of one lease request.
pub const LEASE_INLETS_MAX: usize = 256;
/// Most fairness keys of one inlet whose rate is remembered at once, about 100 bytes each.
pub const RATE_KEYS_MAX: usize = 1_000_000;
/// Longest wait of one lease request, in seconds.
pub const LEASE_WAIT_SECS_MAX: u64 = 60;
/// Most entries of one page of any read but of events.
pub const PAGE_MAX: usize = 1_000;
/// Longest text of one failure, in bytes; longer ones are cut at a character.
pub const FAILURE_BYTES_MAX: usize = 4 * 1024;
/// Longest record key, in bytes.
pub const RECORD_KEY_BYTES_MAX: usize = 512;
/// Largest record value, in bytes.
pub const RECORD_VALUE_BYTES_MAX: usize = 1024 * 1024;
/// Most events of one slice of a read.
pub const EVENTS_MAX: usize = 10_000;
/// Most bytes of the data of one slice of a read, beyond its first event.
pub const EVENTS_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Most tags of one event.
pub const TAGS_MAX: usize = 16;
/// Most types of one query for events.
pub const TYPES_MAX: usize = 64;
/// Highest priority; 0 is the lowest.
pub const PRIORITY_MAX: u8 = 9;
/// Priority of a message that sets none.
pub const PRIORITY_DEFAULT: u8 = 4;
/// Most schedules of one store.
pub const SCHEDULES_MAX: usize = 10_000;
/// Most bytes of all schedules of one store.
pub const SCHEDULES_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Shortest interval of a schedule, in milliseconds; cron lines go by whole seconds.
pub const SCHEDULE_EVERY_MS_MIN: u64 = 1_000;
/// A tick that comes up to so late is not a missed one, in seconds, unless a later one is due too.
pub const SCHEDULE_LATE_SECS_MAX: u64 = 60;
/// Most missed ticks that are made up for at once.
pub const SCHEDULE_BACKFILL_MAX: u32 = 1_000;
/// Longest cron line, in bytes.
pub const CRON_LINE_BYTES_MAX: usize = 255;
