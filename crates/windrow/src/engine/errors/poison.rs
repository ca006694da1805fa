//! The poison: no more writes after an error that leaves durability unknown.
//!
//! A poisoned database acknowledges nothing more. Reads of committed data still work. A reopen recovers.
//!
//! Concurrency: one flag, set once, read before every acknowledgement.

use crate::base::sync::Mutex;
use crate::base::sync::atomic::{AtomicBool, Ordering};
use crate::base::{Error, ErrorKind, Result};

/// Whether the database is poisoned, and the cause.
#[derive(Debug, Default)]
pub(crate) struct Poison {
    set: AtomicBool,
    cause: Mutex<String>,
}

impl Poison {
    /// Poisons the database because of `cause`. Keeps the first cause.
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
                "an earlier failure ended all writing; reopen the database to continue: {}",
                cause.as_str()
            ),
        )
    }
}
