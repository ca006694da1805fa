//! What plans, edits and an open of a large tree cost: its metadata are generated, and no table exists.
//!
//! `cargo test --release -p windrow --lib tree_summary::scale -- --ignored --nocapture --test-threads 1`

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it prints its table, a step that fails ends it, and its numbers are far below the limits"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "reads the memory of its own process, and times"
)]

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use super::super::compaction_claim::CompactionJob;
use super::{all_files, summary};
use crate::base::sync::Shared;
use crate::base::{FileNumber, KeyspaceId, SegmentId};
use crate::engine::KeyspaceCore;
use crate::engine::keyspace::KeyspaceWork;
use crate::engine::throttling::memory::Memory;
use crate::manifest::{
    Edit, FileHandle, ManifestState, ManifestStore, Obsolete, Record, Version, read_manifest,
};
use crate::merge_operator::KeyspaceOperator;
use crate::options::{KeyspaceOptions, Options};
use crate::policy::{self, Claim, ReadPoints, capacities};
use crate::table::{FenceKeys, FileMeta, SegmentMeta, SegmentReferences};
use crate::vfs::OsVfs;

mod value_logs;

const TB: f64 = 1e12;
const KEYSPACE: KeyspaceId = KeyspaceId(1);
/// Bytes of an entry on disk.
const ENTRY_BYTES: u64 = 120;

/// A tree of this size: a row of the table in `docs/scale.md`.
#[derive(Debug, Clone, Copy)]
struct Size {
    bytes: f64,
    file_bytes: u64,
}

fn key(place: u64) -> Box<[u8]> {
    format!("user{place:016}").into_bytes().into()
}

/// A file of one segment between these places in the key space.
fn file(number: u64, bytes: u64, (from, to): (u64, u64)) -> FileMeta {
    let entries = bytes / ENTRY_BYTES;
    let segment = SegmentMeta {
        id: SegmentId(number),
        offset: 0,
        length: bytes,
        entries,
        tombstones: entries / 1000,
        keys: FenceKeys::new(&key(from), &key(to)),
        sequence_min: 1,
        sequence_max: number + 1,
        logical_bytes: bytes,
        overwrites: 0,
        filter_units: [entries / 8 * 5, entries / 8 * 4, entries / 2, 0],
        footer_checksum: 7,
        range_tombstones: 0,
        operands: 0,
        hidden_below: 0,
        expiring: None,
        references: SegmentReferences::default(),
    };
    FileMeta {
        number: FileNumber(number),
        sealed: false,
        external: false,
        segments: vec![segment].into(),
    }
}

/// A pseudo-random number below `bound`.
fn random(state: &mut u64, bound: u64) -> u64 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) % bound
}

/// How many levels a tree of `bytes` has by default, and options with which it is full.
fn full(bytes: f64) -> (usize, KeyspaceOptions) {
    let mut options = KeyspaceOptions::default();
    let capacity = |count: usize| capacities(&options, count)[count] as f64;
    let level_count = (1..=15).find(|&count| capacity(count) >= bytes).unwrap();
    options.base_bytes = (options.base_bytes as f64 * bytes / capacity(level_count)) as u64;
    (level_count, options)
}

/// The manifest of a full tree. The level before the last is a little too large.
fn manifest(size: Size) -> ManifestState {
    let records = manifest_records(size);
    let mut state = ManifestState::default();
    state.apply(&Edit { records }).unwrap();
    state
}

/// The edit that makes it. The first four records create the keyspace.
fn manifest_records(size: Size) -> Vec<Record> {
    let (level_count, options) = full(size.bytes);
    let nominal = capacities(&options, level_count);
    let parts = |level: usize| nominal[level] as f64 / nominal[level_count] as f64;
    let all: f64 = (1..=level_count).map(parts).sum();
    let mut records = vec![
        Record::FormatVersion,
        Record::NextId(10_000_000),
        Record::CreateKeyspace {
            id: KEYSPACE,
            name: "large".to_owned(),
        },
        Record::LevelCount {
            keyspace: KEYSPACE,
            count: u8::try_from(level_count).unwrap(),
        },
    ];
    let (mut number, mut seed) = (0, 1);
    for level in 1..=level_count {
        let bytes = size.bytes * parts(level) / all;
        let over = if level + 1 == level_count { 1.6 } else { 1.0 };
        let files = (bytes * over / size.file_bytes as f64).ceil() as u64;
        let width = 10_000_000_000_000_000 / files;
        for position in 0..files {
            number += 1;
            let from = position * width + random(&mut seed, width / 4);
            let to = (position + 1) * width - 1 - random(&mut seed, width / 4);
            let bytes = size.file_bytes / 8 * 7 + random(&mut seed, size.file_bytes / 4);
            let file = Arc::new(file(number, bytes, (from, to)));
            let level = u8::try_from(level).unwrap();
            records.push(Record::AddFile {
                keyspace: KEYSPACE,
                level,
                file,
            });
        }
    }
    records
}

/// The resident bytes of this process.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = status
        .split(' ')
        .nth(1)
        .and_then(|it| it.parse::<u64>().ok());
    pages.unwrap_or(0) * 4096
}

fn median(mut micros: Vec<f64>) -> String {
    micros.sort_by(f64::total_cmp);
    format!(
        "{:.0} ({:.0})",
        micros[micros.len() / 2],
        micros.last().unwrap()
    )
}

/// Runs `step` and returns how many microseconds it took.
fn timed<R>(step: impl FnOnce() -> R) -> (R, f64) {
    let start = Instant::now();
    let result = step();
    (result, start.elapsed().as_secs_f64() * 1e6)
}

fn open(folder: &Path) -> (ManifestState, Version, Arc<Obsolete>) {
    let (state, read) = timed(|| read_manifest(&OsVfs, folder).unwrap().unwrap().1);
    let obsolete = Arc::default();
    let (version, build) =
        timed(|| Version::from_state(&state.keyspaces[&KEYSPACE], &obsolete).unwrap());
    println!(
        "opened: read {:.0} ms, version {:.0} ms",
        read / 1e3,
        build / 1e3
    );
    (state, version, obsolete)
}

/// One compaction: its plan, its edit, its throttle.
fn compact(
    keyspace: &KeyspaceCore,
    state: &mut ManifestState,
    obsolete: &Arc<Obsolete>,
    number: &mut u64,
) -> Option<[f64; 4]> {
    let readers = ReadPoints::without_clock(Vec::new(), 0);
    let (job, plan) = timed(|| CompactionJob::claim(keyspace, std::time::Duration::ZERO, &readers));
    let job = job?;
    let CompactionJob::Compact { inputs, claim } = &job else {
        panic!("another plan: {job:?}");
    };
    let target = u8::try_from(claim.level).unwrap();
    let upper = inputs.upper.iter().map(|file| (target - 1, file));
    let inputs_of = || {
        upper
            .clone()
            .chain(inputs.lower.iter().map(|file| (target, file)))
    };
    let removes: Vec<(u8, Shared<FileHandle>)> = inputs_of()
        .map(|(level, file)| (level, Shared::clone(file)))
        .collect();
    let outputs = inputs.lower.iter().map(|file| {
        *number += 1;
        let mut meta = FileMeta::clone(&file.meta);
        meta.number = FileNumber(*number);
        Arc::new(meta)
    });
    let outputs: Vec<Arc<FileMeta>> = outputs.collect();
    let handle = |file: &Arc<FileMeta>| (target, FileHandle::new(Arc::clone(file), obsolete));
    let adds: Vec<_> = outputs.iter().map(handle).collect();
    let mut records: Vec<Record> = removes
        .iter()
        .map(|(level, file)| Record::RemoveFile {
            keyspace: KEYSPACE,
            level: *level,
            number: file.meta.number,
        })
        .collect();
    let add = |file| Record::AddFile {
        keyspace: KEYSPACE,
        level: target,
        file,
    };
    records.extend(outputs.into_iter().map(add));
    let edit = Edit { records };
    let ((), in_manifest) = timed(|| state.apply(&edit).unwrap());
    let ((), in_version) = timed(|| {
        let version = keyspace.state().version.apply(&adds, &removes).unwrap();
        let version = version.with_values(&state.keyspaces[&KEYSPACE], obsolete);
        keyspace.install_version(version);
        job.release(keyspace, &Ok(()), std::time::Duration::ZERO);
    });
    drop(job);
    let ((), throttle) = timed(|| keyspace.refresh_throttle());
    Some([plan, in_manifest, in_version, throttle])
}

fn measure(size: Size) {
    let folder = tempfile::tempdir().unwrap();
    let state = manifest(size);
    let levels: Vec<usize> = state.keyspaces[&KEYSPACE]
        .levels
        .iter()
        .map(std::collections::BTreeMap::len)
        .collect();
    let files: usize = levels.iter().sum();
    println!(
        "{:.0} TB, {files} files, levels {levels:?}",
        size.bytes / TB
    );
    drop(ManifestStore::start(
        Arc::new(OsVfs),
        folder.path(),
        FileNumber(10_000_000),
        state,
    ));
    open_alone(folder.path());
    let (mut state, version, obsolete) = open(folder.path());
    let keyspace = KeyspaceCore::new(
        KEYSPACE,
        String::new(),
        full(size.bytes).1,
        KeyspaceOperator::default(),
        version,
        usize::from(state.keyspaces[&KEYSPACE].level_count),
        &Arc::new(Memory::new(&Options::default())),
    );
    let ((), first) = timed(|| keyspace.refresh_throttle());
    let ((), again) = timed(|| keyspace.refresh_throttle());
    println!("throttle: first {first:.0} us, again {again:.0} us");
    let version = Shared::clone(&keyspace.state().version);
    let work = KeyspaceWork::default();
    let (tree, made) = timed(|| summary(&version, &work));
    let claim = Claim {
        level: 0,
        smallest: &b"a"[..],
        largest: &b"z"[..],
    };
    let (_, fraction) = timed(|| policy::flush_fraction(&tree, &claim, 1000));
    println!("summary: {made:.0} us, fraction of a flush {fraction:.0} us");
    drop(tree);
    let allocate = || policy::allocate_filters(&all_files(&version), &KeyspaceOptions::default());
    let (_, filters) = timed(allocate);
    println!("filters: {:.0} ms", filters / 1e3);
    drop(version);
    let mut number = 5_000_000;
    let mut rounds = Vec::new();
    for _ in 0..30 {
        rounds.extend(compact(&keyspace, &mut state, &obsolete, &mut number));
    }
    report(
        &rounds,
        [
            "plan",
            "edit of the manifest",
            "edit of the version",
            "throttle",
        ],
    );
}

/// Prints what compactions took in each of `steps`.
fn report<const STEPS: usize>(rounds: &[[f64; STEPS]], steps: [&str; STEPS]) {
    let column = |step: usize| median(rounds.iter().map(|round| round[step]).collect());
    let steps = steps.iter().enumerate();
    let steps: Vec<String> = steps
        .map(|(step, name)| format!("{name} {}", column(step)))
        .collect();
    println!(
        "{} compactions, us, medians (and worst): {}",
        rounds.len(),
        steps.join(", ")
    );
}

/// Opens the manifest in `folder` in a new process, whose memory holds nothing else, and prints what it took.
fn open_alone(folder: &Path) {
    let opened = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["tree_summary::scale::opened", "--ignored", "--nocapture"])
        .current_dir(folder)
        .output()
        .unwrap();
    let report = String::from_utf8(opened.stdout).unwrap();
    let report = report.lines().filter(|line| line.starts_with("open"));
    report.for_each(|line| println!("{line}"));
}

/// The open in a process of its own, if the current folder has a manifest.
#[test]
#[ignore = "a measurement"]
fn opened() {
    if !Path::new("CURRENT").exists() {
        return;
    }
    let before = resident();
    let (state, version, _) = open(Path::new("."));
    let memory = (resident() - before) as f64;
    let files: usize = version.levels().iter().map(|level| level.len()).sum();
    println!(
        "opened: {:.1} MB of memory, {:.0} bytes per table, keys included",
        memory / 1e6,
        memory / files as f64
    );
    drop((state, version));
}

#[test]
#[ignore = "a measurement"]
fn one_terabyte() {
    measure(Size {
        bytes: TB,
        file_bytes: 16 << 20,
    });
}

#[test]
#[ignore = "a measurement"]
fn ten_terabytes_as_the_policy_cuts_files() {
    measure(Size {
        bytes: 10.0 * TB,
        file_bytes: 152 << 20,
    });
}

#[test]
#[ignore = "a measurement"]
fn ten_terabytes_in_short_files() {
    measure(Size {
        bytes: 10.0 * TB,
        file_bytes: 16 << 20,
    });
}
