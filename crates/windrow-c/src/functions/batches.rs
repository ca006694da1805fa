//! Batches: writes that become visible and durable together.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::time::Duration;

use windrow::{BatchEntries, BatchWrite, Error as WindrowError, ErrorKind, Expiry, Result};
use windrow_ffi::handles::{check, give, take};
use windrow_ffi::{given, not_null};

use super::bytes::{Bytes, Holder, Range, Value, expiry_of};
use super::calls::{call, call_for, guard};
use super::databases::Database;
use super::errors::Error;
use super::keyspaces::Keyspace;
use super::options::durability;

/// Writes to any keyspaces of one database. One thread at a time uses a batch.
#[derive(Debug)]
pub struct Batch(windrow::Batch);

/// An empty batch.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_batch_new() -> Box<Batch> {
    give(Batch(windrow::Batch::new()))
}

/// Frees a batch. Null is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_batch_free(batch: Option<Box<Batch>>) {
    guard((), || drop(take(batch)));
}

/// Removes all writes of the batch, and keeps its memory.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_batch_clear(batch: Option<&mut Batch>) {
    guard((), || {
        if let Some(batch) = check(batch) {
            batch.0.clear();
        }
    });
}

/// The number of writes; 0 for null.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_batch_count(batch: Option<&Batch>) -> usize {
    check(batch).map_or(0, |batch| batch.0.len())
}

/// Adds a write to a batch.
fn add(
    batch: Option<&mut Batch>,
    keyspace: Option<&Keyspace>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
    add: impl FnOnce(&mut windrow::Batch, &windrow::Keyspace) -> Result<()>,
) -> i32 {
    call(error, || {
        let keyspace = Keyspace::given(keyspace)?;
        add(&mut given(batch, "batch")?.0, keyspace)
    })
}

/// Adds a write that sets the value of `key`. The bytes are copied.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_batch_put(
    batch: Option<&mut Batch>,
    keyspace: Option<&Keyspace>,
    key: Bytes,
    value: Bytes,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    add(batch, keyspace, error, |batch, keyspace| {
        // SAFETY: the caller promises the bytes.
        let key = unsafe { key.get()? };
        // SAFETY: the same.
        let value = unsafe { value.get()? };
        batch.insert(keyspace, key, value)
    })
}

/// Adds a write that sets the value of `key` for `ttl` milliseconds from now on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_batch_put_with_ttl(
    batch: Option<&mut Batch>,
    keyspace: Option<&Keyspace>,
    key: Bytes,
    value: Bytes,
    ttl: u64,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    add(batch, keyspace, error, |batch, keyspace| {
        // SAFETY: the caller promises the bytes.
        let key = unsafe { key.get()? };
        // SAFETY: the same.
        let value = unsafe { value.get()? };
        batch.insert_with_ttl(keyspace, key, value, Duration::from_millis(ttl))
    })
}

/// Adds a write that removes `key`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_batch_delete(
    batch: Option<&mut Batch>,
    keyspace: Option<&Keyspace>,
    key: Bytes,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    add(batch, keyspace, error, |batch, keyspace| {
        // SAFETY: the caller promises the bytes.
        let key = unsafe { key.get()? };
        batch.remove(keyspace, key)
    })
}

/// Adds a write that removes all keys of a range: those of the keyspace, and those that the batch has set before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_batch_delete_range(
    batch: Option<&mut Batch>,
    keyspace: Option<&Keyspace>,
    range: Range,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    add(batch, keyspace, error, |batch, keyspace| {
        // SAFETY: the caller promises the bytes.
        let range = unsafe { range.get()? };
        batch.delete_range::<&[u8]>(keyspace, range)
    })
}

/// Adds a write of an operand, as `windrow_merge` does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_batch_merge(
    batch: Option<&mut Batch>,
    keyspace: Option<&Keyspace>,
    key: Bytes,
    operand: Bytes,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    add(batch, keyspace, error, |batch, keyspace| {
        // SAFETY: the caller promises the bytes.
        let key = unsafe { key.get()? };
        // SAFETY: the same.
        let operand = unsafe { operand.get()? };
        batch.merge(keyspace, key, operand)
    })
}

/// Writes the batch as one: a reader sees all of it or nothing, and so does an open after a crash. The batch is unchanged
/// and can be written again.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_batch_write(
    database: Option<&Database>,
    batch: Option<&Batch>,
    durability: u32,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call(error, || {
        let database = given(database, "database")?;
        let durability = self::durability(durability, database.durability)?;
        database
            .db
            .write_with(&given(batch, "batch")?.0, durability)
    })
}

/// The writes of the batch as bytes, for another process or a later time. They name the keyspaces. Free them with
/// `windrow_value_free`.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_batch_to_bytes(
    batch: Option<&Batch>,
    bytes: Option<&mut MaybeUninit<Option<Box<Value>>>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call_for(bytes, None, error, || {
        let bytes = given(batch, "batch")?.0.to_bytes()?;
        Ok(Some(give(Value(Holder::Copied(bytes)))))
    })
}

/// The batch that `windrow_batch_to_bytes` has made bytes of, perhaps for another database: this one needs keyspaces of the
/// same names.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_batch_from_bytes(
    database: Option<&Database>,
    bytes: Bytes,
    batch: Option<&mut MaybeUninit<Option<Box<Batch>>>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call_for(batch, None, error, || {
        // SAFETY: the caller promises the bytes.
        let bytes = unsafe { bytes.get()? };
        let batch = given(database, "database")?.db.batch_from_bytes(bytes)?;
        Ok(Some(give(Batch(batch))))
    })
}

/// The write sets the value.
pub const WINDROW_WRITE_PUT: u32 = 0;
/// The write removes the key.
pub const WINDROW_WRITE_DELETE: u32 = 1;
/// The write adds an operand, which is the value.
pub const WINDROW_WRITE_MERGE: u32 = 2;
/// The write removes the key and all keys behind it to before the value; all of them, if the value's `data` is null.
pub const WINDROW_WRITE_DELETE_RANGE: u32 = 3;

/// A write of a batch or of a change. What it points to is valid during the call.
#[repr(C)]
#[derive(Debug)]
pub struct Write {
    /// The name of the keyspace.
    pub keyspace: Bytes,
    /// One of `WINDROW_WRITE_...`.
    pub kind: u32,
    /// The key.
    pub key: Bytes,
    /// What `kind` says.
    pub value: Bytes,
    /// When a value expires: a time in milliseconds since the start of 1970, or `WINDROW_EXPIRY_NEVER`.
    pub expiry: u64,
}

/// Receives a write. Returns whether it wants the next one. It must not throw.
pub type Visitor = Option<unsafe extern "C" fn(state: *mut c_void, write: *const Write) -> bool>;

/// Passes the writes of the batch to `visitor`, in the order in which they were added. The visitor must not change the batch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_batch_visit(
    batch: Option<&Batch>,
    visitor: Visitor,
    state: *mut c_void,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call(error, || {
        let visitor = not_null(visitor, "visitor")?;
        let entries = given(batch, "batch")?.0.iter();
        // SAFETY: the caller has passed state and function together.
        unsafe { pass_writes(entries, visitor, state) }
    })
}

/// Passes writes to `visitor`, until it wants no more.
///
/// # Safety
/// The visitor may be called with the state.
pub(super) unsafe fn pass_writes(
    entries: BatchEntries<'_>,
    visitor: unsafe extern "C" fn(*mut c_void, *const Write) -> bool,
    state: *mut c_void,
) -> Result<()> {
    for entry in entries {
        let (kind, value, expiry) = match entry.write {
            BatchWrite::Insert(value) => (WINDROW_WRITE_PUT, Some(value), Expiry::Never),
            BatchWrite::InsertUntil(value, time) => {
                (WINDROW_WRITE_PUT, Some(value), Expiry::At(time))
            }
            BatchWrite::Remove => (WINDROW_WRITE_DELETE, None, Expiry::Never),
            BatchWrite::Merge(operand) => (WINDROW_WRITE_MERGE, Some(operand), Expiry::Never),
            BatchWrite::DeleteRange(end) => (WINDROW_WRITE_DELETE_RANGE, end, Expiry::Never),
            _ => {
                let message = "the batch has a write that this header does not know";
                return Err(WindrowError::new(ErrorKind::Unsupported, message));
            }
        };
        let write = Write {
            keyspace: Bytes::of(entry.keyspace.as_bytes()),
            kind,
            key: Bytes::of(entry.key),
            value: value.map_or(Bytes::NONE, Bytes::of),
            expiry: expiry_of(Some(expiry)),
        };
        // SAFETY: the caller promises it.
        if !unsafe { visitor(state, &raw const write) } {
            break;
        }
    }
    Ok(())
}
