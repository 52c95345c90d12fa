//! The log's settings as this store uses them.

use onward_log::Config;

/// Largest unit, in bytes: a whole commit of the largest size, with its envelopes.
const UNIT_BYTES_MAX: u64 = 48 << 20;
/// Bytes appended and not yet durable, beyond which callers are told to wait.
const PENDING_BYTES_MAX: u64 = 64 << 20;

/// What a segment's first block and a group's padding can take away from a unit, in bytes.
const SEGMENT_OVERHEAD_BYTES: u64 = 3 * 4096;

/// Settings for segments of `segment_bytes`, with a reserve for ending work of at least `reserve_bytes`.
pub(crate) fn log_config(segment_bytes: u64, reserve_bytes: u64, log_id: u64) -> Config {
    let unit_bytes_max = segment_bytes.saturating_sub(SEGMENT_OVERHEAD_BYTES).clamp(1, UNIT_BYTES_MAX);
    Config {
        segment_bytes,
        unit_bytes_max,
        group_bytes_max: Config::default().group_bytes_max.min(segment_bytes / 2).max(4096),
        large_group_bytes: Config::default().large_group_bytes.min(segment_bytes / 8),
        pending_bytes_max: PENDING_BYTES_MAX,
        reserve_bytes,
        log_id,
        ..Config::default()
    }
}
