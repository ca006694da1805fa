//! Bytes that background work moves, by level and cause: as an engine counts them, and as a simulation
//! tells them.

use super::limits::LEVELS_MAX;

/// What bytes of a level are written or read for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    Flush,
    Append,
    Rewrite,
    Consolidation,
    PointerRewrite,
    Move,
    TransientLog,
    Read,
    ConsolidationRead,
    PointerRewriteRead,
    TransientLogRead,
}

/// Bytes that went into one level, and those that were read for that.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct LevelIoStats {
    /// Tables written by flushes.
    pub flushed: u64,
    /// Segments appended by merges.
    pub appended: u64,
    /// New tables written by merges.
    pub rewritten: u64,
    /// Tables written by consolidations.
    pub consolidated: u64,
    /// Tables written for no other purpose than to lead pointers where collections have moved values.
    pub pointers_rewritten: u64,
    /// Tables moved, which costs nothing.
    pub moved: u64,
    /// Values written to transient logs, by flushes or merges.
    pub transient_logs: u64,
    /// Tables read by merges.
    pub read: u64,
    /// Tables read by consolidations.
    pub consolidation_read: u64,
    /// Tables read to lead pointers.
    pub pointer_rewrite_read: u64,
    /// Values read from transient logs.
    pub transient_logs_read: u64,
}

impl LevelIoStats {
    /// All that was written.
    pub fn written(&self) -> u64 {
        let tables = self.flushed + self.appended + self.rewritten + self.consolidated;
        tables + self.pointers_rewritten + self.transient_logs
    }

    /// All that was read.
    pub fn all_read(&self) -> u64 {
        self.read + self.consolidation_read + self.pointer_rewrite_read + self.transient_logs_read
    }

    /// Counts `bytes` for `cause`.
    pub(crate) fn add(&mut self, cause: Cause, bytes: u64) {
        *self.of(cause) += bytes;
    }

    /// The same of each cause, as `combine` says of both.
    pub(crate) fn combined(self, other: Self, combine: impl Fn(u64, u64) -> u64) -> Self {
        let mut both = self;
        let mut other = other;
        for cause in Cause::ALL {
            let sum = both.of(cause);
            *sum = combine(*sum, *other.of(cause));
        }
        both
    }

    fn of(&mut self, cause: Cause) -> &mut u64 {
        match cause {
            Cause::Flush => &mut self.flushed,
            Cause::Append => &mut self.appended,
            Cause::Rewrite => &mut self.rewritten,
            Cause::Consolidation => &mut self.consolidated,
            Cause::PointerRewrite => &mut self.pointers_rewritten,
            Cause::Move => &mut self.moved,
            Cause::TransientLog => &mut self.transient_logs,
            Cause::Read => &mut self.read,
            Cause::ConsolidationRead => &mut self.consolidation_read,
            Cause::PointerRewriteRead => &mut self.pointer_rewrite_read,
            Cause::TransientLogRead => &mut self.transient_logs_read,
        }
    }
}

impl Cause {
    const ALL: [Self; 11] = [
        Self::Flush,
        Self::Append,
        Self::Rewrite,
        Self::Consolidation,
        Self::PointerRewrite,
        Self::Move,
        Self::TransientLog,
        Self::Read,
        Self::ConsolidationRead,
        Self::PointerRewriteRead,
        Self::TransientLogRead,
    ];
}

/// The traffic of every level, level 0 first.
pub(crate) type IoStatsByLevel = [LevelIoStats; LEVELS_MAX + 1];
