//! What can go wrong on a simulated disk, and when.

use std::fmt;
use std::io;

/// The kinds of I/O that faults and counters distinguish.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OperationKind {
    /// `File::read_at`.
    Read,
    /// `File::write_at`.
    Write,
    /// `File::sync_data`.
    Sync,
    /// `File::write_back`.
    WriteBack,
    /// `File::reserve`.
    Reserve,
    /// `File::truncate`.
    Truncate,
    /// `File::length`.
    Length,
    /// `File::map`.
    Map,
    /// `Vfs::create`.
    Create,
    /// `Vfs::open`.
    Open,
    /// `Vfs::rename`.
    Rename,
    /// `Vfs::link`.
    Link,
    /// `Vfs::remove`.
    Remove,
    /// `Vfs::list`.
    List,
    /// `Vfs::sync_dir`.
    SyncDir,
    /// `Vfs::create_dir_all`.
    CreateDir,
    /// `Vfs::lock` and `Vfs::lock_shared`.
    Lock,
}

impl OperationKind {
    /// All kinds.
    pub const ALL: [Self; 17] = [
        Self::Read,
        Self::Write,
        Self::Sync,
        Self::WriteBack,
        Self::Reserve,
        Self::Truncate,
        Self::Length,
        Self::Map,
        Self::Create,
        Self::Open,
        Self::Rename,
        Self::Link,
        Self::Remove,
        Self::List,
        Self::SyncDir,
        Self::CreateDir,
        Self::Lock,
    ];
}

/// What is true after a sync or a write back that failed. Real systems do each of the three.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AfterFailedSync {
    /// Readers still see the changes, but the system has marked them as written. A crash loses
    /// them even after a later sync succeeds.
    LostAtCrash,
    /// The changes are undone at once.
    Reverted,
    /// The changes are durable nevertheless.
    Durable,
}

/// How an operation goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effect {
    /// A device error (EIO); nothing happens, but see [`Fault::after`] for syncs.
    Io,
    /// The disk is full (ENOSPC); nothing happens.
    NoSpace,
    /// A signal interrupts (EINTR); nothing happens. With [`Repeat::FromThenOn`]: every other time.
    Interrupted,
    /// Reads and writes do only a part. Other operations fail with EIO.
    Short,
    /// Too many open files (EMFILE); nothing happens.
    TooManyFiles,
    /// A read returns one flipped bit. Other operations succeed.
    FlippedBit,
    /// A write lands at another offset of the file. Other operations succeed.
    Misdirected,
    /// A write is reported and never happens. Other operations succeed.
    LostWrite,
}

/// How often a fault happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Repeat {
    /// At one operation only.
    Once,
    /// At that operation and all later ones of its kind.
    FromThenOn,
}

/// A planned fault: the operation number `at` (from 0) of `kind` goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fault {
    /// Which operations count.
    pub kind: OperationKind,
    /// The number of the operation that goes wrong, from 0, counted from when the plan was set.
    pub at: u64,
    /// Whether the later operations go wrong too.
    pub repeat: Repeat,
    /// What happens.
    pub effect: Effect,
    /// For syncs and write backs that fail: what is true afterwards.
    pub after: AfterFailedSync,
}

impl Fault {
    /// A device error at operation `at` of `kind`, once.
    pub fn io(kind: OperationKind, at: u64) -> Self {
        Self {
            kind,
            at,
            repeat: Repeat::Once,
            effect: Effect::Io,
            after: AfterFailedSync::LostAtCrash,
        }
    }

    /// The same fault with another effect.
    #[must_use]
    pub fn with(self, effect: Effect) -> Self {
        Self { effect, ..self }
    }

    /// The same fault at all later operations of its kind as well.
    #[must_use]
    pub fn from_then_on(self) -> Self {
        let repeat = Repeat::FromThenOn;
        Self { repeat, ..self }
    }

    /// The same fault with this state after a failed sync.
    #[must_use]
    pub fn then(self, after: AfterFailedSync) -> Self {
        Self { after, ..self }
    }

    /// Whether the operation number `index` of `kind` goes wrong.
    pub(super) fn hits(&self, kind: OperationKind, index: u64) -> bool {
        self.kind == kind
            && match self.repeat {
                Repeat::Once => index == self.at,
                // A signal on each try would keep a loop that tries again from ending.
                Repeat::FromThenOn if self.effect == Effect::Interrupted => {
                    index >= self.at && (index - self.at).is_multiple_of(2)
                }
                Repeat::FromThenOn => index >= self.at,
            }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kind,
            at,
            repeat,
            effect,
            after,
        } = self;
        write!(f, "{effect:?} at {kind:?} {at} {repeat:?}")?;
        match kind {
            OperationKind::Sync | OperationKind::SyncDir | OperationKind::WriteBack => {
                write!(f, ", then {after:?}")
            }
            _ => Ok(()),
        }
    }
}

impl Effect {
    /// The error that the operating system would report; `None` if it reports none.
    pub(super) fn error(self) -> Option<io::Error> {
        let code = match self {
            Self::Io | Self::Short => 5,
            Self::NoSpace => 28,
            Self::Interrupted => 4,
            Self::TooManyFiles => 24,
            Self::FlippedBit | Self::Misdirected | Self::LostWrite => return None,
        };
        Some(io::Error::from_raw_os_error(code))
    }
}
