//! Bulk loads and ingestions on the real file system with real threads: what becomes visible when, what is refused, and where the
//! tables go.

#![expect(clippy::unwrap_used, reason = "a step that fails ends the test")]
#![expect(
    clippy::disallowed_methods,
    reason = "the tests' own files and threads need no simulation"
)]
#![expect(
    clippy::case_sensitive_file_extension_comparisons,
    reason = "the names are those of a database"
)]

mod bulk_load;
#[path = "../common/mod.rs"]
mod common;
mod external;
mod model;
mod threads;
mod unsorted;

use windrow::{Db, Keyspace, Options};

/// A database with one keyspace, in a folder that is removed with it.
struct Store {
    db: Db,
    keyspace: Keyspace,
    folder: tempfile::TempDir,
}

/// Options under which a few entries make several files.
fn small() -> Options {
    let mut options = Options::default();
    options.keyspace.memtable_bytes = 64 << 10;
    options.keyspace.file_bytes = 16 << 10;
    options.keyspace.base_bytes = 32 << 10;
    options.keyspace.size_ratio = 4.0;
    options.keyspace.block_bytes = 512;
    options
}

impl Store {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let db = Db::open(folder.path(), small()).unwrap();
        let keyspace = db.keyspace("data").unwrap();
        Self {
            db,
            keyspace,
            folder,
        }
    }

    /// Opens the database again.
    fn reopened(self) -> Self {
        let Self { db, folder, .. } = self;
        db.close().unwrap();
        let db = Db::open(folder.path(), small()).unwrap();
        let keyspace = db.keyspace("data").unwrap();
        Self {
            db,
            keyspace,
            folder,
        }
    }

    /// The value of `key` as text; empty if it has none.
    fn text(&self, key: &str) -> String {
        text(self.keyspace.get(key).unwrap())
    }

    /// The names of the files with tables and values.
    fn data_files(&self) -> Vec<String> {
        let names = std::fs::read_dir(self.folder.path()).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names
            .filter(|name| name.ends_with(".table") || name.ends_with(".values"))
            .collect();
        names.sort();
        names
    }

    /// The number of files of each level, up to the last that has any.
    fn files_by_level(&self) -> Vec<usize> {
        let stats = self.db.stats();
        let levels = stats.keyspaces[0].levels.iter();
        let mut files: Vec<usize> = levels.map(|level| level.files).collect();
        while files.last() == Some(&0) {
            files.pop();
        }
        files
    }

    fn check_sound(&self) {
        let report = self.db.verify().unwrap();
        assert!(report.is_sound(), "{:?}", report.damage);
    }
}

fn text(value: Option<Vec<u8>>) -> String {
    String::from_utf8(value.unwrap_or_default()).unwrap()
}

/// `count` entries from number `first` on, with values of `value_bytes`.
fn numbered(
    first: usize,
    count: usize,
    value_bytes: usize,
) -> impl Iterator<Item = (String, Vec<u8>)> {
    (first..first + count).map(move |number| {
        let mut value = format!("value {number} ").into_bytes();
        value.resize(value_bytes.max(value.len()), b'.');
        (format!("key{number:07}"), value)
    })
}
