//! A lock that one thread takes and another one may release.
//!
//! Concurrency: any number of threads; one has the gate at a time. Who waits has no place in a line.

use std::sync::Arc;

use super::sync::{Condvar, Mutex};

/// A lock without data.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    is_taken: Mutex<bool>,
    released: Condvar,
}

impl Gate {
    /// Waits until nobody has the gate, and takes it.
    pub(crate) fn enter(self: &Arc<Self>) -> Passage {
        let mut is_taken = self.is_taken.lock();
        while *is_taken {
            is_taken = self.released.wait(is_taken);
        }
        *is_taken = true;
        drop(is_taken);
        Passage(Arc::clone(self))
    }
}

/// Whoever has this has the gate. A drop releases it.
#[derive(Debug)]
pub(crate) struct Passage(Arc<Gate>);

impl Drop for Passage {
    fn drop(&mut self) {
        *self.0.is_taken.lock() = false;
        self.0.released.notify_one();
    }
}
