//! Logs stay short on the real file system while a keyspace idles and another is written.

#![expect(clippy::unwrap_used, reason = "a step that fails ends the test")]
#![expect(clippy::disallowed_methods, reason = "the test looks at the files")]

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use windrow::{Db, Options};

/// Lengths of all logs in `folder`, and what they take of the disk.
fn log_bytes(folder: &Path) -> (u64, u64) {
    let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    entries
        .filter(|entry| entry.path().extension().is_some_and(|own| own == "wal"))
        // One may be removed meanwhile.
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
                // One record may stand beyond the end of a log.
                assert!(bytes <= log_bytes_max + 1000, "{bytes} bytes of logs");
                // Space is reserved ahead, but not much more than is written.
                assert!(taken <= 2 * log_bytes_max, "{taken} bytes of disk");
            }
        }
        assert_eq!(idle.get("once").unwrap().unwrap(), b"1");
        assert_eq!(db.stats().keyspaces[0].memtables, 1);
    }
}
