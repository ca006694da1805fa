//! Many entries at once: bulk loads, table files, and their ingestion.

use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;

use windrow::{Error as WindrowError, Result};
use windrow_ffi::handles::{give, take};
use windrow_ffi::{given, not_null, path};

use super::bytes::{Bytes, elements};
use super::calls::{call, call_for, guard};
use super::databases::Database;
use super::errors::Error;
use super::keyspaces::Keyspace;
use super::options::Options;

/// The source has set an entry.
pub const WINDROW_SOURCE_ENTRY: i32 = 0;
/// The source has no more entries.
pub const WINDROW_SOURCE_END: i32 = 1;

/// A source of entries. It sets `*key` and `*value` and returns `WINDROW_SOURCE_ENTRY`, or returns `WINDROW_SOURCE_END`. Any
/// other number ends the load with an error: nothing is loaded. The bytes stay valid until its next call. It must not
/// throw, close the database, or wait for its background work: `windrow_wait_idle` and `windrow_close` are errors in it.
pub type Source =
    Option<unsafe extern "C" fn(state: *mut c_void, key: *mut Bytes, value: *mut Bytes) -> i32>;

/// The entries of a source.
struct Entries {
    source: unsafe extern "C" fn(*mut c_void, *mut Bytes, *mut Bytes) -> i32,
    state: *mut c_void,
}

impl Entries {
    fn new(source: Source, state: *mut c_void) -> Result<Self> {
        let source = not_null(source, "source")?;
        Ok(Self { source, state })
    }
}

/// Keys and values are copied: the borrow of an iterator could not end at its next call.
impl Iterator for Entries {
    type Item = Result<(Vec<u8>, Vec<u8>)>;

    fn next(&mut self) -> Option<Self::Item> {
        let (mut key, mut value) = (Bytes::NONE, Bytes::NONE);
        // SAFETY: the caller has passed state and function together.
        match unsafe { (self.source)(self.state, &raw mut key, &raw mut value) } {
            WINDROW_SOURCE_ENTRY => {}
            WINDROW_SOURCE_END => return None,
            code => {
                let message = format!("the source of the entries returned {code}");
                return Some(Err(WindrowError::invalid_argument(message)));
            }
        }
        // SAFETY: the caller promises the bytes until the next call.
        let key = unsafe { key.get() };
        // SAFETY: the same.
        let value = unsafe { value.get() };
        Some(key.and_then(|key| Ok((key.to_vec(), value?.to_vec()))))
    }
}

/// Loads entries whose keys come in strictly ascending order, as one commit that is durable when this returns. `*count` is
/// their number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_bulk_load(
    keyspace: Option<&Keyspace>,
    source: Source,
    state: *mut c_void,
    count: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call_for(count, 0, error, || {
        let entries = Entries::new(source, state)?;
        Keyspace::given(keyspace)?.try_bulk_load(entries)
    })
}

/// As `windrow_bulk_load`, for entries in any order: they are sorted on disk, with `memory` bytes of memory. Of entries with
/// one key the last counts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_bulk_load_unsorted(
    keyspace: Option<&Keyspace>,
    source: Source,
    state: *mut c_void,
    memory: usize,
    count: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call_for(count, 0, error, || {
        let entries = Entries::new(source, state)?;
        Keyspace::given(keyspace)?.try_bulk_load_unsorted(entries, memory, |_| {})
    })
}

/// Writes a table file that `windrow_ingest` adds to a database later. One thread at a time uses it.
#[derive(Debug)]
pub struct TableWriter(windrow::TableWriter);

/// Creates the table file `file`, which does not exist. Null options are the defaults; those of keyspaces count.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_table_writer_create(
    file: *const c_char,
    options: Option<&Options>,
    writer: Option<&mut MaybeUninit<Option<Box<TableWriter>>>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call_for(writer, None, error, || {
        // SAFETY: the caller promises text.
        let file = unsafe { path(file)? };
        let writer = windrow::TableWriter::create(file, &Options::given(options))?;
        Ok(Some(give(TableWriter(writer))))
    })
}

/// Sets the value of `key`, which is above all keys so far. A value has at most 1 MiB.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_table_writer_put(
    writer: Option<&mut TableWriter>,
    key: Bytes,
    value: Bytes,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call(error, || {
        // SAFETY: the caller promises the bytes.
        let key = unsafe { key.get()? };
        // SAFETY: the same.
        let value = unsafe { value.get()? };
        given(writer, "writer")?.0.insert(key, value)
    })
}

/// Removes `key`, which is above all keys so far, from the keyspace that takes the file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_table_writer_delete(
    writer: Option<&mut TableWriter>,
    key: Bytes,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call(error, || {
        // SAFETY: the caller promises the bytes.
        let key = unsafe { key.get()? };
        given(writer, "writer")?.0.remove(key)
    })
}

/// Completes the file and frees the writer, also after an error: then the file is removed. `*count` is the number of its
/// entries.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_table_writer_finish(
    writer: Option<Box<TableWriter>>,
    count: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call_for(count, 0, error, || {
        Ok(not_null(take(writer), "writer")?.0.finish()?.entries)
    })
}

/// Removes the file and frees the writer. Null is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_table_writer_free(writer: Option<Box<TableWriter>>) {
    guard((), || drop(take(writer)));
}

/// Adds `count` table files, each to the keyspace at its position: all of them in one step, or none. It is durable when this
/// returns. `*entries` is the number of their entries.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_ingest(
    database: Option<&Database>,
    keyspaces: *const Option<&Keyspace>,
    files: *const *const c_char,
    count: usize,
    entries: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call_for(entries, 0, error, || {
        let database = given(database, "database")?;
        // SAFETY: the caller promises `count` handles.
        let keyspaces = unsafe { elements(keyspaces, count)? };
        // SAFETY: the caller promises `count` paths.
        let files = unsafe { elements(files, count)? };
        let pairs = keyspaces.iter().zip(files).map(|(keyspace, file)| {
            // SAFETY: the caller promises text.
            let file = unsafe { path(*file)? };
            Ok((Keyspace::given(*keyspace)?, file))
        });
        database.db.ingest(pairs.collect::<Result<Vec<_>>>()?)
    })
}
