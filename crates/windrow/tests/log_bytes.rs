//! The length of logs on the real file system: with an idle keyspace beside a busy one, of small writes, and of
//! compressed records.

#![expect(clippy::unwrap_used, reason = "a step that fails ends the test")]
#![expect(clippy::disallowed_methods, reason = "the test looks at the files")]

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use windrow::{Batch, Compression, Db, Options};

/// The bytes of all logs in `folder`, and the disk space that they take.
fn log_bytes(folder: &Path) -> (u64, u64) {
    let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    entries
        .filter(|entry| entry.path().extension().is_some_and(|own| own == "wal"))
        // A log may be deleted in between.
        .filter_map(|entry| entry.metadata().ok())
        .fold((0, 0), |(length, taken), log| {
            (length + log.len(), taken + log.blocks() * 512)
        })
}

#[test]
fn logs_stay_short_while_a_keyspace_idles() {
    for background_threads in [1, 2] {
        let folder = tempfile::tempdir().unwrap();
        let mut options = Options::default();
        options.background_threads = background_threads;
        options.keyspace.memtable_bytes = 256 << 10;
        options.max_wal_bytes = 1 << 20;
        let log_bytes_max = options.max_wal_bytes + options.keyspace.memtable_bytes as u64;
        let db = Db::open(folder.path(), options).unwrap();
        let (idle, busy) = (db.keyspace("idle").unwrap(), db.keyspace("busy").unwrap());
        idle.insert("once", "1").unwrap();
        for number in 0..100_000_u64 {
            let key = number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes();
            busy.insert(key, [7; 100]).unwrap();
            if number % 500 == 0 {
                let (bytes, taken) = log_bytes(folder.path());
                // One record may exceed the limit of a log.
                assert!(bytes <= log_bytes_max + 1000, "{bytes} bytes of logs");
                // The engine reserves space ahead, but not much more than it writes.
                assert!(taken <= 2 * log_bytes_max, "{taken} bytes of disk");
            }
        }
        assert_eq!(idle.get("once").unwrap().unwrap(), b"1");
        assert_eq!(db.stats().keyspaces[0].memtables, 1);
    }
}

/// A write has 33 bytes of key and value, 5 of the chunk, 1 of the batch and 4 of the entry.
#[test]
fn a_small_write_costs_ten_bytes_beside_key_and_value() {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path(), Options::default()).unwrap();
    let entries = db.keyspace("entries").unwrap();
    let before = db.stats().wal_bytes;
    let count = 10_000;
    for number in 0..count {
        entries.insert(format!("{number:024}"), [7; 9]).unwrap();
    }
    let logged = db.stats().wal_bytes - before;
    // The rest are long chunks.
    let extra = logged - count * 43;
    assert!(extra < logged / 200, "{logged} bytes for {count} writes");
}

/// Checks single writes and batches. An open replays the records from the log.
#[test]
fn records_of_a_compressed_keyspace_are_short_and_come_back() {
    let logged = |compression| {
        let folder = tempfile::tempdir().unwrap();
        let mut options = Options::default();
        options.keyspace.compression = compression;
        let db = Db::open(folder.path(), options.clone()).unwrap();
        let entries = db.keyspace("entries").unwrap();
        let mut batch = Batch::new();
        for number in 0..100_u64 {
            batch
                .insert(&entries, number.to_be_bytes(), [7; 50])
                .unwrap();
        }
        db.write(&batch).unwrap();
        entries.insert("alone", [8; 700]).unwrap();
        let bytes = db.stats().wal_bytes;
        // The close flushes nothing, so the entries are read from the log.
        drop(entries);
        db.close().unwrap();
        let db = Db::open(folder.path(), options).unwrap();
        assert_eq!(db.stats().keyspaces[0].levels[0].files, 0);
        let entries = db.keyspace("entries").unwrap();
        for number in 0..100_u64 {
            assert_eq!(entries.get(number.to_be_bytes()).unwrap().unwrap(), [7; 50]);
        }
        assert_eq!(entries.get("alone").unwrap().unwrap(), [8; 700]);
        bytes
    };
    assert!(logged(Compression::Lz4) < logged(Compression::None) / 4);
}
