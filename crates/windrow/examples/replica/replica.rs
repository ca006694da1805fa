//! A copy of a database that follows its changes. Applying a change twice has no effect: the copy stores the sequence number
//! of its newest change with what the change did.

use std::time::Duration;

use windrow::{Batch, Change, ChangeBatch, Consumer, Db, ErrorKind, Keyspace, Result};

/// The keyspace of the copy's own notes. The source must not have one of this name.
pub(crate) const NOTES: &str = "replica";
/// The sequence number of the newest change of the source that the copy has. Missing while a snapshot is copied.
const POSITION: &str = "position";
/// A key that marks a keyspace which is about to get another name. The source must not have such a key.
const MARK: &[u8] = b"\0replica";
/// The entries of a batch while a snapshot is copied.
const COPIED_AT_ONCE: usize = 1000;

/// The copy.
pub(crate) struct Replica {
    db: Db,
    notes: Keyspace,
}

impl Replica {
    /// The copy in `db`, which is empty at first.
    pub(crate) fn new(db: Db) -> Result<Self> {
        let notes = db.keyspace(NOTES)?;
        Ok(Self { db, notes })
    }

    /// The newest change of the source that the copy has; `None` if it has no whole state yet.
    pub(crate) fn position(&self) -> Result<Option<u64>> {
        let stored = self.notes.get(POSITION)?;
        Ok(stored
            .and_then(|bytes| bytes.as_slice().try_into().ok())
            .map(u64::from_be_bytes))
    }

    /// Brings the copy up to the present state of `source`, and lets `consumer` acknowledge what is durable in the copy.
    pub(crate) fn catch_up(&self, source: &Db, consumer: &Consumer) -> Result<()> {
        let (place, newest) = (consumer.acknowledged()?, source.snapshot().sequence());
        // A place above the position means that the consumer was made anew, perhaps by somebody else, and that the changes
        // between them are lost. A position above the newest write means that the source is another database.
        let follows = |position| (place..=newest).contains(&position);
        if !self.position()?.is_some_and(follows) {
            self.copy_all(source)?;
        }
        let mut changes = consumer.changes()?;
        while let Some(change) = changes.next(Duration::ZERO)? {
            if let Change::TablesAdded { .. } = change {
                // Their entries are in no change. The position is behind all changes that the snapshot has.
                if self.position()? < Some(change.sequence()) {
                    self.copy_all(source)?;
                }
            } else {
                self.apply(&change)?;
            }
        }
        if let Some(position) = self.position()? {
            self.db.persist()?;
            consumer.acknowledge(position.max(consumer.acknowledged()?))?;
        }
        Ok(())
    }

    /// Applies `change`, unless the copy has it already.
    pub(crate) fn apply(&self, change: &Change) -> Result<()> {
        let sequence = change.sequence();
        if self.position()? >= Some(sequence) {
            return Ok(());
        }
        match change {
            Change::Batch(batch) => return self.apply_batch(batch),
            Change::KeyspaceCreated { name, .. } => drop(self.db.keyspace(name)?),
            Change::KeyspaceDropped { name, .. } if self.db.existing_keyspace(name)?.is_some() => {
                self.db.drop_keyspace(name)?;
            }
            Change::KeyspaceRenamed { from, to, .. } => return self.rename(from, to, sequence),
            _ => {}
        }
        // After a crash before this the change is applied again, which finds nothing to do.
        self.notes.insert(POSITION, sequence.to_be_bytes())
    }

    fn apply_batch(&self, changed: &ChangeBatch) -> Result<()> {
        for write in changed {
            self.db.keyspace(&write.keyspace)?;
        }
        let mut batch = self.db.batch_from_bytes(&changed.to_bytes())?;
        batch.insert(&self.notes, POSITION, changed.last().to_be_bytes())?;
        self.db.write(&batch)
    }

    /// Gives a keyspace its new name. An exchange of two names that is made twice would be none: so the keyspace is marked
    /// first, and the mark shows which name it has.
    fn rename(&self, from: &str, to: &str, sequence: u64) -> Result<()> {
        let is_marked = |name: &str| -> Result<bool> {
            let keyspace = self.db.existing_keyspace(name)?;
            keyspace.map_or(Ok(false), |keyspace| keyspace.contains_key(MARK))
        };
        if !is_marked(to)? {
            let renamed = self.db.keyspace(from)?;
            renamed.insert(MARK, "")?;
            if self.db.existing_keyspace(to)?.is_some() {
                self.db.swap_keyspaces(from, to)?;
            } else {
                renamed.rename(to)?;
            }
        }
        let mut done = Batch::new();
        done.remove(&self.db.keyspace(to)?, MARK)?;
        done.insert(&self.notes, POSITION, sequence.to_be_bytes())?;
        self.db.write(&done)
    }

    /// Begins again, after the consumer `name` has fallen behind: a new one holds what comes behind a new snapshot.
    pub(crate) fn begin_again(&self, source: &Db, name: &str) -> Result<Consumer> {
        // First, and durable: after a crash behind this the copy does not pass for one that the new consumer continues.
        self.notes.remove(POSITION)?;
        self.db.persist()?;
        match source.remove_consumer(name) {
            // An earlier attempt has ended behind this.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            outcome => outcome?,
        }
        let consumer = source.consumer(name)?;
        self.catch_up(source, &consumer)?;
        Ok(consumer)
    }

    /// Replaces everything by a snapshot of `source`, which has a consumer and whose keyspaces do not change meanwhile.
    fn copy_all(&self, source: &Db) -> Result<()> {
        self.notes.remove(POSITION)?;
        let names = source.keyspace_names();
        for name in self.db.keyspace_names() {
            if name != NOTES && !names.contains(&name) {
                self.db.drop_keyspace(&name)?;
            }
        }
        let snapshot = source.snapshot();
        // A power failure of the source must not take back what the copy has, as it never does with changes.
        source.persist()?;
        for name in names {
            let target = self.db.keyspace(&name)?;
            target.clear()?;
            let Some(keyspace) = source.existing_keyspace(&name)? else {
                continue;
            };
            let mut cursor = keyspace.at(&snapshot)?.cursor()?;
            let mut batch = Batch::new();
            cursor.seek_to_first()?;
            while cursor.is_valid() {
                let target = target.with_expiry(cursor.expires_at());
                batch.insert(&target, cursor.key(), cursor.value()?)?;
                if batch.len() == COPIED_AT_ONCE {
                    self.db.write(&batch)?;
                    batch.clear();
                }
                cursor.next()?;
            }
            self.db.write(&batch)?;
        }
        self.notes
            .insert(POSITION, snapshot.sequence().to_be_bytes())
    }
}
