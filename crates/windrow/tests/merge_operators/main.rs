//! Operands and merge operators, on the real file system with real threads.

#![expect(clippy::unwrap_used, reason = "a step that fails ends the test")]

#[path = "../common/mod.rs"]
mod common;
mod failures;
mod hot_keys;
mod memory;
mod model;
mod names;
mod placement;
mod read_folds;

use std::path::Path;
use std::sync::Arc;

use windrow::{Db, Keyspace, KeyspaceOptions, MergeOperator, Options};

/// Small memtables, files and blocks.
fn tiny() -> KeyspaceOptions {
    let mut options = KeyspaceOptions::default();
    options.memtable_bytes = 16 << 10;
    options.file_bytes = 8 << 10;
    options.base_bytes = 32 << 10;
    options.block_bytes = 512;
    options.size_ratio = 3.0;
    options
}

/// A database in `folder` with a keyspace that has `operator`.
fn open(folder: &Path, operator: impl MergeOperator + 'static) -> (Db, Keyspace) {
    let mut options = Options::default().with_merge_operator("map", Arc::new(operator));
    options.keyspace = tiny();
    let db = Db::open(folder, options).unwrap();
    let map = db.keyspace("map").unwrap();
    (db, map)
}
