//! The change feed: what it gives out, in which order, and what is kept for its consumers.

#![expect(clippy::unwrap_used, reason = "a step that fails ends the test")]
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the tests count files, and run threads and tasks beside the database"
)]

mod batches;
#[path = "../common/mod.rs"]
mod common;
mod consumers;
mod copies;
mod events;
mod followers;
mod tasks;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use windrow::operators::Append;
use windrow::{Batch, Change, ChangeBatch, Changes, Db, Options};

/// Keyspaces `list` fold operands.
fn open(folder: &Path) -> Db {
    let mut options = Options::default().with_merge_operator("list", Arc::new(Append::new(b",")));
    options.keyspace.memtable_bytes = 64 << 10;
    Db::open(folder, options).unwrap()
}

/// The changes that `changes` has at present.
fn rest(changes: &mut Changes) -> Vec<Change> {
    std::iter::from_fn(|| changes.next(Duration::ZERO).unwrap()).collect()
}

fn batch(change: &Change) -> &ChangeBatch {
    match change {
        Change::Batch(batch) => batch,
        other => unreachable!("{other:?} is no batch"),
    }
}

/// The batch that `change` is, for `db`, which gets the keyspaces that it lacks.
fn batch_for(db: &Db, change: &ChangeBatch) -> Batch {
    for write in change {
        db.keyspace(&write.keyspace).unwrap();
    }
    db.batch_from_bytes(&change.to_bytes()).unwrap()
}
