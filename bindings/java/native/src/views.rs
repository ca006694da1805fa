//! The methods that read a keyspace, now or at a snapshot.
//!
//! Concurrency: any thread.

use std::time::SystemTime;

use jni::objects::{JByteArray, JByteBuffer};
use jni::sys::jlong;
use windrow::{Error, Expiry, View};

use crate::arguments::{Bytes, Keys, fill, region};
use crate::handles::Handle;
use crate::handles::method;
use crate::packed;
use crate::packed::{Reader, push};

/// What a method returns for a key that does not exist.
const MISSING: i32 = -1;

method!(Java_io_windrow_Native_get, env, view: Handle<View>, key: JByteArray<'local>; JByteArray<'local>, {
    let key = Bytes::new(env, &key)?;
    let Some(value) = view.get_pinned(&*key)? else {
        return Ok(JByteArray::default());
    };
    Ok(env.byte_array_from_slice(&value)?)
});

// Copies the value to a direct buffer if it has the space, and returns the value's length.
method!(Java_io_windrow_Native_getDirect, env, view: Handle<View>, key: JByteBuffer<'local>, key_start: i32, key_length: i32, target: JByteBuffer<'local>, target_start: i32, target_length: i32; i32, {
    let key = Bytes::of_buffer(env, &key, key_start, key_length)?;
    let (_, space) = region(env, &target, target_start, target_length)?;
    let Some(value) = view.get_pinned(&*key)? else {
        return Ok(MISSING);
    };
    if value.len() <= space {
        fill(env, &target, target_start, &value)?;
    }
    Ok(i32::try_from(value.len()).map_err(|_| packed::too_long())?)
});

method!(Java_io_windrow_Native_contains, env, view: Handle<View>, key: JByteArray<'local>; bool, {
    Ok(view.contains_key(&*Bytes::new(env, &key)?)?)
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
