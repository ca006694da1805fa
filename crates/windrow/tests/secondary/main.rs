//! Secondaries: what they see of a database that somebody else writes, and what they keep alive.

#![expect(clippy::unwrap_used, reason = "a step that fails ends the test")]
#![expect(
    clippy::disallowed_methods,
    reason = "the tests count files and run threads beside the database"
)]

mod leases;
mod states;
mod writers;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use windrow::operators::Append;
use windrow::{Db, Options, Secondary};

/// Keyspaces `list` fold operands. Memtables are small, so a few writes fill them.
fn options() -> Options {
    let mut options = Options::default().with_merge_operator("list", Arc::new(Append::new(b",")));
    options.keyspace.memtable_bytes = 64 << 10;
    options
}

fn open(folder: &Path) -> Db {
    Db::open(folder, options()).unwrap()
}

fn secondary(folder: &Path) -> Secondary {
    Db::open_secondary(folder, options()).unwrap()
}

type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

/// All entries of all keyspaces.
fn contents(db: &Db) -> BTreeMap<String, Entries> {
    let names = db.keyspace_names();
    let entries = |name: &String| {
        let keyspace = db.keyspace(name).unwrap();
        keyspace.iter().unwrap().map(Result::unwrap).collect()
    };
    names
        .iter()
        .map(|name| (name.clone(), entries(name)))
        .collect()
}

fn check_equal(state: &Db, db: &Db, what: &str) {
    let (state, db) = (contents(state), contents(db));
    let count = |all: &BTreeMap<String, Entries>| all.values().map(BTreeMap::len).sum::<usize>();
    assert!(
        state == db,
        "{what}: {} and {} entries",
        count(&state),
        count(&db)
    );
}

/// The names of the leases' files.
fn leases(folder: &Path) -> Vec<String> {
    let Ok(names) = std::fs::read_dir(folder.join("readers")) else {
        return Vec::new();
    };
    names
        .map(|name| name.unwrap().file_name().into_string().unwrap())
        .collect()
}
