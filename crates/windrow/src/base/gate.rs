//! A lock that one thread takes and another one may release.
//!
//! Concurrency: any number of threads; one has the gate at a time. Who waits has no place in a line.

use std::sync::Arc;
use std::time::Duration;

use super::sync::{Condvar, Mutex};

/// A lock without data.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    is_taken: Mutex<bool>,
    changed: Condvar,
}

impl Gate {
    /// Takes the gate, if nobody has it or it is released within `timeout`. A [`wake`](Self::wake) ends the wait.
    pub(crate) fn enter_within(self: &Arc<Self>, timeout: Duration) -> Option<Passage> {
        let mut is_taken = self.is_taken.lock();
        if *is_taken {
            is_taken = self.changed.wait_timeout(is_taken, timeout);
        }
        if *is_taken {
            return None;
        }
        *is_taken = true;
        drop(is_taken);
        Some(Passage(Arc::clone(self)))
    }

    /// Lets all who wait look whether they can go on in another way.
    pub(crate) fn wake(&self) {
        drop(self.is_taken.lock());
        self.changed.notify_all();
    }
}

/// Whoever has this has the gate. A drop releases it.
#[derive(Debug)]
pub(crate) struct Passage(Arc<Gate>);

impl Drop for Passage {
    fn drop(&mut self) {
        *self.0.is_taken.lock() = false;
        self.0.changed.notify_one();
    }
}
