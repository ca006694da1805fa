//! Batches: writes that become visible and durable together.

use std::mem::MaybeUninit;

use windrow::Result;
use windrow_ffi::given;

use super::bytes::{Bytes, Range};
use super::calls::{call, guard};
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
    Box::new(Batch(windrow::Batch::new()))
}

/// Frees a batch. Null is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_batch_free(batch: Option<Box<Batch>>) {
    guard((), || drop(batch));
}

/// Removes all writes of the batch, and keeps its memory.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_batch_clear(batch: Option<&mut Batch>) {
    guard((), || {
        if let Some(batch) = batch {
            batch.0.clear();
        }
    });
}

/// The number of writes; 0 for null.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_batch_count(batch: Option<&Batch>) -> usize {
    batch.map_or(0, |batch| batch.0.len())
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
