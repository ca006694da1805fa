//! The end of writing after an error that leaves durability unknown.
//!
//! Once poisoned, nothing more is acknowledged; reads of committed data go on; reopening recovers.
//!
//! Concurrency: one flag, set once, read before every acknowledgement.

use crate::base::sync::Mutex;
use crate::base::sync::atomic::{AtomicBool, Ordering};
use crate::base::{Error, ErrorKind, Result};

/// Whether, and why, nothing more is written.
#[derive(Debug, Default)]
pub(crate) struct Poison {
    set: AtomicBool,
    cause: Mutex<String>,
}

impl Poison {
    /// Ends all writing because of `cause`; the first cause is kept.
    pub(crate) fn set(&self, cause: &Error) {
        let mut kept = self.cause.lock();
        if !self.set.load(Ordering::Acquire) {
            *kept = cause.to_string();
            self.set.store(true, Ordering::Release);
        }
    }

    pub(crate) fn is_set(&self) -> bool {
        self.set.load(Ordering::Acquire)
    }

    /// # Errors
    /// `Poisoned`, with the cause, once set.
    #[inline]
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_set() {
            Err(self.error())
        } else {
            Ok(())
        }
    }

    #[cold]
    fn error(&self) -> Error {
        let cause = self.cause.lock();
        Error::new(
            ErrorKind::Poisoned,
            format!(
                "an earlier failure ended all writing, reopen the database to go on: {}",
                cause.as_str()
            ),
        )
    }
}
