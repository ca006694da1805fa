//! What the log knows of the state machine, so that it purges no entry that the state may still need.
//!
//! openraft 0.9 purges the log without waiting for the installation of the snapshot that covers it.

use openraft::{LogId, NodeId};
use windrow::{Error, ErrorKind, Result};

/// How far the state machine is.
#[derive(Debug)]
pub(crate) struct Progress<N: NodeId> {
    /// The last log id in the state.
    pub(crate) applied: Option<LogId<N>>,
    /// Whether a snapshot was ever received. Until then no purge has to wait.
    pub(crate) is_receiving: bool,
    /// Whether an installation has failed.
    pub(crate) has_failed: bool,
}

impl<N: NodeId> Progress<N> {
    /// Whether a purge of the entries up to `index` can be decided.
    pub(crate) fn allows(&self, index: u64) -> bool {
        !self.is_receiving || self.has_failed || self.covers(index)
    }

    /// Fails if the snapshot that covers the entry at `index` is received, but not installed.
    pub(crate) fn check(&self, index: u64) -> Result<()> {
        if self.is_receiving && !self.covers(index) {
            let message = "the snapshot that covers the log was not installed";
            return Err(Error::new(ErrorKind::Closed, message));
        }
        Ok(())
    }

    fn covers(&self, index: u64) -> bool {
        self.applied
            .as_ref()
            .is_some_and(|applied| applied.index >= index)
    }
}
