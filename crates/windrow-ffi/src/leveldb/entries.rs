//! The entries of a database of LevelDB's interfaces: a keyspace, and the value of the empty key, which Windrow's
//! keyspaces do not have. It is in a keyspace of its own, which the first write of the empty key makes.
//!
//! Concurrency: any thread may make any call. All handles of an open database share one structure, because each would
//! have to know when another one makes the second keyspace.

use std::ops::Bound;
use std::sync::OnceLock;
use std::time::Duration;

use windrow::{
    Batch, Db, Durability, Error, ErrorKind, Expiry, Keyspace, Near, PinnedValue, Result, Snapshot,
};

use super::KEYSPACE;
use super::cursor::{EMPTY_KEY, EntryCursor};

/// The keyspace of the empty key.
pub const EMPTY_KEY_KEYSPACE: &str = "leveldb.empty-key";

/// The keyspace and the key of an entry as callers know them: the empty key is in the keyspace of all others.
pub fn logical<'a>(keyspace: &'a str, key: &'a [u8]) -> (&'a str, &'a [u8]) {
    if keyspace == EMPTY_KEY_KEYSPACE && key == EMPTY_KEY {
        (KEYSPACE, b"")
    } else {
        (keyspace, key)
    }
}

/// The keys from one bound to another one.
pub type Bounds<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);

/// The entries of an open database.
#[derive(Debug)]
pub struct Entries {
    db: Db,
    keyspace: Keyspace,
    /// The keyspace of the empty key, once it was written.
    empty_key: OnceLock<Keyspace>,
    /// Whether the empty key is a key; otherwise its writes are errors, as in Windrow.
    has_empty_key: bool,
}

impl Entries {
    /// The entries of `keyspace`, and the empty key.
    ///
    /// # Errors
    /// Those of [`Db::existing_keyspace`].
    pub fn new(db: Db, keyspace: Keyspace) -> Result<Self> {
        let empty_key = OnceLock::new();
        if let Some(found) = db.existing_keyspace(EMPTY_KEY_KEYSPACE)? {
            empty_key.get_or_init(|| found);
        }
        Ok(Self {
            db,
            keyspace,
            empty_key,
            has_empty_key: true,
        })
    }

    /// The entries of `keyspace` alone, in which the empty key is an error.
    pub fn without_empty_key(db: Db, keyspace: Keyspace) -> Self {
        Self {
            db,
            keyspace,
            empty_key: OnceLock::new(),
            has_empty_key: false,
        }
    }

    /// The database.
    pub fn db(&self) -> &Db {
        &self.db
    }

    /// The keyspace of all keys but the empty one.
    pub fn keyspace(&self) -> &Keyspace {
        &self.keyspace
    }

    /// The value of `key`, at the snapshot if there is one.
    ///
    /// # Errors
    /// Those of [`windrow::View::get`].
    pub fn get(&self, key: &[u8], snapshot: Option<&Snapshot>) -> Result<Option<PinnedValue>> {
        let Some((keyspace, key)) = self.place(key) else {
            return Ok(None);
        };
        match snapshot {
            None => keyspace.get_pinned(key),
            Some(snapshot) => keyspace.at(snapshot)?.get_pinned(key),
        }
    }

    /// Passes the value of `key` to `found`, if it is in memory.
    ///
    /// # Errors
    /// Those of [`get`](Self::get).
    pub fn get_near<R>(&self, key: &[u8], found: impl FnOnce(&[u8]) -> R) -> Result<Near<R>> {
        match self.place(key) {
            Some((keyspace, key)) => keyspace.get_near(key, found),
            None => Ok(Near::Absent),
        }
    }

    /// Whether `key` has a value, at the snapshot if there is one.
    ///
    /// # Errors
    /// Those of [`get`](Self::get).
    pub fn contains_key(&self, key: &[u8], snapshot: Option<&Snapshot>) -> Result<bool> {
        let Some((keyspace, key)) = self.place(key) else {
            return Ok(false);
        };
        match snapshot {
            None => keyspace.contains_key(key),
            Some(snapshot) => keyspace.at(snapshot)?.contains_key(key),
        }
    }

    /// Sets the value of `key`.
    ///
    /// # Errors
    /// Those of [`Keyspace::insert`], and of [`Db::keyspace`] for the first write of the empty key.
    pub fn insert(&self, key: &[u8], value: &[u8], durability: Durability) -> Result<()> {
        let (keyspace, key) = self.place_for_insert(key)?;
        keyspace.insert_with(key, value, durability)
    }

    /// Removes `key`.
    ///
    /// # Errors
    /// Those of [`Keyspace::remove`].
    pub fn remove(&self, key: &[u8], durability: Durability) -> Result<()> {
        match self.place(key) {
            Some((keyspace, key)) => keyspace.remove_with(key, durability),
            None => Ok(()),
        }
    }

    /// Adds a value of `key` to the batch.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    pub fn batch_insert(&self, batch: &mut Batch, key: &[u8], value: &[u8]) -> Result<()> {
        let (keyspace, key) = self.place_for_insert(key)?;
        batch.insert(keyspace, key, value)
    }

    /// Adds the removal of `key` to the batch.
    ///
    /// # Errors
    /// Those of [`Batch::remove`].
    pub fn batch_remove(&self, batch: &mut Batch, key: &[u8]) -> Result<()> {
        match self.place(key) {
            Some((keyspace, key)) => batch.remove(keyspace, key),
            None => Ok(()),
        }
    }

    /// Adds a value of `key` that expires after `ttl` to the batch.
    ///
    /// # Errors
    /// As [`insert`](Self::insert), and those of [`Batch::insert_with_ttl`].
    pub fn batch_insert_with_ttl(
        &self,
        batch: &mut Batch,
        key: &[u8],
        value: &[u8],
        ttl: Duration,
    ) -> Result<()> {
        let (keyspace, key) = self.place_for_insert(key)?;
        batch.insert_with_ttl(keyspace, key, value, ttl)
    }

    /// Adds an operand of `key` to the batch.
    ///
    /// # Errors
    /// Those of [`Batch::merge`]: the empty key has no operator.
    pub fn batch_merge(&self, batch: &mut Batch, key: &[u8], operand: &[u8]) -> Result<()> {
        batch.merge(&self.keyspace, key, operand)
    }

    /// Adds the removal of all keys in `bounds` to the batch.
    ///
    /// # Errors
    /// Those of [`Batch::delete_range`].
    pub fn batch_delete_range(&self, batch: &mut Batch, bounds: Bounds<'_>) -> Result<()> {
        batch.delete_range::<&[u8]>(&self.keyspace, bounds)?;
        if self.has_empty_key && has_empty_key(bounds) {
            self.batch_remove(batch, b"")?;
        }
        Ok(())
    }

    /// When the entry of `key` expires; `None` if there is none.
    ///
    /// # Errors
    /// Those of [`windrow::View::expires_at`].
    pub fn expires_at(&self, key: &[u8]) -> Result<Option<Expiry>> {
        match self.place(key) {
            Some((keyspace, key)) => keyspace.expires_at(key),
            None => Ok(None),
        }
    }

    /// Removes all keys in `bounds`, as one write.
    ///
    /// # Errors
    /// Those of [`Keyspace::delete_range`].
    pub fn delete_range(&self, bounds: Bounds<'_>, durability: Durability) -> Result<()> {
        let mut batch = Batch::new();
        self.batch_delete_range(&mut batch, bounds)?;
        self.db.write_with(&batch, durability)
    }

    /// A cursor over the entries in `bounds`, at the snapshot if there is one. It has no position before its first move.
    ///
    /// # Errors
    /// Those of [`windrow::View::range_cursor`].
    pub fn cursor(&self, bounds: Bounds<'_>, snapshot: Option<&Snapshot>) -> Result<EntryCursor> {
        // Before the look at `empty_key`: if the keyspace is not there yet, then nothing in the snapshot is in it.
        let snapshot = snapshot.map_or_else(|| self.db.snapshot(), Snapshot::clone);
        let empty_key = match self.empty_key.get() {
            Some(keyspace) if has_empty_key(bounds) => Some(keyspace.at(&snapshot)?),
            _ => None,
        };
        let cursor = self.keyspace.at(&snapshot)?.range_cursor::<&[u8]>(bounds)?;
        Ok(EntryCursor::new(cursor, empty_key))
    }

    /// The keyspace of `key`, and the key there. `None` for the empty key if nobody has written it.
    fn place<'a>(&'a self, key: &'a [u8]) -> Option<(&'a Keyspace, &'a [u8])> {
        if key.is_empty() && self.has_empty_key {
            return self.empty_key.get().map(|keyspace| (keyspace, EMPTY_KEY));
        }
        Some((&self.keyspace, key))
    }

    /// As [`place`](Self::place), for a write that needs the place.
    fn place_for_insert<'a>(&'a self, key: &'a [u8]) -> Result<(&'a Keyspace, &'a [u8])> {
        if key.is_empty() && self.has_empty_key && self.empty_key.get().is_none() {
            // Of two threads, both get the same keyspace.
            let keyspace = self.db.keyspace(EMPTY_KEY_KEYSPACE)?;
            self.empty_key.get_or_init(|| keyspace);
        }
        let missing = || {
            Error::new(
                ErrorKind::NotFound,
                "the keyspace of the empty key is missing",
            )
        };
        self.place(key).ok_or_else(missing)
    }
}

/// Whether the empty key is in the bounds.
fn has_empty_key((lower, upper): Bounds<'_>) -> bool {
    let is_above_lower = match lower {
        Bound::Unbounded => true,
        Bound::Included(key) => key.is_empty(),
        Bound::Excluded(_) => false,
    };
    let is_below_upper = match upper {
        Bound::Unbounded | Bound::Included(_) => true,
        Bound::Excluded(key) => !key.is_empty(),
    };
    is_above_lower && is_below_upper
}

#[cfg(test)]
mod tests {
    use std::ops::Bound::{self, Excluded, Included, Unbounded};

    use windrow::{Db, Durability, Options};

    use super::{Bounds, Entries};

    const BUFFERED: Durability = Durability::Buffered;

    fn with_keys(keys: &[&str]) -> (tempfile::TempDir, Entries) {
        let folder = tempfile::tempdir().unwrap();
        let db = Db::open(folder.path(), Options::default()).unwrap();
        let keyspace = db.keyspace(super::super::KEYSPACE).unwrap();
        let entries = Entries::new(db, keyspace).unwrap();
        for key in keys {
            entries.insert(key.as_bytes(), b"value", BUFFERED).unwrap();
        }
        (folder, entries)
    }

    fn keys(entries: &Entries, bounds: Bounds<'_>) -> Vec<String> {
        let mut cursor = entries.cursor(bounds, None).unwrap();
        let mut keys = Vec::new();
        let mut found = cursor.seek_to_first().unwrap();
        while found {
            keys.push(String::from_utf8(cursor.key().unwrap().to_vec()).unwrap());
            found = cursor.next().unwrap();
        }
        keys
    }

    /// A range, and the keys of `""`, `a` and `b` that are in it.
    type Case = (
        Bound<&'static [u8]>,
        Bound<&'static [u8]>,
        &'static [&'static str],
    );

    /// Each way to bound a range.
    const RANGES: &[Case] = &[
        (Unbounded, Unbounded, &["", "a", "b"]),
        (Included(b""), Included(b""), &[""]),
        (Included(b""), Excluded(b""), &[]),
        (Unbounded, Excluded(b""), &[]),
        (Unbounded, Excluded(b"a"), &[""]),
        (Excluded(b""), Unbounded, &["a", "b"]),
        (Excluded(b""), Included(b"a"), &["a"]),
        (Included(b"a"), Unbounded, &["a", "b"]),
        (Included(b"b"), Included(b"a"), &[]),
    ];

    #[test]
    fn cursors_and_range_deletes_have_the_same_bounds() {
        for &(lower, upper, expected) in RANGES {
            let (_folder, entries) = with_keys(&["", "a", "b"]);
            assert_eq!(keys(&entries, (lower, upper)), expected);
            entries.delete_range((lower, upper), BUFFERED).unwrap();
            let left = keys(&entries, (Unbounded, Unbounded));
            let others: Vec<_> = ["", "a", "b"]
                .into_iter()
                .filter(|key| !expected.contains(key))
                .collect();
            assert_eq!(left, others, "{lower:?} {upper:?}");
        }
    }

    #[test]
    fn a_snapshot_from_before_the_first_empty_key_does_not_have_it() {
        let (_folder, entries) = with_keys(&["a"]);
        let before = entries.db().snapshot();
        entries.insert(b"", b"0", BUFFERED).unwrap();
        assert!(!entries.contains_key(b"", Some(&before)).unwrap());
        assert!(entries.contains_key(b"", None).unwrap());
        let mut cursor = entries
            .cursor((Unbounded, Unbounded), Some(&before))
            .unwrap();
        assert!(cursor.seek(b"").unwrap());
        assert_eq!(cursor.key(), Some(&b"a"[..]));
    }
}
