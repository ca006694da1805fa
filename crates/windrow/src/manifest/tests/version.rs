//! Versions, levels and handles.

use std::sync::Arc;

use proptest::prelude::*;

use super::super::edit::Record;
use super::super::names::FileName;
use super::super::{FileHandle, KeyspaceState, Level, ManifestState, Obsolete, Version};
use super::{
    KEYSPACE, add_discard_list, add_file, add_gc_output, add_transient_log, add_value_log, apply,
    counted, create_keyspace, file, log, moved, refer, refer_to_log, relocate, seal_value_log,
    take_discard_list, transient_log,
};
use crate::base::sync::Shared;
use crate::base::{ErrorKind, FileNumber};
use crate::table::{Expiring, FenceKeys, FileMeta};
use crate::value::ValuePointer;

fn handle(
    number: u64,
    smallest: &[u8],
    largest: &[u8],
    sequences: (u64, u64),
) -> Shared<FileHandle> {
    FileHandle::new(file(number, smallest, largest, sequences), &Arc::default())
}

fn numbers(level: &Level) -> Vec<u64> {
    let files = level.files();
    files.map(|file| file.meta.number.0).collect()
}

/// A file of segments with these smallest and largest keys.
fn segmented(number: u64, ends: &[(&[u8], &[u8])]) -> Shared<FileHandle> {
    let mut meta = file(number, ends[0].0, ends[0].1, (1, 2));
    let mut next = meta.segments[0].clone();
    for (smallest, largest) in &ends[1..] {
        next.offset += 4096;
        next.keys = FenceKeys::new(smallest, largest);
        meta.segments.push(next.clone());
    }
    FileHandle::new(meta, &Arc::default())
}

/// Damaged records may say that entries which expire have no bytes.
#[test]
fn a_version_may_expire_if_an_entry_does() {
    let mut meta = file(7, b"a", b"k", (1, 5));
    meta.segments[0].expiring = Some(Box::new(Expiring {
        entries: 1,
        bytes: 0,
        moments: [100; Expiring::PARTS + 1],
    }));
    let version = Version::default();
    assert!(!version.may_expire());
    let version = version.apply(&[(1, FileHandle::new(meta.clone(), &Arc::default()))], &[]);
    assert!(version.unwrap().may_expire());
    assert_eq!((meta.expired_bytes(99), meta.expired_bytes(100)), (0, 1));
}

proptest! {
    /// Files of several segments, any of which has the smallest or the largest key.
    #[test]
    fn segment_runs_agree_with_a_look_at_every_segment(
        keys in proptest::collection::btree_set(
            proptest::collection::vec(0..4u8, 1..6), 0..60),
        ends in proptest::collection::vec(
            proptest::collection::vec((0..4usize, 0..4usize), 1..5), 15),
        probes in proptest::collection::vec(proptest::collection::vec(0..4u8, 1..6), 1..40),
    ) {
        let keys: Vec<Vec<u8>> = keys.into_iter().collect();
        let groups = keys.chunks_exact(4).zip(&ends).zip(1..);
        let files: Vec<_> = groups.map(|((keys, ends), number)| {
            let ends: Vec<(&[u8], &[u8])> = ends
                .iter()
                .map(|(left, right)| (&keys[*left.min(right)][..], &keys[*left.max(right)][..]))
                .collect();
            segmented(number, &ends)
        }).collect();
        let version = Version::new(vec![Vec::new(), files.clone()]).unwrap();
        let empty = Level::default();
        let level = version.levels().get(1).map_or(&empty, |level| &**level);
        let most = files.iter().map(|file| file.meta.segments.len()).max();
        prop_assert_eq!(level.runs(), most.unwrap_or(0));
        for run in 0..level.runs() {
            let has_it = |file: &&Shared<FileHandle>| file.meta.segments.len() > run;
            let members: Vec<_> = files.iter().filter(has_it).collect();
            let number = |place| level.segment_file(run, place).map(|file| file.meta.number);
            let numbers = |places: Vec<_>| -> Vec<FileNumber> {
                places.into_iter().filter_map(number).collect()
            };
            let mut expected: Vec<FileNumber> =
                members.iter().map(|file| file.meta.number).collect();
            let (mut forward, mut place) = (Vec::new(), level.run_first(run));
            while number(place).is_some() {
                forward.push(place);
                place = level.run_next(run, place);
            }
            prop_assert_eq!(&numbers(forward), &expected);
            let (mut backward, mut place) = (Vec::new(), level.run_last(run));
            while let Some(present) = place {
                backward.push(present);
                place = level.run_previous(run, present);
            }
            expected.reverse();
            prop_assert_eq!(&numbers(backward), &expected);
            for key in &probes {
                let reaches = |file: &&&Shared<FileHandle>| {
                    file.meta.segments[run].largest() >= &key[..]
                };
                let expected = members.iter().find(reaches).map(|file| file.meta.number);
                prop_assert_eq!(number(level.run_lower_bound(run, key)), expected);
            }
        }
        for key in &probes {
            let holds = |file: &&Shared<FileHandle>| {
                let segments = || file.meta.segments.iter();
                segments().any(|it| it.smallest() <= &key[..])
                    && segments().any(|it| &key[..] <= it.largest())
            };
            prop_assert_eq!(
                level.find(key).map(|file| file.meta.number),
                files.iter().find(holds).map(|file| file.meta.number)
            );
        }
    }

    #[test]
    fn searches_agree_with_a_look_at_every_file(
        keys in proptest::collection::btree_set(
            proptest::collection::vec(0..4u8, 1..6), 0..60),
        singles in any::<u64>(),
        probes in proptest::collection::vec(proptest::collection::vec(0..4u8, 1..6), 1..40),
    ) {
        // Consecutive keys become the ends of files; some files hold one key.
        let mut keys = keys.into_iter();
        let mut files = Vec::new();
        while let Some(smallest) = keys.next() {
            let number = files.len() as u64 + 1;
            let largest = if singles >> (number % 64) & 1 == 1 { None } else { keys.next() };
            let largest = largest.unwrap_or_else(|| smallest.clone());
            files.push(handle(number, &smallest, &largest, (1, 2)));
        }
        let mut shuffled = files.clone();
        shuffled.reverse();
        let version = Version::new(vec![Vec::new(), shuffled]).unwrap();
        let empty = Level::default();
        let level = version.levels().get(1).map_or(&empty, |level| &**level);
        prop_assert_eq!(level.len(), files.len());
        for key in &probes {
            let expected = files.iter().find(|file| {
                file.smallest() <= &key[..] && &key[..] <= file.largest()
            });
            let found = level.find(key);
            prop_assert_eq!(
                found.map(|file| file.meta.number),
                expected.map(|file| file.meta.number)
            );
        }
    }
}

// I1 of levels
#[test]
fn deeper_levels_are_disjoint_at_user_keys() {
    let level = |files| Version::new(vec![Vec::new(), files]);
    let sound = level(vec![
        handle(2, b"m", b"p", (1, 9)),
        handle(1, b"a", b"l", (1, 9)),
    ]);
    assert_eq!(numbers(&sound.unwrap().levels()[1]), [1, 2]);
    for smallest in [b"a", b"b", b"l"] {
        let overlapping = level(vec![
            handle(1, b"a", b"l", (1, 2)),
            handle(2, smallest, b"z", (3, 4)),
        ]);
        assert!(overlapping.is_err());
    }
}

// I2 of levels
#[test]
fn level_0_is_ordered_by_age() {
    let version = Version::new(vec![vec![
        handle(1, b"a", b"m", (1, 9)),
        handle(3, b"a", b"z", (20, 29)),
        handle(2, b"k", b"z", (10, 19)),
    ]])
    .unwrap();
    assert_eq!(numbers(&version.levels()[0]), [3, 2, 1]);
    // One flush that was cut by key has files of one age.
    let cut = Version::new(vec![vec![
        handle(1, b"a", b"j", (1, 9)),
        handle(2, b"k", b"z", (2, 8)),
    ]]);
    assert!(cut.is_ok());
    let torn = Version::new(vec![vec![
        handle(1, b"a", b"k", (1, 9)),
        handle(2, b"k", b"z", (9, 12)),
    ]]);
    assert!(torn.is_err());
}

#[test]
fn a_change_makes_a_new_version_and_keeps_the_other_levels() {
    let moved = handle(3, b"m", b"n", (1, 2));
    let old = Version::new(vec![
        vec![handle(1, b"a", b"z", (10, 11))],
        vec![handle(2, b"a", b"b", (1, 2)), Shared::clone(&moved)],
    ])
    .unwrap();
    let adds = [
        (4, Shared::clone(&moved)),
        (1, handle(4, b"c", b"d", (1, 2))),
    ];
    let new = old.apply(&adds, &[(1, Shared::clone(&moved))]).unwrap();
    assert_eq!(numbers(&old.levels()[1]), [2, 3]);
    assert_eq!(numbers(&new.levels()[1]), [2, 4]);
    assert_eq!(numbers(&new.levels()[4]), [3]);
    assert_eq!(new.levels().len(), 5);
    assert!(Shared::ptr_eq(&old.levels()[0], &new.levels()[0]));
    assert!(Shared::ptr_eq(new.levels()[4].file(0).unwrap(), &moved));
    assert!(old.apply(&[], &[(2, Shared::clone(&moved))]).is_err());
    let missing = handle(5, b"m", b"n", (1, 2));
    assert!(old.apply(&[], &[(1, missing)]).is_err());
    assert!(
        old.apply(&[(1, handle(9, b"b", b"c", (1, 2)))], &[])
            .is_err()
    );
    let back = new.apply(&[], &[(4, moved)]).unwrap();
    assert_eq!(back.levels().len(), 2);
}

#[test]
fn an_empty_version_has_an_empty_level_0() {
    let version = Version::new(Vec::new()).unwrap();
    assert_eq!(version.levels().len(), 1);
    assert!(version.levels()[0].is_empty());
}

// I1 of obsolete files
#[test]
fn a_file_is_deleted_only_after_its_edit_and_its_last_holder() {
    let obsolete = Arc::new(Obsolete::default());
    let handles =
        [1, 2].map(|number| FileHandle::new(file(number, b"a", b"b", (number, number)), &obsolete));
    let old = Version::new(vec![handles.to_vec()]).unwrap();
    let removes: Vec<_> = handles
        .iter()
        .map(|file| (0, Shared::clone(file)))
        .collect();
    let new = old.apply(&[], &removes).unwrap();
    drop(removes);
    handles[0].mark_obsolete();
    drop(handles);
    assert!(obsolete.take().is_empty());
    drop(old);
    // The second was never marked: its edit was not durable.
    assert_eq!(obsolete.take(), [FileName::Table(FileNumber(1))]);
    drop(new);
    assert!(obsolete.take().is_empty());
}

// I1 of obsolete files
#[test]
fn a_file_stays_while_a_version_before_its_append_holds_it() {
    let obsolete = Arc::new(Obsolete::default());
    let short = FileHandle::new(file(1, b"c", b"d", (1, 2)), &obsolete);
    for visits in 1..=3 {
        assert_eq!(short.note_visit(), visits);
    }
    let mut meta = FileMeta::clone(&short.meta);
    meta.segments
        .push(file(1, b"a", b"e", (3, 4)).segments[0].clone());
    let long = short.grown(meta);
    assert_eq!((short.smallest(), short.largest()), (&b"c"[..], &b"d"[..]));
    assert_eq!((long.smallest(), long.largest()), (&b"a"[..], &b"e"[..]));
    assert_eq!((short.visits(), long.visits()), (3, 0));
    let old = Version::new(vec![Vec::new(), vec![Shared::clone(&short)]]).unwrap();
    let removes = [(1, Shared::clone(&short))];
    let new = old.apply(&[(1, Shared::clone(&long))], &removes);
    drop(removes);
    let new = new.unwrap();
    drop(short);
    let newest = new.apply(&[], &[(1, Shared::clone(&long))]).unwrap();
    long.mark_obsolete();
    drop((long, newest));
    assert!(obsolete.take().is_empty(), "a version holds it");
    drop(new);
    assert!(obsolete.take().is_empty(), "the one before the append, too");
    drop(old);
    assert_eq!(obsolete.take(), [FileName::Table(FileNumber(1))]);
}

/// The keyspace that `records` make.
fn keyspace(records: Vec<Record>) -> KeyspaceState {
    let mut state = ManifestState::default();
    let mut all = vec![Record::NextId(100), create_keyspace("main")];
    all.extend(records);
    apply(&mut state, all).unwrap();
    state.keyspaces.remove(&KEYSPACE).unwrap()
}

/// A keyspace whose table 1 refers to `transient_logs`.
fn with_transient_logs(transient_logs: &[u64]) -> KeyspaceState {
    let mut table = file(1, b"a", b"z", (1, 9));
    let mut records = Vec::new();
    for number in transient_logs {
        records.push(add_transient_log(transient_log(*number)));
    }
    refer(&mut table, transient_logs, 1);
    records.push(add_file(0, table));
    keyspace(records)
}

fn value_files(version: &Version) -> Vec<u64> {
    let files = version.values().iter();
    files.map(|file| file.meta.number.0).collect()
}

// I1 of versions, I1 of obsolete files
#[test]
fn value_files_follow_the_manifest() {
    let obsolete = Arc::new(Obsolete::default());
    let version = |old: &Version, transient_logs| {
        let next = old.apply(&[], &[]).unwrap();
        next.with_values(&with_transient_logs(transient_logs), &obsolete)
    };
    let first = Version::from_state(&with_transient_logs(&[5, 7]), &obsolete).unwrap();
    assert_eq!(value_files(&first), [5, 7]);
    let same = version(&first, &[5, 7]);
    let second = version(&same, &[7, 9]);
    assert_eq!(value_files(&second), [7, 9]);
    let find = |version: &Version, number| version.values().find(FileNumber(number)).cloned();
    let kept = [&first, &second].map(|version| find(version, 7).unwrap());
    assert!(Shared::ptr_eq(&kept[0], &kept[1]));
    assert!(find(&second, 5).is_none());
    // A file is deleted after the last version that holds it, and only if its edit is durable.
    drop((first, kept));
    assert!(obsolete.take().is_empty());
    drop(same);
    assert_eq!(obsolete.take(), [FileName::Values(FileNumber(5))]);
    let held = find(&second, 9).unwrap();
    let third = version(&second, &[]);
    drop((second, third));
    assert_eq!(obsolete.take(), [FileName::Values(FileNumber(7))]);
    drop(held);
    assert_eq!(obsolete.take(), [FileName::Values(FileNumber(9))]);
}

// I1 of obsolete files
#[test]
fn the_value_files_of_a_dropped_keyspace_are_deleted_after_its_versions() {
    let obsolete = Arc::new(Obsolete::default());
    let open = || Version::from_state(&with_transient_logs(&[5, 7]), &obsolete).unwrap();
    drop(open());
    assert!(obsolete.take().is_empty());
    let version = open();
    let held = Shared::clone(version.values());
    version.mark_obsolete();
    drop(version);
    assert_eq!(obsolete.take(), [FileName::Table(FileNumber(1))]);
    drop(held);
    assert_eq!(
        obsolete.take(),
        [5, 7].map(|number| FileName::Values(FileNumber(number)))
    );
}

/// The records of a keyspace whose table 1 refers to two records of log 5. Discard list 6 names the
/// third record.
fn with_log() -> Vec<Record> {
    let mut table = file(1, b"a", b"z", (1, 9));
    refer_to_log(&mut table, 5, 2);
    vec![
        add_value_log(5),
        seal_value_log(log(5, 3, 0), 0),
        counted(KEYSPACE, &table, true).unwrap(),
        add_file(0, table),
        add_discard_list(6, &[(5, 1)]),
    ]
}

/// As [`with_log`], after the garbage collection of log 5 into GC output 7, which took list 6 if `is_taken`.
fn collected(is_taken: bool) -> KeyspaceState {
    let table = moved(5, 7, 40, 2);
    let mut records = with_log();
    records.extend([add_gc_output(log(7, 2, table.bytes())), relocate(table)]);
    records.extend(is_taken.then(|| take_discard_list(6, &[5])));
    keyspace(records)
}

// I1 of obsolete files
#[test]
fn a_collected_log_and_its_lists_are_deleted_after_the_last_version_that_holds_them() {
    let obsolete = Arc::new(Obsolete::default());
    let first = Version::from_state(&keyspace(with_log()), &obsolete).unwrap();
    let second = first.with_values(&collected(false), &obsolete);
    assert_eq!(
        (value_files(&first), value_files(&second)),
        (vec![5], vec![7])
    );
    // Only the tables and the lists change, and not the files.
    let third = second.with_values(&collected(true), &obsolete);
    assert!(!Shared::ptr_eq(second.values(), third.values()));
    drop(second);
    assert_eq!(obsolete.take(), [], "the first holds both");
    drop(first);
    let mut gone = obsolete.take();
    gone.sort_unstable();
    assert_eq!(
        gone,
        [
            FileName::Values(FileNumber(5)),
            FileName::DiscardList(FileNumber(6))
        ]
    );
    third.mark_obsolete();
    drop(third);
    assert!(obsolete.take().contains(&FileName::Values(FileNumber(7))));
    let dropped = Version::from_state(&collected(false), &obsolete).unwrap();
    dropped.mark_obsolete();
    drop(dropped);
    assert!(
        obsolete
            .take()
            .contains(&FileName::DiscardList(FileNumber(6)))
    );
}

/// A pointer into file `number`, and its bytes.
fn pointer(number: u64) -> (ValuePointer, Vec<u8>) {
    let pointer = ValuePointer {
        file: FileNumber(number),
        offset: 20,
        record_bytes: 20,
        value_bytes: 11,
    };
    let mut bytes = Vec::new();
    pointer.encode(&mut bytes);
    (pointer, bytes)
}

#[test]
fn a_pointer_into_a_collected_log_resolves_through_its_table() {
    let version = Version::from_state(&collected(true), &Arc::default()).unwrap();
    for (number, table) in [(5, Some(moved(5, 7, 40, 2))), (7, None)] {
        let (pointer, bytes) = pointer(number);
        let place = version.values().resolve(&bytes).unwrap();
        assert_eq!(place.file.meta.number, FileNumber(7));
        assert_eq!(place.pointer, pointer);
        assert_eq!(place.table.copied(), table);
    }
    let error = version.values().resolve(&pointer(6).1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
}

#[test]
fn a_pointer_resolves_to_a_file_of_the_version_or_is_corrupt() {
    let version = Version::from_state(&with_transient_logs(&[5, 7]), &Arc::default()).unwrap();
    for number in [5, 7] {
        let (pointer, bytes) = pointer(number);
        let place = version.values().resolve(&bytes).unwrap();
        assert_eq!((place.file.meta.number.0, place.pointer), (number, pointer));
        assert!(place.table.is_none());
    }
    for number in [1, 6, 8] {
        let error = version.values().resolve(&pointer(number).1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption);
        let name = FileName::Values(FileNumber(number)).to_string();
        assert!(error.to_string().contains(&name), "{error}");
    }
    for bytes in [&[][..], &[5], &pointer(5).1[1..]] {
        let error = version.values().resolve(bytes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption);
    }
}
