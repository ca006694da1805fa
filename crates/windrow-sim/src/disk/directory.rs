//! The names in a directory: what is cached, what is durable, and the changes between the two.
//!
//! Invariant (I1 of [`Image`](super::Image)): the cached names are the durable names with all pending
//! changes applied.

use super::crash::Fate;
use super::faults::AfterFailedSync;
use std::collections::BTreeMap;

/// Identifies a file's content, whatever its path.
pub(super) type InodeId = u64;

/// The names in a directory.
pub(super) type Names = BTreeMap<String, InodeId>;

/// A change of a directory that is not yet durable.
#[derive(Debug, Clone)]
pub(super) enum PendingName {
    Link(String, InodeId),
    Unlink(String),
    Rename(String, String, InodeId),
}

/// The names in a directory. The directory itself is durable as soon as it is made.
#[derive(Debug, Clone, Default)]
pub(super) struct Directory {
    cached: Names,
    durable: Names,
    pending: Vec<PendingName>,
}

impl Directory {
    /// What running processes see.
    pub(super) fn cached(&self) -> &Names {
        &self.cached
    }

    /// What a crash that loses everything unsynced would leave.
    pub(super) fn durable(&self) -> &Names {
        &self.durable
    }

    pub(super) fn has_unsynced(&self) -> bool {
        !self.pending.is_empty()
    }

    /// The files that a name refers to, cached, durable or pending.
    pub(super) fn referenced(&self) -> impl Iterator<Item = InodeId> {
        let pending = self.pending.iter().filter_map(PendingName::inode);
        let names = self.cached.values().chain(self.durable.values()).copied();
        names.chain(pending)
    }

    pub(super) fn change(&mut self, change: PendingName) {
        change.apply(&mut self.cached);
        self.pending.push(change);
    }

    pub(super) fn sync(&mut self, failed: Option<AfterFailedSync>) {
        let pending = std::mem::take(&mut self.pending);
        match failed {
            None | Some(AfterFailedSync::Durable) => {
                for change in pending {
                    change.apply(&mut self.durable);
                }
            }
            Some(AfterFailedSync::LostAtCrash) => {}
            Some(AfterFailedSync::Reverted) => self.cached = self.durable.clone(),
        }
    }

    /// What a power failure leaves.
    pub(super) fn crash(&self, fate: &mut Fate) -> Self {
        let mut names = self.durable.clone();
        let survivors = fate.survivors(self.pending.len());
        for (change, survives) in self.pending.iter().zip(survivors) {
            if survives {
                change.apply(&mut names);
            }
        }
        Self {
            cached: names.clone(),
            durable: names,
            pending: Vec::new(),
        }
    }
}

impl PendingName {
    fn apply(&self, names: &mut Names) {
        match self {
            Self::Link(name, id) => {
                names.insert(name.clone(), *id);
            }
            Self::Unlink(name) => {
                names.remove(name);
            }
            Self::Rename(from, to, id) => {
                names.remove(from);
                names.insert(to.clone(), *id);
            }
        }
    }

    fn inode(&self) -> Option<InodeId> {
        match self {
            Self::Link(_, id) | Self::Rename(_, _, id) => Some(*id),
            Self::Unlink(_) => None,
        }
    }
}
