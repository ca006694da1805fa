//! Codes and errors.

use std::ffi::{CString, c_char};
use std::ptr::null;

use windrow::ErrorKind;

use windrow_ffi::handles::{check, take};

use super::bytes::Bytes;

/// The call has done what it says.
pub const WINDROW_OK: i32 = 0;
/// The call's arguments or options are wrong: correct the call.
pub const WINDROW_INVALID_ARGUMENT: i32 = 1;
/// The database, keyspace, backup or consumer does not exist, or was dropped.
pub const WINDROW_NOT_FOUND: i32 = 2;
/// The database exists already, or the folder of a checkpoint or of a restored backup is not empty.
pub const WINDROW_ALREADY_EXISTS: i32 = 3;
/// This or another process has the database or the backups open.
pub const WINDROW_LOCKED: i32 = 4;
/// The disk or a quota is full: nothing was lost; free space and try again.
pub const WINDROW_NO_SPACE: i32 = 5;
/// The operating system reported an error.
pub const WINDROW_IO: i32 = 6;
/// Stored bytes are damaged. The message names the file and the offset if they are known.
pub const WINDROW_CORRUPTION: i32 = 7;
/// The data needs a newer version of Windrow or a feature that is off.
pub const WINDROW_UNSUPPORTED: i32 = 8;
/// An earlier write or sync failed, and it is unknown what is durable. Reads continue, writes fail: reopen the database.
pub const WINDROW_POISONED: i32 = 9;
/// The database has been closed, or the transaction of the cursor has ended.
pub const WINDROW_CLOSED: i32 = 10;
/// The database is, or the backups are, open for reading only.
pub const WINDROW_READ_ONLY: i32 = 11;
/// Another write came in between: nothing was written; try the transaction again.
pub const WINDROW_CONFLICT: i32 = 12;
/// The transaction and others wait for each other's locks: roll it back, so that they go on, and try it again.
pub const WINDROW_DEADLOCK: i32 = 13;
/// A lock was not free in time: roll the transaction back and try it again.
pub const WINDROW_TIMED_OUT: i32 = 14;
/// The operands of a key could not be folded: its merge operator is missing or has failed. Nothing is lost.
pub const WINDROW_MERGE: i32 = 15;
/// Changes that were asked for are not kept any more: begin again with a snapshot and the changes behind it. Or a secondary
/// was stopped for too long: catch up again.
pub const WINDROW_FELL_BEHIND: i32 = 16;
/// A bug in Windrow, or an error that is newer than this header. The message says what happened.
pub const WINDROW_INTERNAL: i32 = 100;

/// An error: a code and a sentence. Any thread may use it.
#[derive(Debug)]
pub struct Error {
    code: i32,
    message: CString,
    /// What it is about.
    conflict: Option<(CString, Vec<u8>)>,
}

impl Error {
    pub(super) fn new(error: &windrow::Error) -> Self {
        let conflict = error.conflict();
        Self {
            code: code_of(error.kind()),
            message: text(&error.to_string()),
            conflict: conflict.map(|(keyspace, key)| (text(keyspace), key.to_owned())),
        }
    }

    pub(super) fn of_panic(message: &str) -> Self {
        Self {
            code: WINDROW_INTERNAL,
            message: text(message),
            conflict: None,
        }
    }

    pub(super) fn code(&self) -> i32 {
        self.code
    }
}

/// The text for C, which knows no zero inside.
fn text(text: &str) -> CString {
    CString::new(text.replace('\0', "\\0")).unwrap_or_default()
}

pub(super) fn code_of(kind: ErrorKind) -> i32 {
    match kind {
        ErrorKind::InvalidArgument => WINDROW_INVALID_ARGUMENT,
        ErrorKind::NotFound => WINDROW_NOT_FOUND,
        ErrorKind::AlreadyExists => WINDROW_ALREADY_EXISTS,
        ErrorKind::Locked => WINDROW_LOCKED,
        ErrorKind::NoSpace => WINDROW_NO_SPACE,
        ErrorKind::Io => WINDROW_IO,
        ErrorKind::Corruption => WINDROW_CORRUPTION,
        ErrorKind::Unsupported => WINDROW_UNSUPPORTED,
        ErrorKind::Poisoned => WINDROW_POISONED,
        ErrorKind::Closed => WINDROW_CLOSED,
        ErrorKind::ReadOnly => WINDROW_READ_ONLY,
        ErrorKind::Conflict => WINDROW_CONFLICT,
        ErrorKind::Deadlock => WINDROW_DEADLOCK,
        ErrorKind::TimedOut => WINDROW_TIMED_OUT,
        ErrorKind::Merge => WINDROW_MERGE,
        ErrorKind::FellBehind => WINDROW_FELL_BEHIND,
        _ => WINDROW_INTERNAL,
    }
}

/// The code of the error; `WINDROW_OK` for null.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_error_code(error: Option<&Error>) -> i32 {
    check(error).map_or(WINDROW_OK, Error::code)
}

/// One sentence that names the fault. Valid until the error is freed; "" for null.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_error_message(error: Option<&Error>) -> *const c_char {
    check(error).map_or(c"".as_ptr(), |error| error.message.as_ptr())
}

/// The name of the keyspace that a conflict, a deadlock or a lock that was not free is about; null for other errors.
/// Valid until the error is freed.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_error_keyspace(error: Option<&Error>) -> *const c_char {
    let conflict = check(error).and_then(|error| error.conflict.as_ref());
    conflict.map_or(null(), |(keyspace, _)| keyspace.as_ptr())
}

/// The key that a conflict, a deadlock or a lock that was not free is about; no bytes for other errors. Valid until the
/// error is freed.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_error_key(error: Option<&Error>) -> Bytes {
    let conflict = check(error).and_then(|error| error.conflict.as_ref());
    conflict.map_or(Bytes::NONE, |(_, key)| Bytes::of(key))
}

/// Frees an error. Null is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_error_free(error: Option<Box<Error>>) {
    drop(take(error));
}
