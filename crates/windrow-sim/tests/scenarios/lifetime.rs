//! Lifetime counters and crashes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;

use windrow::{Db, Options};
use windrow_sim::{CrashPolicy, SimDisk, SteppedRuntime};

fn open(disk: &SimDisk) -> Db {
    let options = Options::default();
    let options = options
        .with_vfs(Arc::new(disk.clone()))
        .with_runtime(Arc::new(SteppedRuntime::new(1)));
    Db::open("/data/db", options).unwrap()
}

#[test]
fn a_crash_loses_what_was_counted_since_the_last_edit() {
    let disk = SimDisk::new();
    let db = open(&disk);
    let keyspace = db.keyspace("main").unwrap();
    // Writes that were counted, and those that the edit of a flush has surely recorded.
    let counted = Arc::new(AtomicU64::new(0));
    let recorded = Arc::new(AtomicU64::new(0));
    let (sender, points) = channel();
    let (seen_counted, seen_recorded) = (Arc::clone(&counted), Arc::clone(&recorded));
    disk.on_change(move |_, image| {
        let bounds = [&seen_recorded, &seen_counted].map(|it| it.load(Ordering::Relaxed));
        sender.send((image.clone(), bounds)).unwrap();
    });
    for round in 0..5_u8 {
        for number in 0..20_u8 {
            counted.fetch_add(1, Ordering::Relaxed);
            keyspace.insert([round, number], [7; 100]).unwrap();
        }
        db.flush().unwrap();
        recorded.store(counted.load(Ordering::Relaxed), Ordering::Relaxed);
    }
    drop(keyspace);
    db.close().unwrap();
    disk.stop_observing();
    let mut seen = 0;
    for (image, [recorded, counted]) in points {
        for policy in [CrashPolicy::DropUnsynced, CrashPolicy::KeepAll] {
            let disk = SimDisk::from_image(image.crash(policy));
            let lifetime = open(&disk).stats().lifetime;
            let writes = lifetime.user_writes;
            assert!((recorded..=counted).contains(&writes), "{writes}");
            assert_eq!(lifetime.user_bytes, 102 * writes);
            // The close of the open above has recorded what it counted.
            let wal_bytes = open(&disk).stats().lifetime.wal_bytes;
            assert!(wal_bytes > lifetime.wal_bytes);
            seen = seen.max(writes);
        }
    }
    assert_eq!(seen, 100);
}
