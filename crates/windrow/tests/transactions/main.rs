//! Transactions on the real file system with real threads: the anomalies that they prevent, what conflicts, who waits,
//! what their cursors show, and what stays prepared.

#![expect(clippy::unwrap_used, reason = "a step that fails ends the test")]

mod anomalies;
#[path = "../common/mod.rs"]
mod common;
mod conflicts;
mod counts;
mod cursors;
mod locking_anomalies;
mod locks;
mod merges;
mod prepared;
mod range_deletes;
mod single_keys;
mod threads;

use std::sync::Arc;
use std::time::Duration;

use windrow::operators::Append;
use windrow::{Db, ErrorKind, Keyspace, Options, Result};

/// A database with one keyspace, in a folder that is removed with it.
struct Store {
    db: Db,
    keyspace: Keyspace,
    _folder: tempfile::TempDir,
}

impl Store {
    fn new() -> Self {
        Self::with(&[])
    }

    /// A store with these entries. Operands are appended behind a stroke.
    fn with(entries: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut options = Options::default();
        // A loaded machine can be slow.
        options.lock_timeout = Duration::from_secs(600);
        options.keyspace.memtable_bytes = 64 << 10;
        options.keyspace.file_bytes = 16 << 10;
        options.keyspace.base_bytes = 32 << 10;
        options.keyspace.block_bytes = 512;
        let append = Arc::new(Append::new(*b"|"));
        let db = Db::open(folder.path(), options.with_merge_operator("data", append)).unwrap();
        let keyspace = db.keyspace("data").unwrap();
        for (key, value) in entries {
            keyspace.insert(key, value).unwrap();
        }
        Self {
            db,
            keyspace,
            _folder: folder,
        }
    }

    /// The value of `key` as text; empty if it has none.
    fn text(&self, key: &str) -> String {
        text(self.keyspace.get(key).unwrap())
    }
}

fn text(value: Option<Vec<u8>>) -> String {
    String::from_utf8(value.unwrap_or_default()).unwrap()
}

/// The value of a key after an operand.
fn appended(before: Option<&Vec<u8>>, operand: &[u8]) -> Vec<u8> {
    match before {
        None => operand.to_vec(),
        Some(before) => [before, &b"|"[..], operand].concat(),
    }
}

/// Whether a commit failed by a conflict; all other errors end the test.
fn is_conflict(outcome: Result<()>) -> bool {
    match outcome {
        Ok(()) => false,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
            assert!(error.conflict().is_some(), "a conflict names a key");
            true
        }
    }
}
