//! The manifest on disk, under damage, faults and crashes.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::super::names::FileName;
use super::super::{Edit, ManifestState, ManifestStore, Record, read_edits, read_manifest};
use super::{History, log_synced};
use crate::base::{Error, ErrorKind, FileNumber, Result};
use crate::log::LogWriter;
use crate::log::memory::{Fault, MemoryVfs, Operation};
use crate::vfs::Vfs;

fn directory() -> &'static Path {
    Path::new("db")
}

fn start(vfs: &MemoryVfs, number: u64, state: ManifestState) -> Result<ManifestStore> {
    ManifestStore::start(
        Arc::new(vfs.clone()),
        directory(),
        FileNumber(number),
        state,
    )
}

fn read(vfs: &MemoryVfs) -> Result<Option<(FileNumber, ManifestState)>> {
    read_manifest(vfs, directory())
}

fn read_state(vfs: &MemoryVfs) -> ManifestState {
    read(vfs).unwrap().expect("a manifest").1
}

fn kind<T>(outcome: &Result<T>) -> Option<ErrorKind> {
    outcome.as_ref().err().map(Error::kind)
}

/// Ten edits of every kind that fit after the start of manifest 1.
fn edits() -> Vec<Edit> {
    let mut history = History::default();
    let next = Edit {
        records: vec![Record::NextId(2)],
    };
    history.state.apply(&next).unwrap();
    (0..10)
        .map(|verb| history.edit([verb, 1, 40, verb * 3]))
        .collect()
}

/// A database of manifest 1 with `edits`, and the state after each of them.
fn sample(vfs: &MemoryVfs, edits: &[Edit]) -> (ManifestStore, Vec<ManifestState>) {
    let mut store = start(vfs, 1, ManifestState::default()).unwrap();
    let mut states = vec![store.state().clone()];
    for edit in edits {
        store.commit(edit).unwrap();
        states.push(store.state().clone());
    }
    (store, states)
}

#[test]
fn edits_are_read_back() {
    let vfs = MemoryVfs::default();
    assert!(read(&vfs).unwrap().is_none());
    let (store, states) = sample(&vfs, &edits());
    assert_eq!(store.number(), FileNumber(1));
    vfs.crash();
    assert_eq!(&read_state(&vfs), states.last().unwrap());
}

#[test]
fn a_rollover_keeps_the_state_and_the_store_goes_on() {
    let vfs = MemoryVfs::default();
    let edits = edits();
    let (mut store, _) = sample(&vfs, &edits[..6]);
    store.roll_over(FileNumber(100)).unwrap();
    assert_eq!(store.state().next_id, 101);
    store
        .commit(&Edit {
            records: vec![Record::NextId(200), Record::AddLog(FileNumber(150))],
        })
        .unwrap();
    let expected = store.state().clone();
    vfs.crash();
    let (number, state) = read(&vfs).unwrap().unwrap();
    assert_eq!((number, state), (FileNumber(100), expected));
}

#[test]
fn a_manifest_is_rolled_over_when_edits_outweigh_its_snapshot() {
    let vfs = MemoryVfs::default();
    let (mut store, _) = sample(&vfs, &[]);
    let edit = Edit {
        records: vec![Record::NextId(50); 100_000],
    };
    while !store.needs_rollover() {
        assert!(store.length() < 5 << 20);
        store.commit(&edit).unwrap();
    }
    assert!(store.length() > 4 << 20);
    store.roll_over(FileNumber(60)).unwrap();
    assert!(!store.needs_rollover() && store.length() < 1000);
}

#[test]
fn every_flipped_bit_is_found_or_harmless() {
    let vfs = MemoryVfs::default();
    let (_store, states) = sample(&vfs, &edits());
    for file in [FileName::Manifest(FileNumber(1)), FileName::Current] {
        let path = directory().join(file.to_string());
        let bytes = vfs.read(&path);
        // Damage of the last marker, which holds no edit, is a torn tail.
        let marker = bytes.len().saturating_sub(crate::log::HEADER_BYTES);
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            vfs.write(&path, &damaged);
            let outcome = read(&vfs);
            if file != FileName::Current && bit / 8 >= marker {
                assert_eq!(&outcome.unwrap().unwrap().1, states.last().unwrap());
            } else {
                assert_eq!(
                    kind(&outcome),
                    Some(ErrorKind::Corruption),
                    "{file} bit {bit}"
                );
                let message = outcome.unwrap_err().to_string();
                assert!(message.contains(&file.to_string()), "{message}");
            }
        }
        vfs.write(&path, &bytes);
    }
}

#[test]
fn a_cut_manifest_is_a_prefix_and_a_cut_snapshot_is_damage() {
    let vfs = MemoryVfs::default();
    let (_store, states) = sample(&vfs, &edits());
    let path = directory().join("000001.manifest");
    let bytes = vfs.read(&path);
    let mut reached = 0;
    for length in 0..=bytes.len() {
        vfs.write(&path, &bytes[..length]);
        match read(&vfs) {
            Ok(found) => {
                let state = found.unwrap().1;
                // Some edits change nothing; the states never go back.
                let position = states[reached..].iter().position(|other| *other == state);
                reached += position.expect("a state of the history");
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Corruption);
                assert_eq!(reached, 0);
            }
        }
    }
    assert_eq!(states[reached], *states.last().unwrap());
    vfs.remove_file(&path);
    assert_eq!(kind(&read(&vfs)), Some(ErrorKind::Corruption));
}

#[test]
fn a_manifest_shorter_than_current_says_is_damage() {
    let vfs = MemoryVfs::default();
    let edits = edits();
    let (mut store, _) = sample(&vfs, &edits[..6]);
    store.record_length().unwrap();
    let recorded = store.length();
    vfs.take_log();
    store.record_length().unwrap();
    assert!(vfs.take_log().is_empty(), "nothing new");
    for edit in &edits[6..] {
        store.commit(edit).unwrap();
    }
    vfs.crash();
    assert_eq!(&read_state(&vfs), store.state());
    let path = directory().join("000001.manifest");
    let bytes = vfs.read(&path);
    // The last marker holds no edit.
    let last = recorded - crate::log::HEADER_BYTES as u64;
    for length in 0..bytes.len() {
        vfs.write(&path, &bytes[..length]);
        let outcome = read(&vfs);
        let is_damage = kind(&outcome) == Some(ErrorKind::Corruption);
        assert_eq!(is_damage, (length as u64) < last, "cut at {length}");
    }
}

#[test]
fn a_record_of_an_unknown_kind_does_not_hide_the_edits_before_it() {
    let unknown = [99, 1, 0];
    let mut newer = Vec::new();
    Edit {
        records: vec![Record::FormatVersion],
    }
    .encode(&mut newer);
    // The body of the record is the version.
    *newer.last_mut().unwrap() += 1;
    let read = |payloads: &[Vec<u8>]| {
        let vfs = MemoryVfs::default();
        let (name, number) = ("000001.manifest", FileNumber(1));
        let mut log = LogWriter::create(&vfs, directory(), name, number, None).unwrap();
        for payload in payloads {
            log.begin().extend_from_slice(payload);
            log.commit().unwrap();
        }
        read_edits(&vfs, directory(), number, u64::MAX)
    };
    let mut snapshot = Vec::new();
    ManifestState::default().snapshot().encode(&mut snapshot);
    let behind = read(&[snapshot.clone(), unknown.to_vec()]).unwrap();
    assert!(behind.state.is_some());
    assert_eq!(behind.fault.unwrap().kind(), ErrorKind::Unsupported);
    let within = read(&[[&snapshot[..], &unknown].concat()]).unwrap();
    assert!(within.state.is_none());
    assert_eq!(within.fault.unwrap().kind(), ErrorKind::Unsupported);
    assert_eq!(kind(&read(&[newer])), Some(ErrorKind::Unsupported));
}

#[test]
fn a_cut_or_longer_current_is_damage() {
    let vfs = MemoryVfs::default();
    let (_store, _) = sample(&vfs, &[]);
    let path = directory().join("CURRENT");
    let bytes = vfs.read(&path);
    for length in 0..bytes.len() {
        vfs.write(&path, &bytes[..length]);
        assert_eq!(kind(&read(&vfs)), Some(ErrorKind::Corruption));
    }
    for more in [vec![0], vec![b'\n'], vec![b' '; 4096]] {
        vfs.write(&path, &[&bytes[..], &more].concat());
        assert_eq!(kind(&read(&vfs)), Some(ErrorKind::Corruption));
    }
}

#[test]
fn a_missing_current_among_data_is_damage() {
    let vfs = MemoryVfs::default();
    vfs.write(
        &directory().join("000001.manifest"),
        b"left by a creation that crashed",
    );
    assert!(read(&vfs).unwrap().is_none());
    for extension in ["wal", "table", "values", "dead"] {
        let path = directory().join(format!("000002.{extension}"));
        vfs.write(&path, b"");
        assert_eq!(
            kind(&read(&vfs)),
            Some(ErrorKind::Corruption),
            "{extension}"
        );
        vfs.remove(&path).unwrap();
    }
}

#[test]
fn a_failed_append_or_sync_poisons() {
    for operation in [Operation::Write, Operation::Sync] {
        let vfs = MemoryVfs::default();
        let edits = edits();
        let (mut store, states) = sample(&vfs, &edits[..3]);
        vfs.fail_once(operation, 0, io::ErrorKind::Other);
        assert_eq!(kind(&store.commit(&edits[3])), Some(ErrorKind::Io));
        assert!(store.is_poisoned());
        vfs.take_log();
        assert_eq!(kind(&store.commit(&edits[4])), Some(ErrorKind::Poisoned));
        let rolled = store.roll_over(FileNumber(1000));
        assert_eq!(kind(&rolled), Some(ErrorKind::Poisoned));
        assert!(vfs.take_log().is_empty());
        vfs.crash();
        assert_eq!(&read_state(&vfs), states.last().unwrap());
    }
}

#[test]
fn a_full_disk_changes_nothing() {
    let vfs = MemoryVfs::default();
    let edits = edits();
    vfs.set_quota(1000);
    let (mut store, _) = sample(&vfs, &edits[..3]);
    vfs.set_quota(store.length());
    let before = store.state().clone();
    for _ in 0..3 {
        assert_eq!(kind(&store.commit(&edits[3])), Some(ErrorKind::NoSpace));
    }
    vfs.set_quota(10);
    let rolled = store.roll_over(FileNumber(1000));
    assert_eq!(kind(&rolled), Some(ErrorKind::NoSpace));
    let left = vfs.list(directory()).unwrap();
    assert!(!left.contains(&"001000.manifest".to_owned()));
    assert!(!store.is_poisoned());
    assert_eq!(store.state(), &before);
    assert_eq!(store.state().keyspaces, before.keyspaces);
    vfs.heal();
    let records = vec![log_synced(9999)];
    store.commit(&Edit { records }).unwrap();
    vfs.crash();
    assert_eq!(&read_state(&vfs), store.state());
}

#[test]
fn an_edit_that_contradicts_the_state_is_not_written() {
    let vfs = MemoryVfs::default();
    let (mut store, states) = sample(&vfs, &edits()[..3]);
    vfs.take_log();
    let wrong = Edit {
        records: vec![Record::AddLog(FileNumber(1 << 40))],
    };
    assert_eq!(kind(&store.commit(&wrong)), Some(ErrorKind::Poisoned));
    assert!(!vfs.take_log().contains(&Operation::Write));
    assert!(store.is_poisoned());
    assert_eq!(&read_state(&vfs), states.last().unwrap());
}

/// Runs a history of a start, edits and rollovers until the first error. Returns the states in order,
/// and whether the history is complete. Each state was durable before the next step began.
fn run(vfs: &MemoryVfs) -> (Vec<ManifestState>, bool) {
    let mut states = Vec::new();
    let mut attempt = || -> Result<()> {
        let found = read(vfs)?;
        let number = found.as_ref().map_or(1, |(_, state)| state.next_id);
        let state = found.map(|(_, state)| {
            states.push(state.clone());
            state
        });
        let state = state.unwrap_or_default();
        let mut after = state.clone();
        after.next_id = number + 1;
        states.push(after);
        let mut store = start(vfs, number, state)?;
        for round in 0..3 {
            let next = store.state().next_id;
            for sequence in 0..2 {
                let edit = Edit {
                    records: vec![
                        Record::NextId(next + 2),
                        log_synced(
                            store.state().log_synced.map_or(0, |synced| synced.1)
                                + round
                                + sequence,
                        ),
                        Record::AddLog(FileNumber(next + sequence)),
                    ],
                };
                let mut after = store.state().clone();
                after.apply(&edit).unwrap();
                states.push(after);
                store.commit(&edit)?;
                if sequence == round % 2 {
                    store.record_length()?;
                }
            }
            let number = FileNumber(store.state().next_id);
            let mut after = store.state().clone();
            after.next_id += 1;
            states.push(after);
            store.roll_over(number)?;
            store.record_length()?;
        }
        Ok(())
    };
    let is_done = attempt().is_ok();
    (states, is_done)
}

#[test]
fn a_crash_or_error_at_any_operation_leaves_the_state_before_or_after_it() {
    for lasting in [true, false] {
        for crash in [true, false] {
            let mut after = 0;
            loop {
                let vfs = MemoryVfs::default();
                vfs.inject(Fault {
                    operation: None,
                    after,
                    lasting,
                    error: io::ErrorKind::Other,
                });
                let (states, is_done) = run(&vfs);
                vfs.heal();
                if crash {
                    vfs.crash();
                }
                let found = read(&vfs).unwrap();
                let found = found.map(|(_, state)| state);
                let allowed = &states[states.len().saturating_sub(2)..];
                let fits = found.as_ref().is_none_or(|state| allowed.contains(state))
                    && (found.is_some() || states.len() <= 1);
                assert!(fits, "operation {after}: {found:?} is none of {allowed:?}");
                // The next open continues from there.
                let (_, is_sound) = run(&vfs);
                assert!(is_sound);
                if is_done && lasting {
                    break;
                }
                after += 1;
                if after > 200 {
                    break;
                }
            }
            assert!(after > 50);
        }
    }
}

#[test]
fn the_example_of_current_in_the_format_document_is_true() {
    let document = include_str!("../../../../../docs/format.md");
    let vfs = MemoryVfs::default();
    let (_store, _) = sample(&vfs, &[]);
    let line = String::from_utf8(vfs.read(&directory().join("CURRENT"))).unwrap();
    assert!(document.contains(&format!("    {line}")), "{line}");
}
