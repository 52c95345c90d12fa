//! A durable segmented log of bytes at positions, with group commit and crash recovery.
