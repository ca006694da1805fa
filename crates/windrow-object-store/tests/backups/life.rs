//! The life of backups in each kind of store.

use std::sync::Arc;
use std::time::SystemTime;

use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use windrow::Db;
use windrow::backup::{BackupStore as _, ByteSource, Purge, RestoreTo};
use windrow::{Error, ErrorKind, Result};
use windrow_object_store::BucketStore;

use crate::common::{
    bucket, entries, fill, names, noise, open, open_read_only, options, restored, sound,
};
use crate::faulty::Faulty;
use crate::server::Server;

/// Larger than a part of an upload.
const LARGE: usize = 9 << 20;

/// Backups, restores, checks and purges, of small pieces and of a large one.
fn lives(objects: &Arc<dyn ObjectStore>) {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path().join("db"), options()).unwrap();
    let backups = open(objects).unwrap();
    assert!(backups.list().unwrap().is_empty());
    assert_eq!(backups.newest().unwrap(), None);

    let mut states = Vec::new();
    for round in 1..=3_u32 {
        fill(&db, 500 * round, round);
        if round == 2 {
            let keyspace = db.keyspace("k").unwrap();
            keyspace.insert("large", noise(7, LARGE)).unwrap();
        }
        db.flush().unwrap();
        db.wait_idle().unwrap();
        let made = db.backup(&backups).unwrap();
        assert_eq!(made.number, u64::from(round));
        assert_eq!(made.copied_bytes > LARGE as u64, round == 2, "{made:?}");
        states.push(entries(&db));
    }
    // Nothing has changed, so a manifest is all that is copied.
    let made = db.backup(&backups).unwrap();
    assert!(made.copied_bytes < 10_000, "{made:?}");
    assert_eq!(sound(objects), [1, 2, 3, 4]);
    for (number, state) in (1..).zip(&states) {
        assert!(
            restored(&backups, number, folder.path()) == *state,
            "{number}"
        );
    }

    let before = names(objects);
    let report = backups.purge(Purge::Backup(3)).unwrap();
    assert_eq!((report.backups, report.pieces), (vec![3], 0));
    let report = backups.purge(Purge::KeepNewest(1)).unwrap();
    assert_eq!(report.backups, [1, 2]);
    let after = names(objects);
    let removed = before.len() - after.len();
    assert_eq!(removed as u64, 3 + report.pieces);
    assert!(report.pieces > 0);
    assert_eq!(sound(objects), [4]);
    assert!(restored(&backups, 4, folder.path()) == states[2]);

    // Whoever reads takes no lock, and changes nothing.
    let reading = open_read_only(objects);
    assert!(restored(&reading, 4, folder.path()) == states[2]);
    let refused = [
        reading.purge(Purge::Backup(4)).unwrap_err(),
        db.backup(&reading).unwrap_err(),
    ];
    assert!(
        refused
            .iter()
            .all(|error| error.kind() == ErrorKind::ReadOnly)
    );
    assert_eq!(names(objects), after);
    drop(backups);
    assert_eq!(BucketStore::unlock(&bucket(objects)).unwrap(), None);
    db.close().unwrap();
}

/// States between backups, by number and by time.
fn archives(objects: &Arc<dyn ObjectStore>) {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path().join("db"), options()).unwrap();
    let backups = open(objects).unwrap();
    let mut states = Vec::new();
    for round in 1..=4_u32 {
        fill(&db, 100, round);
        let sequence = db.archive(&backups).unwrap().sequence;
        let time = backups.reachable().unwrap().states[0].until;
        states.push((sequence, time, entries(&db)));
        // The time of the next archiving is another one.
        while SystemTime::now() <= time + std::time::Duration::from_millis(1) {
            std::thread::yield_now();
        }
    }
    db.close().unwrap();
    assert_eq!(sound(objects), [1]);

    let reading = open_read_only(objects);
    for (sequence, time, expected) in &states {
        for to in [RestoreTo::Sequence(*sequence), RestoreTo::Time(*time)] {
            let target = folder.path().join("restored");
            let restored = reading.restore_to(to, None, &target).unwrap();
            assert_eq!((restored.backup, restored.sequence), (1, *sequence));
            let db = Db::open(&target, options()).unwrap();
            assert!(entries(&db) == *expected, "{to:?}");
            db.close().unwrap();
            std::fs::remove_dir_all(&target).unwrap();
        }
    }
}

#[test]
fn backups_live_in_memory() {
    archives(&(Arc::new(InMemory::new()) as Arc<dyn ObjectStore>));
    let store = Faulty::new(Arc::new(InMemory::new()));
    lives(&(Arc::new(store.clone()) as Arc<dyn ObjectStore>));
    // The large value came in parts of bounded length.
    assert_eq!(store.longest_part(), 8 << 20);
    assert_eq!(store.unfinished_uploads(), 0);
}

#[test]
fn backups_live_in_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let store = LocalFileSystem::new_with_prefix(folder.path()).unwrap();
    lives(&(Arc::new(store) as Arc<dyn ObjectStore>));
}

#[test]
fn backups_live_at_a_server() {
    let server = Server::start();
    archives(&server.client(0));
    let server = Server::start();
    lives(&server.client(0));
    assert_eq!(server.unfinished(), [""; 0]);
}

/// Bytes that end with an error.
struct Breaking(usize);

impl ByteSource for Breaking {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        if self.0 == 0 {
            return Err(Error::corruption("000001.table", 7, "test"));
        }
        let count = buffer.len().min(self.0).min(1000);
        buffer[..count].fill(1);
        self.0 -= count;
        Ok(count)
    }
}

#[test]
fn an_object_whose_bytes_end_with_an_error_is_not_there() {
    let server = Server::start();
    let memory: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    for objects in [memory, server.client(0)] {
        let store = BucketStore::open(&bucket(&objects), "a test").unwrap();
        for length in [0, 100, LARGE] {
            for name in ["1-1.piece", "000001.backup"] {
                let error = store.put(name, &mut Breaking(length)).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Corruption);
                assert!(names(&objects).is_empty(), "{name} of {length} bytes");
            }
        }
    }
    assert_eq!(server.unfinished(), [""; 0]);
}

#[test]
fn names_that_are_not_there() {
    let server = Server::start();
    let memory: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    for objects in [memory, server.client(0)] {
        let store = BucketStore::open(&bucket(&objects), "a test").unwrap();
        let error = store.get("1-1.piece").map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.message().contains("1-1.piece in "), "{error}");
        store
            .delete(&["1-1.piece".to_owned(), "2-1.piece".to_owned()])
            .unwrap();
    }
}

/// The large piece is sent while the connection breaks at many places.
#[test]
fn a_server_that_cuts_connections_gets_all_of_a_backup() {
    let server = Server::start();
    let objects = server.client(5);
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path().join("db"), options()).unwrap();
    let keyspace = db.keyspace("k").unwrap();
    for (number, bytes) in (1..).zip([500, 1 << 20, 9 << 20]) {
        keyspace.insert("large", noise(number, LARGE)).unwrap();
        let backups = open(&objects).unwrap();
        server.cut_after(bytes);
        db.backup(&backups).unwrap();
        assert_eq!(server.cuts(), u64::from(number), "{bytes}");
    }
    assert_eq!(sound(&objects), [1, 2, 3]);
    assert_eq!(server.unfinished(), [""; 0]);

    // A client that does not try again reports it, and the next backup is whole.
    let objects = server.client(0);
    keyspace.insert("large", noise(4, LARGE)).unwrap();
    let backups = open(&objects).unwrap();
    server.cut_after(1 << 20);
    let error = db.backup(&backups).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert_eq!(sound(&objects), [1, 2, 3]);
    assert_eq!(server.unfinished(), [""; 0]);
    db.backup(&backups).unwrap();
    assert_eq!(sound(&objects), [1, 2, 3, 4]);
    assert!(restored(&backups, 4, folder.path()) == entries(&db));
}
