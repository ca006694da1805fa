//! What a plan is: the job that a tree needs next.

use crate::base::{Cause, FileNumber};
use crate::policy::summary::Claim;

/// The next job for one tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Plan<K> {
    /// Nothing is due, or running jobs block what is due.
    Idle,
    /// Record that there are `level_count` levels, one more or one less. No file moves.
    Resize {
        level_count: usize,
    },
    /// Move the file `upper` of `level` into `claim.level` by an edit alone.
    TrivialMove {
        level: usize,
        upper: FileNumber,
        claim: Claim<K>,
    },
    /// Remove `files` of `level` by an edit alone: no reader sees an entry of them.
    Drop {
        level: usize,
        files: Vec<FileNumber>,
    },
    Compact(Compaction<K>),
}

/// A compaction: it merges the `upper` files of `level` with the `lower` files of `claim.level` into
/// `claim.level`, and replaces both. It appends to the files `targets` of `claim.level` what falls to them, and
/// does not read them.
///
/// All files are in the order of their level: level 0 newest first, others by key. A compaction inside one level
/// has only `upper` files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Compaction<K> {
    pub(crate) level: usize,
    pub(crate) upper: Vec<FileNumber>,
    pub(crate) lower: Vec<FileNumber>,
    pub(crate) targets: Vec<FileNumber>,
    pub(crate) claim: Claim<K>,
    pub(crate) purpose: Purpose,
}

impl<K> Compaction<K> {
    /// The files that it reads and removes.
    pub(crate) fn inputs(&self) -> impl Iterator<Item = FileNumber> {
        self.upper.iter().chain(&self.lower).copied()
    }
}

/// Why a compaction runs. It decides how its bytes are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The shape of the tree, and values in their place.
    Tree,
    /// A pointer rewrite: pointers to value logs that garbage collection has replaced.
    PointerRewrite,
    /// Fewer runs for reads.
    Consolidation,
    /// Space of expired entries.
    Expiry,
}

impl Purpose {
    /// Its name in events.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Tree => "tree",
            Self::PointerRewrite => "pointer-rewrite",
            Self::Consolidation => "consolidation",
            Self::Expiry => "expiry",
        }
    }

    /// How the I/O statistics count the bytes that such a compaction reads, and those that it writes to new tables.
    pub(crate) fn causes(self) -> (Cause, Cause) {
        match self {
            Self::Tree | Self::Expiry => (Cause::Read, Cause::Rewrite),
            Self::PointerRewrite => (Cause::PointerRewriteRead, Cause::PointerRewrite),
            Self::Consolidation => (Cause::ConsolidationRead, Cause::Consolidation),
        }
    }
}
