//! A transaction that its object and its iterators share.
//!
//! Concurrency: a lock, which a call has on a thread of libuv or on that of the transaction.

use std::sync::{Mutex, MutexGuard, PoisonError};

use windrow::{Error, ErrorKind, Transaction};
use windrow_ffi::transaction::TransactionAndCursors;

/// A transaction that its iterators use, too; `None` after the end.
pub(crate) struct Shared(Mutex<Option<TransactionAndCursors>>);

impl Shared {
    pub(crate) fn new(transaction: Transaction) -> Self {
        Self(Mutex::new(Some(TransactionAndCursors::new(transaction))))
    }

    /// Ends it for all later calls.
    pub(crate) fn take(&self) -> Option<TransactionAndCursors> {
        self.lock().take()
    }

    /// Uses the transaction.
    ///
    /// # Errors
    /// `Closed` after its end; those of `work`.
    pub(crate) fn with<T>(
        &self,
        work: impl FnOnce(&mut TransactionAndCursors) -> windrow::Result<T>,
    ) -> windrow::Result<T> {
        work(self.lock().as_mut().ok_or_else(ended)?)
    }

    /// Closes a cursor, unless a call has the transaction: then the end of the transaction closes it.
    pub(crate) fn close(&self, cursor: u64) {
        if let Ok(mut transaction) = self.0.try_lock()
            && let Some(transaction) = &mut *transaction
        {
            transaction.close(cursor);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<TransactionAndCursors>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) fn ended() -> Error {
    Error::new(ErrorKind::Closed, "the transaction has ended")
}
