//! The value files of versions against a look at all of them, after random edits.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;

use super::super::edit::Record;
use super::super::names::FileName;
use super::super::values::{ValueFileKind, ValueFileState};
use super::super::{KeyspaceState, ManifestState, Obsolete, Version};
use super::values::{add_log, add_table};
use super::{History, KEYSPACE, apply, create_keyspace, flushed, steps};
use crate::base::{FileNumber, KeyspaceId};

/// The value files and discard lists.
fn names(keyspace: &KeyspaceState) -> BTreeSet<FileName> {
    let files = keyspace.files().map(|(name, _)| name);
    files
        .filter(|name| !matches!(name, FileName::Table(_)))
        .collect()
}

/// Checks `version` against a look at all value files of `keyspace`.
fn check(version: &Version, keyspace: &KeyspaceState) {
    let (found, values) = (version.values(), &keyspace.values);
    let files = || values.files.values();
    let metas = files().map(ValueFileState::as_read);
    assert!(found.iter().map(|file| file.meta).eq(metas));
    for file in files() {
        let handle = found.find(file.file.number).unwrap();
        assert_eq!(handle.meta.number, file.file.number);
        let is_transient = file.kind == ValueFileKind::TransientLog;
        assert_eq!(handle.is_transient, is_transient);
        let usage = found.usage(file.file.number).unwrap();
        assert_eq!(usage.length, file.as_read().length);
        assert_eq!(usage.referred, file.referred.bytes);
    }
    let tables = values.relocations.values().map(|it| it.table);
    for table in tables.clone() {
        assert_eq!(found.table(table.origin), Some(&table));
    }
    let newest = tables.map(|table| table.gc_output).max();
    assert_eq!(found.generation(), newest.unwrap_or(FileNumber(0)));

    // The logs as the keyspace needs them now, chunk by chunk and together.
    let logs = files().filter_map(|it| it.log_summary(keyspace.settled, keyspace.flushed));
    let logs: Vec<_> = logs.collect();
    let chunks = 0..found.chunks();
    let in_chunks = chunks.clone().flat_map(|chunk| found.logs(chunk));
    assert!(in_chunks.eq(logs.iter().copied()));
    for chunk in chunks {
        let own: Vec<_> = found.logs(chunk).collect();
        assert_eq!(found.log_sums(chunk), own.iter().collect());
    }
    for log in &logs {
        assert_eq!(found.log(log.number), Some(*log));
    }
    let sums = found.sums();
    assert_eq!(sums.logs, logs.iter().collect());
    let transient = || files().filter(|it| it.kind == ValueFileKind::TransientLog);
    let length: u64 = transient().map(|it| it.file.length).sum();
    let bytes: u64 = transient().map(|it| it.referred.bytes).sum();
    assert_eq!(sums.transient_files, transient().count());
    assert_eq!(
        (sums.transient_length, sums.transient_bytes),
        (length, bytes)
    );
    let relocated = values.relocations.values().map(|it| it.referred.bytes);
    assert_eq!(sums.relocated_bytes, relocated.sum::<u64>());
    let complete = files().filter(|it| it.kind != ValueFileKind::OpenLog);
    let complete = complete.map(|it| it.file.end);
    let lists = values.discard_lists.values().map(|list| list.length);
    assert_eq!(version.file_bytes(), complete.chain(lists).sum::<u64>());
}

proptest! {
    /// I1 of value files of versions, and I1 of obsolete files.
    #[test]
    fn versions_follow_random_edits(steps in steps(0..200), every in 1..4_usize) {
        let mut history = History::default();
        let mut versions: BTreeMap<KeyspaceId, (Version, BTreeSet<FileName>)> = BTreeMap::new();
        let obsolete = Arc::new(Obsolete::default());
        for (step, numbers) in steps.into_iter().enumerate() {
            history.edit(numbers);
            if step % every > 0 {
                continue; // A version may follow several edits.
            }
            let mut removed = BTreeSet::new();
            let state = &history.state;
            versions.retain(|id, (version, names)| {
                let exists = state.keyspaces.contains_key(id);
                if !exists {
                    version.mark_obsolete();
                    removed.append(names);
                }
                exists
            });
            for (id, keyspace) in &state.keyspaces {
                let (version, known) = versions.entry(*id).or_default();
                *version = version.with_values(keyspace, &obsolete);
                check(version, keyspace);
                let names = names(keyspace);
                removed.extend(known.difference(&names));
                *known = names;
            }
            let mut marked = obsolete.take();
            marked.sort_unstable();
            prop_assert_eq!(marked, Vec::from_iter(removed));
        }
    }
}

#[test]
fn an_edit_makes_only_the_chunks_anew_that_it_changes() {
    let mut state = ManifestState::default();
    let mut records = vec![
        Record::NextId(1000),
        create_keyspace("map"),
        Record::LevelCount {
            keyspace: KEYSPACE,
            count: 3,
        },
        flushed(9),
    ];
    for number in 100..200 {
        records.extend(add_log(number, 3, 9 + number / 190));
        records.extend(add_table(number + 200, number, 2));
    }
    apply(&mut state, records).unwrap();
    let obsolete = Arc::default();
    let version = Version::default().with_values(&state.keyspaces[&KEYSPACE], &obsolete);
    let chunks = version.values().chunks();
    assert!(chunks > 10);
    let mut next = |records| {
        apply(&mut state, records).unwrap();
        let next = version.with_values(&state.keyspaces[&KEYSPACE], &obsolete);
        check(&next, &state.keyspaces[&KEYSPACE]);
        next.values().new_chunks(version.values())
    };
    assert_eq!(next(Vec::new()), 0);
    assert_eq!(next(add_table(500, 150, 1)), 1);
    // Those of the logs that entries pointed to which were not in tables.
    let unsettled = next(vec![flushed(10)]);
    assert!((1..5).contains(&unsettled), "{unsettled} of {chunks}");
}

/// A consumer of changes holds the logs behind what is settled, whatever is flushed.
#[test]
fn logs_that_a_consumer_holds_become_ready_when_it_lets_go() {
    let mut state = ManifestState::default();
    let mut records = vec![
        Record::NextId(1000),
        create_keyspace("map"),
        Record::LevelCount {
            keyspace: KEYSPACE,
            count: 3,
        },
        flushed(20),
    ];
    for number in 100..140 {
        records.extend(add_log(number, 3, number - 99));
        records.extend(add_table(number + 200, number, 2));
    }
    apply(&mut state, records).unwrap();
    let mut keyspace = state.keyspaces[&KEYSPACE].clone();
    let obsolete = Arc::default();
    let mut version = Version::default();
    for (settled, flushed) in [
        (0, 5),
        (0, 12),
        (7, 12),
        (7, 20),
        (19, 20),
        (3, 20),
        (20, 20),
    ] {
        (keyspace.settled, keyspace.flushed) = (settled, flushed);
        version = version.with_values(&keyspace, &obsolete);
        check(&version, &keyspace);
        let has_held = version.value_sums().logs.has_held;
        assert_eq!(has_held, settled < flushed, "{settled} of {flushed}");
    }
}
