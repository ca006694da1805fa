//! What edits add up to.

use proptest::prelude::*;

use super::super::contradiction::Contradiction;
use super::super::edit::{Edit, Record};
use super::super::names::FileName;
use super::super::state::ManifestState;
use super::{History, file, refer, refer_as, steps, transient_log, values};
use crate::base::limits::SEGMENTS_MAX;
use crate::base::{FileNumber, KeyspaceId, Kind};
use crate::table::SegmentMeta;
use crate::value::ValueFileMeta;

proptest! {
    // I3
    #[test]
    fn a_snapshot_replays_to_the_same_state(steps in steps(0..160)) {
        let mut history = History::default();
        let mut replayed = ManifestState::default();
        for step in steps {
            replayed.apply(&history.edit(step)).unwrap();
            let mut restored = ManifestState::default();
            restored.apply(&replayed.snapshot()).unwrap();
            prop_assert_eq!(&restored, &replayed);
            // I3
            values::check(&replayed);
        }
    }
}

const KEYSPACE: KeyspaceId = KeyspaceId(4);

fn number(number: u64) -> FileNumber {
    FileNumber(number)
}

/// One keyspace with one file in level 1, and logs 10, 11 and 12.
fn sample() -> ManifestState {
    let mut state = ManifestState::default();
    let records = vec![
        Record::FormatVersion,
        Record::NextId(20),
        Record::CreateKeyspace {
            id: KEYSPACE,
            name: "first".to_owned(),
        },
        Record::AddFile {
            keyspace: KEYSPACE,
            level: 1,
            file: file(5, b"a", b"b", (1, 9)),
        },
        Record::Flushed {
            keyspace: KEYSPACE,
            sequence: 9,
        },
        Record::LogSynced {
            number: FileNumber(1),
            offset: 12,
        },
        Record::AddLog(number(10)),
        Record::AddLog(number(11)),
        Record::AddLog(number(12)),
    ];
    state.apply(&Edit { records }).unwrap();
    state
}

// I1, I2
#[test]
fn contradictions_are_refused() {
    let unknown = KeyspaceId(9);
    let add = |keyspace, level, number| Record::AddFile {
        keyspace,
        level,
        file: file(number, b"x", b"y", (1, 2)),
    };
    let remove = |keyspace, level, number| Record::RemoveFile {
        keyspace,
        level,
        number: FileNumber(number),
    };
    let create = |id, name: &str| Record::CreateKeyspace {
        id: KeyspaceId(id),
        name: name.to_owned(),
    };
    let keyspace = KEYSPACE;
    let refused = [
        Record::FormatVersion,
        Record::NextId(19),
        Record::NextId((1 << 56) + 1),
        Record::LogSynced {
            number: FileNumber(1),
            offset: 11,
        },
        create(4, "second"),
        create(3, "second"),
        Record::DropKeyspace(unknown),
        Record::Used {
            keyspace: KeyspaceId(3),
            sequence: 9,
        },
        create(5, "first"),
        add(KEYSPACE, 1, 5),
        add(KEYSPACE, 2, 5),
        add(KEYSPACE, 1, 20),
        add(KEYSPACE, 1, 0),
        add(KEYSPACE, 16, 6),
        add(unknown, 1, 6),
        remove(KEYSPACE, 2, 5),
        remove(KEYSPACE, 1, 6),
        remove(unknown, 1, 5),
        Record::LevelCount { keyspace, count: 0 },
        Record::LevelCount {
            keyspace,
            count: 16,
        },
        Record::LevelCount {
            keyspace: unknown,
            count: 1,
        },
        Record::Flushed {
            keyspace,
            sequence: 8,
        },
        Record::Flushed {
            keyspace: unknown,
            sequence: 10,
        },
        Record::AddLog(number(12)),
        Record::AddLog(number(9)),
        Record::AddLog(number(20)),
        Record::LogEnd {
            number: number(13),
            offset: 0,
        },
    ];
    for record in refused {
        let edit = Edit {
            records: vec![record],
        };
        assert!(sample().apply(&edit).is_err(), "{edit:?}");
    }
}

/// A segment behind the one of the file in [`sample`], and a record that adds it.
fn segment(id: u64) -> SegmentMeta {
    let mut segment = file(id, b"b", b"c", (10, 20)).segments.remove(0);
    segment.offset = 4096;
    segment.overwrites = 4;
    segment
}

fn add_segment(segment: SegmentMeta) -> Record {
    Record::AddSegment {
        keyspace: KEYSPACE,
        level: 1,
        number: FileNumber(5),
        segment,
    }
}

fn apply(state: &mut ManifestState, record: Record) -> Result<(), Contradiction> {
    let records = vec![record];
    state.apply(&Edit { records })
}

// I1, I2
#[test]
fn segments_are_added_where_they_can_be() {
    let added = |state: &ManifestState| state.keyspaces[&KEYSPACE].levels[1][&number(5)].clone();
    let mut state = sample();
    apply(&mut state, add_segment(segment(15))).unwrap();
    assert_eq!(added(&state).segments[1..], [segment(15)]);
    let mut restored = ManifestState::default();
    restored.apply(&state.snapshot()).unwrap();
    assert_eq!(restored, state);

    let elsewhere = |level, number| Record::AddSegment {
        keyspace: KEYSPACE,
        level,
        number: FileNumber(number),
        segment: segment(15),
    };
    let inside = SegmentMeta {
        offset: 0,
        ..segment(15)
    };
    for record in [
        elsewhere(1, 6),
        elsewhere(2, 5),
        elsewhere(16, 5),
        Record::AddSegment {
            keyspace: KeyspaceId(9),
            level: 1,
            number: number(5),
            segment: segment(15),
        },
        // Inside the one before.
        add_segment(inside),
        // Not handed out yet, or never.
        add_segment(segment(20)),
        add_segment(segment(0)),
    ] {
        let mut state = sample();
        assert!(apply(&mut state, record.clone()).is_err(), "{record:?}");
    }

    // What another database shares, and level 0.
    for (level, sealed, is_sound) in [(1, false, true), (1, true, false), (0, false, false)] {
        let mut state = sample();
        let mut target = file(6, b"x", b"y", (1, 2));
        target.sealed = sealed;
        let add = Record::AddFile {
            keyspace: KEYSPACE,
            level,
            file: target,
        };
        apply(&mut state, add).unwrap();
        let outcome = apply(&mut state, elsewhere(level, 6));
        assert_eq!(outcome.is_ok(), is_sound, "level {level}, sealed {sealed}");
    }

    // No more than the format has place for.
    let mut state = sample();
    for count in 1..SEGMENTS_MAX as u64 {
        let next = SegmentMeta {
            offset: 4096 * count,
            ..segment(15)
        };
        apply(&mut state, add_segment(next)).unwrap();
    }
    let one_more = SegmentMeta {
        offset: 1 << 20,
        ..segment(15)
    };
    assert!(apply(&mut state, add_segment(one_more)).is_err());
}

// I3
#[test]
fn what_a_segment_refers_to_counts() {
    let with_run = |entries| {
        let mut piece = file(15, b"b", b"c", (10, 20));
        refer(&mut piece, &transient_log(16), entries);
        piece.segments[0].offset = 4096;
        let transient_log = Record::AddTransientLog {
            keyspace: KEYSPACE,
            file: transient_log(16),
        };
        let records = vec![transient_log, add_segment(piece.segments.remove(0))];
        Edit { records }
    };
    assert!(sample().apply(&with_run(3)).is_err(), "more than there are");
    let mut without = with_run(1);
    without.records.remove(0);
    assert!(sample().apply(&without).is_err());
    let mut state = sample();
    state.apply(&with_run(2)).unwrap();
    let referred = state.keyspaces[&KEYSPACE].values.files[&number(16)].referred;
    assert_eq!((referred.entries, referred.bytes), (2, 40));
    values::check(&state);
    let remove = Record::RemoveFile {
        keyspace: KEYSPACE,
        level: 1,
        number: number(5),
    };
    apply(&mut state, remove).unwrap();
    assert!(!state.files().any(|file| file == RUN));
}

#[test]
fn a_file_moves_in_one_edit() {
    let mut state = sample();
    let moved = state.keyspaces[&KEYSPACE].levels[1][&number(5)].clone();
    let records = vec![
        Record::RemoveFile {
            keyspace: KEYSPACE,
            level: 1,
            number: number(5),
        },
        Record::AddFile {
            keyspace: KEYSPACE,
            level: 2,
            file: moved.clone(),
        },
    ];
    state.apply(&Edit { records }).unwrap();
    let levels = &state.keyspaces[&KEYSPACE].levels;
    assert!(levels[1].is_empty());
    assert_eq!(levels[2][&number(5)], moved);
}

#[test]
fn an_ended_log_voids_those_behind_it() {
    let mut state = sample();
    let end = |offset| Edit {
        records: vec![Record::LogEnd {
            number: number(11),
            offset,
        }],
    };
    state.apply(&end(500)).unwrap();
    assert!(state.logs.iter().copied().eq([10, 11].map(FileNumber)));
    // The end is fixed for good.
    state.apply(&end(500)).unwrap();
    assert!(state.clone().apply(&end(499)).is_err());
    let later = Edit {
        records: vec![Record::AddLog(number(13)), Record::OldestLog(number(11))],
    };
    state.apply(&later).unwrap();
    assert!(state.logs.iter().copied().eq([11, 13].map(FileNumber)));
    assert_eq!(state.log_ends.get(&number(11)), Some(&500));
    let oldest = Edit {
        records: vec![Record::OldestLog(number(13))],
    };
    state.apply(&oldest).unwrap();
    assert!(state.log_ends.is_empty());
}

/// A table 15 of level 0 that refers to `entries` records of run 16, and that run.
fn table_with_transient_log(entries: u64) -> Edit {
    let mut table = file(15, b"c", b"d", (10, 20));
    refer(&mut table, &transient_log(16), entries);
    let keyspace = KEYSPACE;
    Edit {
        records: vec![
            Record::AddTransientLog {
                keyspace,
                file: transient_log(16),
            },
            Record::AddFile {
                keyspace,
                level: 0,
                file: table,
            },
        ],
    }
}

// I3
#[test]
fn a_run_goes_with_the_last_table_that_refers_to_it() {
    let mut state = sample();
    let before = state.clone();
    state.apply(&table_with_transient_log(2)).unwrap();
    let is_named = |state: &ManifestState| state.files().any(|file| file == RUN);
    assert!(is_named(&state));
    let remove = Record::RemoveFile {
        keyspace: KEYSPACE,
        level: 0,
        number: number(15),
    };
    // A table that takes its place, as a merge that copies pointers writes it.
    let mut merged = file(17, b"c", b"d", (10, 20));
    refer(&mut merged, &transient_log(16), 1);
    let mut moved = state.clone();
    let records = vec![
        remove.clone(),
        Record::AddFile {
            keyspace: KEYSPACE,
            level: 1,
            file: merged,
        },
    ];
    moved.apply(&Edit { records }).unwrap();
    assert!(is_named(&moved));
    let referred = moved.keyspaces[&KEYSPACE].values.files[&number(16)].referred;
    assert_eq!((referred.entries, referred.bytes), (1, 20));

    let records = vec![remove];
    state.apply(&Edit { records }).unwrap();
    assert!(!is_named(&state));
    assert_eq!(state, before);
    // Its number can be taken again, as far as the state is concerned.
    state.apply(&table_with_transient_log(1)).unwrap();
    state
        .apply(&Edit {
            records: vec![Record::DropKeyspace(KEYSPACE)],
        })
        .unwrap();
    assert!(!is_named(&state));
}

const RUN: FileName = FileName::Values(FileNumber(16));

/// What value log 16 comes to.
fn log(number: u64, length: u64, entries: u64) -> ValueFileMeta {
    ValueFileMeta {
        number: FileNumber(number),
        length,
        entries,
        value_bytes: 11 * entries,
        end: length,
    }
}

// I3
#[test]
fn a_value_log_goes_when_it_is_complete_flushed_and_referred_to_no_more() {
    let keyspace = KEYSPACE;
    let apply = |state: &mut ManifestState, records: Vec<Record>| state.apply(&Edit { records });
    let is_named = |state: &ManifestState| state.files().any(|file| file == RUN);
    let add = Record::AddValueLog {
        keyspace,
        number: number(16),
    };
    let at = |length, entries| Record::ValueLogAt {
        keyspace,
        file: log(16, length, entries),
    };
    let seal = |last_sequence| Record::SealValueLog {
        keyspace,
        file: log(16, 60, 3),
        last_sequence,
    };
    let flushed = |sequence| Record::Flushed { keyspace, sequence };
    let mut state = sample();
    apply(&mut state, vec![add]).unwrap();
    assert!(is_named(&state), "while it is being written");

    // A flush whose table refers to two of its records, which the manifest must know of.
    let mut table = file(15, b"c", b"d", (10, 20));
    refer_as(&mut table, &log(16, 40, 2), 2, Kind::ValueLogPointer);
    let add_table = Record::AddFile {
        keyspace,
        level: 0,
        file: table,
    };
    apply(&mut state.clone(), vec![add_table.clone()]).unwrap_err();
    apply(&mut state, vec![at(40, 2), add_table, flushed(20)]).unwrap();
    apply(&mut state.clone(), vec![at(20, 1)]).unwrap_err();
    let remove = Record::RemoveFile {
        keyspace,
        level: 0,
        number: number(15),
    };
    let mut open = state.clone();
    apply(&mut open, vec![remove.clone()]).unwrap();
    assert!(is_named(&open), "while it is being written");

    // Entries up to 30 refer to it, and are not in tables yet.
    apply(&mut state, vec![seal(30)]).unwrap();
    apply(&mut state.clone(), vec![seal(30)]).unwrap_err();
    let mut restored = ManifestState::default();
    restored.apply(&state.snapshot()).unwrap();
    assert_eq!(restored, state);
    let mut flushed_first = state.clone();
    apply(&mut flushed_first, vec![flushed(30)]).unwrap();
    assert!(is_named(&flushed_first), "while tables refer to it");
    apply(&mut flushed_first, vec![remove.clone()]).unwrap();
    assert!(!is_named(&flushed_first));
    apply(&mut state, vec![remove]).unwrap();
    assert!(is_named(&state), "while a log may refer to it");
    apply(&mut state, vec![flushed(30)]).unwrap();
    assert!(!is_named(&state));
}

// I3
#[test]
fn references_must_add_up() {
    let run_first = table_with_transient_log(1);
    let mut without = run_first.clone();
    without.records.remove(0);
    let mut twice = run_first.clone();
    twice.records.insert(0, twice.records[0].clone());
    let mut late = run_first.clone();
    late.records.swap(0, 1);
    for (edit, is_sound) in [
        (run_first, true),
        (table_with_transient_log(2), true),
        (table_with_transient_log(3), false),
        (without, false),
        (twice, false),
        (late, false),
    ] {
        assert_eq!(sample().apply(&edit).is_ok(), is_sound, "{edit:?}");
    }
}

// I2
#[test]
fn a_dropped_keyspace_leaves_its_numbers_behind() {
    let mut state = sample();
    apply(&mut state, Record::DropKeyspace(KEYSPACE)).unwrap();
    assert!(state.keyspaces.is_empty() && state.files().count() == 0);
    assert!(state.is_dropped(KEYSPACE) && !state.is_dropped(KeyspaceId(5)));
    assert_eq!(state.last_sequence(), 9);
    let mut restored = ManifestState::default();
    restored.apply(&state.snapshot()).unwrap();
    assert_eq!(restored, state);
    let create = |id| Record::CreateKeyspace {
        id: KeyspaceId(id),
        name: "first".to_owned(),
    };
    for gone in [
        Record::DropKeyspace(KEYSPACE),
        create(KEYSPACE.0),
        Record::Flushed {
            keyspace: KEYSPACE,
            sequence: 10,
        },
        Record::Used {
            keyspace: KEYSPACE,
            sequence: 8,
        },
    ] {
        apply(&mut restored.clone(), gone).unwrap_err();
    }
    apply(&mut restored, create(5)).unwrap();
}
