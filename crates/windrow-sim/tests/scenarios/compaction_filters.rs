//! Compaction filters under crashes at each I/O, behind a write stall and on a full disk.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use windrow::{
    Candidate, CompactionFilter, Db, Decision, Durability, ErrorKind, FilterError, Keyspace,
    Options,
};
use windrow_sim::disk::Image;
use windrow_sim::{CrashPolicy, SimDisk, SteppedRuntime};

use crate::common::{self, Entries, check_sound, entries, kind, observe, on, small};

/// What happens before the first decision.
type Hook = Box<dyn FnOnce() + Send>;

/// Removes values with `-` and replaces those with `*`.
#[derive(Default)]
struct Marked {
    hook: Mutex<Option<Hook>>,
}

impl CompactionFilter for Marked {
    fn name(&self) -> &'static str {
        "test.marked"
    }

    fn decide(&self, candidate: &Candidate<'_>) -> Result<Decision, FilterError> {
        let hook = self.hook.lock().unwrap().take();
        if let Some(hook) = hook {
            hook();
        }
        let value = candidate.value()?;
        Ok(filtered(value).map_or(Decision::Remove, Decision::Replace))
    }
}

fn filtered(value: &[u8]) -> Option<Vec<u8>> {
    match value.first() {
        Some(b'-') => None,
        Some(b'*') => Some([b"=", &value[1..]].concat()),
        _ => Some(value.to_vec()),
    }
}

fn all_filtered(entries: &Entries) -> Entries {
    let entries = entries.iter();
    let filtered = entries.filter_map(|(key, value)| Some((key.clone(), filtered(value)?)));
    filtered.collect()
}

fn options(disk: &SimDisk) -> Options {
    let mut options = on(small(), disk, &SteppedRuntime::new(1));
    options.keyspace.size_ratio = 2.0;
    options.keyspace.medium_from = 80;
    options.keyspace.large_from = 150;
    options.max_wal_bytes = 64 << 10;
    options
}

fn open(disk: &SimDisk) -> (Db, Keyspace) {
    common::open(options(disk))
}

fn open_filtering(disk: &SimDisk, filter: &Arc<Marked>) -> (Db, Keyspace) {
    let filter = Arc::clone(filter);
    common::open(options(disk).with_compaction_filter("k", filter))
}

fn key(number: usize) -> Vec<u8> {
    format!("key{number:04}").into_bytes()
}

/// A value of any class with any mark, by its number.
fn value(number: usize) -> Vec<u8> {
    let length = [20, 60, 90, 400][number / 3 % 4];
    let mut value = format!("{} {number} ", ["-", "*", "."][number % 3]).into_bytes();
    value.resize(length, b'.');
    value
}

fn compact(keyspace: &Keyspace) {
    keyspace.compact_range::<&[u8]>(..).unwrap();
}

/// Opens what a crash has left of `image`, without the filter.
fn recovered(image: &Image, policy: CrashPolicy) -> Entries {
    let disk = SimDisk::from_image(image.crash(policy));
    let (db, keyspace) = open(&disk);
    check_sound(&db);
    let found = entries(&keyspace);
    db.wait_idle().unwrap();
    assert_eq!(entries(&keyspace), found);
    db.close().unwrap();
    found
}

#[test]
fn a_crash_leaves_each_value_as_it_was_written_or_filtered() {
    let disk = SimDisk::new();
    let (db, keyspace) = open_filtering(&disk, &Arc::default());
    for number in 0..120 {
        keyspace.insert(key(number), value(number)).unwrap();
    }
    db.persist().unwrap();
    let before = entries(&keyspace);
    let after = all_filtered(&before);
    let is_synced = Arc::new(AtomicUsize::new(0));
    let images = observe(&disk, {
        let is_synced = Arc::clone(&is_synced);
        move |_, image| (image.clone(), is_synced.load(Ordering::Relaxed) > 0)
    });
    compact(&keyspace);
    assert_eq!(entries(&keyspace), after);
    // What the filter has changed is as durable as any write before this one.
    keyspace
        .insert_with("synced", "", Durability::Sync)
        .unwrap();
    is_synced.store(1, Ordering::Relaxed);
    compact(&keyspace);
    disk.stop_observing();
    let images: Vec<_> = images.try_iter().collect();
    assert!(images.len() > 100, "{} changes", images.len());
    let [mut unchanged, mut changed] = [0, 0];
    for (at, (image, is_synced)) in images.iter().enumerate() {
        for policy in CrashPolicy::all(at as u64) {
            let mut found = recovered(image, policy);
            let has_synced = found.remove(&b"synced"[..]).is_some();
            assert!(has_synced || !is_synced, "change {at}, {policy:?}");
            if has_synced {
                assert_eq!(found, after, "change {at}, {policy:?}");
            }
            for (key, written) in &before {
                let is_written = found.get(key) == Some(written);
                let is_filtered = found.get(key) == after.get(key);
                assert!(is_written || is_filtered, "change {at}, {policy:?}");
            }
            unchanged += usize::from(found == before);
            changed += usize::from(found == after);
        }
    }
    assert!(unchanged > 20 && changed > 20, "{unchanged}, {changed}");
}

/// Fills the database, lets a compaction judge the entries after `hook`, and returns the outcome.
fn judge_after(
    disk: &SimDisk,
    hook: impl FnOnce(&Db, &Keyspace) + Send + 'static,
) -> (Db, Keyspace, windrow::Result<()>) {
    let filter = Arc::<Marked>::default();
    let (db, keyspace) = open_filtering(disk, &filter);
    for number in 0..60 {
        keyspace.insert(key(number), value(number)).unwrap();
    }
    db.flush().unwrap();
    let (in_hook, keyspace_in_hook) = (db.clone(), keyspace.clone());
    *filter.hook.lock().unwrap() = Some(Box::new(move || hook(&in_hook, &keyspace_in_hook)));
    let outcome = keyspace.compact_range::<&[u8]>(..);
    assert!(
        filter.hook.lock().unwrap().is_none(),
        "something was judged"
    );
    (db, keyspace, outcome)
}

fn written() -> Entries {
    (0..60).map(|number| (key(number), value(number))).collect()
}

/// The entries of [`written`] that are left, filtered or not.
fn left_of_written(keyspace: &Keyspace) -> Entries {
    let mut left = entries(keyspace);
    left.retain(|key, _| key.starts_with(b"key"));
    left
}

// A stall may wait for the compaction that judges.
#[test]
fn no_change_waits_for_a_stall() {
    let disk = SimDisk::new();
    let stall = |db: &Db, keyspace: &Keyspace| {
        let mut number = 0_u32;
        while db.stats().stall_count() == 0 {
            keyspace.insert(number.to_be_bytes(), [7; 60]).unwrap();
            number += 1;
        }
    };
    let (db, keyspace, outcome) = judge_after(&disk, stall);
    outcome.unwrap();
    let stats = db.stats();
    assert!(stats.judged_dropped > 0, "it was throttled");
    let stalls = stats.stall_count();
    // The next compactions judge again.
    for _ in 0..3 {
        db.wait_idle().unwrap();
        compact(&keyspace);
    }
    assert_eq!(left_of_written(&keyspace), all_filtered(&written()));
    assert_eq!(db.stats().stall_count(), stalls);
    check_sound(&db);
}

#[test]
fn a_full_disk_loses_nothing() {
    let disk = SimDisk::new();
    let full = {
        let disk = disk.clone();
        move |db: &Db, keyspace: &Keyspace| {
            disk.set_quota(Some(disk.used_bytes()));
            for number in 0..100_000_u32 {
                if db.stats().is_disk_full {
                    return;
                }
                drop(keyspace.insert(number.to_be_bytes(), [7; 60]));
            }
            unreachable!("the disk has an end");
        }
    };
    let (db, keyspace, outcome) = judge_after(&disk, full);
    if outcome.is_err() {
        assert_eq!(kind(outcome), ErrorKind::NoSpace);
    }
    assert!(db.stats().judged_dropped > 0);
    let left = left_of_written(&keyspace);
    for (key, value) in written() {
        assert!(left.get(&key) == Some(&value) || left.get(&key) == filtered(&value).as_ref());
    }
    disk.set_quota(None);
    keyspace.insert("more", "").unwrap();
    for _ in 0..3 {
        db.wait_idle().unwrap();
        compact(&keyspace);
    }
    assert_eq!(left_of_written(&keyspace), all_filtered(&written()));
    check_sound(&db);
}
