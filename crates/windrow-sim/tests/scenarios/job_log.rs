//! The job log and the status file: no failure of them reaches the database, and seeds fix what they hold.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use windrow::{Db, ErrorKind, Options};
use windrow_sim::disk::{Effect, Fault, OperationKind};
use windrow_sim::{CrashPolicy, SimDisk, SteppedRuntime};

use crate::common::{FOLDER, check_sound, small};

/// All of it on, and the files so small that they rotate.
fn observed(disk: &SimDisk, runtime: &SteppedRuntime) -> Options {
    let mut options = small();
    options.job_log_bytes = 4 << 10;
    options.status_interval = Duration::from_nanos(1);
    options.latency_interval = 2;
    options
        .with_vfs(Arc::new(disk.clone()))
        .with_runtime(Arc::new(runtime.clone()))
}

fn is_for_people(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    ["LOG", "LOG.old", "STATUS"].contains(&name.unwrap())
}

/// Writes, flushes, compacts and closes. Jobs run step by step.
fn work(disk: &SimDisk, runtime: &SteppedRuntime) -> windrow::Result<()> {
    work_with(observed(disk, runtime), runtime)
}

fn work_with(options: Options, runtime: &SteppedRuntime) -> windrow::Result<()> {
    let db = Db::open(FOLDER, options)?;
    let keyspace = db.keyspace("k")?;
    for number in 0..300_u32 {
        keyspace.insert((number % 40).to_be_bytes(), [7; 100])?;
        if number % 10 == 0 {
            runtime.step();
        }
    }
    db.flush()?;
    keyspace.compact_range::<&[u8]>(..)?;
    for number in 0..40_u32 {
        assert!(keyspace.get(number.to_be_bytes())?.is_some());
    }
    drop(keyspace);
    db.close()
}

fn read(disk: &SimDisk, name: &str) -> String {
    let bytes = disk.image().read(&PathBuf::from(FOLDER).join(name));
    String::from_utf8(bytes.unwrap()).unwrap()
}

#[test]
fn a_seed_fixes_what_people_see() {
    let history = || {
        let (disk, runtime) = (SimDisk::new(), SteppedRuntime::new(5));
        let mut options = observed(&disk, &runtime);
        // It has the bytes of memory in use, which no seed fixes.
        options.status_interval = Duration::ZERO;
        work_with(options, &runtime).unwrap();
        let logs = ["LOG.old", "LOG"].map(|name| read(&disk, name));
        (logs, disk.trace_hash())
    };
    let ([old, log], hash) = history();
    assert!(old.contains(" flush_ended keyspace=\"k\" entries="));
    assert!(log.contains(" closed duration="), "{log}");
    assert_eq!(history(), ([old, log], hash));
}

#[test]
fn no_failure_of_these_files_reaches_the_database() {
    // The operations on these files, by kind and number.
    let (disk, runtime) = (SimDisk::new(), SteppedRuntime::new(5));
    let (sender, changes) = std::sync::mpsc::channel();
    disk.on_change(move |event, _| {
        sender.send((event.kind, event.path.clone())).unwrap();
    });
    work(&disk, &runtime).unwrap();
    disk.stop_observing();
    let mut counts = std::collections::BTreeMap::new();
    let mut own = Vec::new();
    for (kind, path) in changes {
        let at = counts.entry(kind).or_insert(0_u64);
        if is_for_people(&path) {
            own.push((kind, *at));
        }
        *at += 1;
    }
    let kinds = [
        OperationKind::Write,
        OperationKind::Create,
        OperationKind::Rename,
    ];
    for kind in kinds {
        assert!(own.iter().any(|(it, _)| *it == kind), "{kind:?}");
    }
    // All but writes, and some of those.
    let stride = own.len().div_ceil(40);
    let mut writes = 0..;
    own.retain(|(kind, _)| {
        *kind != OperationKind::Write
            || writes
                .next()
                .is_some_and(|it: usize| it.is_multiple_of(stride))
    });
    let mut hit = 0;
    for (index, (kind, at)) in own.into_iter().enumerate() {
        for effect in [
            Effect::Io,
            Effect::NoSpace,
            Effect::Short,
            Effect::LostWrite,
        ] {
            // All of them for the first, one of them for each other.
            if index % 8 > 0 && index % 4 != effect as usize % 4 {
                continue;
            }
            let (disk, runtime) = (SimDisk::new(), SteppedRuntime::new(5));
            disk.set_faults([Fault::io(kind, at).with(effect)]);
            work(&disk, &runtime).unwrap();
            hit += disk.fault_log().len();
            let db = Db::open(FOLDER, observed(&disk, &runtime)).unwrap();
            check_sound(&db);
            db.close().unwrap();
        }
    }
    assert!(hit > 20, "{hit}");
}

/// Flushes four times, the last time a minute later, and lets write `fault` of the second time fail. Returns the number of
/// the first write to the log in the second time, and what the log holds after the third and the fourth.
fn flush_with_fault(fault: Option<u64>) -> (usize, [String; 2]) {
    let (disk, runtime) = (SimDisk::new(), SteppedRuntime::new(5));
    let mut options = observed(&disk, &runtime);
    options.status_interval = Duration::ZERO;
    options.job_log_bytes = 1 << 20;
    let db = Db::open(FOLDER, options).unwrap();
    let keyspace = db.keyspace("k").unwrap();
    let flush = || {
        keyspace.insert("key", [7; 100]).unwrap();
        db.flush().unwrap();
    };
    flush();
    let (sender, writes) = std::sync::mpsc::channel();
    disk.on_change(move |event, _| {
        if event.kind == OperationKind::Write {
            sender.send(is_for_people(&event.path)).unwrap();
        }
    });
    disk.set_faults(fault.map(|at| Fault::io(OperationKind::Write, at)));
    flush();
    disk.stop_observing();
    disk.set_faults([]);
    flush();
    let resting = read(&disk, "LOG");
    runtime.set_unix_time(Duration::from_secs(1_000_061));
    flush();
    let first = writes.try_iter().position(|is_own| is_own).unwrap_or(0);
    (first, [resting, read(&disk, "LOG")])
}

#[test]
fn the_log_rests_after_a_failure_and_reports_what_it_has_lost() {
    let (first, [without, _]) = flush_with_fault(None);
    let (_, [resting, later]) = flush_with_fault(Some(first as u64));
    assert!(without.starts_with(&resting));
    let lines = |text: &str| text.lines().count();
    let lost = lines(&without) - lines(&resting);
    assert!(lost >= 4);
    let new = later.strip_prefix(&resting).unwrap();
    let expected = format!("\n1970-01-12T13:47:41.000Z lines_lost lines={lost}\n");
    assert!(new.starts_with(&expected), "{new}");
    assert!(new.contains(" flush_ended "));
}

#[test]
fn what_a_crash_leaves_of_them_is_no_matter() {
    let (disk, runtime) = (SimDisk::new(), SteppedRuntime::new(5));
    let (sender, images) = std::sync::mpsc::channel();
    disk.on_change(move |event, image| {
        if is_for_people(&event.path) {
            sender.send(image.clone()).unwrap();
        }
    });
    work(&disk, &runtime).unwrap();
    disk.stop_observing();
    let images: Vec<_> = images.into_iter().collect();
    let stride = images.len().div_ceil(60);
    let mut crashes = 0;
    for (index, image) in images.into_iter().step_by(stride).enumerate() {
        let random = CrashPolicy::RandomWithGarbage(index as u64);
        let policies = [CrashPolicy::DropUnsynced, CrashPolicy::KeepAll, random];
        let crashed = SimDisk::from_image(image.crash(policies[index % 3]));
        work(&crashed, &runtime).unwrap();
        crashes += 1;
    }
    assert!(crashes > 20, "{crashes}");
}

#[test]
fn the_log_says_why_a_database_is_poisoned() {
    let (disk, runtime) = (SimDisk::new(), SteppedRuntime::new(5));
    let db = Db::open(FOLDER, observed(&disk, &runtime)).unwrap();
    let keyspace = db.keyspace("k").unwrap();
    keyspace.insert("key", "value").unwrap();
    disk.set_faults([Fault::io(OperationKind::Sync, 0)]);
    db.persist().unwrap_err();
    runtime.step();
    let error = keyspace.insert("key", "value").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Poisoned);
    drop(keyspace);
    db.close().unwrap_err();
    let log = read(&disk, "LOG");
    let poisoned = log
        .lines()
        .filter(|line| line.contains(" poisoned error=\"an earlier "));
    assert_eq!(poisoned.count(), 1, "{log}");
    assert!(log.lines().last().unwrap().contains(" closed "), "{log}");
    assert!(log.lines().last().unwrap().contains(" error=\""), "{log}");
}

#[test]
fn a_full_disk_is_left_to_others() {
    let (disk, runtime) = (SimDisk::new(), SteppedRuntime::new(5));
    let db = Db::open(FOLDER, observed(&disk, &runtime)).unwrap();
    let keyspace = db.keyspace("k").unwrap();
    keyspace.insert("first", [7; 100]).unwrap();
    db.flush().unwrap();
    runtime.run_until_idle(1000);
    disk.set_quota(Some(disk.used_bytes()));
    let refused = (0..100_000_u32).find_map(|number| {
        let written = keyspace.insert(number.to_be_bytes(), [7; 1000]);
        written.err()
    });
    assert_eq!(refused.unwrap().kind(), ErrorKind::NoSpace);
    let lengths = || ["LOG", "STATUS"].map(|name| read(&disk, name).len());
    let before = lengths();
    // Removals and their flushes work, with what is left.
    for _ in 0..5 {
        keyspace.remove("first").unwrap();
        drop(db.flush());
        runtime.step();
    }
    assert_eq!(lengths(), before);
    disk.set_quota(None);
    runtime.advance(Duration::from_secs(60));
    runtime.set_unix_time(Duration::from_secs(1_000_061));
    keyspace.insert("last", [7; 100]).unwrap();
    db.flush().unwrap();
    runtime.run_until_idle(1000);
    let log = ["LOG.old", "LOG"].map(|name| disk.image().read(&PathBuf::from(FOLDER).join(name)));
    let log = log.map(|bytes| String::from_utf8(bytes.unwrap_or_default()).unwrap());
    assert!(log.concat().contains(" lines_lost lines="), "{log:?}");
    assert!(log.concat().contains(" space_resumed\n"), "{log:?}");
    drop(keyspace);
    db.close().unwrap();
}
