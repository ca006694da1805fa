//! Backups in a folder.

use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::time::Duration;

use serde_json::json;
use windrow::Result;
use windrow::backup::{ListedBackup, Purge};
use windrow_ffi::backups::{created_milliseconds, number_or_newest};
use windrow_ffi::handles::{give, take};
use windrow_ffi::{allocate, given, path};

use super::calls::{call, call_for, guard};
use super::databases::Database;
use super::errors::{Error, code_of};

/// Backups of a database in a folder. Any thread may use it; one call at a time works, and others wait. It has the folder
/// to itself until it is freed, or together with others that read only.
#[derive(Debug)]
pub struct Backups(windrow::backup::Backups);

impl Backups {
    pub(super) fn given(backups: Option<&Self>) -> Result<&windrow::backup::Backups> {
        Ok(&given(backups, "backups")?.0)
    }
}

/// The newest backup, for functions that take the number of a backup.
pub const WINDROW_BACKUP_NEWEST: u64 = 0;

/// `number`, or that of the newest backup.
fn numbered(backups: &windrow::backup::Backups, number: u64) -> Result<u64> {
    let number = (number != WINDROW_BACKUP_NEWEST).then_some(number);
    number_or_newest(backups, number)
}

/// Opens the folder `folder` of backups, or creates it. Its calls read at most `bytes_per_second`; 0 is no bound.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_backups_open(
    folder: *const c_char,
    bytes_per_second: u64,
    backups: Option<&mut MaybeUninit<Option<Box<Backups>>>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call_for(backups, None, error, || {
        // SAFETY: the caller promises text.
        let opened = windrow::backup::Backups::open(unsafe { path(folder)? })?;
        Ok(Some(give(Backups(opened.with_rate(bytes_per_second)))))
    })
}

/// As `windrow_backups_open`, to list, verify and restore backups of a folder that exists.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_backups_open_read_only(
    folder: *const c_char,
    bytes_per_second: u64,
    backups: Option<&mut MaybeUninit<Option<Box<Backups>>>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call_for(backups, None, error, || {
        // SAFETY: the caller promises text.
        let opened = windrow::backup::Backups::open_read_only(unsafe { path(folder)? })?;
        Ok(Some(give(Backups(opened.with_rate(bytes_per_second)))))
    })
}

/// Frees the handle and unlocks the folder. Null is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_backups_free(backups: Option<Box<Backups>>) {
    guard((), || drop(take(backups)));
}

/// Makes a backup of the database as of one moment during the call, with all writes that were acknowledged before. It copies
/// what the folder does not have yet. It is durable when this returns; after an error it does not exist. `*number` is its
/// number.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_backup(
    database: Option<&Database>,
    backups: Option<&Backups>,
    number: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call_for(number, 0, error, || {
        let db = &given(database, "database")?.db;
        Ok(db.backup(Backups::given(backups)?)?.number)
    })
}

/// The backups as a JSON array, oldest first. Each is an object with its `number`, and with `created` (milliseconds since
/// 1970), `sequence`, `files`, `bytes` and `own_bytes` (those that no other backup needs), or with the `code` and the
/// sentence of an `error` if it cannot be used. Free the text with `windrow_text_free`.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_backups_list_json(
    backups: Option<&Backups>,
    json: Option<&mut MaybeUninit<*mut c_char>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    // Nobody would free text for which there is no result.
    let is_wanted = json.is_some();
    call_for(json, null_mut(), error, || {
        let listed = Backups::given(backups)?.list()?;
        if !is_wanted {
            return Ok(null_mut());
        }
        let listed: Vec<_> = listed.iter().map(object).collect();
        allocate(json!(listed).to_string().as_bytes())
    })
}

fn object(listed: &ListedBackup) -> serde_json::Value {
    match &listed.backup {
        Ok(info) => json!({
            "number": listed.number,
            "created": created_milliseconds(info),
            "sequence": info.sequence,
            "files": info.files,
            "bytes": info.bytes,
            "own_bytes": info.own_bytes,
        }),
        Err(error) => json!({
            "number": listed.number,
            "code": code_of(error.kind()),
            "error": error.to_string(),
        }),
    }
}

/// Reads all bytes of all backups and compares them with their checksums. Returns the first damage as an error.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_backups_verify(
    backups: Option<&Backups>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call(error, || {
        let damage = Backups::given(backups)?.verify(None)?.damage;
        let first = damage.into_iter().next();
        first.map_or(Ok(()), |first| Err(first.error))
    })
}

/// Writes the database of the backup `number`, or of `WINDROW_BACKUP_NEWEST`, to the folder `folder`, which is empty or
/// missing. All bytes are checked on the way, and the database is durable when this returns. After an error there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_backups_restore(
    backups: Option<&Backups>,
    number: u64,
    folder: *const c_char,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call(error, || {
        // SAFETY: the caller promises text.
        let folder = unsafe { path(folder)? };
        let backups = Backups::given(backups)?;
        backups.restore(numbered(backups, number)?, folder)
    })
}

/// Removes backups by `purge`. The result is their number.
fn purge(
    backups: Option<&Backups>,
    purge: Purge,
    count: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call_for(count, 0, error, || {
        let removed = Backups::given(backups)?.purge(purge)?;
        Ok(removed.backups.len() as u64)
    })
}

/// Removes all backups but the `kept` newest ones, at least 1, and the bytes that no other backup needs. `*count` is how many
/// were removed.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_backups_keep_newest(
    backups: Option<&Backups>,
    kept: usize,
    count: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    purge(backups, Purge::KeepNewest(kept), count, error)
}

/// Removes the backups that were made longer ago than `milliseconds`, except the newest one. `*count` is how many were
/// removed.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_backups_remove_older(
    backups: Option<&Backups>,
    milliseconds: u64,
    count: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    let age = Duration::from_millis(milliseconds);
    purge(backups, Purge::OlderThan(age), count, error)
}

/// Removes the backup `number`, or `WINDROW_BACKUP_NEWEST`, whatever its state.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_backups_remove(
    backups: Option<&Backups>,
    number: u64,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call(error, || {
        let backups = Backups::given(backups)?;
        let number = numbered(backups, number)?;
        backups.purge(Purge::Backup(number)).map(drop)
    })
}
