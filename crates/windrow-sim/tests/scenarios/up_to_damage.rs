//! `Recovery::UpToDamage`: what an open makes of a damaged log. The stress test of damage opens random histories.

use std::path::Path;
use std::time::Duration;

use windrow::{Db, ErrorKind, Event, Options, Recovery};
use windrow_sim::disk::Image;
use windrow_sim::{SimDisk, SteppedRuntime};

use crate::common::{Entries, FOLDER, check_sound, entries, kind, listen, on, small};

fn options(disk: &SimDisk, recovery: Recovery) -> Options {
    let mut options = on(small(), disk, &SteppedRuntime::new(1));
    options.recovery = recovery;
    options
}

fn strict(disk: &SimDisk) -> Options {
    options(disk, Recovery::Strict)
}

fn up_to_damage(disk: &SimDisk) -> Options {
    options(disk, Recovery::UpToDamage)
}

/// Commits 0 to 9 in keyspace `k`, each with a value that no other has; the log stays.
fn ten_commits(db: &Db) {
    let keyspace = db.keyspace("k").unwrap();
    for number in 0..10_u8 {
        keyspace.insert([number], [b'a' + number; 20]).unwrap();
    }
}

/// Flips a bit in the log that has the value of commit `number`.
fn damage_commit(disk: &SimDisk, number: u8) {
    let value = [b'a' + number; 20];
    disk.edit(|image: &mut Image| {
        let found = image.files_with("wal").into_iter().find_map(|path| {
            let bytes = image.read(&path).unwrap();
            let offset = (0..bytes.len()).find(|&offset| bytes[offset..].starts_with(&value))?;
            Some((path, offset))
        });
        let (path, offset) = found.unwrap();
        image.flip(&path, offset, 1).unwrap();
    });
}

fn first_commits(count: u8) -> Entries {
    let entry = |number: u8| (vec![number], vec![b'a' + number; 20]);
    (0..count).map(entry).collect()
}

#[test]
fn an_open_goes_on_with_the_commits_before_the_damage() {
    let disk = SimDisk::new();
    let db = Db::open(FOLDER, strict(&disk)).unwrap();
    ten_commits(&db);
    db.close().unwrap();
    damage_commit(&disk, 6);
    let error = Db::open(FOLDER, strict(&disk)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    assert!(error.next_step().unwrap().contains("UpToDamage"));

    let before = disk.image();
    let db = Db::open_read_only(FOLDER, up_to_damage(&disk)).unwrap();
    assert_eq!(entries(&db.keyspace("k").unwrap()), first_commits(6));
    drop(db);
    assert_eq!(disk.image().hash(), before.hash());

    let (listening, cuts) = listen(up_to_damage(&disk), |event| match event {
        Event::HistoryCut {
            damage,
            last_sequence,
            ..
        } => Some((damage.clone(), *last_sequence)),
        _ => None,
    });
    let db = Db::open(FOLDER, listening).unwrap();
    let (damage, last) = cuts.try_recv().unwrap();
    assert_eq!((error.message(), 6), (&*damage, last));
    let keyspace = db.keyspace("k").unwrap();
    keyspace.insert("new", "write").unwrap();
    drop(keyspace);
    db.close().unwrap();

    // From then on nothing is damaged.
    let db = Db::open(FOLDER, strict(&disk)).unwrap();
    let mut expected = first_commits(6);
    expected.insert(b"new".to_vec(), b"write".to_vec());
    assert_eq!(entries(&db.keyspace("k").unwrap()), expected);
    check_sound(&db);
}

/// The copy has sealed a value log with values of commits that its damaged log has lost. A garbage collection must not
/// take them for values that tables refer to.
#[test]
fn a_cut_ends_value_logs_where_history_ends() {
    const COPY: &str = "/data/copies/copy";
    let key = |number: u8| format!("commit {number}");
    for flushed in [0, 4, 6] {
        let disk = SimDisk::new();
        let large = |recovery| {
            let mut options = options(&disk, recovery);
            options.keyspace.medium_from = 64;
            options.keyspace.large_from = 64;
            options
        };
        let db = Db::open(FOLDER, large(Recovery::Strict)).unwrap();
        let keyspace = db.keyspace("k").unwrap();
        for number in 0..10 {
            if number == flushed {
                db.flush().unwrap();
            }
            let value = [b'a' + number; 100];
            keyspace.insert(key(number), value).unwrap();
        }
        db.checkpoint(COPY).unwrap();
        drop(keyspace);
        db.close().unwrap();
        disk.edit(|image: &mut Image| {
            let logs = image.files_with("wal").into_iter();
            for path in logs.filter(|path| path.starts_with(COPY)) {
                let bytes = image.read(&path).unwrap();
                let lost = key(6).into_bytes();
                if let Some(offset) = bytes.windows(lost.len()).position(|it| it == lost) {
                    image.flip(&path, offset, 1).unwrap();
                }
            }
        });

        let options = large(Recovery::UpToDamage);
        let runtime = SteppedRuntime::new(1);
        let db = Db::open(COPY, on(options, &disk, &runtime)).unwrap();
        let keyspace = db.keyspace("k").unwrap();
        let held = entries(&keyspace);
        assert!(
            held.keys().eq((0..6)
                .map(key)
                .map(String::into_bytes)
                .collect::<Vec<_>>()
                .iter())
        );
        // The lost sequence numbers are used again, and most of the values become garbage.
        for number in 1..6 {
            keyspace.insert(key(number), "short").unwrap();
        }
        keyspace.compact_range::<&[u8]>(..).unwrap();
        runtime.run_until_idle(1000);
        check_sound(&db);
        let first = keyspace.get(key(0)).unwrap();
        assert_eq!(first.as_deref(), Some(&[b'a'; 100][..]));
        let stats = db.stats();
        assert_eq!(stats.keyspaces[0].value_logs.garbage_bytes, 0, "{flushed}");
    }
}

/// One keyspace has flushed commits that another one has lost, some or all of its own.
#[test]
fn an_open_refuses_a_cut_before_commits_that_are_in_tables() {
    let disk = SimDisk::new();
    let runtime = SteppedRuntime::new(1);
    let db = Db::open(FOLDER, on(small(), &disk, &runtime)).unwrap();
    ten_commits(&db);
    let large = db.keyspace("large").unwrap();
    for number in 0..40_u8 {
        large.insert([number], [number; 200]).unwrap();
    }
    runtime.run_until_idle(1000);
    drop(large);
    let image = disk.image();
    assert!(!image.files_with("table").is_empty());
    drop(db);
    for damaged in [6, 0] {
        let disk = SimDisk::from_image(image.clone());
        damage_commit(&disk, damaged);
        check_that_an_open_refuses(&disk, damaged);
    }
}

fn check_that_an_open_refuses(disk: &SimDisk, damaged: u8) {
    let before = disk.image();
    let error = Db::open(FOLDER, up_to_damage(disk)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    let sentence = error.to_string();
    assert!(sentence.contains("tables hold later ones"), "{sentence}");
    assert!(!sentence.contains("UpToDamage"), "{sentence}");
    let names = |image: &Image| image.files();
    assert_eq!(names(&disk.image()), names(&before));
    // A repair saves what is behind the damage, too.
    let report = Db::repair(Path::new(FOLDER), Path::new("/data/new"), &strict(disk)).unwrap();
    assert!(!report.is_whole());
    let db = Db::open("/data/new", strict(disk)).unwrap();
    let mut saved = first_commits(10);
    saved.remove(&vec![damaged]);
    assert_eq!(entries(&db.keyspace("k").unwrap()), saved);
    assert_eq!(db.keyspace("large").unwrap().iter().unwrap().count(), 40);
}

#[test]
fn consumers_that_have_seen_what_is_lost_fall_behind() {
    let disk = SimDisk::new();
    let db = Db::open(FOLDER, strict(&disk)).unwrap();
    let slow = db.consumer("slow").unwrap();
    let fast = db.consumer("fast").unwrap();
    ten_commits(&db);
    let mut changes = fast.changes().unwrap();
    while let Some(change) = changes.next(Duration::ZERO).unwrap() {
        fast.acknowledge(change.sequence()).unwrap();
    }
    drop((slow, fast, changes));
    db.close().unwrap();
    damage_commit(&disk, 6);

    let db = Db::open(FOLDER, up_to_damage(&disk)).unwrap();
    db.keyspace("k").unwrap().insert("other", "commit").unwrap();
    assert_eq!(
        kind(db.consumer("fast").unwrap().changes()),
        ErrorKind::FellBehind
    );
    // Sequence number 7 is used again, and the other consumer sees what it is now.
    let mut changes = db.consumer("slow").unwrap().changes().unwrap();
    let mut seen = 0;
    while let Some(change) = changes.next(Duration::ZERO).unwrap() {
        seen = change.sequence();
    }
    assert_eq!(seen, 8);
}
