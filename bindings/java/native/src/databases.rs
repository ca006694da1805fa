//! The methods of databases.
//!
//! Concurrency: any thread.

use std::path::Path;

use jni::Env;
use jni::objects::{JByteArray, JObjectArray};
use jni::sys::jlong;
use serde_json::to_vec;
use windrow::{Db, Durability, Error, ErrorKind, Options, PendingPersist, Snapshot};

use crate::arguments::{Bytes, durability};
use crate::batches::batch;
use crate::errors::Outcome;
use crate::events::Events;
use crate::handles::method;
use crate::handles::{Handle, give};
use crate::options;
use crate::packed::texts;

method!(Java_io_windrow_Native_version, env; JByteArray<'local>, {
    Ok(env.byte_array_from_slice(env!("CARGO_PKG_VERSION").as_bytes())?)
});

/// The options of an open. The address of the queue of events is 0 without a listener.
pub(crate) fn options_of_open(
    env: &mut Env<'_>,
    settings: &JByteArray<'_>,
    objects: &JObjectArray<'_>,
    events: &Handle<Events>,
) -> Outcome<Options> {
    let options = options::options(env, &Bytes::new(env, settings)?, objects)?;
    Ok(match events.optional() {
        Some(events) => options.with_listener(events.listener()?),
        None => options,
    })
}

method!(Java_io_windrow_Native_open, env, path: JByteArray<'local>, read_only: bool, settings: JByteArray<'local>, objects: JObjectArray<'local>, events: Handle<Events>; jlong, {
    let path = Bytes::new(env, &path)?;
    let options = options_of_open(env, &settings, &objects, &events)?;
    let path = Path::new(path.text()?);
    let opened = if read_only { Db::open_read_only(path, options) } else { Db::open(path, options) };
    Ok(give(opened?))
});

method!(Java_io_windrow_Native_destroy, env, path: JByteArray<'local>; (), {
    let path = Bytes::new(env, &path)?;
    Ok(Db::destroy(path.text()?, &Options::default())?)
});

method!(Java_io_windrow_Native_close, _env, db: Handle<Db>; (), {
    let db = Db::clone(&db);
    Ok(db.close()?)
});

method!(Java_io_windrow_Native_keyspace, env, db: Handle<Db>, name: JByteArray<'local>, create: bool; jlong, {
    let name = Bytes::new(env, &name)?;
    let keyspace = if create { Some(db.keyspace(name.text()?)?) } else { db.existing_keyspace(name.text()?)? };
    Ok(keyspace.map_or(0, give))
});

method!(Java_io_windrow_Native_keyspaceWith, env, db: Handle<Db>, name: JByteArray<'local>, settings: JByteArray<'local>; jlong, {
    let name = Bytes::new(env, &name)?;
    let name = name.text()?;
    let existing = db.existing_keyspace(name)?;
    let base = existing.map_or_else(Default::default, |keyspace| keyspace.options());
    let options = options::keyspace_options(base, &Bytes::new(env, &settings)?)?;
    Ok(give(db.keyspace_with(name, options)?))
});

method!(Java_io_windrow_Native_dropKeyspace, env, db: Handle<Db>, name: JByteArray<'local>; (), {
    Ok(db.drop_keyspace(Bytes::new(env, &name)?.text()?)?)
});

method!(Java_io_windrow_Native_swapKeyspaces, env, db: Handle<Db>, first: JByteArray<'local>, second: JByteArray<'local>; (), {
    Ok(db.swap_keyspaces(Bytes::new(env, &first)?.text()?, Bytes::new(env, &second)?.text()?)?)
});

method!(Java_io_windrow_Native_keyspaceNames, env, db: Handle<Db>; JByteArray<'local>, {
    Ok(env.byte_array_from_slice(&texts(db.keyspace_names())?)?)
});

method!(Java_io_windrow_Native_write, env, db: Handle<Db>, keyspaces: jni::objects::JLongArray<'local>, writes: JByteArray<'local>, length: i32, durability_number: i32; (), {
    let batch = batch(env, &keyspaces, &writes, length)?;
    match durability(durability_number)? {
        Some(durability) => db.write_with(&batch, durability)?,
        None => db.write(&batch)?,
    }
    Ok(())
});

method!(Java_io_windrow_Native_snapshot, _env, db: Handle<Db>; jlong, {
    Ok(give::<Snapshot>(db.snapshot()))
});

// Everything up to this sequence number is in the snapshot.
method!(Java_io_windrow_Native_sequence, _env, snapshot: Handle<Snapshot>; jlong, {
    Ok(snapshot.sequence().cast_signed())
});

// The numbers are those of the class `Database`.
method!(Java_io_windrow_Native_run, _env, db: Handle<Db>, what: i32; (), {
    Ok(match what {
        0 => db.persist(),
        1 => db.flush(),
        2 => db.wait_idle(),
        _ => Err(Error::invalid_argument("there is no such work")),
    }?)
});

method!(Java_io_windrow_Native_beginPersist, _env, db: Handle<Db>; jlong, {
    Ok(give::<PendingPersist>(db.begin_persist()?))
});

method!(Java_io_windrow_Native_awaitPersist, _env, persist: Handle<PendingPersist>; (), {
    Ok(persist.wait()?)
});

method!(Java_io_windrow_Native_isPersistEnded, _env, persist: Handle<PendingPersist>; bool, {
    Ok(persist.is_ended())
});

method!(Java_io_windrow_Native_setBackgroundThreads, _env, db: Handle<Db>, count: i32; (), {
    let count = usize::try_from(count).map_err(|_| Error::invalid_argument("the number of threads is negative"))?;
    Ok(db.set_background_threads(count)?)
});

method!(Java_io_windrow_Native_checkpoint, env, db: Handle<Db>, path: JByteArray<'local>; (), {
    Ok(db.checkpoint(Bytes::new(env, &path)?.text()?)?)
});

method!(Java_io_windrow_Native_verify, env, db: Handle<Db>; JByteArray<'local>, {
    let report = db.verify()?;
    let damage = texts(report.damage.iter().map(ToString::to_string))?;
    Ok(env.byte_array_from_slice(&damage)?)
});

// What the statistics and the memory are, as JSON.
method!(Java_io_windrow_Native_statistics, env, db: Handle<Db>, memory: bool; JByteArray<'local>, {
    let json = if memory { to_vec(&db.memory()) } else { to_vec(&db.stats()) };
    let json = json.map_err(|error| Error::new(ErrorKind::Io, error.to_string()))?;
    Ok(env.byte_array_from_slice(&json)?)
});

method!(Java_io_windrow_Native_preparedTransactions, env, db: Handle<Db>; JByteArray<'local>, {
    Ok(env.byte_array_from_slice(&texts(db.prepared_transactions())?)?)
});

method!(Java_io_windrow_Native_endPrepared, env, db: Handle<Db>, name: JByteArray<'local>, commit: bool; (), {
    let name = Bytes::new(env, &name)?;
    let name = name.text()?;
    let Some(prepared) = db.prepared_transaction(name) else {
        let message = format!("there is no prepared transaction \"{name}\"");
        return Err(Error::new(ErrorKind::NotFound, message).into());
    };
    if commit {
        prepared.commit_with(Durability::Sync)?;
    } else {
        prepared.roll_back_with(Durability::Sync)?;
    }
    Ok(())
});
