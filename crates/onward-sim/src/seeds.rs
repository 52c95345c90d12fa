//! Which seeds a test runs, and what it says when one fails.

use std::thread::panicking;

/// Names the one seed to run.
pub const SEED_VARIABLE: &str = "ONWARD_SIM_SEED";
/// Names how many seeds to run.
pub const SEEDS_VARIABLE: &str = "ONWARD_SIM_SEEDS";

/// Runs a simulation with the seeds from 1 to `count`, or with those that the environment names.
///
/// When a run panics, standard error says its seed and how to run it again; `again` is the command that does.
pub fn each_seed(count: u64, again: &str, mut run: impl FnMut(u64)) {
    let named = |variable| std::env::var(variable).ok().and_then(|value| value.trim().parse().ok());
    let seeds = match named(SEED_VARIABLE) {
        Some(one) => one..=one,
        None => 1..=named(SEEDS_VARIABLE).unwrap_or(count),
    };
    for seed in seeds {
        let told = Tells { seed, again };
        run(seed);
        drop(told);
    }
}

/// Says which seed failed while a panic goes by.
struct Tells<'a> {
    seed: u64,
    again: &'a str,
}

impl Drop for Tells<'_> {
    fn drop(&mut self) {
        if panicking() {
            let (seed, again) = (self.seed, self.again);
            eprintln!("the simulation fails with seed {seed}; run it again: {SEED_VARIABLE}={seed} {again}");
        }
    }
}
