//! Keyspaces: reads and writes of one key or range.

use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::time::Duration;

use windrow::{Durability, Result, View};
use windrow_ffi::handles::{check, give, take};
use windrow_ffi::{given, text};

use super::bytes::{
    Bytes, Holder, Range, Value, WINDROW_EXPIRY_ABSENT, elements, expiry_from, expiry_of, spaces,
};
use super::calls::{call, call_for, guard, written};
use super::errors::Error;
use super::options::durability;
use super::snapshots::Snapshot;

/// A keyspace of an open database. Any thread may use it.
#[derive(Debug)]
pub struct Keyspace {
    pub(super) keyspace: windrow::Keyspace,
    /// Of writes that name none.
    pub(super) durability: Durability,
}

impl Keyspace {
    /// The keyspace that a caller passes.
    pub(super) fn given(keyspace: Option<&Self>) -> Result<&windrow::Keyspace> {
        Ok(&given(keyspace, "keyspace")?.keyspace)
    }

    /// Runs `read` on the newest state, or on that of a snapshot.
    pub(super) fn read<R>(
        keyspace: Option<&Self>,
        snapshot: Option<&Snapshot>,
        read: impl FnOnce(&View) -> Result<R>,
    ) -> Result<R> {
        let keyspace = Self::given(keyspace)?;
        match check(snapshot) {
            None => read(keyspace),
            Some(snapshot) => read(&keyspace.at(&snapshot.0)?),
        }
    }
}

/// Frees the handle of a keyspace. Null is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_keyspace_free(keyspace: Option<Box<Keyspace>>) {
    guard((), || drop(take(keyspace)));
}

/// Gives the keyspace another name. All its handles go on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_keyspace_rename(
    keyspace: Option<&Keyspace>,
    name: *const c_char,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call(error, || {
        // SAFETY: the caller promises text.
        let name = unsafe { text(name, "name")? };
        Keyspace::given(keyspace)?.rename(name)
    })
}

/// The present name of the keyspace. Free it with `windrow_text_free`.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_keyspace_name(
    keyspace: Option<&Keyspace>,
    name: Option<&mut MaybeUninit<*mut c_char>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    written(name, error, || Ok(Ok(Keyspace::given(keyspace)?.name())))
}

/// The options of the keyspace as a JSON object. Free it with `windrow_text_free`.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_keyspace_options_json(
    keyspace: Option<&Keyspace>,
    json: Option<&mut MaybeUninit<*mut c_char>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    written(json, error, || {
        Ok(serde_json::to_string(&Keyspace::given(keyspace)?.options()))
    })
}

/// Sets the value of `key`. `durability` is one of `WINDROW_DURABILITY_...`, here and in all other writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_put(
    keyspace: Option<&Keyspace>,
    key: Bytes,
    value: Bytes,
    durability: u32,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    write(keyspace, durability, error, |keyspace, durability| {
        // SAFETY: the caller promises the bytes.
        let key = unsafe { key.get()? };
        // SAFETY: the same.
        let value = unsafe { value.get()? };
        keyspace.insert_with(key, value, durability)
    })
}

/// Sets the value of `key` for `ttl` milliseconds. From then on no read sees it, and a later compaction frees its space.
/// `windrow_put` writes what stays, or stays as long as the keyspace's default says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_put_with_ttl(
    keyspace: Option<&Keyspace>,
    key: Bytes,
    value: Bytes,
    ttl: u64,
    durability: u32,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    write(keyspace, durability, error, |keyspace, durability| {
        // SAFETY: the caller promises the bytes.
        let key = unsafe { key.get()? };
        // SAFETY: the same.
        let value = unsafe { value.get()? };
        let keyspace = keyspace.with_ttl(Duration::from_millis(ttl));
        keyspace.insert_with(key, value, durability)
    })
}

/// Sets the value of `key` until `expires_at`, milliseconds since 1970 or `WINDROW_EXPIRY_NEVER`, whatever the default of the
/// keyspace is: so an entry moves to another keyspace with its expiry. A time that is over is no error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_put_with_expiry(
    keyspace: Option<&Keyspace>,
    key: Bytes,
    value: Bytes,
    expires_at: u64,
    durability: u32,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    write(keyspace, durability, error, |keyspace, durability| {
        // SAFETY: the caller promises the bytes.
        let key = unsafe { key.get()? };
        // SAFETY: the same.
        let value = unsafe { value.get()? };
        let keyspace = keyspace.with_expiry(expiry_from(expires_at)?);
        keyspace.insert_with(key, value, durability)
    })
}

/// Removes `key`. The removal of a missing key is no error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_delete(
    keyspace: Option<&Keyspace>,
    key: Bytes,
    durability: u32,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    write(keyspace, durability, error, |keyspace, durability| {
        // SAFETY: the caller promises the bytes.
        let key = unsafe { key.get()? };
        keyspace.remove_with(key, durability)
    })
}

/// Removes all keys of a range, by one small write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_delete_range(
    keyspace: Option<&Keyspace>,
    range: Range,
    durability: u32,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    write(keyspace, durability, error, |keyspace, durability| {
        // SAFETY: the caller promises the bytes.
        let range = unsafe { range.get()? };
        keyspace.delete_range_with::<&[u8]>(range, durability)
    })
}

/// Writes an operand, which the keyspace's merge operator folds into the value of `key`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_merge(
    keyspace: Option<&Keyspace>,
    key: Bytes,
    operand: Bytes,
    durability: u32,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    write(keyspace, durability, error, |keyspace, durability| {
        // SAFETY: the caller promises the bytes.
        let key = unsafe { key.get()? };
        // SAFETY: the same.
        let operand = unsafe { operand.get()? };
        keyspace.merge_with(key, operand, durability)
    })
}

fn write(
    keyspace: Option<&Keyspace>,
    named: u32,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
    write: impl FnOnce(&windrow::Keyspace, Durability) -> Result<()>,
) -> i32 {
    call(error, || {
        let handle = given(keyspace, "keyspace")?;
        write(&handle.keyspace, durability(named, handle.durability)?)
    })
}

/// The value of `key` in the newest state, or in that of `snapshot` if it is not null. `*value` is null if the key does not
/// exist, and that is no error. Free the value with `windrow_value_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_get(
    keyspace: Option<&Keyspace>,
    snapshot: Option<&Snapshot>,
    key: Bytes,
    value: Option<&mut MaybeUninit<Option<Box<Value>>>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call_for(value, None, error, || {
        // SAFETY: the caller promises the bytes.
        let key = unsafe { key.get()? };
        let found = Keyspace::read(keyspace, snapshot, |view| view.get_pinned(key))?;
        Ok(found.map(|value| give(Value(Holder::Pinned(value)))))
    })
}

/// Whether `key` exists in the newest state, or in that of `snapshot` if it is not null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_contains(
    keyspace: Option<&Keyspace>,
    snapshot: Option<&Snapshot>,
    key: Bytes,
    contains: Option<&mut MaybeUninit<bool>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call_for(contains, false, error, || {
        // SAFETY: the caller promises the bytes.
        let key = unsafe { key.get()? };
        Keyspace::read(keyspace, snapshot, |view| view.contains_key(key))
    })
}

/// The values of `count` keys in one state: the newest one, or that of `snapshot` if it is not null. `values` points to space
/// for as many handles. Each becomes null if its key does not exist, and all do after an error. It reads the keys of cold
/// blocks at once, so it takes less time than as many gets. Free each value with `windrow_value_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_multi_get(
    keyspace: Option<&Keyspace>,
    snapshot: Option<&Snapshot>,
    keys: *const Bytes,
    values: *mut MaybeUninit<Option<Box<Value>>>,
    count: usize,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call(error, || {
        let read = |keys: &[&[u8]]| Keyspace::read(keyspace, snapshot, |view| view.multi_get(keys));
        // SAFETY: the caller promises the arrays.
        unsafe { read_many(keys, values, count, read) }
    })
}

/// Reads several keys, and puts a handle for each value where the caller wants it.
///
/// # Safety
/// The caller promises `count` keys with their bytes, and space for as many handles.
pub(super) unsafe fn read_many(
    keys: *const Bytes,
    values: *mut MaybeUninit<Option<Box<Value>>>,
    count: usize,
    read: impl FnOnce(&[&[u8]]) -> Result<Vec<Option<Vec<u8>>>>,
) -> Result<()> {
    // SAFETY: the caller promises the space.
    let values = unsafe { spaces(values, count)? };
    for value in &mut *values {
        value.write(None);
    }
    // SAFETY: the caller promises the keys.
    let keys = unsafe { elements(keys, count)? };
    // SAFETY: the caller promises the bytes.
    let keys = keys.iter().map(|key| unsafe { key.get() });
    let keys = keys.collect::<Result<Vec<_>>>()?;
    for (value, found) in values.iter_mut().zip(read(&keys)?) {
        value.write(found.map(|found| give(Value(Holder::Copied(found)))));
    }
    Ok(())
}

/// When the value of `key` expires, in the newest state, or in that of `snapshot` if it is not null: a time in milliseconds
/// since the start of 1970, `WINDROW_EXPIRY_NEVER`, or `WINDROW_EXPIRY_ABSENT` if the key does not exist.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_expires_at(
    keyspace: Option<&Keyspace>,
    snapshot: Option<&Snapshot>,
    key: Bytes,
    expiry: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call_for(expiry, WINDROW_EXPIRY_ABSENT, error, || {
        // SAFETY: the caller promises the bytes.
        let key = unsafe { key.get()? };
        Keyspace::read(keyspace, snapshot, |view| view.expires_at(key)).map(expiry_of)
    })
}

/// Sets the value of `key` if it has none, in one step. `*was_absent` says whether it had none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_put_if_absent(
    keyspace: Option<&Keyspace>,
    key: Bytes,
    value: Bytes,
    was_absent: Option<&mut MaybeUninit<bool>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call_for(was_absent, false, error, || {
        // SAFETY: the caller promises the bytes.
        let key = unsafe { key.get()? };
        // SAFETY: the same.
        let value = unsafe { value.get()? };
        Keyspace::given(keyspace)?.insert_if_absent(key, value)
    })
}

/// Removes `key` and returns its value, in one step: of several threads, one gets it. `*value` is null if the key did not
/// exist. Free the value with `windrow_value_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_take(
    keyspace: Option<&Keyspace>,
    key: Bytes,
    value: Option<&mut MaybeUninit<Option<Box<Value>>>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call_for(value, None, error, || {
        // SAFETY: the caller promises the bytes.
        let key = unsafe { key.get()? };
        let taken = Keyspace::given(keyspace)?.fetch_remove(key)?;
        Ok(taken.map(|value| give(Value(Holder::Copied(value)))))
    })
}

/// Sets the value of `key` to `value` if it is `expected`, in one step. Bytes whose `data` is null stand for no value.
/// `*was_expected` says whether it was.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_compare_and_swap(
    keyspace: Option<&Keyspace>,
    key: Bytes,
    expected: Bytes,
    value: Bytes,
    was_expected: Option<&mut MaybeUninit<bool>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call_for(was_expected, false, error, || {
        // SAFETY: the caller promises the bytes.
        let key = unsafe { key.get()? };
        // SAFETY: the same.
        let expected = unsafe { expected.get_bound()? };
        // SAFETY: the same.
        let value = unsafe { value.get_bound()? };
        Keyspace::given(keyspace)?.compare_and_swap(key, expected, value)
    })
}

/// Flushes all memtables and compacts all entries of a range down to the deepest level that holds data.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_compact_range(
    keyspace: Option<&Keyspace>,
    range: Range,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call(error, || {
        // SAFETY: the caller promises the bytes.
        let range = unsafe { range.get()? };
        Keyspace::given(keyspace)?.compact_range::<&[u8]>(range)
    })
}

/// About how many keys are in a range, in microseconds.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_approximate_count(
    keyspace: Option<&Keyspace>,
    range: Range,
    count: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call_for(count, 0, error, || {
        // SAFETY: the caller promises the bytes.
        let range = unsafe { range.get()? };
        Keyspace::given(keyspace)?.approximate_len::<&[u8]>(range)
    })
}

/// About how many bytes of files hold the entries of a range.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_approximate_bytes(
    keyspace: Option<&Keyspace>,
    range: Range,
    bytes: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call_for(bytes, 0, error, || {
        // SAFETY: the caller promises the bytes.
        let range = unsafe { range.get()? };
        Keyspace::given(keyspace)?.approximate_size::<&[u8]>(range)
    })
}
