//! What the metadata of values in value logs cost: tables and logs as the policy makes them, for values of 1 KiB in
//! random order. Each table refers to each log.
//!
//! `cargo test --release -p windrow --lib scale::value_logs -- --ignored --nocapture --test-threads 1`

use std::sync::Arc;
use std::time::Duration;

use super::super::super::compaction_claim::CompactionJob;
use super::{
    KEYSPACE, KeyspaceWork, Size, TB, full, manifest_records, open, open_alone, report, summary,
    timed,
};
use crate::base::FileNumber;
use crate::base::sync::Shared;
use crate::engine::KeyspaceCore;
use crate::engine::throttling::memory::Memory;
use crate::manifest::{
    Edit, ManifestState, ManifestStore, Record, ReferenceChanges, manifest_length,
};
use crate::merge_operator::KeyspaceOperator;
use crate::options::{KeyspaceOptions, Options};
use crate::policy::{self, ReadPoints};
use crate::table::{LogReferences, LogSums, Referred, SegmentReferences};
use crate::value::{DiscardList, ValueFileMeta};
use crate::vfs::OsVfs;

/// Bytes of a record of a value log, and of its entry in a table.
const RECORD_BYTES: u64 = 1060;
const ENTRY_BYTES: u64 = 40;

/// Garbage collection leaves about this many discard lists.
const DISCARD_LISTS: u64 = 32;

/// The logs of an edit that changes few.
const FEW: usize = 64;

const FIRST_LOG: u64 = 1_000_000;
const FIRST_LIST: u64 = 9_000_000;

/// The records of each value log that the policy begins while `records` are written.
fn logs(mut records: u64) -> Vec<u64> {
    let options = KeyspaceOptions::default();
    let mut logs = Vec::new();
    let mut held = 0;
    while records > 0 {
        let log_bytes = policy::value_log_bytes(held, &options);
        // The fewest records with which it is full.
        let (mut own, mut enough) = (1, 1 << 20);
        while own < enough {
            let middle = u64::midpoint(own, enough);
            if policy::is_value_log_full(middle * RECORD_BYTES, middle, log_bytes) {
                enough = middle;
            } else {
                own = middle + 1;
            }
        }
        let own = own.min(records);
        logs.push(own);
        held += own * RECORD_BYTES;
        records -= own;
    }
    logs
}

/// The manifest of a tree of `bytes` of values, most of which are in value logs. Returns the number of its logs, too.
fn manifest(bytes: f64) -> (ManifestState, usize) {
    let entries = bytes / RECORD_BYTES as f64;
    let table_bytes = entries * ENTRY_BYTES as f64;
    let options = KeyspaceOptions::default();
    // As the policy cuts files of a full tree: so that there are about `TABLE_FILES_MAX`.
    let grown = table_bytes / crate::base::limits::TABLE_FILES_MAX as f64;
    let size = Size {
        bytes: table_bytes,
        file_bytes: options.file_bytes.max(grown as u64),
    };
    let mut records = manifest_records(size);
    let mut all = 0;
    for record in &records {
        if let Record::AddFile { file, .. } = record {
            all += file.bytes() / ENTRY_BYTES;
        }
    }
    let logs = logs(all);
    let number = |log: usize| FileNumber(FIRST_LOG + log as u64);
    let mut changes = Vec::new();
    let mut value_files = Vec::new();
    for (log, own) in logs.iter().enumerate() {
        // A record of garbage for each list.
        let file = ValueFileMeta {
            number: number(log),
            length: (own + DISCARD_LISTS) * RECORD_BYTES,
            entries: own + DISCARD_LISTS,
            value_bytes: own * 1024,
            end: (own + DISCARD_LISTS) * RECORD_BYTES,
        };
        value_files.push(Record::AddValueLog {
            keyspace: KEYSPACE,
            number: file.number,
        });
        value_files.push(Record::SealValueLog {
            keyspace: KEYSPACE,
            file,
            last_sequence: 0,
        });
        changes.push((file.number, *own));
    }
    for list in 0..DISCARD_LISTS {
        let list = DiscardList {
            number: FileNumber(FIRST_LIST + list),
            length: 8 * logs.len() as u64,
            counts: (0..logs.len()).map(|log| (number(log), 1)).collect(),
        };
        value_files.push(Record::AddDiscardList {
            keyspace: KEYSPACE,
            list,
        });
    }
    let mut counts = ReferenceChanges::default();
    for (file, entries) in changes {
        counts.count(file, referred(entries));
    }
    for record in &mut records {
        if let Record::AddFile { file, .. } = record {
            let segment = &mut Arc::make_mut(file).segments[0];
            segment.entries = segment.length / ENTRY_BYTES;
            let sums = LogSums {
                referred: referred(segment.entries),
                smallest: number(0),
                largest: number(logs.len() - 1),
            };
            let generation = FileNumber(0);
            let logs = LogReferences { sums, generation };
            segment.references = SegmentReferences::new(None, Some(logs));
        }
    }
    value_files.extend(Record::count_references(KEYSPACE, &counts));
    // Behind the creation of the keyspace.
    records.splice(4..4, value_files);
    let mut state = ManifestState::default();
    state.apply(&Edit { records }).unwrap();
    (state, logs.len())
}

fn referred(entries: u64) -> Referred {
    Referred {
        entries,
        bytes: entries * RECORD_BYTES,
    }
}

fn encoded(record: Option<Record>) -> usize {
    let mut bytes = Vec::new();
    let records = record.into_iter().collect();
    Edit { records }.encode(&mut bytes);
    bytes.len()
}

/// A compaction of the level before the last. The entries of its upper files overwrite others, whose values are in the
/// newest `touched` of the `logs`.
fn compaction(
    keyspace: &KeyspaceCore,
    state: &mut ManifestState,
    (logs, touched): (usize, usize),
    number: &mut u64,
) -> Option<[f64; 5]> {
    let readers = ReadPoints::without_clock(Vec::new(), 0);
    let (job, plan) = timed(|| CompactionJob::claim(keyspace, Duration::ZERO, &readers));
    let job = job?;
    let CompactionJob::Compact { inputs, claim } = &job else {
        panic!("another plan: {job:?}");
    };
    let target = u8::try_from(claim.level).unwrap();
    let mut records = Vec::new();
    let mut dropped = Referred::default();
    for (level, files) in [(target - 1, &inputs.upper), (target, &inputs.lower)] {
        for file in files {
            records.push(Record::RemoveFile {
                keyspace: KEYSPACE,
                level,
                number: file.meta.number,
            });
            if level < target {
                dropped = dropped.plus(file.meta.segments[0].references.in_logs());
            }
        }
    }
    let mut adds = Vec::new();
    for file in &inputs.lower {
        *number += 1;
        let mut meta = crate::table::FileMeta::clone(&file.meta);
        meta.number = FileNumber(*number);
        let file = Arc::new(meta);
        adds.push((target, Arc::clone(&file)));
        records.push(Record::AddFile {
            keyspace: KEYSPACE,
            level: target,
            file,
        });
    }
    let files = encoded(None)
        + records
            .iter()
            .map(|it| encoded(Some(it.clone())))
            .sum::<usize>();
    let mut changes = ReferenceChanges::default();
    let (logs, touched) = (logs as u64, touched as u64);
    let (each, rest) = (dropped.entries / touched, dropped.entries % touched);
    for log in 0..touched {
        let entries = each + u64::from(log < rest);
        let number = FileNumber(FIRST_LOG + logs - touched + log);
        changes.uncount(number, referred(entries));
    }
    let counts = Record::count_references(KEYSPACE, &changes);
    let counted = encoded(counts.clone());
    records.extend(counts);
    let (outcome, edit) = timed(|| state.apply(&Edit { records }));
    outcome.unwrap();
    let version = |adds: &[(u8, Arc<crate::table::FileMeta>)]| {
        let obsolete = Arc::default();
        let handle = |(level, file): &(u8, Arc<crate::table::FileMeta>)| {
            (
                *level,
                crate::manifest::FileHandle::new(Arc::clone(file), &obsolete),
            )
        };
        let adds: Vec<_> = adds.iter().map(handle).collect();
        let upper = inputs.upper.iter().map(|file| (target - 1, file));
        let lower = inputs.lower.iter().map(|file| (target, file));
        let removes: Vec<_> = upper
            .chain(lower)
            .map(|(level, file)| (level, Shared::clone(file)))
            .collect();
        let version = keyspace.state().version.apply(&adds, &removes).unwrap();
        keyspace.install_version(version.with_values(&state.keyspaces[&KEYSPACE], &obsolete));
    };
    let ((), installed) = timed(|| version(&adds));
    job.release(keyspace, &Ok(()), Duration::ZERO);
    println!("edit: {files} bytes for files, {counted} for counts of references");
    let ((), throttle) = timed(|| keyspace.refresh_throttle());
    let version = Shared::clone(&keyspace.state().version);
    let options = keyspace.options();
    let (_, victims) = timed(|| {
        let work = KeyspaceWork::default();
        policy::victims(&summary(&version, &work), &options, 64)
    });
    Some([plan, edit, installed, throttle, victims])
}

fn measure(bytes: f64) {
    let folder = tempfile::tempdir().unwrap();
    let (state, logs) = manifest(bytes);
    let tables = state.keyspaces[&KEYSPACE].levels.iter();
    let tables: usize = tables.map(std::collections::BTreeMap::len).sum();
    println!("{:.0} TB: {tables} tables, {logs} logs", bytes / TB);
    let (vfs, number) = (Arc::new(OsVfs), FileNumber(10_000_000));
    drop(ManifestStore::start(vfs, folder.path(), number, state));
    let length = manifest_length(&OsVfs, folder.path(), number).unwrap();
    println!("manifest: {:.2} MB", length as f64 / 1e6);
    open_alone(folder.path());
    let (mut state, version, _) = open(folder.path());
    let table_bytes = bytes / RECORD_BYTES as f64 * ENTRY_BYTES as f64;
    let keyspace = KeyspaceCore::new(
        KEYSPACE,
        String::new(),
        full(table_bytes).1,
        KeyspaceOperator::default(),
        version,
        usize::from(state.keyspaces[&KEYSPACE].level_count),
        &Arc::new(Memory::new(&Options::default())),
    );
    keyspace.refresh_throttle();
    let mut number = 5_000_000;
    for touched in [logs, FEW] {
        let spread = (logs, touched);
        let rounds = (0..10).filter_map(|_| compaction(&keyspace, &mut state, spread, &mut number));
        let rounds: Vec<[f64; 5]> = rounds.collect();
        println!("values of {touched} logs are overwritten");
        report(
            &rounds,
            [
                "plan",
                "edit of the manifest",
                "edit of the version",
                "throttle",
                "victims",
            ],
        );
    }
}

#[test]
#[ignore = "a measurement"]
fn one_terabyte() {
    measure(TB);
}

#[test]
#[ignore = "a measurement"]
fn ten_terabytes() {
    measure(10.0 * TB);
}

#[test]
#[ignore = "a measurement"]
fn a_hundred_terabytes() {
    measure(100.0 * TB);
}
