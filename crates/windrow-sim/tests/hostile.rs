//! Files that an attacker has made: no target panics, reads without end, or takes more memory than the bound of
//! `docs/testing.md`. `windrow-sim hostile` runs more cases, and the fuzzers in `fuzz` look for others.

use windrow_sim::hostile::{Seen, TARGETS, Target};
use windrow_sim::stress::hostile::run_case;

/// The memory that a case may take whatever its files are: buffers, a block or value that is decompressed, and the simulated disk.
const BYTES_MAX: u64 = 96 << 20;

/// And that for each byte of the files.
const BYTES_PER_BYTE: u64 = 64;

fn target(name: &str) -> &'static Target {
    match TARGETS.iter().find(|target| target.name == name) {
        Some(target) => target,
        None => unreachable!("there is a target {name}"),
    }
}

/// Runs `count` cases of the target `name`.
fn run(name: &str, count: u64) {
    let target = target(name);
    // This makes the corpus, which is no part of a case.
    (target.run)(&[]);
    let mut accepted = 0;
    for seed in 0..count {
        let mut seen = Seen::default();
        let allocated = allocation_counter::measure(|| seen = run_case(target, seed));
        let bound = BYTES_MAX + BYTES_PER_BYTE * seen.bytes;
        let most = allocated.bytes_max;
        assert!(
            most <= bound,
            "seed {seed} of {name} takes {most} bytes for {seen:?}"
        );
        accepted += u64::from(seen.is_accepted);
    }
    // Most changes are refused. If all are, none gets far; if none is, none counts.
    assert!(
        0 < accepted && accepted < count,
        "{accepted} of {count} are accepted"
    );
}

#[test]
fn databases() {
    run("database", 300);
}

#[test]
fn repairs() {
    run("repair", 200);
}

#[test]
fn dumps() {
    run("dump", 200);
}

#[test]
fn ingested_tables() {
    run("ingest", 200);
}

#[test]
fn restored_backups() {
    run("restore", 200);
}

#[test]
fn archives() {
    run("archive", 200);
}

#[test]
fn batches() {
    run("batch", 300);
}
