//! Encrypted files and databases: beside plain ones, through crashes, damage, other keys, and threads.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a step that fails ends the test"
)]
#![expect(
    clippy::cast_possible_truncation,
    reason = "the numbers of the tests are small"
)]

mod backups;
mod crashes;
mod damage;
mod files;
mod golden;
mod keys;
mod races;
mod readers;
mod threads;

use std::path::Path;
use std::sync::Arc;

use windrow::vfs::Vfs;
use windrow::{Db, Options, Result};
use windrow_encryption::{EncryptedVfs, Key, KeyRing};
use windrow_sim::{SimDisk, SteppedRuntime};

/// Where databases are.
const FOLDER: &str = "/data";

fn key(seed: u8) -> Key {
    Key::new([seed; 32])
}

/// `disk`, encrypted with one key.
fn encrypted(disk: &SimDisk) -> EncryptedVfs {
    with_keys(disk, KeyRing::new("first", key(1)))
}

fn with_keys(disk: &SimDisk, keys: KeyRing) -> EncryptedVfs {
    EncryptedVfs::new(Arc::new(disk.clone()), Arc::new(keys))
}

/// Small tables and logs, and values of all three classes.
fn options(vfs: &EncryptedVfs) -> Options {
    let mut options = windrow_sim::unobserved(Options::default());
    options.keyspace.memtable_bytes = 8 << 10;
    options.keyspace.file_bytes = 8 << 10;
    options.keyspace.base_bytes = 16 << 10;
    options.keyspace.level0_runs = 2;
    options.keyspace.medium_from = 100;
    options.keyspace.large_from = 600;
    options.max_wal_bytes = 64 << 10;
    options.reserve_bytes = 0;
    options
        .with_vfs(Arc::new(vfs.clone()))
        .with_runtime(Arc::new(SteppedRuntime::new(5)))
}

fn open(vfs: &EncryptedVfs) -> Result<Db> {
    Db::open(FOLDER, options(vfs))
}

/// The bytes of all files of the folder of the database as they are on `disk`, by name.
fn raw_files(disk: &dyn Vfs) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(FOLDER);
    let mut names = disk.list(folder).unwrap();
    names.sort();
    let mut files = Vec::new();
    for name in names {
        let Ok(file) = disk.open(&folder.join(&name), windrow::vfs::OpenMode::Read) else {
            continue;
        };
        let mut bytes = vec![0; file.length().unwrap() as usize];
        windrow::vfs::read_exact_at(&*file, &mut bytes, 0).unwrap();
        files.push((name, bytes));
    }
    files
}

/// A value for `round` that can be recognized in a file.
fn value(round: u64) -> Vec<u8> {
    let length = [20, 300, 900][(round % 3) as usize];
    let mut value = b"recognizable".repeat(length / 12 + 1);
    value.truncate(length);
    value.extend(round.to_be_bytes());
    value
}
