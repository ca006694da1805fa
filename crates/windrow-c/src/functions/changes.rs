//! The change feed, and the consumers whose places survive.

use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;
use std::slice;
use std::time::Duration;

use windrow::{Change as WindrowChange, ChangeBatch, Error as WindrowError, Result};
use windrow_ffi::handles::{check, give, take};
use windrow_ffi::{given, not_null, text};

use super::batches::{Visitor, pass_writes};
use super::bytes::{Bytes, Holder, Value};
use super::calls::{call, call_for, guard};
use super::databases::{Database, text_of, with};
use super::errors::Error;

/// The changes of a database in the commit order: each once, when readers can see it and it is durable. One thread at a
/// time uses it. A close of the database by another thread ends its wait.
#[derive(Debug)]
pub struct Changes(windrow::Changes);

/// One change of a database. Any thread may use it. It stays valid after the close of the database.
#[derive(Debug)]
pub struct Change(WindrowChange);

/// A named consumer of the changes of a database, whose place survives. The database keeps every change behind it, within
/// the bounds of the options. Any thread may use it.
#[derive(Debug)]
pub struct Consumer(windrow::Consumer);

impl Consumer {
    fn given(consumer: Option<&Self>) -> Result<&windrow::Consumer> {
        Ok(&given(consumer, "consumer")?.0)
    }
}

/// The change is a batch: writes that were committed together.
pub const WINDROW_CHANGE_BATCH: u32 = 1;
/// A keyspace was created. It is keyspace 0 of the change.
pub const WINDROW_CHANGE_KEYSPACE_CREATED: u32 = 2;
/// Keyspace 0 of the change was dropped, with all that earlier batches have written to it.
pub const WINDROW_CHANGE_KEYSPACE_DROPPED: u32 = 3;
/// Keyspace 0 of the change has the name of keyspace 1 now. If another keyspace had it, that one has the name of keyspace 0.
pub const WINDROW_CHANGE_KEYSPACE_RENAMED: u32 = 4;
/// A bulk load or an ingestion has added tables to the keyspaces of the change. Their entries are in no change: copy these
/// keyspaces from a snapshot, and go on behind it. There are no keyspaces if no consumer holds the change: then they are not
/// known, or the load has failed.
pub const WINDROW_CHANGE_TABLES_ADDED: u32 = 5;

/// The changes from sequence number `from` on; the first batch may begin before. Nothing is kept for them:
/// `WINDROW_FELL_BEHIND` if they are gone already.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_changes_open(
    database: Option<&Database>,
    from: u64,
    changes: Option<&mut MaybeUninit<Option<Box<Changes>>>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call_for(changes, None, error, || {
        let opened = given(database, "database")?.db.changes(from)?;
        Ok(Some(give(Changes(opened))))
    })
}

/// Frees the feed. Null is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_changes_free(changes: Option<Box<Changes>>) {
    guard((), || drop(take(changes)));
}

/// The next change. Waits for a commit for at most `timeout` milliseconds; `*change` is null if there was none. After an
/// error the next call tries the same change again. `WINDROW_FELL_BEHIND`: the change is not kept any more, or the consumer of
/// the feed has acknowledged it.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_changes_next(
    changes: Option<&mut Changes>,
    timeout: u64,
    change: Option<&mut MaybeUninit<Option<Box<Change>>>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call_for(change, None, error, || {
        let timeout = Duration::from_millis(timeout);
        let next = given(changes, "changes")?.0.next(timeout)?;
        Ok(next.map(|next| give(Change(next))))
    })
}

/// Every change before this sequence number was given out, or was before the beginning of the feed; 0 for null.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_changes_position(changes: Option<&Changes>) -> u64 {
    check(changes).map_or(0, |changes| changes.0.position())
}

/// Frees a change. Null is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_change_free(change: Option<Box<Change>>) {
    guard((), || drop(take(change)));
}

/// One of `WINDROW_CHANGE_...`; 0 for null, and for a change that is newer than this header.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_change_kind(change: Option<&Change>) -> u32 {
    check(change).map_or(0, |change| match &change.0 {
        WindrowChange::Batch(_) => WINDROW_CHANGE_BATCH,
        WindrowChange::KeyspaceCreated { .. } => WINDROW_CHANGE_KEYSPACE_CREATED,
        WindrowChange::KeyspaceDropped { .. } => WINDROW_CHANGE_KEYSPACE_DROPPED,
        WindrowChange::KeyspaceRenamed { .. } => WINDROW_CHANGE_KEYSPACE_RENAMED,
        WindrowChange::TablesAdded { .. } => WINDROW_CHANGE_TABLES_ADDED,
        _ => 0,
    })
}

/// The sequence number of the change; of a batch, that of its last write; 0 for null. A consumer that has done with the
/// change acknowledges it.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_change_sequence(change: Option<&Change>) -> u64 {
    check(change).map_or(0, |change| change.0.sequence())
}

/// The sequence number of the first write of a batch, and that of any other change; 0 for null.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_change_first_sequence(change: Option<&Change>) -> u64 {
    check(change).map_or(0, |change| match &change.0 {
        WindrowChange::Batch(batch) => batch.first(),
        other => other.sequence(),
    })
}

/// The names of the keyspaces that the change is about, for all but batches.
fn keyspaces(change: &WindrowChange) -> [&[String]; 2] {
    match change {
        WindrowChange::KeyspaceCreated { name, .. }
        | WindrowChange::KeyspaceDropped { name, .. } => [slice::from_ref(name), &[]],
        WindrowChange::KeyspaceRenamed { from, to, .. } => {
            [slice::from_ref(from), slice::from_ref(to)]
        }
        WindrowChange::TablesAdded { keyspaces, .. } => [keyspaces, &[]],
        _ => [&[], &[]],
    }
}

/// The name of keyspace `number` of the change, from 0 on, valid until the change is freed; no bytes behind the last one. A
/// batch has none: its writes name them.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_change_keyspace(change: Option<&Change>, number: usize) -> Bytes {
    guard(Bytes::NONE, || {
        let names = check(change).map_or([&[][..]; 2], |change| keyspaces(&change.0));
        let name = names.into_iter().flatten().nth(number);
        name.map_or(Bytes::NONE, |name| Bytes::of(name.as_bytes()))
    })
}

/// The batch that a change is, if it is one.
fn batch(change: Option<&Change>) -> Result<Option<&ChangeBatch>> {
    Ok(match &given(change, "change")?.0 {
        WindrowChange::Batch(batch) => Some(batch),
        _ => None,
    })
}

/// The number of writes of a batch; 0 for other changes, and for null. Writes to keyspaces that were dropped since are left
/// out.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_change_count(change: Option<&Change>) -> usize {
    let batch = batch(change).ok().flatten();
    batch.map_or(0, ChangeBatch::len)
}

/// Passes the writes of a batch to `visitor`, in their order, with the names that the keyspaces had then. Other changes have
/// no writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_change_visit(
    change: Option<&Change>,
    visitor: Visitor,
    state: *mut c_void,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call(error, || {
        let visitor = not_null(visitor, "visitor")?;
        match batch(change)? {
            // SAFETY: the caller has passed state and function together.
            Some(batch) => unsafe { pass_writes(batch.iter(), visitor, state) },
            None => Ok(()),
        }
    })
}

/// The writes of a batch as bytes, of which `windrow_batch_from_bytes` makes a batch of another database. Free them with
/// `windrow_value_free`. For other changes it is an error.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_change_to_bytes(
    change: Option<&Change>,
    bytes: Option<&mut MaybeUninit<Option<Box<Value>>>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call_for(bytes, None, error, || {
        let batch = batch(change)?;
        let batch =
            batch.ok_or_else(|| WindrowError::invalid_argument("the change is no batch"))?;
        Ok(Some(give(Value(Holder::Copied(batch.to_bytes())))))
    })
}

/// The consumer `name`, created if missing. A new one begins behind the newest write, and is durable when this returns.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_consumer_open(
    database: Option<&Database>,
    name: *const c_char,
    consumer: Option<&mut MaybeUninit<Option<Box<Consumer>>>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call_for(consumer, None, error, || {
        // SAFETY: the caller promises text.
        let name = unsafe { text(name, "name")? };
        let opened = given(database, "database")?.db.consumer(name)?;
        Ok(Some(give(Consumer(opened))))
    })
}

/// Frees the handle. The consumer stays, and holds what it has not acknowledged. Null is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_consumer_free(consumer: Option<Box<Consumer>>) {
    guard((), || drop(take(consumer)));
}

/// The changes behind the place of the consumer. `WINDROW_FELL_BEHIND` if it held too much or was silent for too long: remove
/// it and create it anew, copy a snapshot, and go on with the changes behind that.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_consumer_changes(
    consumer: Option<&Consumer>,
    changes: Option<&mut MaybeUninit<Option<Box<Changes>>>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call_for(changes, None, error, || {
        let opened = Consumer::given(consumer)?.changes()?;
        Ok(Some(give(Changes(opened))))
    })
}

/// The place of the consumer: it has acknowledged every change up to this sequence number.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_consumer_acknowledged(
    consumer: Option<&Consumer>,
    sequence: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call_for(sequence, 0, error, || {
        Consumer::given(consumer)?.acknowledged()
    })
}

/// Notes that the consumer has done with every change up to `sequence`. The place is durable when this returns. It costs two
/// syncs, so acknowledge after many changes.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_consumer_acknowledge(
    consumer: Option<&Consumer>,
    sequence: u64,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call(error, || Consumer::given(consumer)?.acknowledge(sequence))
}

/// Forgets the consumer `name`. What nobody else holds is removed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_consumer_remove(
    database: Option<&Database>,
    name: *const c_char,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    with(database, error, |db| {
        // SAFETY: the caller promises text.
        db.remove_consumer(unsafe { text(name, "name")? })
    })
}

/// All consumers as a JSON array, by name. Each is an object with its `name`, its place `acknowledged`, `is_behind`, and the
/// `held_bytes` on disk that only consumers need. Free the text with `windrow_text_free`.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_consumers_json(
    database: Option<&Database>,
    json: Option<&mut MaybeUninit<*mut c_char>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    text_of(database, json, error, |db| {
        serde_json::to_string(&db.consumers())
    })
}
