//! Prepared transactions.
//!
//! Concurrency: any thread may end a prepared transaction, one at a time.

use std::fmt;
use std::sync::Arc;

use crate::base::Result;
use crate::engine::Handle;
use crate::options::Durability;

/// A transaction that is durable and not committed yet: the first phase of a two-phase commit is over
/// ([`Transaction::prepare`](super::Transaction::prepare)).
///
/// It stays prepared until it is committed or rolled back, also over crashes and after this is dropped:
/// [`Db::prepared_transaction`](super::Db::prepared_transaction) finds it by its name. Until then nobody else can change
/// what it writes or has read. Locking transactions wait for its keys, and all other writes to them fail with
/// [`Conflict`](crate::ErrorKind::Conflict), also those to keys of a range that it has read. Reads see the state before
/// it.
pub struct PreparedTransaction {
    handle: Arc<Handle>,
    name: String,
}

impl PreparedTransaction {
    pub(super) fn new(handle: Arc<Handle>, name: String) -> Self {
        Self { handle, name }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Makes the writes visible as one. What was written to a keyspace that has been dropped meanwhile is lost.
    ///
    /// # Errors
    /// `NotFound` if it has ended already; others as [`Db::write`](super::Db::write). If nothing was written, it stays
    /// prepared and can be committed later.
    ///
    /// # Durability
    /// That of [`Options::durability`](crate::Options::durability). After a crash before that, it is prepared again.
    pub fn commit(self) -> Result<()> {
        let durability = self.handle.engine().options().durability;
        self.commit_with(durability)
    }

    /// Commits with the given durability.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub fn commit_with(self, durability: Durability) -> Result<()> {
        self.handle.engine().commit_prepared(&self.name, durability)
    }

    /// Discards the writes.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    ///
    /// # Durability
    /// As [`commit`](Self::commit).
    pub fn roll_back(self) -> Result<()> {
        let durability = self.handle.engine().options().durability;
        self.roll_back_with(durability)
    }

    /// Discards the writes, with the given durability.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub fn roll_back_with(self, durability: Durability) -> Result<()> {
        let engine = self.handle.engine();
        engine.roll_back_prepared(&self.name, durability)
    }
}

impl fmt::Debug for PreparedTransaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PreparedTransaction")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
