//! Simulated disk, clock and randomness; invariants and a history checker.
