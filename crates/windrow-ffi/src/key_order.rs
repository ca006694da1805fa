//! Custom comparators. Windrow orders keys by their bytes, so a comparator is of use only if it does the same under a
//! name of its own. LevelDB and RocksDB call comparators for keys of the database alone, and many fail for others, so there is
//! nothing to try at an open. Instead, two keys are compared where a program passes or gets them one after the other:
//! the first pair in another order ends the call with an error, and no iterator returns keys in an order that the
//! program does not expect.
//!
//! Concurrency: comparators are called without a lock.

#![expect(
    clippy::disallowed_types,
    reason = "no model replaces the locks of this crate"
)]

use std::cmp::Ordering;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use windrow::{Error, ErrorKind, Result};

/// The function of a comparator.
pub type Compare = Box<dyn Fn(&[u8], &[u8]) -> Ordering + Send + Sync>;

/// The order of a custom comparator.
pub struct KeyOrder(Compare);

impl fmt::Debug for KeyOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyOrder").finish_non_exhaustive()
    }
}

impl KeyOrder {
    /// The order of `compare`.
    pub fn new(compare: Compare) -> Self {
        Self(compare)
    }

    /// Checks that the comparator orders two keys by their bytes.
    ///
    /// # Errors
    /// `Unsupported`.
    pub fn check(&self, first: &[u8], second: &[u8]) -> Result<()> {
        if (self.0)(first, second) == first.cmp(second) {
            return Ok(());
        }
        let message = format!(
            "the comparator does not order the keys \"{}\" and \"{}\" by their bytes, as Windrow does",
            first.escape_ascii(),
            second.escape_ascii()
        );
        Err(Error::new(ErrorKind::Unsupported, message))
    }
}

/// The comparator of a database, which sees each key that a call names beside the key of the call before.
#[derive(Debug)]
pub struct CallOrder {
    order: Arc<KeyOrder>,
    last: Mutex<Option<Vec<u8>>>,
}

impl CallOrder {
    /// An order that has seen no key yet.
    pub fn new(order: Arc<KeyOrder>) -> Self {
        Self {
            order,
            last: Mutex::new(None),
        }
    }

    /// The order itself, for iterators.
    pub fn order(&self) -> &Arc<KeyOrder> {
        &self.order
    }

    /// Checks the key of a call.
    ///
    /// # Errors
    /// `Unsupported`.
    pub fn check(&self, key: &[u8]) -> Result<()> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let before = last.replace(key.to_vec());
        drop(last);
        before.map_or(Ok(()), |before| self.order.check(&before, key))
    }
}
