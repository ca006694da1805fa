//! How a command ended, and the exit code that says so.

use std::process::ExitCode;

use windrow::{Error, ErrorKind};

/// The exit code of a command that Ctrl-C ended: 128 and the number of the signal.
pub(crate) const INTERRUPTED: i32 = 130;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It did what was asked.
    Done,
    /// What was asked for does not exist, or the request was wrong.
    Refused,
    /// The machine, the disk or another process prevented it.
    Failed,
    /// Stored data is damaged.
    Damaged,
}

impl Outcome {
    pub(crate) fn exit_code(self) -> ExitCode {
        ExitCode::from(match self {
            Self::Done => 0,
            Self::Refused => 1,
            Self::Failed => 2,
            Self::Damaged => 3,
        })
    }

    /// [`Done`](Self::Done) if `found`.
    pub(crate) fn found(found: bool) -> Self {
        if found { Self::Done } else { Self::Refused }
    }
}

/// The outcome of a command that ended with `error`.
pub(crate) fn of_error(error: &Error) -> Outcome {
    match error.kind() {
        ErrorKind::InvalidArgument
        | ErrorKind::NotFound
        | ErrorKind::AlreadyExists
        | ErrorKind::FellBehind => Outcome::Refused,
        ErrorKind::Corruption => Outcome::Damaged,
        _ => Outcome::Failed,
    }
}
