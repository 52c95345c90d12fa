//! How the command ends: documented exit codes, and the one error that every command answers with.

use onward_core::{Error, ErrorKind};
use serde::Serialize;
use std::process::ExitCode;

/// What the exit code says. The numbers are part of the interface: scripts decide by them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All well.
    Ok = 0,
    /// It ran and the answer is no: not found, a conflict, books that don't balance, an attempt that failed.
    Failed = 1,
    /// The command line is wrong; nothing was done.
    Usage = 2,
    /// The data given is wrong: a line that is not a message, a value out of range.
    Data = 65,
    /// The data folder, or the process that holds it, can't be reached.
    Unavailable = 69,
    /// A fault of this program.
    Internal = 70,
    /// The disk failed, or what is on it is damaged.
    Storage = 74,
    /// A bound is reached now; the same command may work later.
    TryAgain = 75,
    /// The caller may not do this.
    Forbidden = 77,
}

/// The table of exit codes in the help of the command.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0   all well
  1   it ran, and the answer is no: not found, conflict, failed attempt, books that don't balance
  2   the command line is wrong; nothing was done
  65  the data given is wrong
  69  the data folder or the process that holds it can't be reached
  70  a fault of this program
  74  the disk failed, or what is on it is damaged
  75  a bound is reached; try again later
  77  not allowed";

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// An error with the exit code that it ends the command with.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) error: Error,
    pub(crate) exit: Exit,
}

/// What every command answers with.
pub(crate) type Outcome<T = Exit> = Result<T, Failure>;

impl Failure {
    /// A command line that is wrong in a way that the parser can't see.
    pub(crate) fn usage(what: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { error: Error::invalid(what).mend(mend), exit: Exit::Usage }
    }

    /// The error as one JSON object.
    pub(crate) fn to_json(&self) -> String {
        #[derive(Serialize)]
        struct Line<'a> {
            error: &'a Error,
            exit_code: u8,
        }
        let line = Line { error: &self.error, exit_code: self.exit as u8 };
        serde_json::to_string(&line).expect("strings and numbers always serialise")
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let exit = match error.kind() {
            ErrorKind::Invalid => Exit::Data,
            ErrorKind::Unsupported
            | ErrorKind::NotFound
            | ErrorKind::AlreadyExists
            | ErrorKind::Conflict
            | ErrorKind::LeaseLost => Exit::Failed,
            ErrorKind::Full => Exit::TryAgain,
            ErrorKind::Unavailable | ErrorKind::Closed => Exit::Unavailable,
            ErrorKind::Unauthorized => Exit::Forbidden,
            ErrorKind::Corrupt | ErrorKind::Poisoned => Exit::Storage,
            ErrorKind::Internal => Exit::Internal,
        };
        Self { error, exit }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onward_proves::proves;

    #[test]
    #[proves("T53")]
    fn an_error_is_one_json_object_with_what_where_mend_and_exit_code() {
        let failure =
            Failure::from(Error::invalid("is \"wrong\"\n").at("lines.jsonl:3").mend("write it anew"));
        let line = failure.to_json();
        assert!(!line.contains('\n'));
        let value: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(value["error"]["kind"], "invalid");
        assert_eq!(value["error"]["what"], "is \"wrong\"\n");
        assert_eq!(value["error"]["place"], "lines.jsonl:3");
        assert_eq!(value["error"]["mend"], "write it anew");
        assert_eq!(value["exit_code"], 65);
    }
}
