//! A database that one environment has open, and the calls that use it.
//!
//! Concurrency: one lock. A call holds a lease from its begin to the end of its promise, both on the thread of JavaScript. A
//! close refuses new leases and waits for the last one, on a thread of libuv. These threads run tasks in the order of their
//! begin, so those for which a close waits have a thread, or had one.

use std::ops::Deref;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use windrow::{Durability, Error, ErrorKind, Result};
use windrow_ffi::leveldb::Entries;

use crate::registry::Opened;

/// An open database.
pub(crate) struct Owner {
    entries: Arc<Entries>,
    /// Of writes that name none.
    durability: Durability,
    calls: Mutex<Calls>,
    none_runs: Condvar,
}

struct Calls {
    running: usize,
    /// `None` after the close.
    opened: Option<Opened>,
}

impl Owner {
    pub(crate) fn new(opened: Opened, durability: Durability) -> Arc<Self> {
        Arc::new(Self {
            entries: Arc::clone(opened.entries()),
            durability,
            calls: Mutex::new(Calls {
                running: 0,
                opened: Some(opened),
            }),
            none_runs: Condvar::new(),
        })
    }

    /// Begins a call.
    ///
    /// # Errors
    /// `Closed` once a close has begun.
    pub(crate) fn lease(self: &Arc<Self>) -> Result<Lease> {
        let mut calls = self.calls();
        if calls.opened.is_none() {
            let message = "the database has been closed";
            return Err(Error::new(ErrorKind::Closed, message));
        }
        calls.running += 1;
        Ok(Lease(Arc::clone(self)))
    }

    /// Closes the database after the calls that run. A second close does nothing.
    pub(crate) fn close(&self) -> Result<()> {
        let mut calls = self.calls();
        let opened = calls.opened.take();
        while calls.running > 0 {
            let waited = self.none_runs.wait(calls);
            calls = waited.unwrap_or_else(PoisonError::into_inner);
        }
        drop(calls);
        opened.map_or(Ok(()), Opened::close)
    }

    /// The durability that a write names, or that of the database.
    pub(crate) fn durability(&self, sync: Option<bool>) -> Durability {
        match sync {
            Some(true) => Durability::Sync,
            Some(false) => Durability::Buffered,
            None => self.durability,
        }
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right of a call to use the database.
pub(crate) struct Lease(Arc<Owner>);

impl Deref for Lease {
    type Target = Entries;

    fn deref(&self) -> &Entries {
        &self.0.entries
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut calls = self.0.calls();
        calls.running -= 1;
        // Only a close waits, and a wake-up is a call of the system.
        if calls.running == 0 && calls.opened.is_none() {
            self.0.none_runs.notify_all();
        }
    }
}
