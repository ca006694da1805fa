//! Errors as errors of JavaScript, with a code.
//!
//! Concurrency: no state.

use napi::{Env, JsError};
use windrow::ErrorKind;

/// The outcome of a function that JavaScript calls: an error with a code. The macros of napi-rs know it by this name.
pub(crate) type Result<T> = napi::Result<T, &'static str>;

/// Why a call has failed.
#[derive(Debug)]
pub(crate) enum Failure {
    Error(windrow::Error),
    Panic(String),
}

impl From<windrow::Error> for Failure {
    fn from(error: windrow::Error) -> Self {
        Self::Error(error)
    }
}

impl Failure {
    /// What a function throws.
    pub(crate) fn thrown(self) -> napi::Error<&'static str> {
        match self {
            Self::Error(error) => napi::Error::new(code(error.kind()), error.to_string()),
            Self::Panic(message) => napi::Error::new("LEVEL_INTERNAL_ERROR", message),
        }
    }

    /// What a promise is rejected with.
    pub(crate) fn rejection(self, env: Env) -> napi::Error {
        JsError::from(self.thrown()).into_unknown(env).into()
    }
}

/// The code for a kind of error: that of abstract-level or classic-level, if they have one.
pub(crate) fn code(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::InvalidArgument => "LEVEL_INVALID_ARGUMENT",
        ErrorKind::NotFound => "LEVEL_NOT_FOUND",
        ErrorKind::AlreadyExists => "LEVEL_ALREADY_EXISTS",
        ErrorKind::Locked => "LEVEL_LOCKED",
        ErrorKind::NoSpace => "LEVEL_NO_SPACE",
        ErrorKind::Io => "LEVEL_IO_ERROR",
        ErrorKind::Corruption => "LEVEL_CORRUPTION",
        ErrorKind::Unsupported => "LEVEL_NOT_SUPPORTED",
        ErrorKind::Poisoned => "LEVEL_POISONED",
        ErrorKind::Closed => "LEVEL_DATABASE_NOT_OPEN",
        ErrorKind::ReadOnly => "LEVEL_READ_ONLY",
        ErrorKind::Conflict => "LEVEL_CONFLICT",
        ErrorKind::Deadlock => "LEVEL_DEADLOCK",
        ErrorKind::TimedOut => "LEVEL_TIMED_OUT",
        ErrorKind::Merge => "LEVEL_MERGE",
        ErrorKind::FellBehind => "LEVEL_FELL_BEHIND",
        _ => "LEVEL_ERROR",
    }
}
