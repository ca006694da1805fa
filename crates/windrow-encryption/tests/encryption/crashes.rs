//! Power failures under an encrypted database, and what nonces do through them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use windrow::vfs::{OpenMode, Vfs, write_all_at};
use windrow::{Batch, Db, Durability, Options};
use windrow_sim::disk::OperationKind;
use windrow_sim::{CrashPolicy, Random, SimDisk, SteppedRuntime};

use crate::{FOLDER, encrypted, open, options, raw_files, value};

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

/// A sector of an encrypted file, as it was written.
struct Sector {
    /// The name of the file when it was opened.
    path: PathBuf,
    salt: Vec<u8>,
    place: u64,
    bytes: Vec<u8>,
}

/// Sends each sector behind a header that is written to `disk`, those included that are written over later.
fn note_sectors(disk: &SimDisk, sectors: Sender<Sector>) {
    const MAGIC: &[u8] = b"\x89WSECRET";
    let mut salts = BTreeMap::<PathBuf, Vec<u8>>::new();
    disk.on_change(move |event, image| {
        let is_write = match event.kind {
            OperationKind::Write => true,
            // Another file gets the name.
            OperationKind::Create | OperationKind::Rename => {
                salts.remove(&event.path);
                false
            }
            _ => false,
        };
        if !is_write {
            return;
        }
        if event.offset == 0 && event.bytes.starts_with(MAGIC) {
            salts.insert(event.path.clone(), event.bytes[80..112].to_vec());
        } else if !salts.contains_key(&event.path) {
            // The file is older than this process. Without a name nobody reads it again.
            let Ok(bytes) = image.read(&event.path) else {
                return;
            };
            assert!(bytes.starts_with(MAGIC), "{event:?}");
            salts.insert(event.path.clone(), bytes[80..112].to_vec());
        }
        assert_eq!((event.offset % 512, event.bytes.len() % 512), (0, 0));
        let places = (event.offset..).step_by(512);
        let written = places.zip(event.bytes.chunks(512));
        for (place, bytes) in written.filter(|(place, _)| *place > 0) {
            let sector = Sector {
                path: event.path.clone(),
                salt: salts[&event.path].clone(),
                place,
                bytes: bytes.to_vec(),
            };
            sectors.send(sector).unwrap();
        }
    });
}

/// `options` with the files that others read while the database is open.
fn observed(disk: &SimDisk, runtime: &SteppedRuntime) -> Options {
    let mut options = options(&encrypted(disk));
    options.job_log_bytes = Options::default().job_log_bytes;
    options.status_interval = Options::default().status_interval;
    options.with_runtime(Arc::new(runtime.clone()))
}

/// A nonce of a file is used for one content alone, whatever fails in between.
#[test]
fn no_nonce_is_used_twice() {
    let mut random = Random::new(7);
    let mut disk = SimDisk::new();
    let (sender, sectors) = channel();
    for _ in 0..20 {
        note_sectors(&disk, sender.clone());
        disk.crash_at(100 + random.below(300));
        let mut written = Written::default();
        written.states.push(BTreeMap::new());
        let (own, theirs) = (SteppedRuntime::new(5), SteppedRuntime::new(6));
        drop(Db::open(FOLDER, observed(&disk, &own)).and_then(|db| {
            let outcome = (0..5).try_for_each(|_| {
                // The status is due, and a reader in another process comes and goes.
                own.advance(Duration::from_secs(60));
                drop(Db::open_secondary(FOLDER, observed(&disk, &theirs)));
                write(&db, &mut random, &mut written, 12)
            });
            drop(db.close());
            outcome
        }));
        disk = disk.crash(CrashPolicy::Random(random.below(1 << 40)));
    }
    let mut contents = BTreeMap::<_, BTreeSet<_>>::new();
    let mut places = BTreeMap::<_, u64>::new();
    let mut files = BTreeSet::new();
    for sector in sectors.try_iter().filter(|it| it.bytes != [0; 512]) {
        files.insert(sector.path);
        *places
            .entry((sector.salt.clone(), sector.place))
            .or_default() += 1;
        let nonce = sector.bytes[..12].to_vec();
        let contents = contents.entry((sector.salt, nonce));
        contents.or_default().insert(sector.bytes);
    }
    assert!(contents.values().all(|contents| contents.len() == 1));
    assert!(contents.len() > 1000, "{}", contents.len());
    let rewritten = places.values().filter(|times| **times > 1).count();
    assert!(rewritten > 100, "{rewritten}");
    for part in ["LOG", "STATUS", "readers"] {
        let mut parts = files.iter().flat_map(|path| path.iter());
        assert!(parts.any(|it| it == part), "{part} of {files:?}");
    }
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
