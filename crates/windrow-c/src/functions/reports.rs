//! What checks, repairs and single reads report, as JSON.

use std::ffi::c_char;
use std::mem::MaybeUninit;

use serde_json::{Value, json};
use windrow::{Db, Loss};
use windrow_ffi::{given, path};

use super::backups::Backups;
use super::bytes::Bytes;
use super::calls::written;
use super::databases::Database;
use super::errors::{Error, code_of};
use super::keyspaces::Keyspace;
use super::options::Options;
use super::snapshots::Snapshot;

/// Checks every block and every value, and reports all damage: a JSON object with `files`, `segments`, `blocks`, `entries`,
/// `unflushed_entries`, `bytes`, `values`, and `damage`, an array of objects with `code` and `error`. Free it with
/// `windrow_text_free`.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_verify_json(
    database: Option<&Database>,
    json: Option<&mut MaybeUninit<*mut c_char>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    written(json, error, || {
        let report = given(database, "database")?.db.verify()?;
        let damage: Vec<_> = report.damage.iter().map(damage_of).collect();
        Ok(Ok(json!({
            "files": report.files,
            "segments": report.segments,
            "blocks": report.blocks,
            "entries": report.entries,
            "unflushed_entries": report.unflushed_entries,
            "bytes": report.bytes,
            "values": report.values,
            "damage": damage,
        })
        .to_string()))
    })
}

fn damage_of(error: &windrow::Error) -> Value {
    json!({"code": code_of(error.kind()), "error": error.to_string()})
}

/// Reads all bytes of all backups, and reports all damage: a JSON object with `backups`, their numbers, `pieces`, `bytes`, and
/// `damage`, an array of objects with `backups`, `code` and `error`. Free it with `windrow_text_free`.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_backups_verify_json(
    backups: Option<&Backups>,
    json: Option<&mut MaybeUninit<*mut c_char>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    written(json, error, || {
        let check = Backups::given(backups)?.verify(None)?;
        let damage = check.damage.iter().map(|damage| {
            let mut object = damage_of(&damage.error);
            if let Some(object) = object.as_object_mut() {
                object.insert("backups".to_owned(), json!(damage.backups));
            }
            object
        });
        let damage: Vec<_> = damage.collect();
        Ok(Ok(json!({
            "backups": check.backups,
            "pieces": check.pieces,
            "bytes": check.bytes,
            "damage": damage,
        })
        .to_string()))
    })
}

/// Makes a new database in the folder `to`, which is empty or missing, of all that can be read in the folder `from`, which stays as
/// it is and which nobody has open. The options say the merge operators of its keyspaces. The report is a JSON object with
/// `manifest` ("whole", "part" or "missing"), `keyspaces`, an array of objects with `name` and `entries`, `tables`, `logs`,
/// `losses`, an array of sentences, and `losses_left_off`. Free it with `windrow_text_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_repair(
    from: *const c_char,
    to: *const c_char,
    options: Option<&Options>,
    json: Option<&mut MaybeUninit<*mut c_char>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    written(json, error, || {
        // SAFETY: the caller promises text.
        let from = unsafe { path(from)? };
        // SAFETY: the same.
        let to = unsafe { path(to)? };
        let report = Db::repair(from, to, &Options::given(options))?;
        let keyspaces = report.keyspaces.iter();
        let keyspaces = keyspaces.map(|it| json!({"name": it.name, "entries": it.entries}));
        let keyspaces: Vec<_> = keyspaces.collect();
        let losses: Vec<_> = report.losses.iter().map(Loss::to_string).collect();
        Ok(Ok(json!({
            "manifest": report.manifest.name(),
            "keyspaces": keyspaces,
            "tables": report.tables,
            "logs": report.logs,
            "losses": losses,
            "losses_left_off": report.losses_left_off,
        })
        .to_string()))
    })
}

/// How a get of `key` comes to its answer, in the newest state or in that of `snapshot`: a JSON object with `is_found`, the
/// sources that it asks in order (`steps`), and how long the same get takes afterwards (`again_nanos`). Free it with
/// `windrow_text_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_explain_get_json(
    keyspace: Option<&Keyspace>,
    snapshot: Option<&Snapshot>,
    key: Bytes,
    json: Option<&mut MaybeUninit<*mut c_char>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    written(json, error, || {
        // SAFETY: the caller promises the bytes.
        let key = unsafe { key.get()? };
        let explained = Keyspace::read(keyspace, snapshot, |view| view.explain_get(key))?;
        Ok(serde_json::to_string(&explained))
    })
}
