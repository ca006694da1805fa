//! What the cursors of views, of transactions and of LevelDB's entries have in common, for languages that iterate over them in
//! one way.
//!
//! Concurrency: no state.

use windrow::{Cursor, Result, TransactionCursor};

use crate::leveldb::EntryCursor;

/// The moves of a cursor, as [`Cursor`] describes them. Their errors are those of the cursor.
#[expect(missing_docs, reason = "each one is the method of the same name")]
pub trait Moves {
    fn seek_to_first(&mut self) -> Result<bool>;
    fn seek_to_last(&mut self) -> Result<bool>;
    fn seek(&mut self, key: &[u8]) -> Result<bool>;
    fn next(&mut self) -> Result<bool>;
    fn prev(&mut self) -> Result<bool>;
    /// Empty if the cursor is at no entry.
    fn key(&self) -> &[u8];
    fn value(&self) -> Result<&[u8]>;

    /// Moves to the last entry whose key is less than `key`.
    fn seek_before(&mut self, key: &[u8]) -> Result<bool> {
        if self.seek(key)? {
            self.prev()
        } else {
            self.seek_to_last()
        }
    }
}

macro_rules! moves {
    ($cursor:ty, $key:expr) => {
        impl Moves for $cursor {
            fn seek_to_first(&mut self) -> Result<bool> {
                self.seek_to_first()
            }
            fn seek_to_last(&mut self) -> Result<bool> {
                self.seek_to_last()
            }
            fn seek(&mut self, key: &[u8]) -> Result<bool> {
                self.seek(key)
            }
            fn next(&mut self) -> Result<bool> {
                self.next()
            }
            fn prev(&mut self) -> Result<bool> {
                self.prev()
            }
            fn key(&self) -> &[u8] {
                $key(self)
            }
            fn value(&self) -> Result<&[u8]> {
                self.value()
            }
        }
    };
}
moves!(Cursor, Cursor::key);
moves!(TransactionCursor<'_>, TransactionCursor::key);
moves!(EntryCursor, key_or_none);

fn key_or_none(cursor: &EntryCursor) -> &[u8] {
    cursor.key().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::ops::Bound::Unbounded;

    use windrow::{Db, Options};

    use super::Moves;
    use crate::leveldb::Entries;

    fn walk(cursor: &mut impl Moves) {
        assert!(cursor.seek_before(b"c").unwrap());
        assert_eq!(
            (cursor.key(), cursor.value().unwrap()),
            (&b"b"[..], &b"2"[..])
        );
        assert!(cursor.seek_before(b"b").unwrap());
        assert_eq!(cursor.key(), b"a");
        assert!(!cursor.seek_before(b"a").unwrap());
        assert!(cursor.seek_before(b"z").unwrap());
        assert_eq!(cursor.key(), b"d");
        assert!(!cursor.next().unwrap());
        assert_eq!(cursor.key(), b"");
    }

    #[test]
    fn all_kinds_of_cursors_move_alike() {
        let folder = tempfile::tempdir().unwrap();
        let db = Db::open(folder.path(), Options::default()).unwrap();
        let letters = db.keyspace("letters").unwrap();
        for (key, value) in [("a", "1"), ("b", "2"), ("d", "4")] {
            letters.insert(key, value).unwrap();
        }
        walk(&mut letters.cursor().unwrap());
        let transaction = db.transaction();
        walk(&mut transaction.cursor(&letters).unwrap());
        let entries = Entries::new(db, letters).unwrap();
        walk(&mut entries.cursor((Unbounded, Unbounded), None).unwrap());
    }
}
