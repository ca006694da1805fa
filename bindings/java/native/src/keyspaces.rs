//! The methods that write to a keyspace, and those that are about one.
//!
//! Concurrency: any thread. The engine orders the writes.

use jni::objects::JByteArray;
use jni::sys::jlong;
use serde_json::to_vec;
use windrow::{Error, ErrorKind, Keyspace, Result, Snapshot, View};

use crate::arguments::{Bytes, Keys, Scratch, durability, time_to_live};
use crate::handles::method;
use crate::handles::{Handle, give, part};

// The address of what readers have of the keyspace. It is a part of it, and no handle of its own.
method!(Java_io_windrow_Native_viewOf, _env, keyspace: Handle<Keyspace>; jlong, {
    Ok(part::<View>(&keyspace))
});

method!(Java_io_windrow_Native_viewAt, _env, keyspace: Handle<Keyspace>, snapshot: Handle<Snapshot>; jlong, {
    Ok(give::<View>(keyspace.at(&snapshot)?))
});

fn put(keyspace: &Keyspace, key: &[u8], value: &[u8], ttl: i64, number: i32) -> Result<()> {
    match (durability(number)?, time_to_live(ttl)?) {
        (None, None) => keyspace.insert(key, value),
        (Some(durability), None) => keyspace.insert_with(key, value, durability),
        (None, Some(ttl)) => keyspace.insert_with_ttl(key, value, ttl),
        (Some(durability), Some(ttl)) => keyspace.with_ttl(ttl).insert_with(key, value, durability),
    }
}

method!(Java_io_windrow_Native_put, env, keyspace: Handle<Keyspace>, key: JByteArray<'local>, value: JByteArray<'local>, ttl: jlong, durability: i32; (), {
    let (key, value) = (Bytes::new(env, &key)?, Bytes::new(env, &value)?);
    Ok(put(&keyspace, &key, &value, ttl, durability)?)
});

// Here and below: the key, and what belongs to it behind it, are in the scratch.
method!(Java_io_windrow_Native_putAt, _env, keyspace: Handle<Keyspace>, scratch: Scratch, key: i32, value: i32, durability: i32; (), {
    let (key, value) = scratch.pair(key, value)?;
    Ok(put(&keyspace, key, value, -1, durability)?)
});

fn delete(keyspace: &Keyspace, key: &[u8], number: i32) -> Result<()> {
    match durability(number)? {
        None => keyspace.remove(key),
        Some(durability) => keyspace.remove_with(key, durability),
    }
}

method!(Java_io_windrow_Native_delete, env, keyspace: Handle<Keyspace>, key: JByteArray<'local>, durability: i32; (), {
    Ok(delete(&keyspace, &Bytes::new(env, &key)?, durability)?)
});

method!(Java_io_windrow_Native_deleteAt, _env, keyspace: Handle<Keyspace>, scratch: Scratch, key: i32, durability: i32; (), {
    Ok(delete(&keyspace, scratch.bytes(0, key)?, durability)?)
});

method!(Java_io_windrow_Native_merge, env, keyspace: Handle<Keyspace>, key: JByteArray<'local>, operand: JByteArray<'local>; (), {
    Ok(keyspace.merge(&*Bytes::new(env, &key)?, &*Bytes::new(env, &operand)?)?)
});

method!(Java_io_windrow_Native_mergeAt, _env, keyspace: Handle<Keyspace>, scratch: Scratch, key: i32, operand: i32; (), {
    let (key, operand) = scratch.pair(key, operand)?;
    Ok(keyspace.merge(key, operand)?)
});

method!(Java_io_windrow_Native_deleteRange, env, keyspace: Handle<Keyspace>, start: JByteArray<'local>, end: JByteArray<'local>; (), {
    let keys = Keys::new(env, &start, &end)?;
    Ok(keyspace.delete_range::<&[u8]>(keys.bounds())?)
});

// Null stands for no value.
method!(Java_io_windrow_Native_compareAndSwap, env, keyspace: Handle<Keyspace>, key: JByteArray<'local>, expected: JByteArray<'local>, new: JByteArray<'local>; bool, {
    let key = Bytes::new(env, &key)?;
    let expected = Bytes::optional(env, &expected)?;
    let new = Bytes::optional(env, &new)?;
    Ok(keyspace.compare_and_swap(&*key, expected.as_deref(), new.as_deref())?)
});

method!(Java_io_windrow_Native_take, env, keyspace: Handle<Keyspace>, key: JByteArray<'local>; JByteArray<'local>, {
    let taken = keyspace.fetch_remove(&*Bytes::new(env, &key)?)?;
    Ok(match taken {
        Some(value) => env.byte_array_from_slice(&value)?,
        None => JByteArray::default(),
    })
});

method!(Java_io_windrow_Native_keyspaceName, env, keyspace: Handle<Keyspace>; JByteArray<'local>, {
    Ok(env.byte_array_from_slice(keyspace.name().as_bytes())?)
});

method!(Java_io_windrow_Native_rename, env, keyspace: Handle<Keyspace>, name: JByteArray<'local>; (), {
    Ok(keyspace.rename(Bytes::new(env, &name)?.text()?)?)
});

// The options, as JSON.
method!(Java_io_windrow_Native_keyspaceOptions, env, keyspace: Handle<Keyspace>; JByteArray<'local>, {
    let json = to_vec(&keyspace.options());
    let json = json.map_err(|error| Error::new(ErrorKind::Io, error.to_string()))?;
    Ok(env.byte_array_from_slice(&json)?)
});

method!(Java_io_windrow_Native_compact, env, keyspace: Handle<Keyspace>, start: JByteArray<'local>, end: JByteArray<'local>; (), {
    let keys = Keys::new(env, &start, &end)?;
    Ok(keyspace.compact_range::<&[u8]>(keys.bounds())?)
});

// About how many keys the range has, or bytes of files.
method!(Java_io_windrow_Native_estimate, env, keyspace: Handle<Keyspace>, start: JByteArray<'local>, end: JByteArray<'local>, bytes: bool; jlong, {
    let keys = Keys::new(env, &start, &end)?;
    let estimate = if bytes {
        keyspace.approximate_size::<&[u8]>(keys.bounds())
    } else {
        keyspace.approximate_len::<&[u8]>(keys.bounds())
    };
    Ok(jlong::try_from(estimate?).unwrap_or(jlong::MAX))
});
