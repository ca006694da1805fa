//! Power failures under an encrypted database, and what nonces do through them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use windrow::vfs::{OpenMode, Vfs, write_all_at};
use windrow::{Batch, Db, Durability};
use windrow_sim::{CrashPolicy, Random, SimDisk};

use crate::{FOLDER, encrypted, open, raw_files, value};

/// What the keyspace holds after each step, and the steps that are durable.
#[derive(Default)]
struct Written {
    states: Vec<BTreeMap<Vec<u8>, Vec<u8>>>,
    durable: usize,
}

/// Writes at random until a write fails.
fn write(db: &Db, random: &mut Random, written: &mut Written, rounds: u64) -> windrow::Result<()> {
    let keyspace = db.keyspace("main")?;
    for round in 0..rounds {
        let mut state = written.states.last().cloned().unwrap_or_default();
        let mut batch = Batch::new();
        for _ in 0..=random.below(3) {
            let key = random.below(60).to_be_bytes();
            if random.below(4) == 0 {
                batch.remove(&keyspace, key)?;
                state.remove(&key[..]);
            } else {
                let value = value(random.below(1000));
                batch.insert(&keyspace, key, &value)?;
                state.insert(key.to_vec(), value);
            }
        }
        written.states.push(state);
        let sync = random.below(3) == 0;
        let durability = if sync {
            Durability::Sync
        } else {
            Durability::Buffered
        };
        db.write_with(&batch, durability)?;
        if sync {
            written.durable = written.states.len() - 1;
        }
        match round % 17 {
            5 => db.flush()?,
            11 => db.wait_idle()?,
            _ => {}
        }
    }
    Ok(())
}

fn contents(db: &Db) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let keyspace = db.keyspace("main").unwrap();
    let entries = keyspace.iter().unwrap().map(|entry| entry.unwrap());
    entries.collect()
}

/// One database through several power failures.
fn history(seed: u64) {
    let mut random = Random::new(seed);
    let mut disk = SimDisk::new();
    let mut written = Written::default();
    written.states.push(BTreeMap::new());
    for life in 0..4 {
        disk.crash_at(20 + random.below(400));
        let outcome = open(&encrypted(&disk)).and_then(|db| {
            let outcome = write(&db, &mut random, &mut written, 200);
            drop(db.close());
            outcome
        });
        let policy = CrashPolicy::all(random.below(1 << 40))[random.below(4) as usize];
        disk = disk.crash(policy);
        let db = open(&encrypted(&disk)).unwrap_or_else(|error| {
            panic!("seed {seed}, life {life}, {policy:?} after {outcome:?}: {error}")
        });
        let found = contents(&db);
        let states = &written.states[written.durable..];
        assert!(
            states.contains(&found),
            "seed {seed}, life {life}, {policy:?}: the content is no state since the last sync"
        );
        assert!(db.verify().unwrap().is_sound());
        db.close().unwrap();
        written = Written {
            states: vec![found],
            durable: 0,
        };
    }
}

#[test]
fn what_is_durable_survives_power_failures() {
    for seed in 0..150 {
        history(seed);
    }
}

/// A nonce of a file is used for one content alone, whatever fails in between.
#[test]
fn no_nonce_is_used_twice() {
    let mut random = Random::new(7);
    let mut disk = SimDisk::new();
    let mut seen = BTreeMap::<Vec<u8>, BTreeSet<Vec<u8>>>::new();
    for _ in 0..20 {
        disk.crash_at(60 + random.below(200));
        let mut written = Written::default();
        written.states.push(BTreeMap::new());
        drop(open(&encrypted(&disk)).and_then(|db| {
            let outcome = write(&db, &mut random, &mut written, 60);
            drop(db.close());
            outcome
        }));
        for policy in CrashPolicy::all(random.below(1 << 40)) {
            for (_, bytes) in raw_files(&disk.crash(policy)) {
                for sector in bytes.chunks_exact(512).skip(1) {
                    if sector.iter().any(|byte| *byte != 0) {
                        let contents = seen.entry([&bytes[80..112], &sector[..12]].concat());
                        contents.or_default().insert(sector.to_vec());
                    }
                }
            }
        }
        disk = disk.crash(CrashPolicy::Random(random.below(1 << 40)));
    }
    assert!(seen.len() > 1000, "{}", seen.len());
    assert!(seen.values().all(|contents| contents.len() == 1));
}

/// Power failures take away what was appended, and each process appends other bytes there. It does not know the nonces of those
/// before it, and their sectors may be in a copy of the disk.
#[test]
fn what_is_appended_again_after_a_power_failure_has_other_nonces() {
    let disk = SimDisk::new();
    let vfs = encrypted(&disk);
    let path = Path::new(FOLDER).join("file");
    vfs.create_dir_all(Path::new(FOLDER)).unwrap();
    let file = vfs.create(&path).unwrap();
    write_all_at(&*file, &[0; 700], 0).unwrap();
    file.sync_data().unwrap();
    vfs.sync_dir(Path::new(FOLDER)).unwrap();

    let mut seen = BTreeMap::<Vec<u8>, BTreeSet<Vec<u8>>>::new();
    for life in 1..6_u8 {
        let disk = disk.crash(CrashPolicy::DropUnsynced);
        let file = encrypted(&disk).open(&path, OpenMode::ReadWrite).unwrap();
        for part in 0..4_u64 {
            write_all_at(&*file, &[life; 300], 700 + 300 * part).unwrap();
            for (_, bytes) in raw_files(&disk) {
                for sector in bytes.chunks_exact(512).skip(1) {
                    let contents = seen.entry(sector[..12].to_vec());
                    contents.or_default().insert(sector.to_vec());
                }
            }
        }
    }
    assert!(seen.len() > 20, "{}", seen.len());
    assert!(seen.values().all(|contents| contents.len() == 1));
}
