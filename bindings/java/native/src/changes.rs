//! The change feed and its consumers. A change crosses the border as one array.
//!
//! Concurrency: a lock for each feed; consumers are used by any thread.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use jni::objects::JByteArray;
use jni::sys::jlong;
use windrow::{BatchWrite, Change, ChangeBatch, Changes, Consumer, Db, Error, Result};

use crate::arguments::Bytes;
use crate::handles::{Handle, give, method};
use crate::packed::{push, texts};

/// A feed for any thread.
pub(crate) struct SharedChanges(Mutex<Changes>);

impl SharedChanges {
    fn give(changes: Changes) -> jlong {
        give(Self(Mutex::new(changes)))
    }

    fn lock(&self) -> MutexGuard<'_, Changes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A change as the class `Change` reads it: its kind, its number, and what it has.
fn packed(change: &Change) -> Result<Vec<u8>> {
    let mut array = Vec::new();
    let kind = match change {
        Change::Batch(_) => 0,
        Change::KeyspaceCreated { .. } => 1,
        Change::KeyspaceDropped { .. } => 2,
        Change::KeyspaceRenamed { .. } => 3,
        Change::TablesAdded { .. } => 4,
        _ => {
            return Err(Error::invalid_argument(
                "this package does not know the change",
            ));
        }
    };
    array.push(kind);
    array.extend_from_slice(&change.sequence().to_le_bytes());
    match change {
        Change::Batch(batch) => push_batch(&mut array, batch)?,
        Change::KeyspaceCreated { name, .. } | Change::KeyspaceDropped { name, .. } => {
            push(&mut array, name.as_bytes())?;
        }
        Change::KeyspaceRenamed { from, to, .. } => {
            push(&mut array, from.as_bytes())?;
            push(&mut array, to.as_bytes())?;
        }
        Change::TablesAdded { keyspaces, .. } => array.extend(texts(keyspaces)?),
        _ => {}
    }
    Ok(array)
}

/// The number of the first write, the names of the keyspaces behind the length of them all, and the writes.
fn push_batch(array: &mut Vec<u8>, batch: &ChangeBatch) -> Result<()> {
    array.extend_from_slice(&batch.first().to_le_bytes());
    let mut names: Vec<Arc<str>> = Vec::new();
    let mut writes = Vec::new();
    for entry in batch {
        let known = names.iter().rposition(|name| *name == entry.keyspace);
        let place = known.unwrap_or_else(|| {
            names.push(Arc::clone(&entry.keyspace));
            names.len() - 1
        });
        push_write(&mut writes, place, entry.key, entry.write)?;
    }
    push(array, &texts(names)?)?;
    array.append(&mut writes);
    Ok(())
}

fn push_write(array: &mut Vec<u8>, place: usize, key: &[u8], write: BatchWrite<'_>) -> Result<()> {
    let kind = match write {
        BatchWrite::Insert(_) => 0,
        BatchWrite::InsertUntil(..) => 1,
        BatchWrite::Remove => 2,
        BatchWrite::Merge(_) => 3,
        BatchWrite::DeleteRange(Some(_)) => 4,
        BatchWrite::DeleteRange(None) => 5,
        _ => {
            return Err(Error::invalid_argument(
                "this package does not know the write",
            ));
        }
    };
    array.push(kind);
    let place = u32::try_from(place).unwrap_or(u32::MAX);
    array.extend_from_slice(&place.to_le_bytes());
    push(array, key)?;
    match write {
        BatchWrite::Insert(bytes) | BatchWrite::Merge(bytes) => push(array, bytes),
        BatchWrite::DeleteRange(Some(end)) => push(array, end),
        BatchWrite::InsertUntil(value, time) => {
            push(array, value)?;
            let milliseconds = time
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default()
                .as_millis();
            let milliseconds = jlong::try_from(milliseconds).unwrap_or(jlong::MAX);
            array.extend_from_slice(&milliseconds.to_le_bytes());
            Ok(())
        }
        _ => Ok(()),
    }
}

method!(Java_io_windrow_Native_changes, _env, db: Handle<Db>, from: jlong; jlong, {
    let from = u64::try_from(from).map_err(|_| Error::invalid_argument("a sequence number is not negative"))?;
    Ok(SharedChanges::give(db.changes(from)?))
});

// Waits for a change for so many milliseconds. Null if there was none.
method!(Java_io_windrow_Native_nextChange, env, changes: Handle<SharedChanges>, milliseconds: jlong; JByteArray<'local>, {
    let timeout = Duration::from_millis(u64::try_from(milliseconds).unwrap_or(0));
    let change = changes.lock().next(timeout)?;
    Ok(match change {
        Some(change) => env.byte_array_from_slice(&packed(&change)?)?,
        None => JByteArray::default(),
    })
});

method!(Java_io_windrow_Native_position, _env, changes: Handle<SharedChanges>; jlong, {
    Ok(changes.lock().position().cast_signed())
});

method!(Java_io_windrow_Native_consumer, env, db: Handle<Db>, name: JByteArray<'local>; jlong, {
    Ok(give::<Consumer>(db.consumer(Bytes::new(env, &name)?.text()?)?))
});

// For each consumer: its name, its place, the bytes that it holds, and a byte, which is 1 if it has fallen behind.
method!(Java_io_windrow_Native_consumers, env, db: Handle<Db>; JByteArray<'local>, {
    let mut array = Vec::new();
    for consumer in db.consumers() {
        push(&mut array, consumer.name.as_bytes())?;
        array.extend_from_slice(&consumer.acknowledged.to_le_bytes());
        array.extend_from_slice(&consumer.held_bytes.to_le_bytes());
        array.push(consumer.is_behind.into());
    }
    Ok(env.byte_array_from_slice(&array)?)
});

method!(Java_io_windrow_Native_removeConsumer, env, db: Handle<Db>, name: JByteArray<'local>; (), {
    Ok(db.remove_consumer(Bytes::new(env, &name)?.text()?)?)
});

method!(Java_io_windrow_Native_changesOfConsumer, _env, consumer: Handle<Consumer>; jlong, {
    Ok(SharedChanges::give(consumer.changes()?))
});

method!(Java_io_windrow_Native_acknowledged, _env, consumer: Handle<Consumer>; jlong, {
    Ok(consumer.acknowledged()?.cast_signed())
});

method!(Java_io_windrow_Native_acknowledge, _env, consumer: Handle<Consumer>, sequence: jlong; (), {
    let sequence = u64::try_from(sequence).map_err(|_| Error::invalid_argument("a sequence number is not negative"))?;
    Ok(consumer.acknowledge(sequence)?)
});
