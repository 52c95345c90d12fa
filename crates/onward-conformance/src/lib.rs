//! One conformance suite for every engine, with its reference model and faulty doubles.
