//! The one error type of the engine.
//!
//! An [`Error`] is a thin pointer. Its [`ErrorKind`] says what the caller can do. Its `Display` is one sentence that
//! names the fault, and for damage the file and the byte offset if they are known. For damage it also says what to do next.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The result of every fallible operation in Windrow.
pub type Result<T> = std::result::Result<T, Error>;

/// What a caller can do about an [`Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The call's arguments or options are wrong: correct the call.
    InvalidArgument,
    /// The database, keyspace or backup does not exist, or was dropped.
    NotFound,
    /// The database exists already, or the folder of a checkpoint or of a restored backup is not empty.
    AlreadyExists,
    /// This or another process has the database or the backups open.
    Locked,
    /// The disk or a quota is full: nothing was lost; free space and try again.
    NoSpace,
    /// The operating system reported an error.
    Io,
    /// Stored bytes are damaged. The message names the file and the offset if they are known.
    Corruption,
    /// The data needs a newer version of Windrow or a feature that is off.
    Unsupported,
    /// An earlier write or sync failed, and it is unknown what is durable. Reads continue, writes fail: reopen the
    /// database.
    Poisoned,
    /// The database has been closed.
    Closed,
    /// The database is, or the backups are, open for reading only.
    ReadOnly,
    /// Another write came in between, or a prepared transaction holds the key: nothing was written; try the transaction
    /// again. [`Error::conflict`] has the key.
    Conflict,
    /// The transaction and others wait for each other's locks: roll it back, so that they go on, and try it again.
    /// [`Error::conflict`] has the key that it cannot lock, and the message all keys of the cycle.
    Deadlock,
    /// A lock was not free in time, or there are too many locks: roll the transaction back and try it again.
    /// [`Error::conflict`] has the key.
    TimedOut,
    /// The operands of a key could not be folded: its merge operator is missing or has failed. Nothing is lost; the
    /// read works again once the operator does.
    Merge,
    /// Changes that were asked for are not kept any more: begin again with a snapshot and the changes behind it. The
    /// message says how.
    FellBehind,
}

/// What to do next about damage of a database, if its error does not say otherwise.
const REPAIR: &str =
    "restore a backup, or save all that is sound in a new database by windrow repair";

/// The codes of a device, or of a file system with checksums, that cannot read what is there.
#[cfg(target_os = "linux")]
const DEVICE_FAILURES: [i32; 4] = [libc::EIO, libc::ENODATA, libc::EBADMSG, libc::EUCLEAN];
#[cfg(all(unix, not(target_os = "linux")))]
const DEVICE_FAILURES: [i32; 1] = [libc::EIO];
/// `ERROR_CRC` and `ERROR_IO_DEVICE`.
#[cfg(not(unix))]
const DEVICE_FAILURES: [i32; 2] = [23, 1117];

/// An error: a kind, a sentence and its source.
pub struct Error(Box<Details>);

struct Details {
    kind: ErrorKind,
    message: String,
    /// What to do next, if this is damage.
    next_step: &'static str,
    file: Option<PathBuf>,
    offset: Option<u64>,
    conflict: Option<ConflictingKey>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// The key of a conflict.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ConflictingKey {
    keyspace: String,
    key: Vec<u8>,
}

impl Error {
    /// An error of `kind` that says `message`, a whole sentence without a full stop.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Details {
            kind,
            message: message.into(),
            next_step: REPAIR,
            file: None,
            offset: None,
            conflict: None,
            source: None,
        }))
    }

    /// The caller's argument is wrong.
    pub fn invalid_argument(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidArgument, message)
    }

    /// Bytes of `file` at `offset` are damaged; `what` names what was expected or found.
    pub fn corruption(file: &str, offset: u64, what: impl fmt::Display) -> Self {
        let message = format!("{file} is damaged at offset {offset}: {what}");
        let mut error = Self::new(ErrorKind::Corruption, message);
        error.0.file = Some(file.into());
        error.0.offset = Some(offset);
        error
    }

    /// The operating system failed `operation` (an infinitive: "read", "create") on `path`.
    ///
    /// A full disk or quota becomes [`ErrorKind::NoSpace`].
    pub fn io(operation: &str, path: &Path, source: io::Error) -> Self {
        let kind = match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ErrorKind::NoSpace,
            _ => ErrorKind::Io,
        };
        let message = match kind {
            ErrorKind::NoSpace => {
                format!("could not {operation} {}: the disk is full", path.display())
            }
            _ => format!("could not {operation} {}: {source}", path.display()),
        };
        Self(Box::new(Details {
            kind,
            message,
            next_step: REPAIR,
            file: Some(path.to_owned()),
            offset: None,
            conflict: None,
            source: Some(Box::new(source)),
        }))
    }

    /// `file` at `path`, which the manifest names, could not be opened. A missing file is damage, and so is one whose
    /// [`Vfs`](crate::vfs::Vfs) says it.
    pub(crate) fn open(file: &str, path: &Path, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::NotFound => Self::corruption(file, 0, "the file is missing"),
            io::ErrorKind::InvalidData => Self::corruption(file, 0, source),
            _ => Self::io("open", path, source),
        }
    }

    /// `file` could not be read at `offset`. An end before the recorded end is damage.
    pub(crate) fn read(file: &str, offset: u64, source: io::Error) -> Self {
        if source.kind() == io::ErrorKind::UnexpectedEof {
            Self::corruption(file, offset, "the file ends before its recorded end")
        } else {
            let mut error = Self::io("read", Path::new(file), source);
            error.0.message = format!("{} (at offset {offset})", error.0.message);
            error.0.offset = Some(offset);
            error
        }
    }

    /// The database has been closed.
    pub(crate) fn closed() -> Self {
        Self::new(ErrorKind::Closed, "the database has been closed")
    }

    /// The database is open for reading only.
    pub(crate) fn read_only() -> Self {
        Self::new(ErrorKind::ReadOnly, "the database is open for reading only")
    }

    /// The keyspace is no longer part of its database.
    pub(crate) fn dropped(keyspace: &str) -> Self {
        let message = format!("keyspace \"{keyspace}\" has been dropped");
        Self::new(ErrorKind::NotFound, message)
    }

    /// A write to `key` of `keyspace` conflicts with the present call, as `what` says.
    #[cold]
    pub(crate) fn conflicting(keyspace: &str, key: &[u8], what: &str) -> Self {
        let message = format!(
            "key \"{}\" of keyspace \"{keyspace}\" {what}",
            key.escape_ascii()
        );
        let mut error = Self::new(ErrorKind::Conflict, message);
        error.0.conflict = Some(ConflictingKey {
            keyspace: keyspace.to_owned(),
            key: key.to_owned(),
        });
        error
    }

    /// What the caller can do about this error.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The file that this error is about, if it is about one.
    pub fn file(&self) -> Option<&Path> {
        self.0.file.as_deref()
    }

    /// The byte offset in [`file`](Self::file) of the damage or of the failed read, if it is known.
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }

    /// The name of the keyspace and the key that a [`Conflict`](ErrorKind::Conflict), a
    /// [`Deadlock`](ErrorKind::Deadlock) or a [`TimedOut`](ErrorKind::TimedOut) is about.
    pub fn conflict(&self) -> Option<(&str, &[u8])> {
        let found = self.0.conflict.as_ref();
        found.map(|conflict| (&*conflict.keyspace, &*conflict.key))
    }

    /// The sentence without the next step.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// What to do next, for [`Corruption`](ErrorKind::Corruption): a sentence without a full stop.
    pub fn next_step(&self) -> Option<&'static str> {
        (self.0.kind == ErrorKind::Corruption).then_some(self.0.next_step)
    }

    /// Whether the device itself has failed, for example at a bad sector, and not the system around it.
    pub(crate) fn is_device_failure(&self) -> bool {
        let source = self.0.source.as_ref();
        let system = source.and_then(|source| source.downcast_ref::<io::Error>());
        let code = system.and_then(io::Error::raw_os_error);
        code.is_some_and(|code| DEVICE_FAILURES.contains(&code))
    }

    /// The same error with another next step.
    #[must_use]
    pub(crate) fn with_next_step(mut self, next_step: &'static str) -> Self {
        self.0.next_step = next_step;
        self
    }

    /// The same error with `context` before its sentence.
    #[must_use]
    pub fn context(mut self, context: impl fmt::Display) -> Self {
        self.0.message = format!("{context}: {}", self.0.message);
        self
    }

    /// A copy of the error for another caller, without the source.
    #[must_use]
    pub(crate) fn duplicate(&self) -> Self {
        let mut error = Self::new(self.0.kind, self.0.message.clone());
        error.0.next_step = self.0.next_step;
        error.0.file.clone_from(&self.0.file);
        error.0.offset = self.0.offset;
        error.0.conflict.clone_from(&self.0.conflict);
        error
    }

    /// The same outcome for another caller.
    pub(crate) fn duplicate_of(outcome: &Result<()>) -> Result<()> {
        outcome.as_ref().copied().map_err(Self::duplicate)
    }

    /// The same error with another kind.
    #[must_use]
    pub fn with_kind(mut self, kind: ErrorKind) -> Self {
        self.0.kind = kind;
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        match self.next_step() {
            Some(next_step) => write!(f, "; {next_step}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.0.kind, self.0.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}
