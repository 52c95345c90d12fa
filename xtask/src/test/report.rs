//! How the end of one test binary is told to people.

use super::run::Outcome;
use crate::results::{Status, Totals};
use crate::ui::Human;

/// One line for the binary, and all of its output when something failed.
pub(crate) fn binary(human: Human, place: &str, name: &str, outcome: &Outcome) {
    let totals = Totals::of(&outcome.records);
    human.line(format!("{place} {name}: {} ({:.1} s)", totals.line(), outcome.seconds));
    if outcome.records.iter().any(|record| record.status == Status::Failed) {
        outcome.output.iter().for_each(|line| human.line(format!("    {line}")));
    }
}
