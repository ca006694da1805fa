//! Bytes that background work moves, by level and cause: as an engine counts them, and as a simulation
//! tells them.

use super::limits::LEVELS_MAX;

/// What bytes of a level are written or read for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    Flush,
    Append,
    Rewrite,
    Squeeze,
    Redirect,
    Move,
    Run,
    Read,
    SqueezeRead,
    RedirectRead,
    RunRead,
}

/// Bytes that went into one level, and those that were read for that.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct LevelTraffic {
    /// Tables written by flushes.
    pub flushed: u64,
    /// Segments appended by merges.
    pub appended: u64,
    /// New tables written by merges.
    pub rewritten: u64,
    /// Tables written by squeezes.
    pub squeezed: u64,
    /// Tables written for no other purpose than to lead pointers where collections have moved values.
    pub redirected: u64,
    /// Tables moved, which costs nothing.
    pub moved: u64,
    /// Values written to transient runs, by flushes or merges.
    pub runs: u64,
    /// Tables read by merges.
    pub read: u64,
    /// Tables read by squeezes.
    pub squeeze_read: u64,
    /// Tables read to lead pointers.
    pub redirect_read: u64,
    /// Values read from transient runs.
    pub runs_read: u64,
}

impl LevelTraffic {
    /// All that was written.
    pub fn written(&self) -> u64 {
        let tables = self.flushed + self.appended + self.rewritten + self.squeezed;
        tables + self.redirected + self.runs
    }

    /// All that was read.
    pub fn all_read(&self) -> u64 {
        self.read + self.squeeze_read + self.redirect_read + self.runs_read
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
            Cause::Squeeze => &mut self.squeezed,
            Cause::Redirect => &mut self.redirected,
            Cause::Move => &mut self.moved,
            Cause::Run => &mut self.runs,
            Cause::Read => &mut self.read,
            Cause::SqueezeRead => &mut self.squeeze_read,
            Cause::RedirectRead => &mut self.redirect_read,
            Cause::RunRead => &mut self.runs_read,
        }
    }
}

impl Cause {
    const ALL: [Self; 11] = [
        Self::Flush,
        Self::Append,
        Self::Rewrite,
        Self::Squeeze,
        Self::Redirect,
        Self::Move,
        Self::Run,
        Self::Read,
        Self::SqueezeRead,
        Self::RedirectRead,
        Self::RunRead,
    ];
}

/// The traffic of every level, level 0 first.
pub(crate) type TrafficByLevel = [LevelTraffic; LEVELS_MAX + 1];
