//! One process writes at a time.

use std::sync::Arc;

use object_store::ObjectStore;
use object_store::memory::InMemory;
use windrow::backup::{BackupStore, ByteSource};
use windrow::{ErrorKind, Result};
use windrow_object_store::{Bucket, BucketStore};

use crate::common::{bucket, names};
use crate::faulty::Faulty;
use crate::server::Server;

/// Bytes in memory.
struct Bytes<'a>(&'a [u8]);

impl ByteSource for Bytes<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let count = buffer.len().min(self.0.len());
        let (now, later) = self.0.split_at(count);
        buffer[..count].copy_from_slice(now);
        self.0 = later;
        Ok(count)
    }
}

fn put(store: &BucketStore, name: &str, content: &str) -> Result<()> {
    store.put(name, &mut Bytes(content.as_bytes()))
}

fn get(store: &BucketStore, name: &str) -> Vec<u8> {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 3]);
    let mut source = store.get(name).unwrap();
    loop {
        match source.read(&mut buffer).unwrap() {
            0 => return bytes,
            count => bytes.extend(&buffer[..count]),
        }
    }
}

fn stores() -> (Server, [Arc<dyn ObjectStore>; 2]) {
    let server = Server::start();
    let client = server.client(0);
    (server, [Arc::new(InMemory::new()), client])
}

#[test]
fn a_second_writer_is_refused_and_a_reader_is_not() {
    let (_server, stores) = stores();
    for objects in stores {
        let first = BucketStore::open(&bucket(&objects), "host-1").unwrap();
        let error = BucketStore::open(&bucket(&objects), "host-2").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Locked);
        assert!(error.message().contains("in use by host-1"), "{error}");
        put(&first, "1-1.piece", "a").unwrap();
        let reader = BucketStore::open_read_only(&bucket(&objects));
        assert_eq!(get(&reader, "1-1.piece"), b"a");
        // Another prefix has a lock of its own.
        let other = Bucket::new(Arc::clone(&objects), "backups/other").unwrap();
        drop(BucketStore::open(&other, "host-2").unwrap());
        drop(first);
        assert_eq!(BucketStore::unlock(&bucket(&objects)).unwrap(), None);
        let second = BucketStore::open(&bucket(&objects), "host-2").unwrap();
        put(&second, "000001.backup", "b").unwrap();
    }
}

#[test]
fn a_process_that_has_lost_its_lock_changes_nothing() {
    let (_server, stores) = stores();
    for objects in stores {
        let lost = BucketStore::open(&bucket(&objects), "host-1").unwrap();
        put(&lost, "1-1.piece", "a").unwrap();
        let removed = BucketStore::unlock(&bucket(&objects)).unwrap();
        assert_eq!(removed.as_deref(), Some("host-1"));
        let error = put(&lost, "000001.backup", "c").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Poisoned);

        let holder = BucketStore::open(&bucket(&objects), "host-2").unwrap();
        put(&holder, "2-1.piece", "b").unwrap();
        let before = names(&objects);
        // Small, and in parts.
        for length in [1, 9 << 20] {
            let content = "c".repeat(length);
            let error = put(&lost, "000001.backup", &content).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Poisoned);
            assert!(error.message().contains("taken by \"host-2\""), "{error}");
        }
        let error = lost.delete(&["2-1.piece".to_owned()]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Poisoned);
        // Its end does not give the lock of the other one back.
        drop(lost);
        assert_eq!(names(&objects), before);
        put(&holder, "000001.backup", "d").unwrap();
        holder.delete(&["000001.backup".to_owned()]).unwrap();
    }
}

/// Another process takes the lock before the last MiB of the bytes comes.
struct Taking<'a> {
    bytes: Bytes<'a>,
    bucket: &'a Bucket,
    lock: Option<BucketStore>,
}

impl ByteSource for Taking<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        if self.lock.is_none() && self.bytes.0.len() <= 1 << 20 {
            BucketStore::unlock(self.bucket)?;
            self.lock = Some(BucketStore::open(self.bucket, "host-2")?);
        }
        self.bytes.read(buffer)
    }
}

#[test]
fn a_lock_that_is_lost_during_an_upload_is_noticed() {
    let (server, stores) = stores();
    for objects in stores {
        for length in [1, 9 << 20] {
            let bucket = bucket(&objects);
            let store = BucketStore::open(&bucket, "host-1").unwrap();
            let content = vec![1; length];
            let mut content = Taking {
                bytes: Bytes(&content),
                bucket: &bucket,
                lock: None,
            };
            let error = store.put("1-1.piece", &mut content).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Poisoned, "{length}");
            assert!(names(&objects).is_empty(), "{length}");
        }
    }
    assert_eq!(server.unfinished(), [""; 0]);
}

#[test]
fn an_object_takes_the_place_of_another_one() {
    let (_server, stores) = stores();
    for objects in stores {
        let store = BucketStore::open(&bucket(&objects), "host-1").unwrap();
        for content in ["wrong", "right", ""] {
            put(&store, "1-5.piece", content).unwrap();
            assert_eq!(get(&store, "1-5.piece"), content.as_bytes());
        }
        assert_eq!(store.list().unwrap().len(), 1);
    }
}

/// A request of a process that had the lock before may arrive at any time. What this one has put stays, and the other way round.
#[test]
fn a_manifest_takes_the_place_of_no_other_one() {
    let (_server, stores) = stores();
    for objects in stores {
        for name in ["000001.backup", "1-2-3.archive"] {
            let late = BucketStore::open(&bucket(&objects), "host-1").unwrap();
            put(&late, name, "late").unwrap();
            drop(late);
            let store = BucketStore::open(&bucket(&objects), "host-2").unwrap();
            let error = put(&store, name, "another").unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Io);
            assert!(error.message().contains("with other bytes"), "{error}");
            assert_eq!(get(&store, name), b"late");
            // As after an attempt whose answer was lost.
            put(&store, name, "late").unwrap();
            store.delete(&[name.to_owned()]).unwrap();
            put(&store, name, "another").unwrap();
        }
    }
}

/// The client of a store has credentials.
#[test]
fn nothing_shows_what_a_client_is_made_of() {
    let faulty = Faulty::new(Arc::new(InMemory::new()));
    assert!(format!("{faulty:?}").contains("State"));
    let objects: Arc<dyn ObjectStore> = Arc::new(faulty);
    let store = BucketStore::open(&bucket(&objects), "host-1").unwrap();
    let shown = format!("{:?} {store:?}", bucket(&objects));
    assert!(
        shown.contains("a faulty store at \"backups/shop\""),
        "{shown}"
    );
    assert!(!shown.contains("State"), "{shown}");
}

#[test]
fn names_that_no_object_has_are_refused() {
    let objects: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let store = BucketStore::open(&bucket(&objects), "host-1").unwrap();
    let long = "a".repeat(81);
    for name in [
        "", ".", "..", "LOCK", "a/b", "../a", "a b", "a%2Fb", "\u{e4}", "a\n", &long,
    ] {
        let errors = [
            put(&store, name, "a").unwrap_err(),
            store.get(name).map(drop).unwrap_err(),
            store.delete(&[name.to_owned()]).unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{name:?}");
        }
    }
    put(&store, &long[1..], "a").unwrap();
    assert_eq!(names(&objects).len(), 1);
    let error = Bucket::new(objects, "a//b").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
}

#[test]
fn a_store_that_ignores_conditions_is_refused() {
    let faulty = Faulty::new(Arc::new(InMemory::new()));
    faulty.ignore_conditions();
    let objects: Arc<dyn ObjectStore> = Arc::new(faulty);
    let error = BucketStore::open(&bucket(&objects), "host-1").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert_eq!(BucketStore::unlock(&bucket(&objects)).unwrap(), None);
}

/// A caller may be a task of another runtime: it waits, and nothing panics.
#[test]
fn calls_work_within_a_runtime() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let (_server, stores) = stores();
    runtime.block_on(async {
        for objects in stores {
            let store = BucketStore::open(&bucket(&objects), "host-1").unwrap();
            put(&store, "1-1.piece", "a").unwrap();
            assert_eq!(get(&store, "1-1.piece"), b"a");
            drop(store);
            assert_eq!(names(&objects).len(), 1);
        }
    });
}
