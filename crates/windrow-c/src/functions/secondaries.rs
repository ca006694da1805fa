//! Reads of a database that another process writes.

use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::time::Duration;

use windrow::{Db, Durability, Result};
use windrow_ffi::handles::{give, take};
use windrow_ffi::{given, path};

use super::calls::{call, call_for, guard};
use super::databases::Database;
use super::errors::Error;
use super::options::Options;

/// A reader of a database that this or another process may have open for writing. Any thread may use it. It keeps the files
/// that its states need in the folder until it and they are freed.
#[derive(Debug)]
pub struct Secondary {
    secondary: windrow::Secondary,
    durability: Durability,
}

/// Passes a state of `secondary` on as a database.
fn state(
    secondary: Option<&Secondary>,
    database: Option<&mut MaybeUninit<Option<Box<Database>>>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
    state: impl FnOnce(&windrow::Secondary) -> Result<Db>,
) -> i32 {
    call_for(database, None, error, || {
        let secondary = given(secondary, "secondary")?;
        Ok(Some(give(Database {
            db: state(&secondary.secondary)?,
            durability: secondary.durability,
        })))
    })
}

/// Opens the database in the folder `folder` for reading, also while a process has it open for writing. This process must be
/// allowed to write to the folder, because a file there says what it reads. Null options are the defaults.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_open_secondary(
    folder: *const c_char,
    options: Option<&Options>,
    secondary: Option<&mut MaybeUninit<Option<Box<Secondary>>>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call_for(secondary, None, error, || {
        // SAFETY: the caller promises text.
        let folder = unsafe { path(folder)? };
        let options = Options::given(options);
        let durability = options.durability;
        Ok(Some(give(Secondary {
            secondary: Db::open_secondary(folder, options)?,
            durability,
        })))
    })
}

/// The newest state that was read, as a database that is open for reading. It does not change. Free it with
/// `windrow_database_free`: `windrow_close` would close the state for all who have it.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_secondary_database(
    secondary: Option<&Secondary>,
    database: Option<&mut MaybeUninit<Option<Box<Database>>>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    state(secondary, database, error, |secondary| Ok(secondary.db()))
}

/// Reads what was committed since. `*database` is the newest state, as that of `windrow_secondary_database`. It has every
/// commit that was acknowledged before this call. After `WINDROW_FELL_BEHIND` (this process was stopped for too long) the next
/// call begins anew.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_secondary_catch_up(
    secondary: Option<&Secondary>,
    database: Option<&mut MaybeUninit<Option<Box<Database>>>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    state(secondary, database, error, windrow::Secondary::catch_up)
}

/// Catches up by itself after each `interval` milliseconds, on a thread, until the secondary is freed. What fails there is
/// tried again. A second call changes the interval.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_secondary_follow(
    secondary: Option<&Secondary>,
    interval: u64,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call(error, || {
        let interval = Duration::from_millis(interval);
        given(secondary, "secondary")?.secondary.follow(interval)
    })
}

/// Frees the secondary. Its states stay open until they are freed. Null is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_secondary_free(secondary: Option<Box<Secondary>>) {
    guard((), || drop(take(secondary)));
}
