//! Updates since a sequence number: what was committed, as batches of RocksDB.
//!
//! They are the changes of Windrow's feed. A batch has the sequence number of its first write, and each write has the next
//! one. The records of families in [`family_ids`](crate::family_ids) have numbers, too, but come in no batch.
//!
//! I1. A write names the family that its keyspace is of. The feed names keyspaces as they were called when it last looked at
//!     the database; so if a family was created since, it begins anew where it is.
//!
//! Concurrency: one thread at a time moves the updates; the others may read where they are.

use std::sync::Arc;
use std::time::Duration;

use windrow::{BatchWrite, Change, ChangeBatch, Changes, Error, ErrorKind, Result};

use crate::batch::{Write, WriteBatch};
use crate::database::{Database, Shared};
use crate::family_ids::KnownIds;
use crate::status::{self, unsupported};

/// Batches in the order of their commits.
pub(crate) struct Updates {
    shared: Arc<Shared>,
    changes: Changes,
    ids: KnownIds,
    /// The sequence number behind the last change that was taken.
    next: u64,
    /// The batch to which the updates have moved, with the sequence number of its first write.
    batch: Option<(u64, WriteBatch)>,
    error: Option<String>,
}

impl Updates {
    /// The updates from the batch that has the write `sequence` on.
    ///
    /// # Errors
    /// `NotFound` if nothing was written with that number yet, or the logs do not have it any more; `Unsupported` for a
    /// secondary.
    pub(crate) fn since(database: &Database, sequence: u64) -> Result<Self> {
        let shared = Arc::clone(&database.shared);
        if shared.is_secondary() {
            return Err(unsupported("a secondary instance gives no updates"));
        }
        let newest = database.snapshot().sequence();
        if sequence > newest {
            let message =
                format!("sequence number {sequence} is not written yet: the newest is {newest}");
            return Err(Error::new(ErrorKind::NotFound, message));
        }
        let ids = shared.known_ids();
        let changes = shared
            .db()
            .changes(sequence)
            .map_err(|error| match error.kind() {
                ErrorKind::FellBehind => error.with_kind(ErrorKind::NotFound),
                _ => error,
            })?;
        let mut updates = Self {
            shared,
            changes,
            ids,
            next: sequence,
            batch: None,
            error: None,
        };
        updates.advance();
        Ok(updates)
    }

    /// Moves to the next batch. At the end there is none, until one is committed and this is called again.
    pub(crate) fn advance(&mut self) {
        (self.batch, self.error) = match self.read() {
            Ok(batch) => (batch, None),
            Err(error) => (None, Some(status::text(&error))),
        };
    }

    /// The batch, with the sequence number of its first write.
    pub(crate) fn batch(&self) -> Option<(u64, &WriteBatch)> {
        self.batch.as_ref().map(|(first, batch)| (*first, batch))
    }

    /// Why there is no batch; `None` at the end.
    pub(crate) fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    fn read(&mut self) -> Result<Option<(u64, WriteBatch)>> {
        loop {
            let ids = self.shared.known_ids();
            if !ids.is_like(&self.ids) {
                self.changes = self.shared.db().changes(self.next)?;
                self.ids = ids;
            }
            let Some(change) = self.changes.next(Duration::ZERO)? else {
                return Ok(None);
            };
            if !self.shared.known_ids().is_like(&self.ids) {
                // I1
                continue;
            }
            let batch = match &change {
                Change::Batch(written) => self.convert(written)?,
                Change::TablesAdded { .. } => {
                    return Err(unsupported(
                        "tables were added, whose entries are in no batch",
                    ));
                }
                _ => WriteBatch::default(),
            };
            self.next = change.sequence() + 1;
            if let (Change::Batch(written), true) = (&change, batch.count() > 0) {
                return Ok(Some((written.first(), batch)));
            }
        }
    }

    fn convert(&self, written: &ChangeBatch) -> Result<WriteBatch> {
        let mut batch = WriteBatch::default();
        batch.set_sequence(written.first());
        for entry in written {
            let Some(family) = self.ids.of(&entry.keyspace)? else {
                continue;
            };
            let key = entry.key;
            batch.add(
                family,
                match entry.write {
                    BatchWrite::Insert(value) | BatchWrite::InsertUntil(value, _) => {
                        Write::Put(key, value)
                    }
                    BatchWrite::Remove => Write::Delete(key),
                    BatchWrite::Merge(operand) => Write::Merge(key, operand),
                    BatchWrite::DeleteRange(Some(end)) => Write::DeleteRange(key, end),
                    _ => return Err(unsupported("a batch of RocksDB has no such write")),
                },
            );
        }
        batch.check()?;
        Ok(batch)
    }
}
