//! Cursors, over keyspaces and over what transactions see.

#![expect(
    clippy::redundant_closure_for_method_calls,
    reason = "a method as a value serves cursors of one lifetime only"
)]

use std::mem::MaybeUninit;
use std::rc::Rc;

use windrow::{Error as WindrowError, ErrorKind, MergedCursor, Result, TransactionCursor};
use windrow_ffi::given;
use windrow_ffi::handles::{check, give, take};
use windrow_ffi::transaction::TransactionAndCursors;

use super::bytes::{Bounds, Bytes, Range, WINDROW_EXPIRY_ABSENT, elements, expiry_of};
use super::calls::{call_for, guard};
use super::databases::Database;
use super::errors::Error;
use super::keyspaces::Keyspace;
use super::snapshots::Snapshot;
use super::transactions::{Shared, Transaction};

/// A position among the entries of a keyspace in one state. One thread at a time uses a cursor.
///
/// A new cursor has no position. It may change its direction at any step. A move past either end leaves it without a
/// position until the next seek. It keeps the files that it reads, and so their disk space, until it is freed.
#[derive(Debug)]
pub struct Cursor(Entries);

#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "each is behind the pointer of its handle"
)]
enum Entries {
    OfKeyspace(windrow::Cursor),
    Merged(MergedCursor),
    OfTransaction(SharedCursor),
}

/// A cursor of a transaction.
#[derive(Debug)]
struct SharedCursor {
    transaction: Rc<Shared>,
    number: u64,
}

impl SharedCursor {
    fn call<R>(
        &self,
        work: impl for<'t> FnOnce(&mut TransactionCursor<'t>) -> Result<R>,
    ) -> Result<R> {
        self.transaction.call(|transaction| {
            let found = transaction.with_cursor(self.number, work);
            found.unwrap_or_else(|| {
                Err(WindrowError::new(ErrorKind::Closed, "the cursor has ended"))
            })
        })
    }
}

impl Drop for SharedCursor {
    fn drop(&mut self) {
        let close = |transaction: &mut TransactionAndCursors| {
            transaction.close(self.number);
            Ok(())
        };
        // The transaction may have ended.
        drop(self.transaction.call(close));
    }
}

/// Which keys a cursor covers.
#[derive(Clone, Copy)]
enum Keys<'a> {
    Range(Bounds<'a>),
    Prefix(&'a [u8]),
}

fn open(
    keyspace: Option<&Keyspace>,
    snapshot: Option<&Snapshot>,
    keys: Result<Keys<'_>>,
) -> Result<Option<Box<Cursor>>> {
    let keys = keys?;
    let cursor = Keyspace::read(keyspace, snapshot, |view| match keys {
        Keys::Range(range) => view.range_cursor::<&[u8]>(range),
        Keys::Prefix(prefix) => view.prefix_cursor(prefix),
    })?;
    Ok(Some(give(Cursor(Entries::OfKeyspace(cursor)))))
}

fn open_in_transaction(
    transaction: Option<&mut Transaction>,
    keyspace: Option<&Keyspace>,
    keys: Result<Keys<'_>>,
) -> Result<Option<Box<Cursor>>> {
    let keys = keys?;
    let keyspace = Keyspace::given(keyspace)?;
    let transaction = given(transaction, "transaction")?.share();
    let number = transaction.call(|transaction| {
        transaction.open(|transaction| match keys {
            Keys::Range(range) => transaction.range_cursor::<&[u8]>(keyspace, range),
            Keys::Prefix(prefix) => transaction.prefix_cursor(keyspace, prefix),
        })
    })?;
    let cursor = SharedCursor {
        transaction,
        number,
    };
    Ok(Some(give(Cursor(Entries::OfTransaction(cursor)))))
}

/// A cursor over the keys of a range, in the present state, or in that of `snapshot` if it is not null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_cursor_open(
    keyspace: Option<&Keyspace>,
    snapshot: Option<&Snapshot>,
    range: Range,
    cursor: Option<&mut MaybeUninit<Option<Box<Cursor>>>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call_for(cursor, None, error, || {
        // SAFETY: the caller promises the bytes.
        let range = unsafe { range.get() };
        open(keyspace, snapshot, range.map(Keys::Range))
    })
}

/// A cursor over the keys that begin with `prefix`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_cursor_open_prefix(
    keyspace: Option<&Keyspace>,
    snapshot: Option<&Snapshot>,
    prefix: Bytes,
    cursor: Option<&mut MaybeUninit<Option<Box<Cursor>>>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call_for(cursor, None, error, || {
        // SAFETY: the caller promises the bytes.
        let prefix = unsafe { prefix.get() };
        open(keyspace, snapshot, prefix.map(Keys::Prefix))
    })
}

/// A cursor over the keys of a range in `count` keyspaces of a database, in the order of their keys, all in its newest state.
/// A key that several keyspaces have comes once for each. `windrow_cursor_keyspace` says which one an entry is of.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_cursor_open_merged(
    database: Option<&Database>,
    keyspaces: *const Option<&Keyspace>,
    count: usize,
    range: Range,
    cursor: Option<&mut MaybeUninit<Option<Box<Cursor>>>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call_for(cursor, None, error, || {
        let database = given(database, "database")?;
        // SAFETY: the caller promises `count` handles.
        let keyspaces = unsafe { elements(keyspaces, count)? };
        let keyspaces = keyspaces.iter().map(|keyspace| Keyspace::given(*keyspace));
        let keyspaces = keyspaces.collect::<Result<Vec<_>>>()?;
        // SAFETY: the caller promises the bytes.
        let range = unsafe { range.get()? };
        let cursor = database.db.merged_cursor::<&[u8]>(&keyspaces, range)?;
        Ok(Some(give(Cursor(Entries::Merged(cursor)))))
    })
}

/// The position of the entry's keyspace in the list that `windrow_cursor_open_merged` was given; 0 for all other cursors,
/// without an entry, and for null.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_cursor_keyspace(cursor: Option<&Cursor>) -> usize {
    check(cursor).map_or(0, |cursor| match &cursor.0 {
        Entries::Merged(cursor) => cursor.keyspace().unwrap_or(0),
        _ => 0,
    })
}

/// A cursor over the keys of a range as a transaction sees them. It belongs to the thread of the transaction, and ends
/// with it: free it before or after.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_transaction_cursor_open(
    transaction: Option<&mut Transaction>,
    keyspace: Option<&Keyspace>,
    range: Range,
    cursor: Option<&mut MaybeUninit<Option<Box<Cursor>>>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call_for(cursor, None, error, || {
        // SAFETY: the caller promises the bytes.
        let range = unsafe { range.get() };
        open_in_transaction(transaction, keyspace, range.map(Keys::Range))
    })
}

/// A cursor over the keys that begin with `prefix` as a transaction sees them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_transaction_cursor_open_prefix(
    transaction: Option<&mut Transaction>,
    keyspace: Option<&Keyspace>,
    prefix: Bytes,
    cursor: Option<&mut MaybeUninit<Option<Box<Cursor>>>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call_for(cursor, None, error, || {
        // SAFETY: the caller promises the bytes.
        let prefix = unsafe { prefix.get() };
        open_in_transaction(transaction, keyspace, prefix.map(Keys::Prefix))
    })
}

/// Frees a cursor. Null is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_cursor_free(cursor: Option<Box<Cursor>>) {
    guard((), || drop(take(cursor)));
}

/// Moves a cursor by the one function or the other.
fn go(
    cursor: Option<&mut Cursor>,
    is_valid: Option<&mut MaybeUninit<bool>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
    of_keyspace: impl FnOnce(&mut windrow::Cursor) -> Result<bool>,
    merged: impl FnOnce(&mut MergedCursor) -> Result<bool>,
    of_transaction: impl for<'t> FnOnce(&mut TransactionCursor<'t>) -> Result<bool>,
) -> i32 {
    call_for(is_valid, false, error, || {
        match &mut given(cursor, "cursor")?.0 {
            Entries::OfKeyspace(cursor) => of_keyspace(cursor),
            Entries::Merged(cursor) => merged(cursor),
            Entries::OfTransaction(shared) => shared.call(of_transaction),
        }
    })
}

/// Moves to the first entry. `*is_valid` says whether it exists, here and in all moves.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_cursor_seek_to_first(
    cursor: Option<&mut Cursor>,
    is_valid: Option<&mut MaybeUninit<bool>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    go(
        cursor,
        is_valid,
        error,
        windrow::Cursor::seek_to_first,
        MergedCursor::seek_to_first,
        |it| it.seek_to_first(),
    )
}

/// Moves to the last entry.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_cursor_seek_to_last(
    cursor: Option<&mut Cursor>,
    is_valid: Option<&mut MaybeUninit<bool>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    go(
        cursor,
        is_valid,
        error,
        windrow::Cursor::seek_to_last,
        MergedCursor::seek_to_last,
        |it| it.seek_to_last(),
    )
}

/// Moves to the first entry whose key is `key` or greater.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_cursor_seek(
    cursor: Option<&mut Cursor>,
    key: Bytes,
    is_valid: Option<&mut MaybeUninit<bool>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call_for(is_valid, false, error, || {
        // SAFETY: the caller promises the bytes.
        let key = unsafe { key.get()? };
        match &mut given(cursor, "cursor")?.0 {
            Entries::OfKeyspace(cursor) => cursor.seek(key),
            Entries::Merged(cursor) => cursor.seek(key),
            Entries::OfTransaction(shared) => shared.call(|cursor| cursor.seek(key)),
        }
    })
}

/// Moves to the next entry.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_cursor_next(
    cursor: Option<&mut Cursor>,
    is_valid: Option<&mut MaybeUninit<bool>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    go(
        cursor,
        is_valid,
        error,
        windrow::Cursor::next,
        MergedCursor::next,
        |it| it.next(),
    )
}

/// Moves to the previous entry.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_cursor_prev(
    cursor: Option<&mut Cursor>,
    is_valid: Option<&mut MaybeUninit<bool>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    go(
        cursor,
        is_valid,
        error,
        windrow::Cursor::prev,
        MergedCursor::prev,
        |it| it.prev(),
    )
}

/// Whether the cursor is at an entry; false for null.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_cursor_is_valid(cursor: Option<&Cursor>) -> bool {
    guard(false, || {
        check(cursor).is_some_and(|cursor| match &cursor.0 {
            Entries::OfKeyspace(cursor) => cursor.is_valid(),
            Entries::Merged(cursor) => cursor.is_valid(),
            Entries::OfTransaction(shared) => {
                shared.call(|cursor| Ok(cursor.is_valid())).unwrap_or(false)
            }
        })
    })
}

/// The key of the entry; no bytes if the cursor is at no entry. It is valid until the next move, the free of the cursor, or the
/// end of its transaction.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_cursor_key(cursor: Option<&Cursor>) -> Bytes {
    guard(Bytes::NONE, || {
        check(cursor).map_or(Bytes::NONE, |cursor| match &cursor.0 {
            Entries::OfKeyspace(cursor) => Bytes::of(cursor.key()),
            Entries::Merged(cursor) => Bytes::of(cursor.key()),
            Entries::OfTransaction(shared) => shared
                .call(|cursor| Ok(Bytes::of(cursor.key())))
                .unwrap_or(Bytes::NONE),
        })
    })
}

/// The value of the entry; no bytes if the cursor is at no entry. It is valid as long as the key. The first call reads a value
/// that is stored apart from its key.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_cursor_value(
    cursor: Option<&Cursor>,
    value: Option<&mut MaybeUninit<Bytes>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call_for(value, Bytes::NONE, error, || {
        match &given(cursor, "cursor")?.0 {
            Entries::OfKeyspace(cursor) => cursor.value().map(Bytes::of),
            Entries::Merged(cursor) => cursor.value().map(Bytes::of),
            Entries::OfTransaction(shared) => shared.call(|cursor| cursor.value().map(Bytes::of)),
        }
    })
}

/// When the entry expires, as `windrow_expires_at` says it; `WINDROW_EXPIRY_ABSENT` if the cursor is at no entry.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_cursor_expires_at(cursor: Option<&Cursor>) -> u64 {
    guard(WINDROW_EXPIRY_ABSENT, || {
        let Some(cursor) = check(cursor).filter(|cursor| windrow_cursor_is_valid(Some(cursor)))
        else {
            return WINDROW_EXPIRY_ABSENT;
        };
        let expiry = match &cursor.0 {
            Entries::OfKeyspace(cursor) => Some(cursor.expires_at()),
            Entries::Merged(cursor) => Some(cursor.expires_at()),
            Entries::OfTransaction(shared) => shared.call(|cursor| Ok(cursor.expires_at())).ok(),
        };
        expiry_of(expiry)
    })
}
