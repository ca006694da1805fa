//! A database that one environment has open, its keyspaces, and the calls that use them.
//!
//! Concurrency: one lock for a database. A call holds a lease from its begin to the end of its promise, both on the thread of JavaScript. A
//! close refuses new leases and waits for the last one, on a thread of libuv. These threads run tasks in the order of their
//! begin, so those for which a close waits have a thread, or had one.

use std::ops::Deref;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use windrow::{Durability, Error, ErrorKind, Result};
use windrow_ffi::leveldb::Entries;

use crate::errors::{self, Failure};
use crate::registry::Opened;

/// The entries of a keyspace, and the open database that they are of.
pub(crate) struct Owner {
    database: Arc<Database>,
    entries: Arc<Entries>,
}

/// An open database.
struct Database {
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

impl Calls {
    fn check_open(&self) -> Result<()> {
        if self.opened.is_none() {
            let message = "the database has been closed";
            return Err(Error::new(ErrorKind::Closed, message));
        }
        Ok(())
    }
}

impl Database {
    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Owner {
    pub(crate) fn new(opened: Opened, durability: Durability) -> Arc<Self> {
        let entries = Arc::clone(opened.entries());
        let database = Database {
            durability,
            calls: Mutex::new(Calls {
                running: 0,
                opened: Some(opened),
            }),
            none_runs: Condvar::new(),
        };
        Arc::new(Self {
            database: Arc::new(database),
            entries,
        })
    }

    /// Other entries of the same database.
    pub(crate) fn of_keyspace(&self, entries: Entries) -> Arc<Self> {
        Arc::new(Self {
            database: Arc::clone(&self.database),
            entries: Arc::new(entries),
        })
    }

    /// Begins a call.
    ///
    /// # Errors
    /// `Closed` once a close has begun.
    pub(crate) fn lease(self: &Arc<Self>) -> Result<Lease> {
        let mut calls = self.database.calls();
        calls.check_open()?;
        calls.running += 1;
        Ok(Lease(Arc::clone(self)))
    }

    /// As [`Self::lease`], for a call that throws the error.
    pub(crate) fn lease_or_throw(self: &Arc<Self>) -> errors::Result<Lease> {
        self.lease().map_err(|error| Failure::from(error).thrown())
    }

    /// Checks that no close has begun.
    pub(crate) fn check_open(&self) -> Result<()> {
        self.database.calls().check_open()
    }

    /// The entries. Only a lease keeps the database open.
    pub(crate) fn entries(&self) -> &Entries {
        &self.entries
    }

    /// Closes the database after the calls that run. A second close does nothing.
    pub(crate) fn close(&self) -> Result<()> {
        let mut calls = self.database.calls();
        let opened = calls.opened.take();
        while calls.running > 0 {
            let waited = self.database.none_runs.wait(calls);
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
            None => self.database.durability,
        }
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
        let database = &self.0.database;
        let mut calls = database.calls();
        calls.running -= 1;
        // Only a close waits, and a wake-up is a call of the system.
        if calls.running == 0 && calls.opened.is_none() {
            database.none_runs.notify_all();
        }
    }
}
