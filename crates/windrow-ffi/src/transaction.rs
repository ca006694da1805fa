//! A transaction together with its cursors, for languages in which each of them is an object of its own.
//!
//! # Safety argument
//! A cursor borrows its transaction. Here the transaction is in a box, which never moves its content, and the cursors are
//! dropped before it. So the borrow may be called `'static` as long as no cursor leaves this structure. The functions of
//! callers work for every lifetime, so they can keep neither a cursor nor the transaction, nor exchange two cursors.
//!
//! A transaction may go to another thread. A cursor may not, only because it uses its transaction, which is not for two
//! threads at once. Both together may go: this structure has all that share the transaction, and each use needs `&mut`.
//!
//! Concurrency: one thread at a time, which need not be the same.

#![expect(unsafe_code, reason = "a structure that borrows from itself")]

use std::collections::BTreeMap;
use std::mem;

use windrow::{Cursor, Durability, PreparedTransaction, Result, Transaction, TransactionCursor};

/// A transaction that owns its cursors.
#[derive(Debug)]
pub struct TransactionAndCursors {
    /// Before the transaction, so that they are dropped first.
    cursors: BTreeMap<u64, TransactionCursor<'static>>,
    transaction: Box<Transaction>,
    opened: u64,
}

// SAFETY: the safety argument above.
unsafe impl Send for TransactionAndCursors {}

const _: () = {
    const fn may_go_to_another_thread<T: Send>() {}
    may_go_to_another_thread::<Transaction>();
    may_go_to_another_thread::<Cursor>();
};

impl TransactionAndCursors {
    /// The transaction without cursors.
    pub fn new(transaction: Transaction) -> Self {
        Self {
            cursors: BTreeMap::new(),
            transaction: Box::new(transaction),
            opened: 0,
        }
    }

    /// Uses the transaction.
    pub fn with<R>(&mut self, work: impl FnOnce(&Transaction) -> R) -> R {
        work(&self.transaction)
    }

    /// Opens a cursor by `open`. Returns its number.
    ///
    /// # Errors
    /// That of `open`.
    pub fn open(
        &mut self,
        open: impl for<'t> FnOnce(&'t Transaction) -> Result<TransactionCursor<'t>>,
    ) -> Result<u64> {
        let cursor = open(&self.transaction)?;
        // SAFETY: the transaction stays at its place and outlives the cursor, which nobody can take out.
        let cursor =
            unsafe { mem::transmute::<TransactionCursor<'_>, TransactionCursor<'static>>(cursor) };
        self.opened += 1;
        self.cursors.insert(self.opened, cursor);
        Ok(self.opened)
    }

    /// Uses the cursor of this number, if it is open.
    pub fn with_cursor<R>(
        &mut self,
        number: u64,
        work: impl for<'t> FnOnce(&mut TransactionCursor<'t>) -> R,
    ) -> Option<R> {
        self.cursors.get_mut(&number).map(work)
    }

    /// Closes the cursor of this number. The commit covers what it has passed.
    pub fn close(&mut self, number: u64) {
        drop(self.cursors.remove(&number));
    }

    /// Closes all cursors and commits the transaction.
    ///
    /// # Errors
    /// Those of [`Transaction::commit`].
    pub fn commit(self, durability: Durability) -> Result<()> {
        drop(self.cursors);
        self.transaction.commit_with(durability)
    }

    /// Closes all cursors and prepares the transaction under a name.
    ///
    /// # Errors
    /// Those of [`Transaction::prepare`].
    pub fn prepare(self, name: &str) -> Result<PreparedTransaction> {
        drop(self.cursors);
        self.transaction.prepare(name)
    }
}

#[cfg(test)]
mod tests {
    use windrow::{Db, Durability, Options};

    use super::TransactionAndCursors;

    #[test]
    fn cursors_go_with_their_transaction_to_another_thread() {
        let folder = tempfile::tempdir().unwrap();
        let db = Db::open(folder.path(), Options::default()).unwrap();
        let planets = db.keyspace("planets").unwrap();
        planets.insert("earth", "one").unwrap();
        let mut transaction = TransactionAndCursors::new(db.transaction());
        let first = transaction.open(|it| it.cursor(&planets)).unwrap();
        let second = transaction.open(|it| it.cursor(&planets)).unwrap();
        let found = transaction.with_cursor(first, |cursor| cursor.seek_to_first().unwrap());
        assert_eq!(found, Some(true));
        transaction
            .with(|it| it.insert(&planets, "mars", "two"))
            .unwrap();
        transaction.close(second);
        assert!(transaction.with_cursor(second, |_| ()).is_none());
        let other = planets.clone();
        let work = move || {
            let next = transaction.with_cursor(first, |cursor| {
                assert_eq!(cursor.key(), b"earth");
                cursor.next().unwrap().then(|| cursor.key().to_vec())
            });
            assert_eq!(next, Some(Some(b"mars".to_vec())));
            transaction.commit(Durability::Buffered).unwrap();
            assert!(other.contains_key("mars").unwrap());
        };
        std::thread::scope(|scope| scope.spawn(work).join().unwrap());
    }
}
