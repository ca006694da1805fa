//! The ways in which a session writes entries that expire. The time to live, or the number of entries, chooses one. So the
//! histories need not know them, and each way meets crashes, faults and a clock that is turned back.

use super::{EXTERNAL, Session};
use crate::model::{Change, Effect};
use std::path::Path;
use std::time::{Duration, SystemTime};
use windrow::{Batch, Durability, Error, Expiry, Keyspace, LoadEntry, Result, TableWriter};

/// The memory of a load of entries in any order: some have several sorted runs.
const SORT_BYTES: usize = 1 << 10;

/// An entry of a load: a key, a value, and when it expires.
type Entry<'a> = (&'a Vec<u8>, &'a Vec<u8>, Expiry);

impl Session {
    /// Sets the value of `key` for a time: by a batch, a handle with a time to live, a transaction, or a change of one key.
    pub(super) fn insert_for(
        &self,
        keyspace: &Keyspace,
        (key, value, ttl): (&[u8], &[u8], u64),
        durability: Durability,
    ) -> Result<()> {
        let ttl = Duration::from_millis(ttl);
        let handle = keyspace.with_ttl(ttl);
        let reads = self.may_read(durability);
        match ttl.as_millis() % 6 {
            0 => handle.insert_with(key, value, durability),
            1 => {
                let transaction = self.db().transaction();
                transaction.insert_with_ttl(keyspace, key, value, ttl)?;
                transaction.commit_with(durability)
            }
            2 if reads => handle.update(key, |_| Some(value.to_vec())).map(drop),
            3 if reads => {
                let old = keyspace.get(key)?;
                let is_swapped = handle.compare_and_swap(key, old.as_deref(), Some(value))?;
                assert!(is_swapped, "nobody else writes");
                Ok(())
            }
            4 if reads && !keyspace.contains_key(key)? => {
                let is_absent = handle.insert_if_absent(key, value)?;
                assert!(is_absent, "nobody else writes");
                Ok(())
            }
            _ => {
                let mut batch = Batch::new();
                batch.insert_with_ttl(keyspace, key, value, ttl)?;
                self.db().write_with(&batch, durability)
            }
        }
    }

    /// Adds these changes, ascending, whose values expire from `moment` on: as files if those were written, or by a bulk load,
    /// some of which get their entries in another order.
    pub(super) fn load(
        &self,
        keyspace: &Keyspace,
        changes: &[Change],
        moment: u64,
        is_written: bool,
    ) -> Result<()> {
        let entries = entries(changes, moment);
        let loaded = if is_written {
            self.db().ingest(EXTERNAL.map(|path| (keyspace, path)))
        } else if changes.len().is_multiple_of(3) {
            let reversed = entries.rev().map(Ok::<_, Error>);
            keyspace.try_bulk_load_unsorted(reversed, SORT_BYTES, |_| ())
        } else {
            keyspace.bulk_load(entries)
        };
        loaded.map(drop)
    }

    /// Writes two table files outside of the database with these changes. Returns whether there are any: not after a commit
    /// with an open outcome, since an error of their ingestion says nothing about that.
    pub(super) fn write_external(&self, changes: &[Change], moment: u64) -> Result<bool> {
        if self.unresolved || !changes.len().is_multiple_of(2) {
            return Ok(false);
        }
        // The last ones may be there after an error or a crash.
        self.disk.edit(|image| {
            for path in EXTERNAL.map(Path::new) {
                if image.files().iter().any(|file| file == path) {
                    image.remove(path).expect("a listed file exists");
                }
            }
        });
        let options = self.setting.on(&self.disk, &self.runtime);
        for (path, changes) in EXTERNAL.iter().zip(changes.chunks(changes.len() / 2)) {
            let mut writer = TableWriter::create(path, &options)?;
            for entry in entries(changes, moment) {
                match entry.expiry() {
                    Some(Expiry::At(time)) => {
                        writer.insert_until(entry.key(), entry.value(), time)?;
                    }
                    _ => writer.insert(entry.key(), entry.value())?,
                }
            }
            writer.finish()?;
        }
        Ok(true)
    }
}

/// What a load adds.
fn entries(changes: &[Change], moment: u64) -> impl DoubleEndedIterator<Item = Entry<'_>> {
    changes.iter().map(move |(_, key, effect)| match effect {
        Effect::InsertFor(value, ttl) => {
            let time = SystemTime::UNIX_EPOCH + Duration::from_millis(moment + ttl);
            (key, value, Expiry::At(time))
        }
        Effect::Insert(value) => (key, value, Expiry::Never),
        _ => unreachable!("a load sets values"),
    })
}
