//! One check: its name, what it needs and proves, and how it may end.

use crate::{Bench, Later};
use onward_core::{AtomicScope, Capability, Error};
use serde::{Deserialize, Serialize};

/// How a check's own code ends.
pub type Done = Result<(), Stop>;

/// Why a check stopped before its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// The engine broke the rule.
    Failed(String),
    /// It could not be tried here.
    NotRun(String),
}

impl From<Error> for Stop {
    /// An error where the check expected none is a failure.
    fn from(error: Error) -> Self {
        Self::Failed(format!("an unexpected error, {:?}: {error}", error.kind()))
    }
}

/// Ends the check as failed unless the condition holds.
macro_rules! ensure {
    ($holds:expr, $($text:tt)+) => {
        if !$holds {
            return Err($crate::Stop::Failed(format!($($text)+)));
        }
    };
}

/// Ends the check as failed unless both are equal; shows them.
macro_rules! ensure_eq {
    ($left:expr, $right:expr, $($text:tt)+) => {
        match (&$left, &$right) {
            (left, right) => {
                if *left != *right {
                    let text = format!($($text)+);
                    return Err($crate::Stop::Failed(format!("{text}: {left:?} instead of {right:?}")));
                }
            }
        }
    };
}
pub(crate) use {ensure, ensure_eq};

/// What an engine must have for a check to run; otherwise the negative twin does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// A capability.
    Has(Capability),
    /// A durability that outlives the process.
    Durable,
    /// A server that runs apart from the engine and may restart.
    Server,
    /// A commit that reaches at least so wide.
    Atomic(AtomicScope),
}

/// One rule, as data and code.
#[derive(Clone)]
pub struct Check {
    /// Its name in reports and in the matrix.
    pub name: &'static str,
    /// The group that it stands in.
    pub group: &'static str,
    /// The rule, in one sentence.
    pub sentence: &'static str,
    /// What the engine must have.
    pub needs: &'static [Need],
    /// The numbers of the statements that a pass shows.
    pub proves: &'static [&'static str],
    /// The code.
    pub run: for<'a> fn(&'a mut Bench) -> Later<'a, Done>,
}

impl std::fmt::Debug for Check {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.group, self.name)
    }
}

/// A table of checks: `group "core"; name, "Sentence.", [needs], [proves];` for each function of that name.
macro_rules! checks {
    (group $group:literal; $($name:ident, $sentence:literal, [$($need:expr),*], [$($proves:literal),*];)+) => {
        /// The checks of this group, in the order in which they run.
        pub(crate) const CHECKS: &[$crate::Check] = &[$($crate::Check {
            name: stringify!($name),
            group: $group,
            sentence: $sentence,
            needs: &[$($need),*],
            proves: &[$($proves),*],
            run: |bench| Box::pin($name(bench)),
        }),+];
    };
}
pub(crate) use checks;

/// How a check ended on an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The rule holds.
    Pass,
    /// The rule is broken.
    Fail,
    /// The engine says that it does not do this, and was seen to refuse before any effect.
    Refused,
    /// It could not be tried here.
    NotRun,
}

/// One cell of the matrix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// The engine.
    pub engine: String,
    /// The check.
    pub check: String,
    /// How it ended.
    pub status: Status,
    /// Why; of a pass, what was counted.
    pub reason: Option<String>,
}
