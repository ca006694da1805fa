//! Backups on the real file system, beside writers, and in a store that is no folder.

#![expect(clippy::unwrap_used, reason = "a step that fails ends the test")]
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the test looks at files and runs threads beside the database"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use windrow::backup::{
    BackupPhase, BackupProgress, BackupStore, Backups, ByteSource, FolderStore, Purge, StoredObject,
};
use windrow::vfs::OsVfs;
use windrow::{Batch, Db, Error, ErrorKind, Keyspace, Options, Result, Stats};

fn options() -> Options {
    let mut options = Options::default();
    options.keyspace.memtable_bytes = 64 << 10;
    options.keyspace.file_bytes = 64 << 10;
    options.keyspace.base_bytes = 256 << 10;
    options
}

fn entries(folder: impl AsRef<Path>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let db = Db::open(folder, options()).unwrap();
    let keyspace = db.keyspace("k").unwrap();
    keyspace.iter().unwrap().collect::<Result<_>>().unwrap()
}

fn fill(keyspace: &Keyspace, keys: impl Iterator<Item = u32>, seed: u32) {
    for key in keys {
        let mut value = Vec::new();
        // Bytes that no compression makes smaller.
        for part in 0..25_u32 {
            let mixed = (key ^ seed.rotate_left(16) ^ part << 24).wrapping_mul(0x9e37_79b1);
            value.extend(
                (mixed ^ mixed >> 15)
                    .wrapping_mul(0x85eb_ca6b)
                    .to_le_bytes(),
            );
        }
        keyspace.insert(key.to_be_bytes(), value).unwrap();
    }
}

/// The bytes of the files in `folder`.
fn bytes(folder: &Path) -> u64 {
    let files = fs::read_dir(folder).unwrap();
    files
        .map(|file| file.unwrap().metadata().unwrap().len())
        .sum()
}

/// 1 % of the keys, which follow one another, get new values.
#[test]
fn a_second_backup_copies_what_has_changed() {
    const KEYS: u32 = 200_000;
    let folder = tempfile::tempdir().unwrap();
    let (own, store) = (folder.path().join("db"), folder.path().join("backups"));
    let mut options = options();
    options.keyspace.memtable_bytes = 4 << 20;
    let db = Db::open(&own, options.clone()).unwrap();
    let keyspace = db.keyspace("k").unwrap();
    fill(&keyspace, 0..KEYS, 0);
    db.flush().unwrap();
    db.wait_idle().unwrap();
    let backups = Backups::open(&store).unwrap();
    let first = db.backup(&backups).unwrap();
    assert!(
        first.bytes > 20_000_000 && first.copied_bytes >= first.bytes,
        "{first:?}"
    );
    let before = bytes(&store);

    fill(&keyspace, 70_000..70_000 + KEYS / 100, 1);
    let second = db.backup(&backups).unwrap();
    let copied = bytes(&store) - before;
    assert_eq!(copied, second.copied_bytes);
    let percent = copied as f64 / first.bytes as f64 * 100.0;
    assert!((0.9..2.0).contains(&percent), "{percent} %");

    // Nothing has changed.
    let third = db.backup(&backups).unwrap();
    assert!(third.copied_bytes * 500 < first.bytes, "{third:?}");
    // Another open compares the files, and finds that they are the same.
    drop(keyspace);
    db.close().unwrap();
    let db = Db::open(&own, options).unwrap();
    let fourth = db.backup(&backups).unwrap();
    assert!(fourth.copied_bytes * 50 < first.bytes, "{fourth:?}");
    db.close().unwrap();

    backups.restore(4, folder.path().join("copy")).unwrap();
    assert!(entries(folder.path().join("copy")) == entries(&own));
}

/// The bytes of the logs in `folder`.
fn log_bytes(folder: &Path) -> u64 {
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap());
    let logs = files.filter(|file| file.path().extension().is_some_and(|it| it == "wal"));
    logs.map(|log| log.metadata().unwrap().len()).sum()
}

/// The bytes of the manifest of backup `number` in `folder`.
fn manifest_bytes(folder: &Path, number: u64) -> u64 {
    let manifest = folder.join(format!("{number:06}.backup"));
    fs::metadata(manifest).unwrap().len()
}

/// The most bytes by which flushes and compactions have made tables longer between `before` and `after`.
fn tables_written(before: &Stats, after: &Stats) -> u64 {
    let written = |stats: &Stats| {
        let merged = stats.compaction_bytes_written + stats.consolidation_bytes_written;
        // An appended segment begins at a multiple of 4096.
        stats.flush_bytes + merged + stats.append_bytes_written + 4095 * stats.appends
    };
    written(after) - written(before)
}

/// One key of a hundred gets a new value, and all of them are flushed; then everything is compacted. Of the tables, a backup
/// copies no more than these jobs have written.
#[test]
fn a_backup_copies_no_more_than_jobs_have_written_since_the_last_one() {
    const KEYS: u32 = 50_000;
    let folder = tempfile::tempdir().unwrap();
    let (own, store) = (folder.path().join("db"), folder.path().join("backups"));
    let mut options = options();
    options.keyspace.memtable_bytes = 1 << 20;
    let db = Db::open(&own, options).unwrap();
    let keyspace = db.keyspace("k").unwrap();
    fill(&keyspace, 0..KEYS, 0);
    db.flush().unwrap();
    db.wait_idle().unwrap();
    let backups = Backups::open(&store).unwrap();
    let first = db.backup(&backups).unwrap();
    let mut before = db.stats();

    fill(&keyspace, (0..KEYS).step_by(100), 1);
    db.flush().unwrap();
    let mut written = Vec::new();
    for number in 2..4 {
        db.wait_idle().unwrap();
        let after = db.stats();
        let made = db.backup(&backups).unwrap();
        assert_eq!(made.number, number);
        let of_jobs = tables_written(&before, &after);
        let others = log_bytes(&own) + manifest_bytes(&store, number);
        assert!(
            made.copied_bytes <= of_jobs + others,
            "{made:?}: {of_jobs} and {others}"
        );
        // A key of four bytes and a value of a hundred each.
        assert!(made.copied_bytes > u64::from(KEYS) / 100 * 104, "{made:?}");
        written.push(of_jobs);
        before = after;
        keyspace.compact_range::<&[u8]>(..).unwrap();
    }
    // The flush alone, and then a compaction.
    assert!(written[0] * 4 < first.bytes, "{written:?} of {first:?}");
    assert!(written[0] < written[1], "{written:?}");
    drop(keyspace);
    db.close().unwrap();
    for number in [2, 3] {
        let copy = folder.path().join(format!("copy{number}"));
        backups.restore(number, &copy).unwrap();
        assert!(entries(&copy) == entries(&own), "backup {number}");
    }
}

/// Checks that no report goes back within its phase, and that each phase ends full. Returns the last report of each.
fn ends(reports: &[BackupProgress]) -> Vec<BackupProgress> {
    let mut ends: Vec<BackupProgress> = Vec::new();
    for report in reports {
        assert!(report.done <= report.total, "{report:?}");
        let begins =
            |last: &BackupProgress| last.phase != report.phase || report.done == 0 && last.done > 0;
        match ends.last_mut() {
            Some(last) if !begins(last) => {
                assert!(
                    last.done <= report.done && last.total <= report.total,
                    "{report:?} after {last:?}"
                );
                *last = *report;
            }
            _ => ends.push(*report),
        }
    }
    for end in &ends {
        assert_eq!(end.done, end.total, "{end:?}");
    }
    ends
}

#[test]
fn progress_never_goes_back_and_ends_full() {
    let folder = tempfile::tempdir().unwrap();
    let (own, store) = (folder.path().join("db"), folder.path().join("backups"));
    let reports = Arc::new(Mutex::new(Vec::new()));
    let backups = Backups::open(&store).unwrap().with_progress({
        let reports = Arc::clone(&reports);
        move |report| reports.lock().unwrap().push(report)
    });
    let take = || {
        let reports = std::mem::take(&mut *reports.lock().unwrap());
        assert!(reports.len() > 2, "{reports:?}");
        ends(&reports)
    };
    // The first one reads all bytes twice, to name them and to copy them. The others are of other opens: they compare.
    let mut made = Vec::new();
    for number in 1..4 {
        let db = Db::open(&own, options()).unwrap();
        let keyspace = db.keyspace("k").unwrap();
        fill(&keyspace, 0..8000 / number, number);
        if number == 1 {
            db.flush().unwrap();
            db.wait_idle().unwrap();
        }
        let report = db.backup(&backups).unwrap();
        let [end] = take()[..] else {
            unreachable!("a backup has one phase");
        };
        assert_eq!(end.phase, BackupPhase::Copying);
        let copied = report.copied_bytes - manifest_bytes(&store, report.number);
        assert!(end.total >= report.bytes + copied, "{end:?} of {report:?}");
        if number == 1 {
            assert_eq!(end.total, report.bytes + copied);
        }
        made.push(report);
        drop(keyspace);
        db.close().unwrap();
    }
    let check = backups.verify(None).unwrap();
    assert!(check.is_sound());
    let [end] = take()[..] else {
        unreachable!("a check has one phase");
    };
    assert_eq!(
        (end.phase, end.total),
        (BackupPhase::Verifying, check.bytes)
    );
    for report in made {
        let copy = folder.path().join(format!("copy{}", report.number));
        backups.restore(report.number, copy).unwrap();
        let [end] = take()[..] else {
            unreachable!("a restore has one phase");
        };
        assert_eq!(
            (end.phase, end.total),
            (BackupPhase::Restoring, report.bytes)
        );
    }
}

#[test]
fn a_backup_beside_writers_is_a_prefix_of_each() {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path().join("db"), options()).unwrap();
    let (left, right) = (db.keyspace("left").unwrap(), db.keyspace("right").unwrap());
    let ends = AtomicBool::new(false);
    let backups = Backups::open(folder.path().join("backups")).unwrap();
    std::thread::scope(|scope| {
        for writer in 0..2_u64 {
            let (db, left, right, ends) = (&db, &left, &right, &ends);
            scope.spawn(move || {
                for round in 0_u64.. {
                    if ends.load(Ordering::Relaxed) {
                        break;
                    }
                    let mut batch = Batch::new();
                    let key = [writer.to_be_bytes(), round.to_be_bytes()].concat();
                    batch.insert(left, &key, [7; 200]).unwrap();
                    batch.insert(right, &key, [8; 50]).unwrap();
                    db.write(&batch).unwrap();
                }
            });
        }
        for number in 1..6 {
            let made = db.backup(&backups).unwrap();
            assert_eq!(made.number, number);
        }
        ends.store(true, Ordering::Relaxed);
    });
    let keys = |keyspace: &Keyspace| {
        let keys = keyspace.iter().unwrap().map(|entry| entry.unwrap().0);
        keys.collect::<Vec<_>>()
    };
    assert!(backups.verify(None).unwrap().is_sound());
    for number in 1..6 {
        let copy = folder.path().join(format!("copy{number}"));
        backups.restore(number, &copy).unwrap();
        let copy = Db::open(&copy, options()).unwrap();
        let (left, right) = (
            copy.keyspace("left").unwrap(),
            copy.keyspace("right").unwrap(),
        );
        let left = keys(&left);
        assert!(left == keys(&right));
        for writer in 0..2_u64 {
            let own = left
                .iter()
                .filter(|key| key.starts_with(&writer.to_be_bytes()));
            for (round, key) in (0_u64..).zip(own) {
                assert!(key.ends_with(&round.to_be_bytes()));
            }
        }
        assert!(copy.verify().unwrap().is_sound());
    }
}

#[test]
fn a_close_ends_a_backup() {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path().join("db"), options()).unwrap();
    fill(&db.keyspace("k").unwrap(), 0..1000, 0);
    let store = folder.path().join("backups");
    let (sender, begun) = channel();
    // At this rate it would take days.
    let backups = Backups::open(&store).unwrap().with_rate(1);
    let backups = backups.with_progress(move |_| sender.send(()).unwrap_or(()));
    let made = std::thread::scope(|scope| {
        let backup = scope.spawn(|| db.backup(&backups));
        begun.recv().unwrap();
        db.clone().close().unwrap();
        backup.join().unwrap()
    });
    assert_eq!(made.unwrap_err().kind(), ErrorKind::Closed);
    assert!(backups.list().unwrap().is_empty());
}

/// It waits while the backups are checked at a rate at which this would take days.
#[test]
fn a_close_does_not_wait_for_a_backup_that_has_not_begun() {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path().join("db"), options()).unwrap();
    fill(&db.keyspace("k").unwrap(), 0..1000, 0);
    let (sender, calls) = channel();
    let (release, released) = channel::<()>();
    let released = Mutex::new(released);
    let is_checked = Arc::new(AtomicBool::new(false));
    let backups = Backups::open(folder.path().join("backups")).unwrap();
    let backups = backups.with_progress({
        let is_checked = Arc::clone(&is_checked);
        move |_| {
            if is_checked.load(Ordering::Relaxed) {
                sender.send(()).unwrap_or(());
                released.lock().unwrap().recv().unwrap_or(());
            }
        }
    });
    db.backup(&backups).unwrap();
    is_checked.store(true, Ordering::Relaxed);
    let (closed, made) = std::thread::scope(|scope| {
        scope.spawn(|| backups.verify(None).unwrap());
        calls.recv().unwrap();
        let backup = scope.spawn(|| db.backup(&backups));
        let (sender, closed) = channel();
        let own = db.clone();
        scope.spawn(move || sender.send(own.close()).unwrap_or(()));
        let closed = closed.recv_timeout(Duration::from_secs(30));
        drop(release);
        (closed, backup.join().unwrap())
    });
    closed.expect("the check goes on").unwrap();
    assert_eq!(made.unwrap_err().kind(), ErrorKind::Closed);
}

/// Objects in memory.
#[derive(Debug, Default)]
struct MemoryStore {
    objects: Mutex<BTreeMap<String, Vec<u8>>>,
    /// The device fails to read the object of this name.
    unreadable: Mutex<Option<String>>,
    /// The names that were put, in their order.
    puts: Mutex<Vec<String>>,
    /// So many puts succeed.
    puts_max: Mutex<usize>,
}

impl MemoryStore {
    fn objects(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Vec<u8>>> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Bytes(Vec<u8>);

impl ByteSource for Bytes {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        // A few bytes at a time, as a network gives them.
        let count = buffer.len().min(self.0.len()).min(1000);
        buffer[..count].copy_from_slice(&self.0[..count]);
        self.0.drain(..count);
        Ok(count)
    }
}

impl BackupStore for MemoryStore {
    fn put(&self, name: &str, content: &mut dyn ByteSource) -> Result<()> {
        let mut puts = self.puts.lock().unwrap();
        if puts.len() == *self.puts_max.lock().unwrap() {
            return Err(Error::new(ErrorKind::Io, "the store is not reached"));
        }
        let (mut bytes, mut buffer) = (Vec::new(), vec![0; 777]);
        loop {
            match content.read(&mut buffer)? {
                0 => break,
                count => bytes.extend_from_slice(&buffer[..count]),
            }
        }
        puts.push(name.to_owned());
        self.objects().insert(name.to_owned(), bytes);
        Ok(())
    }

    fn get(&self, name: &str) -> Result<Box<dyn ByteSource + '_>> {
        if self.unreadable.lock().unwrap().as_deref() == Some(name) {
            let message = format!("the device fails to read {name}");
            return Err(Error::new(ErrorKind::Io, message));
        }
        match self.objects().get(name) {
            Some(bytes) => Ok(Box::new(Bytes(bytes.clone()))),
            None => Err(Error::new(
                ErrorKind::NotFound,
                format!("there is no {name}"),
            )),
        }
    }

    fn list(&self) -> Result<Vec<StoredObject>> {
        let object = |(name, bytes): (&String, &Vec<u8>)| StoredObject {
            name: name.clone(),
            length: bytes.len() as u64,
        };
        Ok(self.objects().iter().map(object).collect())
    }

    fn delete(&self, names: &[String]) -> Result<()> {
        let mut objects = self.objects();
        objects.retain(|name, _| !names.contains(name));
        Ok(())
    }
}

#[test]
fn an_interrupted_backup_copies_nothing_twice() {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path().join("db"), options()).unwrap();
    let keyspace = db.keyspace("k").unwrap();
    fill(&keyspace, 0..8000, 0);
    db.flush().unwrap();
    db.wait_idle().unwrap();
    let store = Arc::new(MemoryStore::default());
    let backups = Backups::new(Arc::<MemoryStore>::clone(&store));
    let mut failures = 0;
    let made = loop {
        match db.backup(&backups) {
            Ok(made) => break made,
            Err(error) => assert_eq!(error.kind(), ErrorKind::Io, "{error}"),
        }
        assert!(backups.list().unwrap().is_empty());
        failures += 1;
        *store.puts_max.lock().unwrap() += 3;
    };
    let mut puts = store.puts.lock().unwrap().clone();
    let count = puts.len();
    assert!(failures > 3 && count > 10, "{failures} and {count}");
    puts.sort();
    puts.dedup();
    assert_eq!(puts.len(), count);
    backups
        .restore(made.number, folder.path().join("copy"))
        .unwrap();
    drop(keyspace);
    db.close().unwrap();
    assert!(entries(folder.path().join("copy")) == entries(folder.path().join("db")));
    backups.purge(Purge::Backup(1)).unwrap();
    assert!(store.objects().is_empty());
}

#[test]
fn a_manifest_that_cannot_be_read_blocks_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().join("db");
    let db = Db::open(&own, options()).unwrap();
    let keyspace = db.keyspace("k").unwrap();
    let store = Arc::new(MemoryStore::default());
    *store.puts_max.lock().unwrap() = usize::MAX;
    let backups = Backups::new(Arc::<MemoryStore>::clone(&store));
    for round in 0..3 {
        fill(&keyspace, round * 100..round * 100 + 100, 0);
        db.backup(&backups).unwrap();
    }
    *store.unreadable.lock().unwrap() = Some("000003.backup".to_owned());
    fill(&keyspace, 300..400, 0);
    assert_eq!(db.backup(&backups).unwrap().number, 4);
    assert_eq!(backups.newest().unwrap(), Some(4));
    let listed = backups.list().unwrap();
    let errors: Vec<_> = listed.iter().filter(|it| it.backup.is_err()).collect();
    assert_eq!(errors.len(), 1);
    assert_eq!(errors[0].number, 3);
    let check = backups.verify(None).unwrap();
    assert_eq!(check.damage.len(), 1);
    assert_eq!(check.damage[0].backups, [3]);
    let error = backups.restore(3, folder.path().join("copy")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.to_string().contains("backup 3"), "{error}");
    assert!(!folder.path().join("copy").exists());
    let error = backups.purge(Purge::KeepNewest(1)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.to_string().contains("nothing was removed"), "{error}");
    let purged = backups.purge(Purge::Backup(1)).unwrap();
    assert_eq!((purged.pieces, purged.unreadable), (0, vec![3]));
    let purged = backups.purge(Purge::Backup(3)).unwrap();
    assert!(purged.pieces > 0 && purged.unreadable.is_empty());
    drop(keyspace);
    db.close().unwrap();
    backups.restore(4, folder.path().join("copy")).unwrap();
    assert!(entries(folder.path().join("copy")) == entries(&own));
}

/// A store of one object, which never ends.
#[derive(Debug)]
struct EndlessStore(&'static [u8]);

/// The bytes of it, and then zeros.
struct Endless(&'static [u8]);

impl ByteSource for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let (head, rest) = self.0.split_at(self.0.len().min(buffer.len()));
        buffer.fill(0);
        buffer[..head.len()].copy_from_slice(head);
        self.0 = rest;
        Ok(buffer.len())
    }
}

impl BackupStore for EndlessStore {
    fn put(&self, name: &str, _content: &mut dyn ByteSource) -> Result<()> {
        Err(Error::new(ErrorKind::Io, format!("{name} is not stored")))
    }

    fn get(&self, _name: &str) -> Result<Box<dyn ByteSource + '_>> {
        Ok(Box::new(Endless(self.0)))
    }

    fn list(&self) -> Result<Vec<StoredObject>> {
        let name = "000001.backup".to_owned();
        Ok(vec![StoredObject {
            name,
            length: u64::MAX,
        }])
    }

    fn delete(&self, _names: &[String]) -> Result<()> {
        Ok(())
    }
}

#[test]
fn a_manifest_without_an_end_is_refused() {
    for beginning in [&b""[..], b"\x89WBACKUP"] {
        let backups = Backups::new(Arc::new(EndlessStore(beginning)));
        let listed = backups.list().unwrap();
        let error = listed[0].backup.as_ref().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
        assert!(error.to_string().contains("000001.backup"), "{error}");
    }
}

#[test]
fn a_folder_of_backups_is_neither_a_database_nor_created_by_readers() {
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().join("db");
    let db = Db::open(&own, options()).unwrap();
    let error = Backups::open(&own).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    drop(db);
    let error = Backups::open_read_only(&own).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    let missing = folder.path().join("missing");
    let error = Backups::open_read_only(&missing).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    assert!(!missing.exists());
    let store = folder.path().join("backups");
    drop(Backups::open(&store).unwrap());
    // Readers share it, and change nothing.
    let readers = [(); 2].map(|()| FolderStore::open_read_only(Arc::new(OsVfs), &store).unwrap());
    let error = Backups::open(&store).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked, "{error}");
    for reader in readers {
        let backups = Backups::new(Arc::new(reader));
        let db = Db::open(&own, options()).unwrap();
        let error = db.backup(&backups).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ReadOnly, "{error}");
        db.close().unwrap();
    }
}
