//! Table files that are written outside of a database, and their ingestion.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};

use windrow::runtime::{Runtime, Threads, Work, Workers};
use windrow::{
    BlockSource, Compression, Db, ErrorKind, FileCheck, Keyspace, Options, Result, TableWriter,
};

use crate::{Store, numbered, small, text};

/// Writes these entries to a file; `None` removes the key.
fn write<'a>(
    path: &Path,
    entries: impl IntoIterator<Item = (&'a str, Option<&'a str>)>,
) -> PathBuf {
    let mut writer = TableWriter::create(path, &small()).unwrap();
    for (key, value) in entries {
        match value {
            Some(value) => writer.insert(key, value).unwrap(),
            None => writer.remove(key).unwrap(),
        }
    }
    writer.finish().unwrap();
    path.to_owned()
}

fn write_numbered(path: &Path, first: usize, count: usize, options: &Options) -> PathBuf {
    let mut writer = TableWriter::create(path, options).unwrap();
    for (key, value) in numbered(first, count, 50) {
        writer.insert(key, value).unwrap();
    }
    let summary = writer.finish().unwrap();
    assert_eq!(summary.entries, count as u64);
    assert_eq!(summary.bytes, fs::metadata(path).unwrap().len());
    assert_eq!(summary.smallest, format!("key{first:07}").into_bytes());
    path.to_owned()
}

fn kind<T>(outcome: Result<T>) -> ErrorKind {
    outcome.map(drop).unwrap_err().kind()
}

fn count(keyspace: &Keyspace) -> usize {
    keyspace.iter().unwrap().count()
}

#[test]
fn files_are_ingested_and_may_be_removed() {
    for compression in [Compression::None, Compression::Lz4] {
        let store = Store::new();
        let outside = tempfile::tempdir().unwrap();
        let mut options = small();
        options.keyspace.compression = compression;
        let one = write_numbered(&outside.path().join("one"), 0, 3000, &options);
        let two = write_numbered(&outside.path().join("two.sst"), 3000, 500, &options);
        let files = [(&store.keyspace, &two), (&store.keyspace, &one)];
        assert_eq!(store.db.ingest(files).unwrap(), 3500);
        drop(outside);
        assert_eq!(count(&store.keyspace), 3500);
        for (key, value) in numbered(0, 3500, 50).step_by(71) {
            assert_eq!(store.keyspace.get(&key).unwrap(), Some(value), "{key}");
        }
        store.check_sound();
        let store = store.reopened();
        assert_eq!(count(&store.keyspace), 3500);
        store.check_sound();
        for name in store.data_files() {
            let mut shown = Vec::new();
            windrow::inspect::dump(
                &windrow::vfs::OsVfs,
                &store.folder.path().join(name),
                &mut shown,
            )
            .unwrap();
            assert!(
                shown
                    .windows(10)
                    .any(|part| part == b"key0000100" || part == b"key0003100")
            );
        }
        store.keyspace.insert("key0000007", "new").unwrap();
        store.keyspace.compact_range::<&[u8]>(..).unwrap();
        assert_eq!(
            (count(&store.keyspace), &*store.text("key0000007")),
            (3500, "new")
        );
        store.check_sound();
    }
}

#[cfg(unix)]
#[test]
fn a_symbolic_link_is_followed() {
    let store = Store::new();
    let outside = tempfile::tempdir().unwrap();
    let path = write(&outside.path().join("file"), [("a", Some("value"))]);
    for (key, target) in [("absolute", &*path), ("relative", Path::new("file"))] {
        let link = outside.path().join(key);
        std::os::unix::fs::symlink(target, &link).unwrap();
        assert_eq!(store.db.ingest([(&store.keyspace, &link)]).unwrap(), 1);
    }
    drop(outside);
    let store = store.reopened();
    assert_eq!(store.text("a"), "value");
    for name in store.data_files() {
        let own = fs::symlink_metadata(store.folder.path().join(&name)).unwrap();
        assert!(own.is_file(), "{name} leads out of the folder");
    }
    store.check_sound();
}

#[test]
fn values_and_removals_of_a_file_count_from_the_ingestion_on() {
    let store = Store::new();
    let outside = tempfile::tempdir().unwrap();
    for (key, value) in [("a", "old"), ("b", "old"), ("c", "old")] {
        store.keyspace.insert(key, value).unwrap();
    }
    store.db.flush().unwrap();
    store.keyspace.insert("b", "newer").unwrap();
    let snapshot = store.db.snapshot();
    let entries = [
        ("a", None),
        ("b", Some("file")),
        ("d", Some("file")),
        ("e", None),
    ];
    let path = write(&outside.path().join("file"), entries);
    assert_eq!(store.db.ingest([(&store.keyspace, &path)]).unwrap(), 4);
    let texts = |store: &Store| ["a", "b", "c", "d", "e"].map(|key| store.text(key));
    assert_eq!(texts(&store), ["", "file", "old", "file", ""]);
    let view = store.keyspace.at(&snapshot).unwrap();
    assert_eq!(text(view.get("a").unwrap()), "old");
    assert_eq!(text(view.get("b").unwrap()), "newer");
    // The same file again, above newer entries.
    store.keyspace.insert("a", "after").unwrap();
    assert_eq!(store.text("a"), "after");
    store.db.ingest([(&store.keyspace, &path)]).unwrap();
    assert_eq!(texts(&store), ["", "file", "old", "file", ""]);
    drop(snapshot);
    store.keyspace.compact_range::<&[u8]>(..).unwrap();
    assert_eq!(texts(&store), ["", "file", "old", "file", ""]);
    store.check_sound();
    let store = store.reopened();
    assert_eq!(texts(&store), ["", "file", "old", "file", ""]);
}

#[test]
fn files_of_several_keyspaces_and_databases_are_one_commit() {
    let store = Store::new();
    let other = store.db.keyspace("other").unwrap();
    let outside = tempfile::tempdir().unwrap();
    let path = write_numbered(&outside.path().join("file"), 0, 800, &small());
    let wrong = write(&outside.path().join("wrong"), [("key0000100", Some(""))]);
    // One file twice in one keyspace overlaps itself; then no keyspace gets anything.
    let files = [
        (&other, &path),
        (&store.keyspace, &path),
        (&store.keyspace, &wrong),
    ];
    assert_eq!(kind(store.db.ingest(files)), ErrorKind::InvalidArgument);
    assert_eq!(store.data_files(), Vec::<String>::new());
    assert_eq!(count(&other) + count(&store.keyspace), 0);
    let before = store.db.stats().sequence;
    let files = [(&other, &path), (&store.keyspace, &path)];
    assert_eq!(store.db.ingest(files).unwrap(), 1600);
    assert_eq!(store.db.stats().sequence, before + 1);
    assert_eq!((count(&other), count(&store.keyspace)), (800, 800));
    let elsewhere = Store::new();
    let refused = store.db.ingest([(&elsewhere.keyspace, &path)]);
    assert_eq!(kind(refused), ErrorKind::InvalidArgument);
    elsewhere.db.ingest([(&elsewhere.keyspace, &path)]).unwrap();
    // No database changes the file of another one.
    for store in [&store, &elsewhere] {
        for (key, _) in numbered(0, 800, 0).step_by(2) {
            store.keyspace.insert(key, "new").unwrap();
        }
        store.keyspace.compact_range::<&[u8]>(..).unwrap();
    }
    assert_eq!(count(&other), 800);
    store.check_sound();
    elsewhere.check_sound();
    let target = outside.path().join("checkpoint");
    store.db.checkpoint(&target).unwrap();
    let copy = Db::open(&target, small()).unwrap();
    assert_eq!(count(&copy.keyspace("other").unwrap()), 800);
    assert!(copy.verify().unwrap().is_sound());
}

#[test]
fn damage_is_found_by_the_check() {
    let outside = tempfile::tempdir().unwrap();
    let path = write_numbered(&outside.path().join("file"), 0, 400, &small());
    let bytes = fs::read(&path).unwrap();
    let damaged = outside.path().join("damaged");
    let store = Store::new();
    for at in (0..bytes.len()).step_by(bytes.len() / 60) {
        let mut bytes = bytes.clone();
        bytes[at] ^= 4;
        fs::write(&damaged, &bytes).unwrap();
        let error = store.db.ingest([(&store.keyspace, &damaged)]).unwrap_err();
        let expected = [
            ErrorKind::Corruption,
            ErrorKind::InvalidArgument,
            ErrorKind::Unsupported,
        ];
        assert!(expected.contains(&error.kind()), "byte {at}: {error}");
        assert!(error.to_string().contains("damaged"), "{error}");
    }
    for length in [0, 10, 164, bytes.len() / 2, bytes.len() - 1] {
        fs::write(&damaged, &bytes[..length]).unwrap();
        assert!(
            store.db.ingest([(&store.keyspace, &damaged)]).is_err(),
            "{length}"
        );
    }
    assert_eq!(store.data_files(), Vec::<String>::new());
    // Without the check a damaged block is found by the read that needs it.
    let mut bytes = bytes;
    bytes[100] ^= 4;
    fs::write(&damaged, &bytes).unwrap();
    let files = [(&store.keyspace, &damaged)];
    store.db.ingest_with(files, FileCheck::Metadata).unwrap();
    assert_eq!(
        kind(store.keyspace.get("key0000000")),
        ErrorKind::Corruption
    );
    assert!(!store.db.verify().unwrap().is_sound());
}

#[test]
fn other_files_are_refused() {
    let store = Store::new();
    store.keyspace.bulk_load(numbered(0, 100, 50)).unwrap();
    let own = store.folder.path().join(&store.data_files()[0]);
    let text = store.folder.path().join("text");
    fs::write(&text, "no table ".repeat(100)).unwrap();
    for path in [&own, &text] {
        let outcome = store.db.ingest([(&store.keyspace, path)]);
        assert_eq!(kind(outcome), ErrorKind::InvalidArgument, "{path:?}");
    }
    let missing = store.db.ingest([(&store.keyspace, "missing")]);
    assert_eq!(kind(missing), ErrorKind::Io);
    let nothing: [(&Keyspace, &str); 0] = [];
    assert_eq!(store.db.ingest(nothing).unwrap(), 0);
}

#[test]
fn a_writer_refuses_what_no_table_takes() {
    let outside = tempfile::tempdir().unwrap();
    let path = outside.path().join("file");
    let mut writer = TableWriter::create(&path, &small()).unwrap();
    assert_eq!(kind(TableWriter::create(&path, &small())), ErrorKind::Io);
    writer.insert("b", vec![7; 1 << 20]).unwrap();
    for (key, value, part) in [
        ("a", 1, "\"a\" comes after \"b\""),
        ("b", 1, "ascending"),
        ("", 1, "at least one byte"),
        ("c", (1 << 20) + 1, "bulk loads"),
    ] {
        let error = writer.insert(key, vec![7; value]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains(part), "{error}");
    }
    writer.remove("d").unwrap();
    assert!(writer.bytes() > 1 << 20);
    assert_eq!(writer.finish().unwrap().entries, 2);
    let store = Store::new();
    store.db.ingest([(&store.keyspace, &path)]).unwrap();
    assert_eq!(store.keyspace.get("b").unwrap(), Some(vec![7; 1 << 20]));

    // A writer without entries, or without an end, leaves no file.
    let path = outside.path().join("empty");
    let writer = TableWriter::create(&path, &small()).unwrap();
    assert_eq!(kind(writer.finish()), ErrorKind::InvalidArgument);
    drop(TableWriter::create(&path, &small()).unwrap());
    assert!(!path.exists());
}

#[test]
fn a_removal_in_a_file_is_noticed_by_an_update() {
    let store = Store::new();
    let outside = tempfile::tempdir().unwrap();
    let path = write(&outside.path().join("file"), [("a", None)]);
    store.keyspace.insert("a", "old").unwrap();
    let mut seen = Vec::new();
    let outcome = store.keyspace.update("a", |old| {
        seen.push(text(old.map(<[u8]>::to_vec)));
        if seen.len() == 1 {
            store.db.ingest([(&store.keyspace, &path)]).unwrap();
            // The removal leaves the tables, and the value with it.
            store.keyspace.compact_range::<&[u8]>(..).unwrap();
        }
        Some(b"updated".to_vec())
    });
    assert_eq!(text(outcome.unwrap()), "updated");
    assert_eq!(seen, ["old", ""]);
}

/// Writers with the same random numbers, as those of two processes that one was forked from.
#[derive(Debug, Default)]
struct Forked(Threads);

impl Runtime for Forked {
    fn now(&self) -> Duration {
        self.0.now()
    }

    fn unix_time(&self) -> Duration {
        self.0.unix_time()
    }

    fn sleep(&self, duration: Duration) {
        self.0.sleep(duration);
    }

    fn random(&self) -> u64 {
        7
    }

    fn start(&self, work: Arc<dyn Work>, count: usize) -> io::Result<Box<dyn Workers>> {
        self.0.start(work, count)
    }

    fn step_instead_of_waiting(&self, work: &dyn Work) -> bool {
        self.0.step_instead_of_waiting(work)
    }
}

#[test]
fn the_cache_distinguishes_files_with_one_segment_id() {
    let outside = tempfile::tempdir().unwrap();
    let mut options = small().with_runtime(Arc::new(Forked::default()));
    options.keyspace.compression = Compression::Lz4;
    let ones = write_numbered(&outside.path().join("ones"), 0, 3000, &options);
    let twos = write_numbered(&outside.path().join("twos"), 3000, 3000, &options);
    let folder = tempfile::tempdir().unwrap();
    options.block_source = BlockSource::Buffered;
    let db = Db::open(folder.path(), options).unwrap();
    let names = ["ones", "twos"].map(|name| db.keyspace(name).unwrap());
    db.ingest([(&names[0], &ones), (&names[1], &twos)]).unwrap();
    for (keyspace, first) in names.iter().zip([0, 3000]) {
        for (key, value) in numbered(first, 3000, 50) {
            assert_eq!(keyspace.get(&key).unwrap(), Some(value), "{key}");
        }
    }
}
