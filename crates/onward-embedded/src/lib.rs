//! The embedded engine: a pure state machine over the durable log, and the same one in memory.
