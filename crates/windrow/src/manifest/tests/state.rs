//! The state that edits add up to.

use proptest::prelude::*;

use super::super::edit::Record;
use super::super::names::FileName;
use super::super::state::ManifestState;
use super::{
    History, KEYSPACE, add_file, add_transient_log, add_value_log, apply, counted, create_keyspace,
    file, flushed, log, log_synced, refer, refer_to_log, remove_file, restored, seal_value_log,
    steps, transient_log, values,
};
use crate::base::limits::SEGMENTS_MAX;
use crate::base::{FileNumber, KeyspaceId};
use crate::table::{FileMeta, SegmentMeta};
use crate::value::ValueFileMeta;

proptest! {
    // I3, I4
    #[test]
    fn a_snapshot_replays_to_the_same_state(steps in steps(0..160)) {
        let mut history = History::default();
        let mut replayed = ManifestState::default();
        for step in steps {
            replayed.apply(&history.edit(step)).unwrap();
            prop_assert_eq!(&restored(&replayed), &replayed);
            values::check(&replayed);
        }
    }
}

#[test]
fn a_rename_onto_a_name_swaps_the_two() {
    let mut state = sample();
    let second = KeyspaceId(KEYSPACE.0 + 1);
    let rename = |keyspace, name: &str| Record::RenameKeyspace {
        keyspace,
        name: name.to_owned(),
    };
    let create = Record::CreateKeyspace {
        id: second,
        name: "second".to_owned(),
    };
    apply(&mut state, vec![create]).unwrap();
    let names = |state: &ManifestState| {
        let names = state.keyspaces.values().map(|own| own.name.clone());
        names.collect::<Vec<_>>()
    };
    apply(&mut state, vec![rename(KEYSPACE, "second")]).unwrap();
    assert_eq!(names(&state), ["second", "first"]);
    apply(&mut state, vec![rename(second, "third")]).unwrap();
    apply(&mut state, vec![rename(second, "third")]).unwrap();
    assert_eq!(names(&state), ["second", "third"]);
    assert_eq!(restored(&state), state);
    assert!(apply(&mut state, vec![rename(KeyspaceId(9), "fourth")]).is_err());
}

/// One keyspace with one file in level 1, and logs 10, 11 and 12.
fn sample() -> ManifestState {
    let mut state = ManifestState::default();
    let mut records = vec![
        Record::FormatVersion,
        Record::NextId(20),
        create_keyspace("first"),
        add_file(1, file(5, b"a", b"b", (1, 9))),
        flushed(9),
        log_synced(12),
    ];
    records.extend((10..=12).map(|number| Record::AddLog(FileNumber(number))));
    apply(&mut state, records).unwrap();
    state
}

// I1, I2
#[test]
fn contradictions_are_refused() {
    let (keyspace, unknown) = (KEYSPACE, KeyspaceId(9));
    let added = |number| file(number, b"x", b"y", (1, 2));
    let create = |id, name: &str| Record::CreateKeyspace {
        id: KeyspaceId(id),
        name: name.to_owned(),
    };
    let levels = |keyspace, count| Record::LevelCount { keyspace, count };
    let (number, offset) = (FileNumber(13), 0);
    let refused = [
        Record::FormatVersion,
        Record::NextId(19),
        Record::NextId((1 << 56) + 1),
        log_synced(11),
        create(4, "second"),
        create(3, "second"),
        create(5, "first"),
        Record::DropKeyspace(unknown),
        used(KeyspaceId(3), 9),
        add_file(1, added(5)),
        add_file(2, added(5)),
        add_file(1, added(20)),
        add_file(1, added(0)),
        add_file(16, added(6)),
        in_keyspace(unknown, add_file(1, added(6))),
        remove_file(2, 5),
        remove_file(1, 6),
        in_keyspace(unknown, remove_file(1, 5)),
        levels(keyspace, 0),
        levels(keyspace, 16),
        levels(unknown, 1),
        flushed(8),
        in_keyspace(unknown, flushed(10)),
        Record::AddLog(FileNumber(12)),
        Record::AddLog(FileNumber(9)),
        Record::AddLog(FileNumber(20)),
        Record::LogEnd { number, offset },
    ];
    for record in refused {
        let outcome = apply(&mut sample(), vec![record.clone()]);
        assert!(outcome.is_err(), "{record:?}");
    }
}

/// `record` for another keyspace.
fn in_keyspace(other: KeyspaceId, mut record: Record) -> Record {
    if let Record::AddFile { keyspace, .. }
    | Record::RemoveFile { keyspace, .. }
    | Record::AddSegment { keyspace, .. }
    | Record::Flushed { keyspace, .. } = &mut record
    {
        *keyspace = other;
    }
    record
}

fn used(keyspace: KeyspaceId, sequence: u64) -> Record {
    Record::Used { keyspace, sequence }
}

/// Metadata of a segment behind the one of the file in [`sample`].
fn segment(id: u64, offset: u64) -> SegmentMeta {
    SegmentMeta {
        offset,
        overwrites: 4,
        ..file(id, b"b", b"c", (10, 20)).segments[0].clone()
    }
}

fn add_segment(level: u8, number: u64, segment: SegmentMeta) -> Record {
    Record::AddSegment {
        keyspace: KEYSPACE,
        level,
        number: FileNumber(number),
        segment,
    }
}

// I1, I2
#[test]
fn segments_are_appended_only_behind_the_others_of_unsealed_deeper_files() {
    let mut state = sample();
    apply(&mut state, vec![add_segment(1, 5, segment(15, 4096))]).unwrap();
    let grown = &state.keyspaces[&KEYSPACE].levels[1][&FileNumber(5)];
    assert_eq!(grown.segments[1..], [segment(15, 4096)]);
    assert_eq!(restored(&state), state);

    for (what, record) in [
        ("an unknown file", add_segment(1, 6, segment(15, 4096))),
        ("another level", add_segment(2, 5, segment(15, 4096))),
        ("no level", add_segment(16, 5, segment(15, 4096))),
        (
            "another keyspace",
            in_keyspace(KeyspaceId(9), add_segment(1, 5, segment(15, 4096))),
        ),
        ("inside the first", add_segment(1, 5, segment(15, 0))),
        ("an id of later", add_segment(1, 5, segment(20, 4096))),
        ("no id", add_segment(1, 5, segment(0, 4096))),
    ] {
        assert!(apply(&mut sample(), vec![record]).is_err(), "{what}");
    }

    for (level, sealed, is_sound) in [(1, false, true), (1, true, false), (0, false, false)] {
        let mut target = file(6, b"x", b"y", (1, 2));
        target.sealed = sealed;
        let mut state = sample();
        apply(&mut state, vec![add_file(level, target)]).unwrap();
        let outcome = apply(&mut state, vec![add_segment(level, 6, segment(15, 4096))]);
        assert_eq!(outcome.is_ok(), is_sound, "level {level}, sealed {sealed}");
    }

    let mut state = sample();
    for count in 1..SEGMENTS_MAX as u64 {
        apply(
            &mut state,
            vec![add_segment(1, 5, segment(15, 4096 * count))],
        )
        .unwrap();
    }
    let one_more = add_segment(1, 5, segment(15, 1 << 20));
    assert!(apply(&mut state, vec![one_more]).is_err());
}

#[test]
fn a_file_moves_in_one_edit() {
    let mut state = sample();
    let moved = std::sync::Arc::clone(&state.keyspaces[&KEYSPACE].levels[1][&FileNumber(5)]);
    let records = vec![remove_file(1, 5), add_file(2, FileMeta::clone(&moved))];
    apply(&mut state, records).unwrap();
    let levels = &state.keyspaces[&KEYSPACE].levels;
    assert!(levels[1].is_empty());
    assert_eq!(levels[2][&FileNumber(5)], moved);
}

#[test]
fn the_end_of_a_log_removes_the_later_logs() {
    let end = |offset| {
        let number = FileNumber(11);
        vec![Record::LogEnd { number, offset }]
    };
    let mut state = sample();
    apply(&mut state, end(500)).unwrap();
    assert!(state.logs.iter().copied().eq([10, 11].map(FileNumber)));
    // The end never changes.
    apply(&mut state, end(500)).unwrap();
    assert!(apply(&mut state.clone(), end(499)).is_err());
    let oldest = |number| Record::OldestLog(FileNumber(number));
    let later = vec![Record::AddLog(FileNumber(13)), oldest(11)];
    apply(&mut state, later).unwrap();
    assert!(state.logs.iter().copied().eq([11, 13].map(FileNumber)));
    assert_eq!(state.log_ends.get(&FileNumber(11)), Some(&500));
    apply(&mut state, vec![oldest(13)]).unwrap();
    assert!(state.log_ends.is_empty());
}

const VALUES: FileName = FileName::Values(FileNumber(16));

fn has_values(state: &ManifestState) -> bool {
    state.files().any(|(file, _)| file == VALUES)
}

/// The entries and bytes that tables refer to in value file 16.
fn referred(state: &ManifestState) -> (u64, u64) {
    let referred = state.keyspaces[&KEYSPACE].values.files[&FileNumber(16)].referred;
    (referred.entries, referred.bytes)
}

/// The records that add transient log 16, and table 15 of level 0 that refers to `entries` of its
/// records.
fn table_with_transient_log(entries: u64) -> Vec<Record> {
    let mut table = file(15, b"c", b"d", (10, 20));
    refer(&mut table, &[16], entries);
    vec![add_transient_log(transient_log(16)), add_file(0, table)]
}

/// As [`table_with_transient_log`], with a segment of the file in [`sample`].
fn segment_with_transient_log(entries: u64) -> Vec<Record> {
    let mut piece = file(15, b"b", b"c", (10, 20));
    refer(&mut piece, &[16], entries);
    piece.segments[0].offset = 4096;
    let add_segment = add_segment(1, 5, piece.segments[0].clone());
    vec![add_transient_log(transient_log(16)), add_segment]
}

// I3
#[test]
fn the_references_of_a_segment_count() {
    let mut state = sample();
    apply(&mut state, segment_with_transient_log(2)).unwrap();
    assert_eq!(referred(&state), (2, 40));
    values::check(&state);
    apply(&mut state, vec![remove_file(1, 5)]).unwrap();
    assert!(!has_values(&state));
}

// I3
#[test]
fn a_transient_log_is_removed_with_the_last_table_that_refers_to_it() {
    let before = sample();
    let mut state = before.clone();
    apply(&mut state, table_with_transient_log(2)).unwrap();
    assert!(has_values(&state));
    // A compaction that copies pointers.
    let mut output = file(17, b"c", b"d", (10, 20));
    refer(&mut output, &[16], 1);
    let mut compacted = state.clone();
    let records = vec![remove_file(0, 15), add_file(1, output)];
    apply(&mut compacted, records).unwrap();
    assert!(has_values(&compacted));
    assert_eq!(referred(&compacted), (1, 20));

    apply(&mut state, vec![remove_file(0, 15)]).unwrap();
    assert!(!has_values(&state));
    assert_eq!(state, before);
    // The state allows its number again.
    apply(&mut state, table_with_transient_log(1)).unwrap();
    apply(&mut state, vec![Record::DropKeyspace(KEYSPACE)]).unwrap();
    assert!(!has_values(&state));
}

// I3
#[test]
fn a_value_log_is_removed_when_it_is_sealed_flushed_and_unreferenced() {
    let at = |length, entries| ValueFileMeta {
        length,
        end: length,
        ..log(16, entries, 0)
    };
    let grow = |length, entries| Record::ValueLogAt {
        keyspace: KEYSPACE,
        file: at(length, entries),
    };
    let seal = |last_sequence| seal_value_log(at(60, 3), last_sequence);
    let mut state = sample();
    apply(&mut state, vec![add_value_log(16)]).unwrap();
    assert!(has_values(&state), "it is open");

    // A flush whose table refers to two of its records, which the manifest must know.
    let mut table = file(15, b"c", b"d", (10, 20));
    refer_to_log(&mut table, 16, 2);
    let remove_table = vec![
        remove_file(0, 15),
        counted(KEYSPACE, &table, false).unwrap(),
    ];
    let add_table = [counted(KEYSPACE, &table, true).unwrap(), add_file(0, table)];
    apply(&mut state.clone(), add_table.to_vec()).unwrap_err();
    let grown = [vec![grow(40, 2)], add_table.to_vec(), vec![flushed(20)]];
    apply(&mut state, grown.concat()).unwrap();
    apply(&mut state.clone(), vec![grow(20, 1)]).unwrap_err();
    let mut open = state.clone();
    apply(&mut open, remove_table.clone()).unwrap();
    assert!(has_values(&open), "it is open");

    // Entries up to 30 refer to it and are not in tables.
    apply(&mut state, vec![seal(30)]).unwrap();
    apply(&mut state.clone(), vec![seal(30)]).unwrap_err();
    assert_eq!(restored(&state), state);
    let mut flushed_first = state.clone();
    apply(&mut flushed_first, vec![flushed(30)]).unwrap();
    assert!(has_values(&flushed_first), "tables refer to it");
    apply(&mut flushed_first, remove_table.clone()).unwrap();
    assert!(!has_values(&flushed_first));
    apply(&mut state, remove_table.clone()).unwrap();
    assert!(has_values(&state), "a log may refer to it");
    apply(&mut state, vec![flushed(30)]).unwrap();
    assert!(!has_values(&state));
}

// I3
#[test]
fn references_must_add_up() {
    let mut twice = table_with_transient_log(1);
    twice.insert(0, twice[0].clone());
    let mut late = table_with_transient_log(1);
    late.swap(0, 1);
    for (records, is_sound) in [
        (table_with_transient_log(1), true),
        (table_with_transient_log(2), true),
        (table_with_transient_log(3), false),
        (table_with_transient_log(1).split_off(1), false),
        (segment_with_transient_log(3), false),
        (segment_with_transient_log(1).split_off(1), false),
        (twice, false),
        (late, false),
    ] {
        let outcome = apply(&mut sample(), records.clone());
        assert_eq!(outcome.is_ok(), is_sound, "{records:?}");
    }
}

// I2
#[test]
fn a_dropped_keyspace_leaves_its_numbers_used() {
    let mut state = sample();
    apply(&mut state, vec![Record::DropKeyspace(KEYSPACE)]).unwrap();
    assert!(state.keyspaces.is_empty() && state.files().count() == 0);
    assert!(state.is_dropped(KEYSPACE) && !state.is_dropped(KeyspaceId(5)));
    assert_eq!(state.last_sequence(), 9);
    let mut state = restored(&state);
    assert_eq!(restored(&state), state);
    for refused in [
        Record::DropKeyspace(KEYSPACE),
        create_keyspace("first"),
        flushed(10),
        used(KEYSPACE, 8),
    ] {
        apply(&mut state.clone(), vec![refused]).unwrap_err();
    }
    let (id, name) = (KeyspaceId(5), "first".to_owned());
    apply(&mut state, vec![Record::CreateKeyspace { id, name }]).unwrap();
}
