//! `changes` and `consumers`: what was written, in its order, and who has yet to read it.
//!
//! What has no consumer is read beside a writer. A consumer belongs to the process that writes: a command that follows as one
//! holds the database open for no longer than it reads, and opens it again after its files have changed. The consumer keeps
//! what comes between.

use std::fs;
use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, SystemTime};

use clap::Args;
use comfy_table::Cell;
use serde_json::{Map, Value, json};
use windrow::{
    BatchEntry, BatchWrite, Change, Changes, Consumer, Db, Error, ErrorKind, Expiry, Result,
    SequenceNumber,
};

use crate::outcome::Outcome;
use crate::output::Output;
use crate::store::{self, DbArgs};
use crate::tables::{plain_table, right};
use crate::text::{entry_object, escape, human_bytes, human_time, put_expiry, put_field};

/// A consumer acknowledges after so many changes, and after the last one.
const CHANGES_PER_ACKNOWLEDGEMENT: usize = 1000;

/// A command that follows looks at the files of the database again after this time.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// A command that follows beside a writer reads what it has committed after this time.
const CATCH_UP_INTERVAL: Duration = Duration::from_millis(100);

/// Arguments of `changes`.
#[derive(Debug, Args)]
#[command(after_help = "\
Prints a line for each write: the sequence number of its batch, what it is, its keyspace, key and value, with \
tabs between. With --json it prints an object for each change; a batch is one.

Without a consumer it reads what the logs still have, also while another process writes. What a consumer has not read stays in the logs, \
within bounds. A consumer that does not exist is created and has nothing to read yet. Its place moves after \
its changes are printed, so after a crash some may come again.

With --follow the command waits for more changes. As a consumer it opens the database when its files have \
changed and no other process has it open, and closes it again; other programs try again if they meet it. \
Ctrl-C ends it.

Examples:
  windrow changes shop.db
  windrow changes shop.db --from 1200 --json
  windrow changes shop.db --consumer audit --follow --json")]
pub(crate) struct ChangesArgs {
    #[command(flatten)]
    of: DbArgs,

    /// The first sequence number to print
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        conflicts_with = "consumer"
    )]
    from: SequenceNumber,

    /// Print what this consumer has not read, and note that it has
    #[arg(long, value_name = "NAME")]
    consumer: Option<String>,

    /// Wait for more changes
    #[arg(long)]
    follow: bool,
}

/// Arguments of `consumers`.
#[derive(Debug, Args)]
#[command(after_help = "\
Lists the consumers of changes: up to which sequence number each has read, and the bytes on disk that are \
kept for it. One that has fallen behind holds nothing and cannot go on: remove it. With --json, each \
consumer is an object.

Examples:
  windrow consumers shop.db
  windrow consumers shop.db --remove audit --json")]
pub(crate) struct ConsumersArgs {
    #[command(flatten)]
    of: DbArgs,

    /// Remove this consumer, and what is kept for it alone
    #[arg(long, value_name = "NAME")]
    remove: Option<String>,
}

pub(crate) fn run(args: &ChangesArgs, output: &mut Output) -> Result<Outcome> {
    let folder = &args.of.db;
    match (args.consumer.as_deref(), args.follow) {
        (None, false) => {
            let db = store::open_to_read(folder)?;
            show_all(&db, args.from, output)?;
            db.close()?;
        }
        (None, true) => follow(folder, args.from, output)?,
        (Some(name), false) => read_as_consumer(folder, name, output)?,
        (Some(name), true) => Follower { folder, seen: None }.follow(name, output)?,
    }
    Ok(Outcome::Done)
}

/// Prints the changes from `next` on, and then what comes, beside a writer. Returns after an error only.
fn follow(folder: &Path, mut next: SequenceNumber, output: &mut Output) -> Result<()> {
    let reader = Db::open_secondary(folder, store::options(folder)?)?;
    loop {
        next = show_all(&reader.catch_up()?, next, output)?;
        thread::sleep(CATCH_UP_INTERVAL);
    }
}

/// Prints the changes of `db` from `next` on. Returns the next one.
fn show_all(db: &Db, next: SequenceNumber, output: &mut Output) -> Result<SequenceNumber> {
    let mut changes = db.changes(next)?;
    while show_next(&mut changes, output)? {}
    output.flush()?;
    Ok(changes.position())
}

/// Prints what the consumer `name` has not read. A missing one is created.
fn read_as_consumer(folder: &Path, name: &str, output: &mut Output) -> Result<()> {
    let db = store::open(folder)?;
    let is_new = db.consumers().iter().all(|it| it.name != name);
    let consumer = db.consumer(name)?;
    if is_new {
        output.note(format_args!(
            "consumer \"{name}\" is new: its changes begin now"
        ));
    }
    read_and_acknowledge(&consumer, output)?;
    drop(consumer);
    db.close()
}

/// The name, length and time of change of each file of a database.
type Files = Vec<(std::ffi::OsString, u64, Option<SystemTime>)>;

/// A reader that opens the database again and again, as a consumer.
struct Follower<'a> {
    folder: &'a Path,
    /// The files before the last open that has succeeded.
    seen: Option<Files>,
}

impl Follower<'_> {
    /// Prints what `consumer` has not read, and then what comes. Returns after an error only.
    fn follow(&mut self, consumer: &str, output: &mut Output) -> Result<()> {
        loop {
            match self.read_if_changed(consumer, output) {
                Err(error) if error.kind() == ErrorKind::Locked => {}
                read => read?,
            }
            thread::sleep(LOOK_INTERVAL);
        }
    }

    /// Prints what is new, if any file has changed.
    fn read_if_changed(&mut self, consumer: &str, output: &mut Output) -> Result<()> {
        let files = files(self.folder)?;
        if self.seen.as_ref() == Some(&files) {
            return Ok(());
        }
        // A consumer's open changes files. So the next round finds them changed, and this ends the rounds.
        if self.has_news(consumer)? {
            read_as_consumer(self.folder, consumer, output)?;
        }
        self.seen = Some(files);
        Ok(())
    }

    /// Whether the consumer `name` has anything to read. Writes nothing.
    fn has_news(&self, name: &str) -> Result<bool> {
        let db = store::open_to_read(self.folder)?;
        let consumer = db.consumers().into_iter().find(|it| it.name == name);
        let newest = db.snapshot().sequence();
        db.close()?;
        match consumer {
            Some(consumer) => Ok(consumer.is_behind || consumer.acknowledged < newest),
            None if self.seen.is_none() => Ok(true),
            None => Err(no_consumer(&format!("{} has", self.folder.display()), name)),
        }
    }
}

/// Prints what `consumer` has not read, and moves its place afterwards.
fn read_and_acknowledge(consumer: &Consumer, output: &mut Output) -> Result<()> {
    let mut changes = consumer.changes()?;
    let begin = changes.position();
    loop {
        let before = changes.position();
        let mut count = 0;
        while count < CHANGES_PER_ACKNOWLEDGEMENT && show_next(&mut changes, output)? {
            count += 1;
        }
        output.flush()?;
        // Also past what comes to nobody, such as writes to a keyspace that was dropped.
        let place = changes.position().max(begin) - 1;
        if changes.position() > before {
            consumer.acknowledge(place)?;
        }
        if count < CHANGES_PER_ACKNOWLEDGEMENT {
            return Ok(());
        }
    }
}

/// Prints the next change. Returns whether there was one.
fn show_next(changes: &mut Changes, output: &mut Output) -> Result<bool> {
    let change = changes.next(Duration::ZERO)?;
    if let Some(change) = &change {
        show(change, output)?;
        if output.is_json() {
            output.object(&change_object(change))?;
        }
    }
    Ok(change.is_some())
}

/// Prints the lines of `change` for people.
fn show(change: &Change, output: &mut Output) -> Result<()> {
    let sequence = change.sequence();
    let escape = |name: &str| escape(name.as_bytes());
    match change {
        Change::Batch(batch) => {
            for entry in batch {
                output.line(format_args!("{sequence}\t{}", write_line(&entry)))?;
            }
            Ok(())
        }
        Change::KeyspaceCreated { name, .. } => output.line(format_args!(
            "{sequence}\tkeyspace created\t{}",
            escape(name)
        )),
        Change::KeyspaceDropped { name, .. } => output.line(format_args!(
            "{sequence}\tkeyspace dropped\t{}",
            escape(name)
        )),
        Change::KeyspaceRenamed { from, to, .. } => output.line(format_args!(
            "{sequence}\tkeyspace renamed\t{}\t{}",
            escape(from),
            escape(to)
        )),
        Change::TablesAdded { keyspaces, .. } => {
            let names: Vec<String> = keyspaces.iter().map(|name| escape(name)).collect();
            output.line(format_args!(
                "{sequence}\ttables added\t{}",
                names.join("\t")
            ))
        }
        other => output.line(format_args!("{sequence}\t{other:?}")),
    }
}

fn write_line(entry: &BatchEntry<'_>) -> String {
    let (what, value) = match entry.write {
        BatchWrite::Insert(value) => ("insert", Some(escape(value))),
        BatchWrite::InsertUntil(value, time) => {
            let value = format!("{}\texpires {}", escape(value), human_time(time));
            ("insert", Some(value))
        }
        BatchWrite::Remove => ("remove", None),
        BatchWrite::Merge(operand) => ("merge", Some(escape(operand))),
        BatchWrite::DeleteRange(end) => ("delete range", end.map(escape)),
        other => ("write", Some(format!("{other:?}"))),
    };
    let value = value.map_or_else(String::new, |value| format!("\t{value}"));
    let keyspace = escape(entry.keyspace.as_bytes());
    format!("{what}\t{keyspace}\t{}{value}", escape(entry.key))
}

fn change_object(change: &Change) -> Value {
    let sequence = change.sequence();
    match change {
        Change::Batch(batch) => json!({
            "sequence": sequence,
            "change": "batch",
            "first_sequence": batch.first(),
            "writes": batch.iter().map(|entry| write_object(&entry)).collect::<Vec<_>>(),
        }),
        Change::KeyspaceCreated { name, .. } => {
            json!({ "sequence": sequence, "change": "keyspace_created", "keyspace": name })
        }
        Change::KeyspaceDropped { name, .. } => {
            json!({ "sequence": sequence, "change": "keyspace_dropped", "keyspace": name })
        }
        Change::KeyspaceRenamed { from, to, .. } => {
            json!({ "sequence": sequence, "change": "keyspace_renamed", "from": from, "to": to })
        }
        Change::TablesAdded { keyspaces, .. } => {
            json!({ "sequence": sequence, "change": "tables_added", "keyspaces": keyspaces })
        }
        other => json!({ "sequence": sequence, "change": format!("{other:?}") }),
    }
}

/// A write as JSON. An insert has the fields that `load --format jsonl` reads.
fn write_object(entry: &BatchEntry<'_>) -> Value {
    let (what, mut object) = match entry.write {
        BatchWrite::Insert(value) => ("insert", entry_object(entry.key, Some(value))),
        BatchWrite::InsertUntil(value, time) => {
            let mut object = entry_object(entry.key, Some(value));
            put_expiry(&mut object, Expiry::At(time));
            ("insert", object)
        }
        BatchWrite::Remove => ("remove", entry_object(entry.key, None)),
        BatchWrite::Merge(operand) => {
            ("merge", fields(&[("key", entry.key), ("operand", operand)]))
        }
        BatchWrite::DeleteRange(Some(end)) => {
            ("delete_range", fields(&[("from", entry.key), ("to", end)]))
        }
        BatchWrite::DeleteRange(None) => ("delete_range", fields(&[("from", entry.key)])),
        other => return json!({ "write": format!("{other:?}") }),
    };
    object["write"] = what.into();
    object["keyspace"] = (*entry.keyspace).into();
    object
}

fn fields(of: &[(&str, &[u8])]) -> Value {
    let mut object = Map::new();
    for (name, bytes) in of {
        put_field(&mut object, name, bytes);
    }
    Value::Object(object)
}

fn files(folder: &Path) -> Result<Files> {
    let list = || -> io::Result<Files> {
        let mut files = Files::new();
        for file in fs::read_dir(folder)? {
            let file = file?;
            // It may be gone by now; then the name is missing from the next list.
            if let Ok(metadata) = file.metadata() {
                let modified = metadata.modified().ok();
                files.push((file.file_name(), metadata.len(), modified));
            }
        }
        files.sort();
        Ok(files)
    };
    match list() {
        // The open says that there is no database.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Files::new()),
        listed => listed.map_err(|error| Error::io("list", folder, error)),
    }
}

pub(crate) fn consumers(args: &ConsumersArgs, output: &mut Output) -> Result<Outcome> {
    if let Some(name) = &args.remove {
        let db = store::open(&args.of.db)?;
        db.remove_consumer(name)?;
        db.close()?;
        output.object(&json!({ "removed": name }))?;
        output.line(format_args!("removed \"{name}\""))?;
        return Ok(Outcome::Done);
    }
    let db: Db = store::open_to_read(&args.of.db)?;
    let consumers = db.consumers();
    db.close()?;
    let mut table = plain_table();
    table.set_header([
        Cell::new("consumer"),
        right(&"acknowledged"),
        right(&"held"),
        Cell::new(""),
    ]);
    for consumer in &consumers {
        output.object(consumer)?;
        table.add_row([
            Cell::new(escape(consumer.name.as_bytes())),
            right(&consumer.acknowledged),
            right(&human_bytes(consumer.held_bytes)),
            Cell::new(if consumer.is_behind {
                "fell behind"
            } else {
                ""
            }),
        ]);
    }
    if consumers.is_empty() {
        output.note("there are no consumers of changes");
    } else {
        output.line(table)?;
    }
    Ok(Outcome::Done)
}

fn no_consumer(owner: &str, name: &str) -> Error {
    let message = format!("{owner} no consumer \"{name}\" any more");
    Error::new(ErrorKind::NotFound, message)
}
