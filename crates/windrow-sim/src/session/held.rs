//! A snapshot that a session holds, with iterators, and what both must show.

use crate::filtered::seen;
use crate::model::{Contents, differences};
use windrow::{Db, Entry, Keyspace, Range, Result, Snapshot};

/// A snapshot, and an iterator over each keyspace that is one step into it.
#[derive(Debug)]
pub(super) struct Held {
    snapshot: Snapshot,
    /// Each with the name that it had then.
    keyspaces: Vec<(String, Keyspace, Option<Entry>, Range)>,
    /// What all of them must show.
    contents: Contents,
}

impl Held {
    /// Takes a snapshot of `db`, which contains `contents`.
    pub(super) fn new(db: &Db, keyspaces: Vec<Keyspace>, contents: Contents) -> Result<Self> {
        let begin = |keyspace: Keyspace| {
            let mut iterator = keyspace.iter()?;
            let first = iterator.next().transpose()?;
            Ok((keyspace.name(), keyspace, first, iterator))
        };
        Ok(Self {
            snapshot: db.snapshot(),
            keyspaces: keyspaces.into_iter().map(begin).collect::<Result<_>>()?,
            contents,
        })
    }

    /// Panics unless the snapshot shows what it must, whether the keyspaces still exist or not.
    pub(super) fn check(&self) -> Result<()> {
        let mut found = Contents::new();
        for (name, keyspace, ..) in &self.keyspaces {
            let view = keyspace.at(&self.snapshot)?;
            let entries = view.iter()?.collect::<Result<_>>()?;
            found.insert(name.clone(), entries);
        }
        self.compare("a snapshot", found);
        Ok(())
    }

    /// Checks the snapshot and reads the iterators to their ends.
    pub(super) fn release(mut self) -> Result<()> {
        self.check()?;
        let mut found = Contents::new();
        for (name, _keyspace, first, rest) in std::mem::take(&mut self.keyspaces) {
            let entries = first.map(Ok).into_iter().chain(rest);
            found.insert(name, entries.collect::<Result<_>>()?);
        }
        self.compare("an iterator", found);
        Ok(())
    }

    fn compare(&self, what: &str, found: Contents) {
        let found = seen(found);
        assert!(
            found == self.contents,
            "{what} shows something else: {}",
            differences(&self.contents, &found).join("; ")
        );
    }
}
