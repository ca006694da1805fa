//! Readers of a database that another process writes.
//!
//! Concurrency: a call clones the handle on the thread of JavaScript, and drops it on a thread of libuv: the last one ends a
//! thread.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use napi::Env;
use napi::bindgen_prelude::AsyncTask;
use napi_derive::napi;
use windrow::{Db, Durability, Error, ErrorKind, Result};
use windrow_ffi::leveldb::{Entries, KEYSPACE};

use crate::options::OpenOptions;
use crate::owner::Owner;
use crate::registry::Opened;
use crate::work::{Answer, Work, promise};

/// `None` after the close.
type Reader = Arc<Mutex<Option<windrow::Secondary>>>;

/// A reader of a database that another process writes.
#[napi]
pub(crate) struct Secondary {
    reader: Reader,
    durability: Durability,
}

/// What becomes a [`Secondary`] on the thread of JavaScript.
pub(crate) struct New(windrow::Secondary, Durability);

impl Answer for New {
    type Value<'env> = Secondary;

    fn value(self, _env: &Env) -> napi::Result<Secondary> {
        Ok(Secondary {
            reader: Arc::new(Mutex::new(Some(self.0))),
            durability: self.1,
        })
    }
}

/// Opens the database in the folder `path` for reading, beside its writer.
#[napi]
pub(crate) fn open_secondary(path: String, options: OpenOptions) -> AsyncTask<Work<New>> {
    promise(move || {
        let options = options.to_windrow()?;
        let durability = options.durability;
        Ok(New(
            Db::open_secondary(Path::new(&path), options)?,
            durability,
        ))
    })
}

impl Secondary {
    fn call<T: Answer>(
        &self,
        work: impl Fn(&windrow::Secondary) -> Result<T> + Send + 'static,
    ) -> AsyncTask<Work<T>> {
        let reader = Arc::clone(&self.reader);
        promise(move || {
            let reader = reader
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone();
            let closed = || Error::new(ErrorKind::Closed, "the secondary has been closed");
            work(&reader.ok_or_else(closed)?)
        })
    }

    fn state(
        &self,
        state: impl Fn(&windrow::Secondary) -> Result<Db> + Send + 'static,
    ) -> AsyncTask<Work<Arc<Owner>>> {
        let durability = self.durability;
        self.call(move |secondary| {
            let db = state(secondary)?;
            let keyspace = db.existing_keyspace(KEYSPACE)?;
            let missing = || {
                let message = format!("the database has no keyspace {KEYSPACE} yet");
                Error::new(ErrorKind::NotFound, message)
            };
            let entries = Entries::new(db, keyspace.ok_or_else(missing)?)?;
            Ok(Owner::new(Opened::state(entries), durability))
        })
    }
}

#[napi]
impl Secondary {
    /// The newest state that was read.
    #[napi]
    pub fn database(&self) -> AsyncTask<Work<Arc<Owner>>> {
        self.state(|secondary| Ok(secondary.db()))
    }

    /// Reads what was committed since. Gives the newest state.
    #[napi]
    pub fn catch_up(&self) -> AsyncTask<Work<Arc<Owner>>> {
        self.state(windrow::Secondary::catch_up)
    }

    /// Catches up by itself after each interval.
    #[napi]
    pub fn follow(&self, milliseconds: f64) -> AsyncTask<Work<()>> {
        self.call(move |secondary| {
            let interval = Duration::try_from_secs_f64(milliseconds / 1000.0);
            let wrong = |_| Error::invalid_argument("the interval is no time");
            secondary.follow(interval.map_err(wrong)?)
        })
    }

    /// Frees the reader. Its states stay open.
    #[napi]
    pub fn close(&self) -> AsyncTask<Work<()>> {
        let reader = Arc::clone(&self.reader);
        promise(move || {
            let taken = reader.lock().unwrap_or_else(PoisonError::into_inner).take();
            drop(taken);
            Ok(())
        })
    }
}
