//! Each way to add many entries at once, under a crash after each change of the disk and a fault at each operation: all of
//! them are there, in all keyspaces, or none.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use windrow::vfs::Vfs;
use windrow::{Db, Error, Keyspace, Result, TableWriter};
use windrow_sim::disk::{AfterFailedSync, Effect, Fault, Image, OperationKind};
use windrow_sim::{CrashPolicy, SimDisk, SteppedRuntime};

use super::{fill, key, loaded, options, value};
use crate::common::{self, Entries, check_sound, entries};

/// The files outside of the database: two for the first keyspace, one for the second one.
const EXTERNAL: [&str; 3] = ["/data/one", "/data/two", "/data/three"];

/// The memory of a load of entries in any order: it writes several sorted runs.
const SORT_BYTES: usize = 8 << 10;

/// A way to add entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// A bulk load into the first keyspace.
    Sorted,
    /// The same, of entries in any order.
    Unsorted,
    /// Files for both keyspaces, which get another name each.
    Linked,
    /// The same on a disk that knows one name for each file.
    Copied,
}

/// What the two keyspaces have.
type Contents = [Entries; 2];

/// A database with two keyspaces.
struct Store {
    db: Db,
    keyspaces: [Keyspace; 2],
}

impl Store {
    fn open(disk: &SimDisk) -> Self {
        let (db, first) = super::open(disk);
        let second = db.keyspace("second").unwrap();
        let keyspaces = [first, second];
        Self { db, keyspaces }
    }

    /// A database on `disk` to which `way` adds entries. All that it has is durable.
    fn filled(disk: &SimDisk, way: Way) -> Self {
        way.prepare(disk);
        let store = Self::open(disk);
        fill(&store.db, &store.keyspaces[0]);
        store.keyspaces[1].insert(key(130), "old").unwrap();
        // Nothing flushes it, so the logs stay needed, up to the number of the load.
        let other = store.db.keyspace("other").unwrap();
        other.insert("unflushed", "").unwrap();
        store.db.persist().unwrap();
        store
    }

    fn contents(&self) -> Contents {
        self.keyspaces.each_ref().map(entries)
    }

    /// Panics unless the folder holds the tables that the manifest names, and no others.
    fn check_tables(&self, disk: &SimDisk) {
        self.db.wait_idle().unwrap();
        let stats = self.db.stats();
        let levels = stats.keyspaces.iter().flat_map(|keyspace| &keyspace.levels);
        let named: usize = levels.map(|level| level.files).sum();
        assert_eq!(common::count(disk, "table"), named);
        check_sound(&self.db);
    }
}

impl Way {
    /// What it adds.
    fn added(self) -> Contents {
        let second = (120..180).map(|number| (key(number), value(number, "second")));
        let has_second = matches!(self, Self::Linked | Self::Copied);
        [loaded(), second.filter(|_| has_second).collect()]
    }

    /// Writes the files that it adds. Nobody has synced them.
    fn prepare(self, disk: &SimDisk) {
        if matches!(self, Self::Sorted | Self::Unsorted) {
            return;
        }
        disk.set_can_link(self == Self::Linked);
        let [mut first, second] = self.added();
        let behind = first.split_off(&key(300));
        disk.create_dir_all(Path::new("/data")).unwrap();
        for (path, entries) in EXTERNAL.into_iter().zip([first, behind, second]) {
            let written = format!("{path}-written");
            let options = options(disk, &SteppedRuntime::new(1));
            let mut writer = TableWriter::create(&written, &options).unwrap();
            for (key, value) in entries {
                writer.insert(key, value).unwrap();
            }
            writer.finish().unwrap();
            let bytes = disk.image().read(Path::new(&written)).unwrap();
            let copy = disk.create(Path::new(path)).unwrap();
            assert_eq!(copy.write_at(&bytes, 0).unwrap(), bytes.len());
        }
    }

    fn add(self, Store { db, keyspaces }: &Store) -> Result<u64> {
        let [first, second] = keyspaces;
        match self {
            Self::Sorted => first.bulk_load(loaded()),
            Self::Unsorted => {
                let replaced = loaded().into_keys().map(|key| (key, b"replaced".to_vec()));
                let entries = replaced.rev().chain(loaded().into_iter().rev());
                first.try_bulk_load_unsorted(entries.map(Ok::<_, Error>), SORT_BYTES, |_| ())
            }
            Self::Linked | Self::Copied => {
                db.ingest([first, first, second].into_iter().zip(EXTERNAL))
            }
        }
    }
}

fn extended(mut contents: Contents, added: Contents) -> Contents {
    for (contents, added) in contents.iter_mut().zip(added) {
        contents.extend(added);
    }
    contents
}

/// What a crash has left of `image`.
fn recovered(image: &Image, policy: CrashPolicy) -> Contents {
    let disk = SimDisk::from_image(image.crash(policy));
    let store = Store::open(&disk);
    let found = store.contents();
    store.check_tables(&disk);
    found
}

fn check_crashes(way: Way) {
    let disk = SimDisk::new();
    let store = Store::filled(&disk, way);
    let before = store.contents();
    store.keyspaces[0].insert("buffered", "").unwrap();
    let with_buffered = store.contents();
    let after = extended(with_buffered.clone(), way.added());
    let is_over = Arc::new(AtomicBool::new(false));
    let images = common::observe(&disk, {
        let is_over = Arc::clone(&is_over);
        move |_, image| (image.clone(), is_over.load(Ordering::Relaxed))
    });
    way.add(&store).unwrap();
    is_over.store(true, Ordering::Relaxed);
    assert_eq!(store.contents(), after);
    disk.stop_observing();
    let images: Vec<_> = images.try_iter().chain([(disk.image(), true)]).collect();
    assert!(images.len() > 20, "{} changes", images.len());
    let [mut nothing, mut all] = [0, 0];
    for (at, (image, is_over)) in images.iter().enumerate() {
        for policy in CrashPolicy::all(at as u64) {
            let found = recovered(image, policy);
            if found == after {
                all += 1;
            } else {
                assert!(!is_over, "a load that has returned is lost at change {at}");
                let is_nothing = found == before || found == with_buffered;
                assert!(is_nothing, "{way:?}, change {at}, {policy:?}");
                nothing += 1;
            }
        }
    }
    assert!(nothing > 50 && all > 3, "{nothing} and {all}");
}

#[test]
fn a_crash_leaves_all_of_a_load_or_nothing() {
    check_crashes(Way::Sorted);
}

#[test]
fn a_crash_leaves_all_of_an_unsorted_load_or_nothing() {
    check_crashes(Way::Unsorted);
}

#[test]
fn a_crash_leaves_all_files_of_an_ingestion_or_none() {
    check_crashes(Way::Linked);
    check_crashes(Way::Copied);
}

const FAULTS: [(OperationKind, Effect); 13] = [
    (OperationKind::Create, Effect::Io),
    (OperationKind::Create, Effect::NoSpace),
    (OperationKind::Open, Effect::TooManyFiles),
    (OperationKind::Read, Effect::Io),
    (OperationKind::Link, Effect::Io),
    (OperationKind::Link, Effect::NoSpace),
    (OperationKind::Write, Effect::Io),
    (OperationKind::Write, Effect::NoSpace),
    (OperationKind::Write, Effect::Short),
    (OperationKind::Write, Effect::Interrupted),
    (OperationKind::Sync, Effect::Io),
    (OperationKind::SyncDir, Effect::Io),
    (OperationKind::Reserve, Effect::NoSpace),
];

/// Lets each operation of these kinds go wrong once. Returns how often the way had each outcome.
fn check_faults(way: Way) -> BTreeMap<String, u32> {
    let count = way.added().iter().map(|it| it.len() as u64).sum();
    let mut outcomes = BTreeMap::new();
    for (kind, effect) in FAULTS {
        for at in 0.. {
            let disk = SimDisk::new();
            let store = Store::filled(&disk, way);
            let before = store.contents();
            let mut after = extended(before.clone(), way.added());
            let fault = Fault::io(kind, at)
                .with(effect)
                .then(AfterFailedSync::LostAtCrash);
            disk.set_faults([fault]);
            let outcome = way.add(&store);
            let is_hit = !disk.fault_log().is_empty();
            disk.set_faults([]);
            let shown = outcome.as_ref().map_or_else(
                |error| format!("{kind:?} {:?}", error.kind()),
                |_| "done".to_owned(),
            );
            *outcomes.entry(shown).or_default() += 1;
            let expected = if outcome.is_ok() { &after } else { &before };
            assert_eq!(store.contents(), *expected, "{way:?}, {fault}");
            // A poisoned database may disagree with its manifest until it is opened again. A flush notices that the manifest
            // takes no more edits.
            let is_usable =
                store.keyspaces[0].insert("more", "").is_ok() && store.db.flush().is_ok();
            if is_usable {
                store.check_tables(&disk);
            }
            if outcome.is_err() && is_usable {
                // Nothing is left of it, and the next try succeeds.
                assert_eq!(way.add(&store).unwrap(), count);
                after[0].insert(b"more".to_vec(), Vec::new());
                assert_eq!(store.contents(), after);
                store.check_tables(&disk);
            }
            drop(store);
            let disk = disk.end_process();
            let again = Store::open(&disk);
            let mut found = again.contents();
            let has_more = found[0].remove(&b"more"[..]).is_some();
            assert!(has_more || !is_usable);
            after[0].remove(&b"more"[..]);
            // What was added with an unknown outcome may count.
            assert!(found == before || found == after, "{way:?}, {fault}");
            let is_done = outcome.is_ok() || is_usable;
            assert!(found == after || !is_done, "{way:?}, {fault}");
            again.check_tables(&disk);
            if !is_hit {
                break;
            }
        }
    }
    outcomes
}

/// Panics unless the faults had each of these outcomes.
fn check_outcomes(way: Way, expected: &[&str]) {
    let outcomes = check_faults(way);
    for outcome in expected {
        assert!(outcomes.contains_key(*outcome), "{way:?}: {outcomes:?}");
    }
}

#[test]
fn a_fault_leaves_nothing_of_a_load() {
    let common = ["done", "Create Io", "Write NoSpace", "Sync Poisoned"];
    check_outcomes(Way::Sorted, &common);
    check_outcomes(Way::Unsorted, &common);
}

#[test]
fn a_fault_leaves_nothing_of_an_ingestion() {
    check_outcomes(
        Way::Linked,
        &["done", "Link Io", "Link NoSpace", "SyncDir Io"],
    );
    check_outcomes(Way::Copied, &["done", "Create NoSpace", "Write NoSpace"]);
}
