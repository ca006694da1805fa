//! `get`, `put` and `delete`.

use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

use clap::Args;
use serde_json::json;
use windrow::runtime::{Runtime, Threads};
use windrow::{Error, Expiry, Result, limits};

use crate::outcome::Outcome;
use crate::output::Output;
use crate::store::StoreArgs;
use crate::text::{Notation, entry_object, escape, human_time, put_expiry};

/// A database, a keyspace and a key.
#[derive(Debug, Args)]
struct KeyArgs {
    #[command(flatten)]
    store: StoreArgs,

    /// The key: text, or hexadecimal after 0x
    #[arg(value_name = "KEY")]
    key: String,
}

/// Arguments of `get`.
#[derive(Debug, Args)]
#[command(after_help = "\
If the key does not exist, the exit code is 1. With --json, the answer has a field \"found\", and if the \
entry expires, a field \"expires_at_ms\": milliseconds since the start of 1970. On a terminal, a note says \
when it expires.

Examples:
  windrow get shop.db user:1
  windrow get shop.db 0x00000001 --raw > picture.png")]
pub(crate) struct GetArgs {
    #[command(flatten)]
    of: KeyArgs,

    /// Print the value byte by byte, without escapes or a line end
    #[arg(long, conflicts_with = "json")]
    raw: bool,

    #[command(flatten)]
    notation: Notation,
}

/// Arguments of `put`.
#[derive(Debug, Args)]
#[command(after_help = "\
A get followed by a put is not atomic: another program can write between the two. A program that \
must read and write together opens the database itself, which locks it, and orders its own threads.

Examples:
  windrow put shop.db user:1 Ada
  windrow put shop.db picture:1 < picture.png
  windrow put shop.db 0x01 0xcafe --sync
  windrow put shop.db session:7 Ada --ttl 30min")]
pub(crate) struct PutArgs {
    #[command(flatten)]
    of: KeyArgs,

    /// The value: text, or hexadecimal after 0x [default: all of standard input, as it is]
    #[arg(value_name = "VALUE")]
    value: Option<String>,

    /// The entry expires after this time, such as 90s, 30min or 7days [default: the keyspace's, or never]
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    ttl: Option<Duration>,

    /// Return only when the write survives a power failure
    #[arg(long)]
    sync: bool,

    #[command(flatten)]
    notation: Notation,
}

/// Arguments of `delete`.
#[derive(Debug, Args)]
#[command(after_help = "\
If the key does not exist, the exit code is 1. With --json, the answer has a field \"found\".

Example:
  windrow delete shop.db user:1")]
pub(crate) struct DeleteArgs {
    #[command(flatten)]
    of: KeyArgs,

    /// Return only when the deletion survives a power failure
    #[arg(long)]
    sync: bool,

    #[command(flatten)]
    notation: Notation,
}

pub(crate) fn get(args: &GetArgs, output: &mut Output) -> Result<Outcome> {
    let key = args.notation.parse(&args.of.key)?;
    let (db, keyspace) = args.of.store.open_to_read()?;
    let view = keyspace.at(&db.snapshot())?;
    let value = view.get(&key)?;
    match &value {
        Some(value) if args.raw => output.bytes(value)?,
        Some(value) => output.line(escape(value))?,
        None => note_missing(&key, output),
    }
    let mut object = entry_object(&key, value.as_deref());
    object["found"] = value.is_some().into();
    if let Some(expiry @ Expiry::At(time)) = view.expires_at(&key)? {
        put_expiry(&mut object, expiry);
        output.hint(format_args!("the entry expires at {}", human_time(time)));
    }
    output.object(&object)?;
    drop(view);
    db.close()?;
    Ok(Outcome::found(value.is_some()))
}

pub(crate) fn put(args: &PutArgs, output: &mut Output) -> Result<Outcome> {
    let key = args.notation.parse(&args.of.key)?;
    let value = match &args.value {
        Some(value) => args.notation.parse(value)?,
        None => standard_input()?,
    };
    check_lengths(&key, &value)?;
    check_ttl(args.ttl.unwrap_or_default())?;
    let (db, keyspace) = args.of.store.open_or_create(args.sync)?;
    match args.ttl {
        Some(ttl) => keyspace.insert_with_ttl(&key, &value, ttl)?,
        None => keyspace.insert(&key, &value)?,
    }
    db.close()?;
    output.object(&json!({ "written": 1 }))?;
    Ok(Outcome::Done)
}

pub(crate) fn delete(args: &DeleteArgs, output: &mut Output) -> Result<Outcome> {
    let key = args.notation.parse(&args.of.key)?;
    let (db, keyspace) = args.of.store.open()?;
    let found = keyspace.contains_key(&key)?;
    if found {
        keyspace.remove(&key)?;
        if args.sync {
            db.persist()?;
        }
    } else {
        note_missing(&key, output);
    }
    db.close()?;
    let mut object = entry_object(&key, None);
    object["found"] = found.into();
    output.object(&object)?;
    Ok(Outcome::found(found))
}

fn note_missing(key: &[u8], output: &Output) {
    output.note(format_args!("there is no key \"{}\"", escape(key)));
}

/// Refuses what no database takes, before one is created for it.
fn check_lengths(key: &[u8], value: &[u8]) -> Result<()> {
    let (key_max, value_max) = (limits::KEY_BYTES_MAX, limits::VALUE_BYTES_MAX);
    if !(1..=key_max).contains(&key.len()) {
        let message = format!("a key has 1 to {key_max} bytes, not {}", key.len());
        return Err(Error::invalid_argument(message));
    }
    if value.len() > value_max {
        let message = format!("a value has at most {value_max} bytes");
        return Err(Error::invalid_argument(message));
    }
    Ok(())
}

/// Refuses a time to live that ends beyond all moments, before a database is created for it.
fn check_ttl(ttl: Duration) -> Result<()> {
    let end = Threads::default().unix_time().checked_add(ttl);
    let last = Duration::from_millis(limits::EXPIRY_MILLISECONDS_MAX);
    if end.is_none_or(|end| end > last) {
        let message = format!("a time to live of {ttl:?} ends beyond the year 10889");
        return Err(Error::invalid_argument(message));
    }
    Ok(())
}

/// All of standard input, or enough of it to be refused as too long.
fn standard_input() -> Result<Vec<u8>> {
    let mut value = Vec::new();
    let enough = limits::VALUE_BYTES_MAX as u64 + 1;
    io::stdin()
        .lock()
        .take(enough)
        .read_to_end(&mut value)
        .map_err(|error| Error::io("read", Path::new("standard input"), error))?;
    Ok(value)
}
