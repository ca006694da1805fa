//! The methods that read a keyspace, now or at a snapshot.
//!
//! Concurrency: any thread.

use std::time::SystemTime;

use jni::objects::JByteArray;
use jni::sys::jlong;
use windrow::{Error, Expiry, View};

use crate::arguments::{Bytes, Keys, Scratch};
use crate::handles::Handle;
use crate::handles::method;
use crate::packed;
use crate::packed::{Reader, push};

/// What a method returns for a key that does not exist.
pub(crate) const MISSING: i32 = -1;

method!(Java_io_windrow_Native_get, env, view: Handle<View>, key: JByteArray<'local>; JByteArray<'local>, {
    let key = Bytes::new(env, &key)?;
    let Some(value) = view.get_pinned(&*key)? else {
        return Ok(JByteArray::default());
    };
    Ok(env.byte_array_from_slice(&value)?)
});

// The key is in the scratch, and the value comes there if it has the space. Returns the value's length.
method!(Java_io_windrow_Native_getAt, _env, view: Handle<View>, scratch: Scratch, key: i32, space: i32; i32, {
    let value = view.get_pinned(scratch.bytes(0, key)?)?;
    Ok(value.map_or(Ok(MISSING), |value| scratch.fill(&value, space))?)
});

method!(Java_io_windrow_Native_contains, env, view: Handle<View>, key: JByteArray<'local>; bool, {
    Ok(view.contains_key(&*Bytes::new(env, &key)?)?)
});

method!(Java_io_windrow_Native_containsAt, _env, view: Handle<View>, scratch: Scratch, key: i32; bool, {
    Ok(view.contains_key(scratch.bytes(0, key)?)?)
});

// Milliseconds since 1970; -1 for a missing key, the greatest number for never.
method!(Java_io_windrow_Native_expiresAt, env, view: Handle<View>, key: JByteArray<'local>; jlong, {
    Ok(milliseconds(view.expires_at(&*Bytes::new(env, &key)?)?))
});

pub(crate) fn milliseconds(expiry: Option<Expiry>) -> jlong {
    match expiry {
        None => jlong::from(MISSING),
        Some(Expiry::At(time)) => {
            let since_1970 = time
                .duration_since(SystemTime::UNIX_EPOCH)
                .unwrap_or_default();
            jlong::try_from(since_1970.as_millis()).unwrap_or(jlong::MAX)
        }
        Some(_) => jlong::MAX,
    }
}

// Keys behind their lengths; values in the same form, with the length -1 for a missing key.
method!(Java_io_windrow_Native_multiGet, env, view: Handle<View>, keys: JByteArray<'local>; JByteArray<'local>, {
    let packed = Bytes::new(env, &keys)?;
    let mut from = Reader::new(&packed);
    let mut keys = Vec::new();
    while !from.is_empty() {
        keys.push(from.bytes()?);
    }
    let mut values = Vec::new();
    for value in view.multi_get(&keys)? {
        match value {
            Some(value) => push(&mut values, &value)?,
            None => values.extend_from_slice(&MISSING.to_le_bytes()),
        }
    }
    if i32::try_from(values.len()).is_err() {
        return Err(packed::too_long().into());
    }
    Ok(env.byte_array_from_slice(&values)?)
});

method!(Java_io_windrow_Native_count, env, view: Handle<View>, start: JByteArray<'local>, end: JByteArray<'local>; jlong, {
    let keys = Keys::new(env, &start, &end)?;
    let count = view.count::<&[u8]>(keys.bounds())?;
    Ok(jlong::try_from(count).map_err(|_| Error::invalid_argument("the count is too large"))?)
});
