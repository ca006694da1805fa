//! Bytes of memory, counted where they are taken and given back.
//!
//! Concurrency: one atomic per account that orders nothing; a sum over accounts may be a few
//! operations old.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many bytes one purpose holds.
#[derive(Debug, Default)]
pub(crate) struct Account(AtomicU64);

impl Account {
    pub(crate) fn add(&self, bytes: u64) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn remove(&self, bytes: u64) {
        self.0.fetch_sub(bytes, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The bytes of one owner; dropping it gives them back.
#[derive(Debug)]
pub(crate) struct Held {
    account: Arc<Account>,
    bytes: u64,
}

impl Held {
    pub(crate) fn new(account: &Arc<Account>, bytes: u64) -> Self {
        account.add(bytes);
        Self {
            account: Arc::clone(account),
            bytes,
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The owner holds `bytes` from here on.
    pub(crate) fn set(&mut self, bytes: u64) {
        self.account.add(bytes);
        self.account.remove(self.bytes);
        self.bytes = bytes;
    }

    /// The owner holds at least `bytes` from here on.
    #[inline]
    pub(crate) fn grow_to(&mut self, bytes: u64) {
        if bytes > self.bytes {
            self.set(bytes);
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.account.remove(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::{Account, Held};
    use std::sync::Arc;

    #[test]
    fn what_is_held_is_counted_until_it_is_dropped() {
        let account = Arc::new(Account::default());
        let mut first = Held::new(&account, 10);
        let second = Held::new(&account, 5);
        assert_eq!(account.bytes(), 15);
        first.grow_to(7);
        assert_eq!(account.bytes(), 15);
        first.grow_to(20);
        assert_eq!((account.bytes(), first.bytes()), (25, 20));
        first.set(1);
        drop(second);
        assert_eq!(account.bytes(), 1);
        drop(first);
        assert_eq!(account.bytes(), 0);
    }
}
