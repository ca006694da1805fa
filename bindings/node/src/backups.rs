//! Backups of databases in a folder.
//!
//! Concurrency: a lock, which a call and the close have on a thread of libuv. The class in JavaScript makes one call after
//! the other, so nobody waits for the lock.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use napi::Env;
use napi::bindgen_prelude::AsyncTask;
use napi_derive::napi;
use windrow::backup::{ListedBackup, Purge};
use windrow::{Db, Error, ErrorKind, Result};
use windrow_ffi::backups::{created_milliseconds, number_or_newest};

use crate::errors::code;
use crate::work::{Answer, Work, promise};

/// `None` after the close.
type Opened = Arc<Mutex<Option<windrow::backup::Backups>>>;

/// Backups in a folder.
#[napi]
pub(crate) struct Backups(Opened);

/// A backup of a list, or its error with a code.
#[napi(object, object_from_js = false)]
pub(crate) struct Listed {
    pub number: i64,
    /// Milliseconds since 1970.
    pub created: i64,
    pub sequence: i64,
    pub files: i64,
    pub bytes: i64,
    pub own_bytes: i64,
    pub error: Option<String>,
    pub code: Option<String>,
}

impl Listed {
    fn new(listed: &ListedBackup) -> Self {
        let info = listed.backup.as_ref().ok();
        let error = listed.backup.as_ref().err();
        let of = |number: u64| number.cast_signed();
        Self {
            number: of(listed.number),
            created: of(info.map_or(0, created_milliseconds)),
            sequence: of(info.map_or(0, |info| info.sequence)),
            files: of(info.map_or(0, |info| info.files)),
            bytes: of(info.map_or(0, |info| info.bytes)),
            own_bytes: of(info.map_or(0, |info| info.own_bytes)),
            error: error.map(ToString::to_string),
            code: error.map(|error| code(error.kind()).to_owned()),
        }
    }
}

/// What becomes [`Backups`] on the thread of JavaScript.
pub(crate) struct New(windrow::backup::Backups);

impl Answer for New {
    type Value<'env> = Backups;

    fn value(self, _env: &Env) -> napi::Result<Backups> {
        Ok(Backups(Arc::new(Mutex::new(Some(self.0)))))
    }
}

/// Opens the backups in the folder `path`. Each call reads at most so many bytes per second; 0 is no bound.
#[napi]
pub(crate) fn open_backups(
    path: String,
    read_only: bool,
    bytes_per_second: i64,
) -> AsyncTask<Work<New>> {
    promise(move || {
        let opened = if read_only {
            windrow::backup::Backups::open_read_only(&path)?
        } else {
            windrow::backup::Backups::open(&path)?
        };
        Ok(New(opened.with_rate(whole(bytes_per_second)?)))
    })
}

fn whole(number: i64) -> Result<u64> {
    u64::try_from(number).map_err(|_| Error::invalid_argument("a number is negative"))
}

/// Runs `work` with the backups.
fn with<T>(
    opened: &Opened,
    work: impl FnOnce(&windrow::backup::Backups) -> Result<T>,
) -> Result<T> {
    let opened = opened.lock().unwrap_or_else(PoisonError::into_inner);
    let closed = || Error::new(ErrorKind::Closed, "the backups have been closed");
    work(opened.as_ref().ok_or_else(closed)?)
}

impl Backups {
    fn call<T: Answer>(
        &self,
        work: impl Fn(&windrow::backup::Backups) -> Result<T> + Send + 'static,
    ) -> AsyncTask<Work<T>> {
        let opened = Arc::clone(&self.0);
        promise(move || with(&opened, &work))
    }

    fn purge(
        &self,
        purge: impl Fn() -> Result<Purge> + Send + 'static,
    ) -> AsyncTask<Work<Vec<i64>>> {
        self.call(move |backups| {
            let removed = backups.purge(purge()?)?.backups;
            Ok(removed.into_iter().map(u64::cast_signed).collect())
        })
    }

    /// What makes a backup of a database. The outcome is its number.
    pub(crate) fn maker(&self) -> impl Fn(&Db) -> Result<i64> + Send + use<> {
        let opened = Arc::clone(&self.0);
        move |db| {
            with(&opened, |backups| {
                Ok(db.backup(backups)?.number.cast_signed())
            })
        }
    }
}

#[napi]
impl Backups {
    /// The backups, oldest first.
    #[napi]
    pub fn list(&self) -> AsyncTask<Work<Vec<Listed>>> {
        self.call(|backups| Ok(backups.list()?.iter().map(Listed::new).collect()))
    }

    /// Checks all bytes of one backup, or of all. Gives a sentence for each damage.
    #[napi]
    pub fn verify(&self, number: Option<i64>) -> AsyncTask<Work<Vec<String>>> {
        self.call(move |backups| {
            let damage = backups.verify(number.map(whole).transpose()?)?.damage;
            Ok(damage.iter().map(|it| it.error.to_string()).collect())
        })
    }

    /// Writes the database of a backup, or of the newest one, to the folder `path`.
    #[napi]
    pub fn restore(&self, path: String, number: Option<i64>) -> AsyncTask<Work<()>> {
        self.call(move |backups| {
            let number = number.map(whole).transpose()?;
            backups.restore(number_or_newest(backups, number)?, &path)
        })
    }

    /// Removes all backups but the newest ones. Gives their numbers.
    #[napi]
    pub fn keep_newest(&self, count: i64) -> AsyncTask<Work<Vec<i64>>> {
        self.purge(move || {
            let count = usize::try_from(whole(count)?).unwrap_or(usize::MAX);
            Ok(Purge::KeepNewest(count))
        })
    }

    /// Removes the backups that were made longer ago. Gives their numbers.
    #[napi]
    pub fn remove_older(&self, milliseconds: i64) -> AsyncTask<Work<Vec<i64>>> {
        self.purge(move || {
            let age = Duration::from_millis(whole(milliseconds)?);
            Ok(Purge::OlderThan(age))
        })
    }

    /// Removes a backup.
    #[napi]
    pub fn remove(&self, number: i64) -> AsyncTask<Work<Vec<i64>>> {
        self.purge(move || Ok(Purge::Backup(whole(number)?)))
    }

    /// Lets others have the folder.
    #[napi]
    pub fn close(&self) -> AsyncTask<Work<()>> {
        let opened = Arc::clone(&self.0);
        promise(move || {
            let mut opened = opened.lock().unwrap_or_else(PoisonError::into_inner);
            drop(opened.take());
            Ok(())
        })
    }
}
