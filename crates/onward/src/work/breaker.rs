//! A circuit breaker around one dependency: while it is down, nothing is taken for it and no attempt is burned.

use super::Handling;
use onward_core::Env;
use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// Failures in a row after which a breaker opens, where nothing else is said.
pub const BREAKER_FAILURES_DEFAULT: u32 = 5;
/// How long a breaker stays open before its first probe, where nothing else is said; it doubles with each failed probe.
pub const BREAKER_PAUSE_DEFAULT: Duration = Duration::from_secs(10);
/// The longest pause between two probes.
pub const BREAKER_PAUSE_MAX: Duration = Duration::from_secs(300);
/// How long a message waits while another one probes.
const WHILE_PROBING: Duration = Duration::from_secs(1);

/// Watches over one dependency (a payment provider, a mail server) for all handlers that are given a clone.
///
/// After some failures in a row it *opens*: inlets whose every handler depends on it are not leased from, and what was
/// leased already is put back without counting an attempt, as is what fails while it is open. After a pause one message
/// *probes*; when it succeeds the breaker closes, otherwise the pause doubles. Errors that may pass and timeouts count;
/// permanent ones are about the message.
///
/// It is this process's own: others find out by themselves.
#[derive(Clone)]
pub struct Breaker {
    inner: Arc<Inner>,
}

struct Inner {
    name: Arc<str>,
    failures_max: u32,
    pause: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Closed { failures: u32 },
    Open { until: Duration, pause: Duration },
    Probing { pause: Duration },
}

impl fmt::Debug for Breaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "breaker `{}` {:?}", self.inner.name, *self.lock())
    }
}

impl Breaker {
    /// A closed one with the defaults; the name is for people and metrics.
    pub fn new(name: &str) -> Self {
        Self::with(name, BREAKER_FAILURES_DEFAULT, BREAKER_PAUSE_DEFAULT)
    }

    /// One that opens after so many failures in a row (at least 1), first for so long (at least 1 ms).
    pub fn with(name: &str, failures: u32, pause: Duration) -> Self {
        let pause = pause.clamp(Duration::from_millis(1), BREAKER_PAUSE_MAX);
        let state = Mutex::new(State::Closed { failures: 0 });
        Self { inner: Arc::new(Inner { name: name.into(), failures_max: failures.max(1), pause, state }) }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Whether it is open, or probes.
    pub fn is_open(&self) -> bool {
        !matches!(*self.lock(), State::Closed { .. })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long nothing may run; `None` when something may, a probe included.
    pub(crate) fn held(&self, now: Duration) -> Option<Duration> {
        match *self.lock() {
            State::Closed { .. } => None,
            State::Open { until, .. } => until.checked_sub(now).filter(|left| !left.is_zero()),
            State::Probing { .. } => Some(WHILE_PROBING),
        }
    }

    /// Lets one attempt through, or says how long it has to wait.
    fn enter(&self, now: Duration) -> Result<Pass, Duration> {
        let mut state = self.lock();
        match *state {
            State::Closed { .. } => {}
            State::Probing { .. } => return Err(WHILE_PROBING),
            State::Open { until, .. } if until > now => return Err(until - now),
            State::Open { pause, .. } => *state = State::Probing { pause },
        }
        let probes = matches!(*state, State::Probing { .. });
        Ok(Pass { breaker: self.clone(), probes, entered: now })
    }
}

/// The right of one attempt to use a dependency. Dropped without a word, a probe leaves the place to the next one.
pub(crate) struct Pass {
    breaker: Breaker,
    probes: bool,
    entered: Duration,
}

impl Pass {
    fn succeeded(mut self) {
        let mut state = self.breaker.lock();
        match *state {
            State::Probing { .. } if self.probes => {
                *state = State::Closed { failures: 0 };
                tracing::info!(dependency = self.breaker.name(), "the breaker closes: it answers again");
            }
            State::Closed { .. } => *state = State::Closed { failures: 0 },
            // One that began before it opened tells nothing new.
            State::Open { .. } | State::Probing { .. } => {}
        }
        drop(state);
        self.probes = false;
    }

    /// The wait of what failed, where the breaker is open now.
    fn failed(mut self, now: Duration) -> Option<Duration> {
        let inner = self.breaker.inner.clone();
        let mut state = self.breaker.lock();
        *state = match *state {
            State::Probing { pause } if self.probes => {
                let pause = (pause * 2).min(BREAKER_PAUSE_MAX);
                State::Open { until: now + pause, pause }
            }
            State::Closed { failures } if failures + 1 >= inner.failures_max => {
                tracing::warn!(dependency = %inner.name, pause = ?inner.pause, "the breaker opens: nothing is taken for it");
                State::Open { until: now + inner.pause, pause: inner.pause }
            }
            State::Closed { failures } => State::Closed { failures: failures + 1 },
            other => other,
        };
        let wait = match *state {
            State::Closed { .. } => None,
            State::Open { until, .. } => Some(until.saturating_sub(now)),
            State::Probing { .. } => Some(WHILE_PROBING),
        };
        drop(state);
        self.probes = false;
        wait
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        if self.probes {
            let mut state = self.breaker.lock();
            if let State::Probing { pause } = *state {
                *state = State::Open { until: self.entered, pause };
            }
        }
    }
}

/// Lets an attempt through all of its breakers.
///
/// # Errors
/// How long it has to wait; then none was entered.
pub(crate) fn enter_all(breakers: &[Breaker], env: &dyn Env) -> Result<Vec<Pass>, Duration> {
    let now = env.monotonic();
    breakers.iter().map(|breaker| breaker.enter(now)).collect()
}

/// How an attempt ended, as far as its dependencies go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Used {
    Well,
    Badly,
    /// It says nothing about them.
    Untold,
}

/// Tells the breakers; answers how long the message has to wait where one is open now.
pub(crate) fn leave_all(passes: Vec<Pass>, used: Used, now: Duration) -> Option<Duration> {
    let tell = |pass: Pass| match used {
        Used::Well => {
            pass.succeeded();
            None
        }
        Used::Badly => pass.failed(now),
        Used::Untold => None,
    };
    passes.into_iter().filter_map(tell).max()
}

impl Handling {
    /// Says that it needs this dependency: while the breaker is open nothing is taken for it, and no attempt is burned.
    pub fn depends_on(mut self, breaker: &Breaker) -> Self {
        self.breakers.push(breaker.clone());
        self
    }

    /// How long none of its messages may run.
    pub(crate) fn held(&self, now: Duration) -> Option<Duration> {
        self.breakers.iter().filter_map(|breaker| breaker.held(now)).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onward_proves::proves;

    const SECOND: Duration = Duration::from_secs(1);

    fn open(failures: u32) -> Breaker {
        let breaker = Breaker::with("mail", failures, SECOND * 10);
        for n in 0..failures {
            let wait = breaker.enter(SECOND).unwrap().failed(SECOND);
            assert_eq!(wait.is_some(), n + 1 == failures, "only the last one opens it");
        }
        breaker
    }

    #[proves("H7")]
    #[test]
    fn it_opens_after_so_many_failures_in_a_row_and_a_success_between_begins_anew() {
        let breaker = Breaker::with("mail", 2, SECOND * 10);
        breaker.enter(SECOND).unwrap().failed(SECOND);
        breaker.enter(SECOND).unwrap().succeeded();
        assert_eq!(breaker.enter(SECOND).unwrap().failed(SECOND), None);
        assert_eq!(breaker.enter(SECOND).unwrap().failed(SECOND), Some(SECOND * 10));
        assert!(breaker.is_open());
        assert_eq!(
            (breaker.held(SECOND * 3), breaker.enter(SECOND * 3).err()),
            (Some(SECOND * 8), Some(SECOND * 8))
        );
    }

    #[proves("H7")]
    #[test]
    fn one_probes_after_the_pause_and_its_end_decides() {
        let breaker = open(3);
        assert_eq!(breaker.held(SECOND * 11), None);
        let probe = breaker.enter(SECOND * 11).unwrap();
        assert_eq!(breaker.enter(SECOND * 11).err(), Some(WHILE_PROBING));
        assert_eq!(probe.failed(SECOND * 12), Some(SECOND * 20), "the pause doubles");
        let probe = breaker.enter(SECOND * 32).unwrap();
        probe.succeeded();
        assert!(!breaker.is_open());
    }

    #[test]
    fn a_probe_that_ends_without_a_word_leaves_its_place_to_the_next() {
        let breaker = open(1);
        drop(breaker.enter(SECOND * 11).unwrap());
        assert!(breaker.is_open());
        assert!(breaker.enter(SECOND * 11).is_ok());
    }

    #[test]
    fn what_began_before_it_opened_neither_closes_it_nor_counts_again() {
        let breaker = Breaker::with("mail", 1, SECOND * 10);
        let (early, late) = (breaker.enter(SECOND).unwrap(), breaker.enter(SECOND).unwrap());
        breaker.enter(SECOND).unwrap().failed(SECOND);
        early.succeeded();
        assert!(breaker.is_open());
        assert_eq!(late.failed(SECOND * 2), Some(SECOND * 9));
    }
}
