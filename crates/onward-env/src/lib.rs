//! The real clock, randomness and sleeping: the only place where they are touched.
