//! Damaged files: a compaction that fails on one blocks no other work.

use std::path::PathBuf;

use windrow::{Db, ErrorKind, Keyspace, MediumInPlace, SegmentLimit};
use windrow_sim::{SimDisk, SteppedRuntime};

use crate::common::{FOLDER, kind, on, open, small};

/// Flips a bit in the second record of the oldest value file, which is live; returns its path.
pub(crate) fn damage_oldest_values(disk: &SimDisk) -> PathBuf {
    disk.edit(|image| {
        let path = image.files_with("values").into_iter().min().unwrap();
        image.flip(&path, 350, 1).unwrap();
        path
    })
}

#[test]
fn a_failing_compaction_blocks_no_flush() {
    let disk = SimDisk::new();
    let runtime = SteppedRuntime::new(1);
    let mut patient = on(small(), &disk, &runtime);
    patient.keyspace.level0_runs = 64;
    let db = Db::open(FOLDER, patient).unwrap();
    let damaged = db.keyspace("damaged").unwrap();
    for round in 0..4_u8 {
        damaged.insert("key", [round; 1000]).unwrap();
        db.flush().unwrap();
    }
    drop(damaged);
    db.close().unwrap();
    disk.edit(|image| {
        for path in image.files_with("table") {
            image.flip(&path, 100, 1).unwrap();
        }
    });
    let opened = on(small(), &disk, &runtime);
    let eager = opened.keyspace.clone();
    let db = Db::open(FOLDER, opened).unwrap();
    let damaged = db.keyspace_with("damaged", eager).unwrap();
    let sound = db.keyspace("sound").unwrap();
    for number in 0..2000_u32 {
        let key = number.wrapping_mul(0x9E37_79B9).to_be_bytes();
        sound.insert(key, [7; 100]).unwrap();
        // A background thread would run due jobs here.
        runtime.step();
    }
    db.flush().unwrap();
    assert_eq!(db.stats().stall_count(), 0);
    assert_eq!(kind(db.wait_idle()), ErrorKind::Corruption);
    // Statistics name the files and the damage.
    for keyspace in db.stats().keyspaces {
        let paused = keyspace.paused_tables;
        assert_eq!(paused.is_empty(), keyspace.name != "damaged");
        for file in paused {
            assert!(file.failures > 0 && file.error.contains(".table is damaged"));
        }
    }
    // It does not block compactions of another keyspace either.
    assert!(db.stats().compactions > 0);
    damaged.insert("key", "new").unwrap();
    db.flush().unwrap();
}

/// A compaction that would copy the value leaves it in its file, so level 0 does not fill up.
#[test]
fn a_damaged_value_of_a_transient_log_blocks_no_compaction() {
    let disk = SimDisk::new();
    let reopened = || {
        let mut options = on(small(), &disk, &SteppedRuntime::new(1));
        options.keyspace.medium_from = 64;
        options.keyspace.large_from = 1 << 20;
        options.keyspace.medium_in_place = MediumInPlace::Never;
        options.keyspace.segment_limit = SegmentLimit::Fixed(1);
        open(options)
    };
    let fill = |keyspace: &Keyspace, but: Option<u8>| {
        let keys = (0..100).filter(|key| Some(*key) != but);
        keys.for_each(|key: u8| keyspace.insert([key], [key; 100]).unwrap());
    };
    let (db, keyspace) = reopened();
    fill(&keyspace, None);
    drop(keyspace);
    db.wait_idle().unwrap();
    db.close().unwrap();
    damage_oldest_values(&disk);

    let (db, keyspace) = reopened();
    let read = |key: u8| keyspace.get([key]);
    let damaged = (0..100).find(|&key| read(key).is_err()).unwrap();
    // Little else of its transient log is live, so compactions copy the rest.
    for _ in 0..8 {
        fill(&keyspace, Some(damaged));
        db.flush().unwrap();
        db.wait_idle().unwrap();
    }
    for key in (0..100).filter(|key| *key != damaged) {
        assert_eq!(read(key).unwrap().unwrap(), [key; 100]);
    }
    assert_eq!(kind(read(damaged)), ErrorKind::Corruption);
    let levels = &db.stats().keyspaces[0].levels;
    assert!(levels[0].files <= 2, "{levels:?}");
}
