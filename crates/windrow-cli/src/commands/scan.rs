//! `scan` and `count`: the entries of a range of keys.

use clap::Args;
use serde_json::{Value, json};
use windrow::{Cursor, ErrorKind, Expiry, Result};

use crate::outcome::Outcome;
use crate::output::Output;
use crate::progress;
use crate::range::RangeArgs;
use crate::store::{self, StoreArgs};
use crate::text::{EXPIRY_FIELD, entry_object, escape, human_count, put_expiry};

/// Arguments of `scan`.
#[derive(Debug, Args)]
#[command(after_help = "\
Prints a line for each entry: key, tab, value. With --json it prints an object for each entry, \
which load --format jsonl reads, with the time at which the entry expires if it does. In a keyspace with a default time to live, \
null says that an entry never expires. A key whose operands cannot be folded is an error on standard error; the \
scan goes on, and the exit code is 2. If there is no entry, the exit code is 0.

Examples:
  windrow scan shop.db
  windrow scan shop.db --prefix user: --reverse --limit 10
  windrow scan shop.db --from a --to b --json")]
pub(crate) struct ScanArgs {
    #[command(flatten)]
    store: StoreArgs,

    #[command(flatten)]
    range: RangeArgs,

    /// From the last entry to the first
    #[arg(long)]
    reverse: bool,

    /// Stop after this many entries
    #[arg(long, value_name = "N")]
    limit: Option<usize>,

    /// Print keys without their values
    #[arg(long)]
    keys_only: bool,
}

/// Arguments of `count`.
#[derive(Debug, Args)]
#[command(after_help = "\
Reads the keys of the range and no values outside tables. If there is no entry, it prints 0 and the \
exit code is 0.

Examples:
  windrow count shop.db
  windrow count shop.db --prefix user:
  windrow count shop.db --from a --to b --json")]
pub(crate) struct CountArgs {
    #[command(flatten)]
    store: StoreArgs,

    #[command(flatten)]
    range: RangeArgs,
}

pub(crate) fn run(args: &ScanArgs, output: &mut Output) -> Result<Outcome> {
    let bounds = args.range.bounds()?;
    let (db, keyspace) = args.store.open_to_read()?;
    let has_default_ttl = keyspace.options().default_ttl.is_some();
    let limit = args.limit.unwrap_or(usize::MAX);
    let (mut shown, mut outcome) = (0, Outcome::Done);
    if let Some(bounds) = bounds.filter(|_| limit > 0) {
        let mut cursor = keyspace.range_cursor(bounds)?;
        let mut is_valid = if args.reverse {
            cursor.seek_to_last()?
        } else {
            cursor.seek_to_first()?
        };
        while is_valid {
            match show(&cursor, args.keys_only, has_default_ttl, output) {
                // It is about this key alone.
                Err(error) if error.kind() == ErrorKind::Merge => {
                    output.show_error(&error);
                    outcome = Outcome::Failed;
                }
                shown => shown?,
            }
            shown += 1;
            is_valid = match (shown == limit, args.reverse) {
                (true, _) => false,
                (false, true) => cursor.prev()?,
                (false, false) => cursor.next()?,
            };
        }
    }
    if shown == 0 {
        output.hint(format_args!(
            "no entries found in keyspace \"{}\"; {}",
            args.store.keyspace,
            store::existing(&db.keyspace_names())
        ));
    }
    db.close()?;
    Ok(outcome)
}

/// Shows the entry that `cursor` is at.
fn show(
    cursor: &Cursor,
    keys_only: bool,
    has_default_ttl: bool,
    output: &mut Output,
) -> Result<()> {
    let key = cursor.key();
    let value = if keys_only {
        output.line(escape(key))?;
        None
    } else {
        let value = cursor.value()?;
        output.line(format_args!("{}\t{}", escape(key), escape(value)))?;
        Some(value)
    };
    if output.is_json() {
        let mut object = entry_object(key, value);
        match cursor.expires_at() {
            // Loaded into a keyspace like this one, it would live for the default time otherwise.
            Expiry::Never if has_default_ttl => object[EXPIRY_FIELD] = Value::Null,
            expiry => put_expiry(&mut object, expiry),
        }
        output.object(&object)?;
    }
    Ok(())
}

pub(crate) fn count(args: &CountArgs, output: &mut Output) -> Result<Outcome> {
    let bounds = args.range.bounds()?;
    let (db, keyspace) = args.store.open_to_read()?;
    let entries = match bounds {
        None => 0,
        Some(bounds) => {
            let spinner = progress::spinner("counting");
            let counted = keyspace.count(bounds);
            spinner.finish_and_clear();
            counted?
        }
    };
    db.close()?;
    output.object(&json!({ "entries": entries }))?;
    output.line(human_count(entries))?;
    Ok(Outcome::Done)
}
