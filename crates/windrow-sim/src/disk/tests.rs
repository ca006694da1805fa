//! The disk keeps the promises of `windrow::vfs` and breaks the rest on request.

use super::*;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use windrow::vfs::{File, OpenMode, Vfs, read_exact_at, write_all_at};

fn path(name: &str) -> PathBuf {
    Path::new("/db").join(name)
}

fn disk() -> SimDisk {
    let disk = SimDisk::new();
    disk.create_dir_all(Path::new("/db")).unwrap();
    disk
}

/// A disk with the synced file `name` of `bytes`.
fn disk_with(name: &str, bytes: &[u8]) -> (SimDisk, Arc<dyn File>) {
    let disk = disk();
    let file = disk.create(&path(name)).unwrap();
    write_all_at(&*file, bytes, 0).unwrap();
    file.sync_data().unwrap();
    disk.sync_dir(Path::new("/db")).unwrap();
    (disk, file)
}

fn content(disk: &SimDisk, name: &str) -> Option<Vec<u8>> {
    disk.image().read(&path(name)).ok()
}

#[test]
fn synced_bytes_under_a_synced_name_survive() {
    let (disk, file) = disk_with("a", b"safe");
    write_all_at(&*file, b" not safe", 4).unwrap();
    assert_eq!(content(&disk, "a").unwrap(), b"safe not safe");
    let lost = disk.crash(CrashPolicy::DropUnsynced);
    assert_eq!(content(&lost, "a").unwrap(), b"safe");
    let kept = disk.crash(CrashPolicy::KeepAll);
    assert_eq!(content(&kept, "a").unwrap(), b"safe not safe");
    let process = disk.end_process();
    assert_eq!(content(&process, "a").unwrap(), b"safe not safe");
    assert!(file.sync_data().is_err(), "its process has ended");
    assert!(disk.list(Path::new("/db")).is_err());
    assert_eq!(process.list(Path::new("/db")).unwrap(), ["a"]);
    let crashed = process.crash(CrashPolicy::DropUnsynced);
    assert_eq!(content(&crashed, "a").unwrap(), b"safe");
}

#[test]
fn a_name_needs_a_sync_of_its_directory() {
    let disk = disk();
    let file = disk.create(&path("a")).unwrap();
    write_all_at(&*file, b"bytes", 0).unwrap();
    file.sync_data().unwrap();
    assert_eq!(content(&disk.crash(CrashPolicy::DropUnsynced), "a"), None);
    disk.sync_dir(Path::new("/db")).unwrap();
    let crashed = disk.crash(CrashPolicy::DropUnsynced);
    assert_eq!(content(&crashed, "a").unwrap(), b"bytes");
    disk.remove(&path("a")).unwrap();
    assert_eq!(content(&disk, "a"), None);
    let crashed = disk.crash(CrashPolicy::DropUnsynced);
    assert_eq!(content(&crashed, "a").unwrap(), b"bytes");
    assert_eq!(content(&disk.crash(CrashPolicy::KeepAll), "a"), None);
}

#[test]
fn a_rename_is_atomic() {
    let (disk, _) = disk_with("old", b"old");
    let file = disk.create(&path("new")).unwrap();
    write_all_at(&*file, b"new", 0).unwrap();
    file.sync_data().unwrap();
    disk.sync_dir(Path::new("/db")).unwrap();
    disk.rename(&path("new"), &path("old")).unwrap();
    let mut seen = BTreeSet::new();
    for seed in 0..50 {
        let crashed = disk.crash(CrashPolicy::Random(seed));
        seen.insert((content(&crashed, "old"), content(&crashed, "new")));
    }
    let old = b"old".to_vec();
    let new = b"new".to_vec();
    let expected = BTreeSet::from([(Some(old), Some(new.clone())), (Some(new), None)]);
    assert_eq!(seen, expected);
}

#[test]
fn a_random_crash_tears_at_sectors_and_grows_with_zeroes_or_garbage() {
    let (disk, file) = disk_with("a", &[1; 100]);
    write_all_at(&*file, &[2; 2000], 100).unwrap();
    let mut images = BTreeSet::new();
    let (mut torn, mut zeroed, mut short) = (0, 0, 0);
    for seed in 0..500 {
        let crashed = disk.crash(CrashPolicy::Random(seed));
        let bytes = content(&crashed, "a").unwrap();
        assert_eq!(&bytes[..100], &[1; 100], "synced bytes stay");
        for sector in bytes[100..].chunk_by(|left, right| left == right) {
            assert!(sector[0] == 0 || sector[0] == 2);
        }
        let zeroes = bytes.contains(&0);
        torn += usize::from(zeroes && bytes.contains(&2));
        zeroed += usize::from(zeroes && !bytes.contains(&2) && bytes.len() == 2100);
        short += usize::from(bytes.len() == 100);
        images.insert(crashed.image().hash());
    }
    assert!(
        torn > 50 && zeroed > 5 && short > 50,
        "{torn} {zeroed} {short}"
    );
    assert!(images.len() > 20, "{} distinct images", images.len());
    let garbage = (0..100).any(|seed| {
        let crashed = disk.crash(CrashPolicy::RandomWithGarbage(seed));
        let bytes = content(&crashed, "a").unwrap();
        assert_eq!(&bytes[..100], &[1; 100]);
        bytes[512.min(bytes.len())..].iter().any(|byte| *byte > 2)
    });
    assert!(garbage);
}

#[test]
fn equal_states_have_equal_hashes() {
    let (one, file) = disk_with("a", &[1; 3000]);
    let (two, _) = disk_with("a", &[1; 3000]);
    assert_eq!(one.image().hash(), two.image().hash());
    let before = one.crash(CrashPolicy::DropUnsynced).image().hash();
    assert_eq!(before, one.image().hash());
    write_all_at(&*file, &[2], 2999).unwrap();
    assert_eq!(one.image().hash(), before, "nothing durable has changed");
    let kept = one.crash(CrashPolicy::KeepAll).image();
    assert_ne!(kept.hash(), before);
    assert!(one.image().has_unsynced());
    assert!(!kept.has_unsynced());
}

#[test]
fn observers_receive_every_change_with_the_state_after_it() {
    let disk = disk();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let target = Arc::clone(&seen);
    disk.on_change(move |event, image| {
        let length = image.read(&path("a")).map_or(0, |bytes| bytes.len());
        target.lock().unwrap().push((event.kind, length));
    });
    let file = disk.create(&path("a")).unwrap();
    write_all_at(&*file, b"12345", 0).unwrap();
    file.read_at(&mut [0; 5], 0).unwrap();
    file.sync_data().unwrap();
    disk.stop_observing();
    file.sync_data().unwrap();
    assert_eq!(
        *seen.lock().unwrap(),
        [
            (OperationKind::Create, 0),
            (OperationKind::Write, 5),
            (OperationKind::Sync, 5)
        ]
    );
}

#[test]
fn every_operation_fails_after_the_power_failure() {
    let (disk, file) = disk_with("a", b"1");
    disk.crash_at(1);
    write_all_at(&*file, b"2", 1).unwrap();
    assert!(file.write_at(b"3", 2).is_err());
    assert!(file.sync_data().is_err());
    assert!(file.read_at(&mut [0], 0).is_err());
    assert!(disk.create(&path("b")).is_err());
    assert!(disk.sync_dir(Path::new("/db")).is_err());
    let crashed = disk.crash(CrashPolicy::KeepAll);
    assert_eq!(content(&crashed, "a").unwrap(), b"12");
    assert!(crashed.create(&path("b")).is_ok());
}

#[test]
fn a_failed_sync_loses_reverts_or_keeps_the_changes() {
    for after in [
        AfterFailedSync::LostAtCrash,
        AfterFailedSync::Reverted,
        AfterFailedSync::Durable,
    ] {
        let (disk, file) = disk_with("a", b"1");
        write_all_at(&*file, b"22", 1).unwrap();
        disk.set_faults([Fault::io(OperationKind::Sync, 0).then(after)]);
        assert!(file.sync_data().is_err());
        assert_eq!(disk.fault_log().len(), 1);
        // A second sync reports success and repairs nothing.
        file.sync_data().unwrap();
        let cached: &[u8] = match after {
            AfterFailedSync::Reverted => b"1",
            _ => b"122",
        };
        assert_eq!(content(&disk, "a").unwrap(), cached, "{after:?}");
        let durable: &[u8] = match after {
            AfterFailedSync::Durable => b"122",
            _ => b"1",
        };
        let crashed = disk.crash(CrashPolicy::KeepAll);
        assert_eq!(content(&crashed, "a").unwrap(), durable, "{after:?}");
    }
}

#[test]
fn a_failed_directory_sync_loses_reverts_or_keeps_the_names() {
    for (after, seen, durable) in [
        (AfterFailedSync::LostAtCrash, true, false),
        (AfterFailedSync::Reverted, false, false),
        (AfterFailedSync::Durable, true, true),
    ] {
        let disk = disk();
        let _file = disk.create(&path("a")).unwrap();
        disk.set_faults([Fault::io(OperationKind::SyncDir, 0).then(after)]);
        assert!(disk.sync_dir(Path::new("/db")).is_err());
        disk.sync_dir(Path::new("/db")).unwrap();
        assert_eq!(content(&disk, "a").is_some(), seen, "{after:?}");
        let crashed = disk.crash(CrashPolicy::KeepAll);
        assert_eq!(content(&crashed, "a").is_some(), durable, "{after:?}");
    }
}

#[test]
fn bytes_written_after_a_lost_sync_extend_the_file() {
    let (disk, file) = disk_with("a", b"");
    write_all_at(&*file, &[1; 600], 0).unwrap();
    disk.set_faults([Fault::io(OperationKind::Sync, 0)]);
    assert!(file.sync_data().is_err());
    write_all_at(&*file, &[2; 10], 590).unwrap();
    file.sync_data().unwrap();
    let bytes = content(&disk.crash(CrashPolicy::DropUnsynced), "a").unwrap();
    assert_eq!(bytes.len(), 600);
    assert_eq!(&bytes[..512], &[0; 512], "lost forever");
    assert_eq!(&bytes[590..], &[2; 10]);
}

#[test]
fn faults_happen_at_the_planned_operations() {
    let (disk, file) = disk_with("a", &[7; 100]);
    let plan = |kind, effect| Fault::io(kind, 1).with(effect);
    let mut buffer = [0; 100];
    disk.set_faults([plan(OperationKind::Read, Effect::Io)]);
    assert!(file.read_at(&mut buffer, 0).is_ok());
    assert!(file.read_at(&mut buffer, 0).is_err());
    assert!(file.read_at(&mut buffer, 0).is_ok());
    assert_eq!(disk.operations(OperationKind::Read), 3);

    disk.set_faults([plan(OperationKind::Write, Effect::NoSpace).from_then_on()]);
    assert!(file.write_at(&[1], 0).is_ok());
    for _ in 0..3 {
        let full = file.write_at(&[1], 0).unwrap_err();
        assert_eq!(full.kind(), io::ErrorKind::StorageFull);
    }

    for effect in [Effect::Interrupted, Effect::Short] {
        disk.set_faults([plan(OperationKind::Read, effect).from_then_on()]);
        file.read_at(&mut buffer, 0).unwrap();
        read_exact_at(&*file, &mut buffer[1..], 1).unwrap();
        assert_eq!(&buffer[1..], &[7; 99]);
    }
    disk.set_faults([plan(OperationKind::Read, Effect::FlippedBit)]);
    file.read_at(&mut buffer, 0).unwrap();
    let good = buffer;
    file.read_at(&mut buffer, 0).unwrap();
    let flipped: u32 = (good.iter().zip(buffer))
        .map(|(left, right)| (left ^ right).count_ones())
        .sum();
    assert_eq!(flipped, 1);

    disk.set_faults([plan(OperationKind::Open, Effect::TooManyFiles)]);
    assert!(disk.open(&path("a"), OpenMode::Read).is_ok());
    assert!(disk.open(&path("a"), OpenMode::Read).is_err());
}

#[test]
fn lost_and_misdirected_writes_are_reported_as_done() {
    let (disk, file) = disk_with("a", &[7; 1024]);
    let plan = |effect| disk.set_faults([Fault::io(OperationKind::Write, 0).with(effect)]);
    plan(Effect::LostWrite);
    assert_eq!(file.write_at(&[1; 4], 0).unwrap(), 4);
    assert_eq!(content(&disk, "a").unwrap(), [7; 1024]);
    plan(Effect::Misdirected);
    assert_eq!(file.write_at(&[1; 4], 0).unwrap(), 4);
    assert_eq!(&content(&disk, "a").unwrap()[512..516], &[1; 4]);
}

#[test]
fn the_quota_bounds_all_files_and_respects_reservations() {
    let (disk, one) = disk_with("one", &[1; 512]);
    let two = disk.create(&path("two")).unwrap();
    disk.set_quota(Some(2048));
    two.reserve(0, 1024).unwrap();
    assert_eq!(two.length().unwrap(), 0);
    assert_eq!(disk.used_bytes(), 1536);
    let full = two.reserve(0, 2048).unwrap_err();
    assert_eq!(full.kind(), io::ErrorKind::StorageFull);
    assert_eq!(
        one.write_at(&[1; 2000], 512).unwrap(),
        512,
        "the part that fits"
    );
    assert!(one.write_at(&[1; 100], 1024).is_err());
    write_all_at(&*two, &[2; 1024], 0).unwrap();
    assert!(two.write_at(&[2], 1024).is_err());
    disk.remove(&path("one")).unwrap();
    assert!(two.write_at(&[2], 1024).is_err(), "the file is still open");
    drop(one);
    write_all_at(&*two, &[2; 1024], 1024).unwrap();
    disk.set_can_reserve(false);
    let cannot = two.reserve(0, 1).unwrap_err();
    assert_eq!(cannot.kind(), io::ErrorKind::Unsupported);
}

#[test]
fn a_removed_file_stays_readable_through_its_handle() {
    let (disk, file) = disk_with("a", b"still here");
    disk.remove(&path("a")).unwrap();
    disk.sync_dir(Path::new("/db")).unwrap();
    let mut bytes = [0; 10];
    read_exact_at(&*file, &mut bytes, 0).unwrap();
    assert_eq!(&bytes, b"still here");
}

#[test]
fn a_cut_frees_space_and_a_crash_may_undo_it() {
    let (disk, file) = disk_with("a", &[1; 1500]);
    file.sync_data().unwrap();
    disk.sync_dir(Path::new("/db")).unwrap();
    write_all_at(&*file, &[2; 3000], 2048).unwrap();
    assert_eq!(disk.used_bytes(), 5120);
    file.truncate(9000).unwrap();
    assert_eq!(file.length().unwrap(), 5048);
    file.truncate(1100).unwrap();
    assert_eq!(disk.used_bytes(), 1536);
    assert_eq!(content(&disk, "a").unwrap(), [1; 1100]);
    let after = |policy| content(&disk.crash(policy), "a").unwrap();
    assert_eq!(after(CrashPolicy::DropUnsynced), [1; 1500]);
    assert_eq!(after(CrashPolicy::KeepAll), [1; 1100]);

    write_all_at(&*file, &[3; 400], 1024).unwrap();
    let now = [&[1; 1024][..], &[3; 400]].concat();
    assert_eq!(content(&disk, "a").unwrap(), now);
    assert_eq!(after(CrashPolicy::KeepAll), now);
    let after = |policy| content(&disk.crash(policy), "a").unwrap();
    let mut lengths = BTreeSet::new();
    for seed in 0..200 {
        for policy in [
            CrashPolicy::Random(seed),
            CrashPolicy::RandomWithGarbage(seed),
        ] {
            let left = after(policy);
            assert_eq!(left[..1024], now[..1024]);
            lengths.insert(left.len());
        }
    }
    assert!(
        lengths.is_superset(&[1100, 1424, 1500, 5048].into()),
        "{lengths:?}"
    );
    file.sync_data().unwrap();
    assert_eq!(after(CrashPolicy::DropUnsynced), now);
}

#[test]
#[should_panic(expected = "/db/a is cut to 3 bytes while more are mapped")]
fn a_cut_of_mapped_bytes_panics() {
    let (_disk, file) = disk_with("a", b"12345");
    let _region = file.map(4).unwrap();
    file.truncate(4).unwrap();
    drop(file.truncate(3));
}

#[test]
#[should_panic(expected = "/db/a is protected")]
fn the_removal_of_a_protected_file_panics() {
    let (disk, _) = disk_with("a", b"");
    disk.protect(&path("b"));
    disk.unprotect(&path("b"));
    disk.protect(&path("a"));
    drop(disk.remove(&path("a")));
}

#[test]
#[should_panic(expected = "/db/a.table is in use")]
fn the_removal_of_a_mapped_file_panics_if_forbidden() {
    let (disk, file) = disk_with("a.table", b"12");
    disk.forbid_removal_in_use(".table");
    let _region = file.map(2).unwrap();
    drop(file);
    drop(disk.remove(&path("a.table")));
}

#[test]
fn a_mapping_keeps_its_bytes_until_damage_is_planted() {
    let (disk, file) = disk_with("a", b"12345");
    let region = file.map(4).unwrap();
    write_all_at(&*file, b"x", 0).unwrap();
    assert_eq!(region.bytes(), b"1234");
    disk.damage_mapped(&path("a"), 1, 0xff).unwrap();
    assert_eq!(region.bytes(), [b'1', b'2' ^ 0xff, b'3', b'4']);
    assert!(file.map(6).is_err());
}

#[test]
fn one_process_holds_the_lock_and_frees_it_at_its_end() {
    let disk = disk();
    let lock = disk.lock(&path("LOCK")).unwrap();
    let second = disk.lock(&path("LOCK")).unwrap_err();
    assert_eq!(second.kind(), io::ErrorKind::WouldBlock);
    drop(lock);
    let first = disk.lock(&path("LOCK")).unwrap();
    let disk = disk.end_process();
    let _held = disk.lock(&path("LOCK")).unwrap();
    drop(first);
    assert!(
        disk.lock(&path("LOCK")).is_err(),
        "held by the next process"
    );
}

#[test]
fn planted_damage_is_durable() {
    let (disk, _) = disk_with("a", b"12345");
    disk.edit(|image| {
        image.flip(&path("a"), 0, 1).unwrap();
        image.write(&path("b"), b"copy").unwrap();
    });
    let crashed = disk.crash(CrashPolicy::DropUnsynced);
    assert_eq!(content(&crashed, "a").unwrap(), b"02345");
    assert_eq!(crashed.list(Path::new("/db")).unwrap(), ["a", "b"]);
    crashed.edit(|image| image.remove(&path("b"))).unwrap();
    assert_eq!(crashed.image().files(), [path("a")]);
}

#[test]
fn equal_histories_have_equal_traces() {
    let trace = |byte| {
        let (disk, file) = disk_with("a", &[byte]);
        file.read_at(&mut [0], 0).unwrap();
        disk.trace_hash()
    };
    assert_eq!(trace(1), trace(1));
    assert_ne!(trace(1), trace(2));
}

#[test]
fn misuse_is_an_error() {
    let disk = disk();
    let missing = |error: io::Error| assert_eq!(error.kind(), io::ErrorKind::NotFound);
    missing(disk.open(&path("a"), OpenMode::Read).unwrap_err());
    missing(disk.remove(&path("a")).unwrap_err());
    missing(disk.rename(&path("a"), &path("b")).unwrap_err());
    missing(disk.list(Path::new("/other")).unwrap_err());
    missing(disk.create(Path::new("/other/a")).unwrap_err());
    drop(disk.create(&path("a")).unwrap());
    let again = disk.create(&path("a")).unwrap_err();
    assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
    let file = disk.open(&path("a"), OpenMode::Read).unwrap();
    assert!(file.write_at(&[1], 0).is_err());
}
