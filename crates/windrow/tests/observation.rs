//! What people see of an open database: the job log, the status file, latencies, running jobs.

#![expect(clippy::unwrap_used, reason = "a step that fails ends the test")]
#![expect(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "the tests read the files as people do, and their listeners need no model"
)]

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use windrow::{Db, Event, JobStats, Operation, Options, inspect};

/// Options under which a few kilobytes make several tables.
fn tiny() -> Options {
    let mut options = Options::default();
    options.keyspace.memtable_bytes = 16 << 10;
    options.keyspace.file_bytes = 4 << 10;
    options.keyspace.base_bytes = 16 << 10;
    options.keyspace.level0_runs = 2;
    options
}

fn open(folder: &Path, options: Options) -> Db {
    Db::open(folder, options).unwrap()
}

fn work(db: &Db) {
    let keyspace = db.keyspace("main").unwrap();
    for number in 0..2000_u32 {
        keyspace
            .insert((number % 100).to_be_bytes(), [7; 100])
            .unwrap();
    }
    db.flush().unwrap();
    keyspace.compact_range::<&[u8]>(..).unwrap();
    db.wait_idle().unwrap();
}

/// The name of the event of each line of a job log.
fn names(log: &str) -> Vec<&str> {
    let lines = log.lines().filter(|line| !line.is_empty());
    lines.map(|line| line.split(' ').nth(1).unwrap()).collect()
}

#[test]
fn the_job_log_has_a_line_for_each_job() {
    let folder = TempDir::new().unwrap();
    let db = open(folder.path(), tiny());
    work(&db);
    let stats = db.stats();
    db.close().unwrap();
    let log = fs::read_to_string(folder.path().join("LOG")).unwrap();
    let names = names(&log);
    assert_eq!((names[0], *names.last().unwrap()), ("opened", "closed"));
    let count = |name| names.iter().filter(|it| **it == name).count() as u64;
    assert_eq!(count("flush_began"), stats.flushes);
    assert_eq!(count("flush_ended"), stats.flushes);
    assert_eq!(count("compaction_ended"), stats.compactions);
    let opened = log.lines().next().unwrap();
    let (time, rest) = opened.split_once(' ').unwrap();
    assert!(time.starts_with("20") && time.ends_with('Z'), "{time}");
    assert!(rest.starts_with("opened is_new=true logs=0 log_bytes=0 entries=0 duration=0."));

    // A later open goes on behind what is there, even if it ends within a line.
    fs::write(folder.path().join("LOG"), "a torn li\u{0}").unwrap();
    open(folder.path(), tiny()).close().unwrap();
    let log = fs::read_to_string(folder.path().join("LOG")).unwrap();
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!(lines[0], "a torn li\u{0}");
    assert!(lines[1].contains(" opened is_new=false logs="), "{log}");
    assert!(lines[2].contains(" closed "), "{log}");
}

#[test]
fn the_job_log_stays_within_its_bound() {
    let folder = TempDir::new().unwrap();
    let mut options = tiny();
    options.job_log_bytes = 4 << 10;
    let db = open(folder.path(), options);
    let (log, old) = (folder.path().join("LOG"), folder.path().join("LOG.old"));
    let mut last = Vec::new();
    for _ in 0..3 {
        work(&db);
        let length = |path: &Path| fs::metadata(path).unwrap().len();
        assert!(length(&log) <= 2 << 10 && length(&old) <= 2 << 10);
        let old = fs::read(&old).unwrap();
        assert!(old.ends_with(b"\n") && old != last);
        last = old;
    }
    db.close().unwrap();
}

#[test]
fn nothing_needs_the_files_for_people() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("db");
    let mut options = tiny();
    options.status_interval = Duration::from_nanos(1);
    let db = open(&path, options.clone());
    work(&db);
    let files = ["LOG", "STATUS"];
    for name in files {
        assert!(path.join(name).exists(), "{name}");
    }
    let copy = folder.path().join("copy");
    db.checkpoint(&copy).unwrap();
    for name in files {
        assert!(!copy.join(name).exists(), "{name}");
    }
    db.close().unwrap();
    assert!(!path.join("STATUS").exists());

    // Whatever they hold, or if they are no files.
    fs::remove_file(path.join("LOG")).unwrap();
    for name in files {
        fs::create_dir(path.join(name)).unwrap();
    }
    let db = open(&path, options.clone());
    work(&db);
    assert!(db.verify().unwrap().is_sound());
    db.close().unwrap();
    for name in files {
        fs::remove_dir(path.join(name)).unwrap();
        fs::write(path.join(name), [0xff; 10_000]).unwrap();
    }
    let db = open(&path, options);
    work(&db);
    db.close().unwrap();
    assert_eq!(fs::read(path.join("STATUS")).unwrap(), [0xff; 10_000]);
    let repaired = folder.path().join("repaired");
    let report = Db::repair(&path, &repaired, &tiny()).unwrap();
    assert!(report.losses.is_empty(), "{:?}", report.losses);

    Db::destroy(&path, &tiny()).unwrap();
    let left = fs::read_dir(&path)
        .unwrap()
        .map(|it| it.unwrap().file_name());
    assert_eq!(left.collect::<Vec<_>>(), ["LOCK"]);
}

#[test]
fn files_of_others_with_these_names_stay() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("db");
    fs::create_dir(&path).unwrap();
    for name in ["LOG", "STATUS"] {
        let own = path.join(name);
        fs::write(&own, "of somebody else\n").unwrap();
        // They are no database, and none is created among them.
        assert!(Db::open(&path, tiny()).is_err(), "{name}");
        Db::destroy(&path, &tiny()).unwrap();
        assert_eq!(fs::read(&own).unwrap(), b"of somebody else\n");
        fs::remove_file(&own).unwrap();
    }
    // In a database, what is no status is not written over.
    open(&path, tiny()).close().unwrap();
    fs::write(path.join("STATUS"), "of somebody else\n").unwrap();
    let mut options = tiny();
    options.status_interval = Duration::from_nanos(1);
    let db = open(&path, options);
    work(&db);
    db.close().unwrap();
    assert_eq!(
        fs::read(path.join("STATUS")).unwrap(),
        b"of somebody else\n"
    );
}

#[test]
fn files_that_are_not_wanted_are_not_written() {
    let folder = TempDir::new().unwrap();
    let mut options = tiny();
    (options.job_log_bytes, options.status_interval) = (0, Duration::ZERO);
    options.latency_interval = 0;
    let db = open(folder.path(), options);
    work(&db);
    assert!(db.stats().latencies.is_empty());
    for name in ["LOG", "STATUS"] {
        assert!(!folder.path().join(name).exists(), "{name}");
    }
}

/// Waits until `is_so` answers.
fn wait_for<T>(mut is_so: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(answer) = is_so() {
            return answer;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "it never came");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn another_process_can_read_the_status() {
    let folder = TempDir::new().unwrap();
    assert_eq!(
        inspect::status(&windrow::vfs::OsVfs, folder.path()).unwrap(),
        None
    );
    let db = open(folder.path(), tiny());
    let keyspace = db.keyspace("main").unwrap();
    for number in 1..=3_u8 {
        keyspace.insert([number], "value").unwrap();
        keyspace.get([number]).unwrap();
        // The worker of the database finds out by itself.
        let text = wait_for(|| {
            let status = inspect::status(&windrow::vfs::OsVfs, folder.path()).unwrap()?;
            let sample = format!("\nwindrow_gets_total {number}\n");
            status.contains(&sample).then_some(status)
        });
        for sample in [
            "windrow_status_interval_seconds 1\n",
            &format!("windrow_user_writes_total {number}\n"),
            &format!("windrow_memtable_entries{{keyspace=\"main\"}} {number}\n"),
            "windrow_memory_budget_bytes 536870912\n",
            "windrow_operation_seconds_count{operation=\"get\"} 1\n",
        ] {
            assert!(text.contains(&format!("\n{sample}")), "{sample} in {text}");
        }
    }
    // A reader changes nothing of it, and the close removes it.
    drop(Db::open_secondary(folder.path(), tiny()).unwrap());
    assert!(
        inspect::status(&windrow::vfs::OsVfs, folder.path())
            .unwrap()
            .is_some()
    );
    db.close().unwrap();
    assert_eq!(
        inspect::status(&windrow::vfs::OsVfs, folder.path()).unwrap(),
        None
    );
}

#[test]
fn a_shorter_status_leaves_nothing() {
    let folder = TempDir::new().unwrap();
    let db = open(folder.path(), tiny());
    let name = "a name that is long enough";
    db.keyspace(name).unwrap();
    let status = || inspect::status(&windrow::vfs::OsVfs, folder.path()).unwrap();
    let longer = wait_for(|| status().filter(|text| text.contains(name)));
    db.drop_keyspace(name).unwrap();
    let shorter = wait_for(|| status().filter(|text| !text.contains(name)));
    assert!(shorter.len() < longer.len());
    db.close().unwrap();
}

#[test]
fn operations_are_timed() {
    let folder = TempDir::new().unwrap();
    let mut options = tiny();
    options.latency_interval = 16;
    // Values apart from their keys: a step then also drops the value that was read.
    (options.keyspace.medium_from, options.keyspace.large_from) = (90, 90);
    let db = open(folder.path(), options);
    work(&db);
    let keyspace = db.keyspace("main").unwrap();
    for number in 0..320_u32 {
        keyspace.get(number.to_be_bytes()).unwrap();
        let mut cursor = keyspace.cursor().unwrap();
        cursor.seek(number.to_be_bytes()).unwrap();
    }
    let mut cursor = keyspace.cursor().unwrap();
    for _ in 0..16 {
        assert!(cursor.seek_to_first().unwrap());
        while cursor.next().unwrap() {
            cursor.value().unwrap();
        }
    }
    db.persist().unwrap();
    let stats = db.stats();
    let latencies = &stats.latencies;
    let timed = |operation| {
        let own = latencies.iter().find(|it| it.operation == operation);
        own.map_or(0, |it| {
            let counts: u64 = it.buckets.iter().map(|(_, count)| count).sum();
            assert_eq!(counts, it.timed);
            assert!(it.quantile_nanos(0.5) <= it.quantile_nanos(1.0));
            assert_eq!(it.quantile_nanos(1.0), it.longest_nanos);
            assert!(it.longest_nanos <= it.nanos);
            it.timed
        })
    };
    assert_eq!(timed(Operation::Get), 320 / 16);
    assert_eq!(timed(Operation::Commit), 2000 / 16);
    // 16 scans over 100 entries, and one of them is the turn of the last cursor.
    assert_eq!(timed(Operation::Seek), 320 / 64 + 1);
    assert_eq!(timed(Operation::Next), 16 * 100 / 64);
    assert_eq!(timed(Operation::Flush), stats.flushes);
    assert_eq!(timed(Operation::Compaction), stats.compactions);
    assert_eq!(timed(Operation::Sync), stats.wal_syncs);
    assert_eq!(timed(Operation::Stall), stats.stall_count());
}

#[test]
fn statistics_name_the_jobs_under_way() {
    let folder = TempDir::new().unwrap();
    let own = Arc::new(OnceLock::<Db>::new());
    let seen = Arc::new(Mutex::new(Vec::<JobStats>::new()));
    let (handle, sink) = (Arc::clone(&own), Arc::clone(&seen));
    let listener = move |event: &Event| {
        let began = matches!(
            event,
            Event::FlushBegan { .. } | Event::CompactionBegan { .. }
        );
        if began && let Some(db) = handle.get() {
            sink.lock().unwrap().extend(db.stats().jobs);
        }
    };
    let db = open(folder.path(), tiny().with_listener(Arc::new(listener)));
    assert!(own.set(db.clone()).is_ok());
    work(&db);
    assert!(db.stats().jobs.is_empty());
    let seen = seen.lock().unwrap();
    assert!(seen.iter().all(|job| job.keyspace == "main"));
    let flush = seen.iter().find(|job| job.job == "flush").unwrap();
    assert_eq!((flush.level, flush.purpose), (Some(0), None));
    let compaction = seen.iter().find(|job| job.job == "compaction").unwrap();
    assert_eq!(compaction.purpose, Some("tree"));
    assert!(compaction.files > 0 && compaction.bytes > 0 && compaction.level > Some(0));
    db.close().unwrap();
}
