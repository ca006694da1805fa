//! Databases.

use std::ffi::c_char;
use std::mem::MaybeUninit;

use windrow::{Db, Durability, Result};
use windrow_ffi::handles::{give, take};
use windrow_ffi::{given, path, text};

use super::calls::{call, call_for, guard, written};
use super::errors::Error;
use super::keyspace_options::KeyspaceOptions;
use super::keyspaces::Keyspace;
use super::options::Options;
use super::snapshots::Snapshot;

/// An open database. Any thread may use it. It stays open while it, or a handle that was made from it, is there.
#[derive(Debug)]
pub struct Database {
    pub(super) db: Db,
    /// Of writes that name none.
    pub(super) durability: Durability,
}

impl Database {
    /// Opens a database by `open`. Null options are the defaults.
    fn open(
        options: Option<&Options>,
        open: impl FnOnce(windrow::Options) -> Result<Db>,
    ) -> Result<Option<Box<Self>>> {
        let options = Options::given(options);
        let durability = options.durability;
        let db = open(options)?;
        Ok(Some(give(Self { db, durability })))
    }

    fn handle(&self, keyspace: windrow::Keyspace) -> Box<Keyspace> {
        give(Keyspace {
            keyspace,
            durability: self.durability,
        })
    }
}

/// Opens the database in the folder `folder`, or creates it if the options allow that. Null options are the defaults.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_open(
    folder: *const c_char,
    options: Option<&Options>,
    database: Option<&mut MaybeUninit<Option<Box<Database>>>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call_for(database, None, error, || {
        // SAFETY: the caller promises text.
        let folder = unsafe { path(folder)? };
        Database::open(options, |options| Db::open(folder, options))
    })
}

/// Opens a database for reading only. No call changes the disk. A database has one writer or any number of readers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_open_read_only(
    folder: *const c_char,
    options: Option<&Options>,
    database: Option<&mut MaybeUninit<Option<Box<Database>>>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call_for(database, None, error, || {
        // SAFETY: the caller promises text.
        let folder = unsafe { path(folder)? };
        Database::open(options, |options| Db::open_read_only(folder, options))
    })
}

/// Makes all writes durable, closes the database and frees the handle, also after an error. All other handles of the
/// database stay to be freed; the calls of keyspaces return `WINDROW_CLOSED`. Null is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_close(
    database: Option<Box<Database>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call(error, || {
        take(database).map_or(Ok(()), |database| database.db.close())
    })
}

/// Frees the handle without a close: the database closes with its last handle, and nobody learns of an error. Null is
/// allowed.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_database_free(database: Option<Box<Database>>) {
    guard((), || drop(take(database)));
}

/// Removes the database in the folder `folder` with all its entries. A missing database is no error. The folder stays, with
/// its file LOCK and with files of others.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_destroy(
    folder: *const c_char,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call(error, || {
        // SAFETY: the caller promises text.
        let folder = unsafe { path(folder)? };
        Db::destroy(folder, &windrow::Options::default())
    })
}

/// Runs a call of the database.
pub(super) fn with(
    database: Option<&Database>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
    work: impl FnOnce(&Db) -> Result<()>,
) -> i32 {
    call(error, || work(&given(database, "database")?.db))
}

/// Makes all writes so far durable: they survive a power failure.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_persist(
    database: Option<&Database>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    with(database, error, Db::persist)
}

/// Writes all memtables to tables and waits until they are durable.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_flush(
    database: Option<&Database>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    with(database, error, Db::flush)
}

/// Waits until no background work is due.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_wait_idle(
    database: Option<&Database>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    with(database, error, Db::wait_idle)
}

/// Makes a copy of the database in the folder `folder`, which is empty or missing. Files are linked where that is possible.
/// The copy has all writes so far and is durable when this returns.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_checkpoint(
    database: Option<&Database>,
    folder: *const c_char,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    with(database, error, |db| {
        // SAFETY: the caller promises text.
        db.checkpoint(unsafe { path(folder)? })
    })
}

/// Checks every block and every value. Returns the first damage as an error.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_verify(
    database: Option<&Database>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    with(database, error, |db| {
        let damage = db.verify()?.damage;
        damage.into_iter().next().map_or(Ok(()), Err)
    })
}

/// The statistics as a JSON object: counters since the open, memory, and the levels of each keyspace. Free them with
/// `windrow_text_free`.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_stats_json(
    database: Option<&Database>,
    json: Option<&mut MaybeUninit<*mut c_char>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    text_of(database, json, error, |db| {
        serde_json::to_string(&db.stats())
    })
}

/// The names of all keyspaces as a JSON array, sorted. Free it with `windrow_text_free`.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_keyspace_names_json(
    database: Option<&Database>,
    json: Option<&mut MaybeUninit<*mut c_char>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    text_of(database, json, error, |db| {
        serde_json::to_string(&db.keyspace_names())
    })
}

pub(super) fn text_of(
    database: Option<&Database>,
    result: Option<&mut MaybeUninit<*mut c_char>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
    write: impl FnOnce(&Db) -> serde_json::Result<String>,
) -> i32 {
    written(result, error, || {
        Ok(write(&given(database, "database")?.db))
    })
}

/// Opens the keyspace `name` with its recorded options, or creates it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_keyspace_open(
    database: Option<&Database>,
    name: *const c_char,
    keyspace: Option<&mut MaybeUninit<Option<Box<Keyspace>>>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call_for(keyspace, None, error, || {
        // SAFETY: the caller promises text.
        let name = unsafe { text(name, "name")? };
        let database = given(database, "database")?;
        Ok(Some(database.handle(database.db.keyspace(name)?)))
    })
}

/// Opens the keyspace `name` and sets its options, or creates it with them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_keyspace_open_with(
    database: Option<&Database>,
    name: *const c_char,
    options: Option<&KeyspaceOptions>,
    keyspace: Option<&mut MaybeUninit<Option<Box<Keyspace>>>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call_for(keyspace, None, error, || {
        // SAFETY: the caller promises text.
        let name = unsafe { text(name, "name")? };
        let options = given(options, "options")?.0.clone();
        let database = given(database, "database")?;
        Ok(Some(
            database.handle(database.db.keyspace_with(name, options)?),
        ))
    })
}

/// Opens the keyspace `name` if it exists; otherwise `*keyspace` is null, and that is no error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_keyspace_open_existing(
    database: Option<&Database>,
    name: *const c_char,
    keyspace: Option<&mut MaybeUninit<Option<Box<Keyspace>>>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call_for(keyspace, None, error, || {
        // SAFETY: the caller promises text.
        let name = unsafe { text(name, "name")? };
        let database = given(database, "database")?;
        let opened = database.db.existing_keyspace(name)?;
        Ok(opened.map(|opened| database.handle(opened)))
    })
}

/// Drops the keyspace `name` with all its entries.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_keyspace_drop(
    database: Option<&Database>,
    name: *const c_char,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    with(database, error, |db| {
        // SAFETY: the caller promises text.
        db.drop_keyspace(unsafe { text(name, "name")? })
    })
}

/// Exchanges the names of two keyspaces in one step.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_keyspaces_swap(
    database: Option<&Database>,
    first: *const c_char,
    second: *const c_char,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    with(database, error, |db| {
        // SAFETY: the caller promises text.
        let first = unsafe { text(first, "first name")? };
        // SAFETY: the same.
        let second = unsafe { text(second, "second name")? };
        db.swap_keyspaces(first, second)
    })
}

/// Keeps the present state of all keyspaces readable.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_snapshot_new(
    database: Option<&Database>,
    snapshot: Option<&mut MaybeUninit<Option<Box<Snapshot>>>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call_for(snapshot, None, error, || {
        let taken = given(database, "database")?.db.snapshot();
        Ok(Some(give(Snapshot(taken))))
    })
}
