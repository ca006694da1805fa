//! Value logs, their successors, relocations and discard lists in histories, and what must hold of them.

use std::collections::{BTreeMap, BTreeSet};

use super::super::edit::{Edit, Record};
use super::super::state::ManifestState;
use super::super::values::{ValueFileKind, ValueState};
use super::{file, garbage, log, moved, refer_as, transient_log};
use crate::base::{FileNumber, KeyspaceId, Kind};
use crate::table::Referred;
use crate::value::RelocationTable;

/// What `[verb, first, second]` does to the value files of `keyspace` in `state`; the next id is free.
pub(super) fn change(
    state: &ManifestState,
    keyspace: KeyspaceId,
    [verb, first, second]: [u8; 3],
) -> Vec<Record> {
    let own = &state.keyspaces[&keyspace];
    let values = &own.values;
    let id = state.next_id;
    let number = FileNumber(id);
    let last_sequence = own.flushed + u64::from(second % 2) * 20;
    let pick = |count: usize| usize::from(first) % count.max(1);
    let mut open = values.files.values();
    let open = open.find(|log| log.kind == ValueFileKind::OpenLog);
    let records = match (verb, open) {
        // A log that is written and sealed at once, or one that is begun.
        (0, _) => Some(vec![
            Record::AddValueLog { keyspace, number },
            Record::SealValueLog {
                keyspace,
                file: log(id, u64::from(first % 6), 0),
                last_sequence,
            },
        ]),
        (1, None) => Some(vec![Record::AddValueLog { keyspace, number }]),
        (1, Some(open)) => {
            let entries = open.file.entries + u64::from(first % 4);
            let file = log(open.file.number.0, entries, 0);
            Some(vec![match second % 4 {
                0 => Record::SealValueLog {
                    keyspace,
                    file,
                    last_sequence,
                },
                _ => Record::ValueLogAt { keyspace, file },
            }])
        }
        (2..=4, _) => table(values, keyspace, id, [first, second]),
        (5 | 6, _) => {
            let known: Vec<u64> = spoken_of(values).map(|known| known.0).collect();
            let other = (!known.is_empty()).then(|| known[pick(known.len())]);
            other.map(|other| {
                let list = garbage(id, &[(other, 1 + u64::from(second))]);
                vec![Record::AddDiscardList { keyspace, list }]
            })
        }
        _ => Some(collect(values, keyspace, own.flushed, [first, second], id)),
    };
    records.unwrap_or_default()
}

/// Value logs, and what they were.
fn spoken_of(values: &ValueState) -> impl Iterator<Item = FileNumber> {
    let logs = values.files.values().filter(|it| it.referred.is_log);
    let logs = logs.map(|it| it.file.number);
    logs.chain(values.relocations.keys().copied())
}

/// A table that refers to a record of a log, or of what it was, if any has one to spare.
fn table(
    values: &ValueState,
    keyspace: KeyspaceId,
    id: u64,
    [first, second]: [u8; 2],
) -> Option<Vec<Record>> {
    let has_space = |number: &FileNumber| {
        let relocated = values.relocations.get(number);
        let file = relocated.map_or(*number, |it| it.table.gc_output);
        let held = values.files[&file].file.entries;
        live(values, file).entries < held
    };
    let known: Vec<_> = spoken_of(values).filter(has_space).collect();
    let number = known.get(usize::from(first) % known.len().max(1))?;
    let mut table = file(id, &[first], &[first, second], (id, id + 5));
    refer_as(&mut table, &log(number.0, 1, 0), 1, Kind::ValueLogPointer);
    Some(vec![Record::AddFile {
        keyspace,
        level: second % 16,
        file: table,
    }])
}

/// What is referred to in `number`, whichever way.
fn live(values: &ValueState, number: FileNumber) -> Referred {
    let through = values.referred_through().get(&number).copied();
    values.files[&number]
        .referred
        .plus(through.unwrap_or_default())
}

/// The edit of a collection of one log or two, or of none.
fn collect(
    values: &ValueState,
    keyspace: KeyspaceId,
    flushed: u64,
    [first, second]: [u8; 2],
    id: u64,
) -> Vec<Record> {
    let ready = values
        .files
        .values()
        .filter(|it| it.is_collectable(flushed));
    let mut victims: Vec<FileNumber> = ready.map(|it| it.file.number).collect();
    if victims.is_empty() {
        return Vec::new();
    }
    let turn = usize::from(first) % victims.len();
    victims.rotate_left(turn);
    victims.truncate(1 + usize::from(second % 2));
    let entries = victims.iter().map(|number| live(values, *number).entries);
    let entries = entries.sum();
    let tables = values.relocations.values().map(|it| it.table);
    let led_on = tables.filter(|table| victims.contains(&table.gc_output));
    let origins: Vec<FileNumber> = victims
        .iter()
        .copied()
        .chain(led_on.map(|table| table.origin))
        .collect();
    let mut end = log(id, entries, 0).length;
    let mut led: Vec<RelocationTable> = Vec::new();
    for origin in &origins {
        let table = moved(origin.0, id, end, 1 + u64::from(second % 3));
        end = table.end().unwrap();
        led.push(table);
    }
    let file = log(id, entries, end - 20 * entries);
    let mut records = vec![Record::AddGcOutput { keyspace, file }];
    records.extend(
        led.into_iter()
            .map(|table| Record::Relocate { keyspace, table }),
    );
    // Other lists have come since.
    for list in values.discard_lists.values().skip(usize::from(second % 3)) {
        let files = list.counts.keys().filter(|file| origins.contains(file));
        let files: Vec<FileNumber> = files.copied().collect();
        if !files.is_empty() {
            records.push(Record::TakeDiscardList {
                keyspace,
                list: list.number,
                files,
            });
        }
    }
    records
}

/// I1 to I3 of value files, and that references are those of the tables.
pub(super) fn check(state: &ManifestState) {
    for keyspace in state.keyspaces.values() {
        let tables = keyspace.levels.iter().flat_map(BTreeMap::values);
        let segments = tables.flat_map(|file| &file.segments);
        let mut expected: BTreeMap<FileNumber, (u64, u64)> = BTreeMap::new();
        for (number, more) in segments.flat_map(|segment| segment.references.iter()) {
            let sum = expected.entry(number).or_default();
            *sum = (sum.0 + more.entries, sum.1 + more.bytes);
        }
        let values = &keyspace.values;
        let files = values
            .files
            .iter()
            .map(|(number, it)| (*number, it.referred));
        let moved = values.relocations.iter();
        let moved = moved.map(|(number, it)| (*number, it.referred));
        let counted = files.chain(moved).filter(|(_, it)| it.entries > 0);
        let counted = counted.map(|(number, it)| (number, (it.entries, it.bytes)));
        assert_eq!(counted.collect::<BTreeMap<_, _>>(), expected);
        for (number, known) in &values.files {
            let live = live(values, *number);
            assert!(live.entries <= known.file.entries);
            let may_be_unflushed = match known.kind {
                ValueFileKind::OpenLog => true,
                ValueFileKind::SealedLog { last_sequence } => last_sequence > keyspace.flushed,
                ValueFileKind::TransientLog | ValueFileKind::GcOutput => false,
            };
            assert!(live.entries > 0 || may_be_unflushed, "{number} stays");
        }
        let known: BTreeSet<FileNumber> = spoken_of(values).collect();
        // I4
        let mut sums: BTreeMap<FileNumber, u64> = BTreeMap::new();
        for (file, count) in values.discard_lists.values().flat_map(|list| &list.counts) {
            *sums.entry(*file).or_default() += count;
        }
        assert_eq!(*values.garbage(), sums);
        for list in values.discard_lists.values() {
            assert!(!list.counts.is_empty());
            assert!(list.counts.keys().all(|file| known.contains(file)));
        }
        for relocated in values.relocations.values() {
            let gc_output = &values.files[&relocated.table.gc_output].file;
            assert!(gc_output.length <= relocated.table.offset);
            assert!(relocated.table.end().unwrap() <= gc_output.end);
        }
    }
}

const KEYSPACE: KeyspaceId = KeyspaceId(1);

fn apply(state: &mut ManifestState, records: Vec<Record>) -> bool {
    let is_sound = state.apply(&Edit { records }).is_ok();
    if is_sound {
        check(state);
        let mut restored = ManifestState::default();
        restored.apply(&state.snapshot()).unwrap();
        assert_eq!(&restored, state);
    }
    is_sound
}

fn add_log(number: u64, entries: u64, last_sequence: u64) -> [Record; 2] {
    [
        Record::AddValueLog {
            keyspace: KEYSPACE,
            number: FileNumber(number),
        },
        Record::SealValueLog {
            keyspace: KEYSPACE,
            file: log(number, entries, 0),
            last_sequence,
        },
    ]
}

/// Adds table `number` with pointers to `entries` records of `log_number`.
fn add_table(number: u64, log_number: u64, entries: u64) -> Record {
    let mut table = file(number, b"a", b"b", (number, number));
    let log = log(log_number, entries, 0);
    refer_as(&mut table, &log, entries, Kind::ValueLogPointer);
    Record::AddFile {
        keyspace: KEYSPACE,
        level: u8::try_from(number % 16).unwrap(),
        file: table,
    }
}

fn remove_table(number: u64) -> Record {
    Record::RemoveFile {
        keyspace: KEYSPACE,
        level: u8::try_from(number % 16).unwrap(),
        number: FileNumber(number),
    }
}

fn add_discard_list(number: u64, counts: &[(u64, u64)]) -> Record {
    Record::AddDiscardList {
        keyspace: KEYSPACE,
        list: garbage(number, counts),
    }
}

fn take_discard_list(list: u64, files: &[u64]) -> Record {
    Record::TakeDiscardList {
        keyspace: KEYSPACE,
        list: FileNumber(list),
        files: files.iter().copied().map(FileNumber).collect(),
    }
}

/// Value file `number` of `entries` records, which takes the place of the logs of `tables`.
fn succeed(number: u64, entries: u64, origins: &[u64]) -> Vec<Record> {
    let keyspace = KEYSPACE;
    let mut end = 20 * entries;
    let mut tables = Vec::new();
    for origin in origins {
        let table = moved(*origin, number, end, entries);
        end = table.end().unwrap();
        tables.push(Record::Relocate { keyspace, table });
    }
    let file = log(number, entries, end - 20 * entries);
    let mut records = vec![Record::AddGcOutput { keyspace, file }];
    records.extend(tables);
    records
}

/// Log 10 of three values, one of which is dead by list 21: table 20 refers to the others.
fn sample() -> ManifestState {
    let mut state = ManifestState::default();
    let mut records = vec![
        Record::FormatVersion,
        Record::NextId(100),
        Record::CreateKeyspace {
            id: KEYSPACE,
            name: "map".to_owned(),
        },
        Record::Flushed {
            keyspace: KEYSPACE,
            sequence: 9,
        },
    ];
    records.extend(add_log(10, 3, 9));
    records.extend([add_table(20, 10, 2), add_discard_list(21, &[(10, 1)])]);
    assert!(apply(&mut state, records));
    state
}

/// After its collection: file 11 holds the two.
fn gc_result() -> ManifestState {
    let mut state = sample();
    let mut records = succeed(11, 2, &[10]);
    records.push(take_discard_list(21, &[10]));
    assert!(apply(&mut state, records));
    state
}

/// The value files, the origins and the lists that are there.
fn there(state: &ManifestState) -> (Vec<u64>, Vec<u64>, Vec<u64>) {
    let values = &state.keyspaces[&KEYSPACE].values;
    let numbers = |keys: Vec<&FileNumber>| keys.into_iter().map(|number| number.0).collect();
    (
        numbers(values.files.keys().collect()),
        numbers(values.relocations.keys().collect()),
        numbers(values.discard_lists.keys().collect()),
    )
}

#[test]
fn a_successor_takes_the_place_of_a_log_until_nothing_refers_to_it() {
    let mut state = gc_result();
    assert_eq!(there(&state), (vec![11], vec![10], vec![]));
    // A merge that writes one pointer as it leads now, and drops the other.
    let merged = vec![
        remove_table(20),
        add_table(22, 11, 1),
        add_discard_list(23, &[(10, 1)]),
    ];
    assert!(apply(&mut state, merged));
    assert_eq!(
        there(&state),
        (vec![11], vec![10], vec![23]),
        "of which the list speaks"
    );
    let mut taken = state.clone();
    assert!(apply(&mut taken, vec![take_discard_list(23, &[10])]));
    assert_eq!(there(&taken), (vec![11], vec![], vec![]));
    assert!(apply(&mut state, vec![remove_table(22)]));
    assert_eq!(there(&state), (vec![], vec![], vec![]));
}

#[test]
fn a_relocation_stays_while_an_older_origin_leads_to_the_same_file() {
    let mut state = gc_result();
    // The successor is collected, too, while a merge writes pointers into it.
    assert!(apply(&mut state, succeed(12, 2, &[10, 11])));
    assert_eq!(there(&state), (vec![12], vec![10, 11], vec![]));
    assert!(apply(
        &mut state,
        vec![remove_table(20), add_table(22, 11, 2)]
    ));
    assert_eq!(
        there(&state),
        (vec![12], vec![11], vec![]),
        "the older one goes"
    );
    assert!(apply(
        &mut state,
        vec![remove_table(22), add_table(24, 12, 2)]
    ));
    assert_eq!(there(&state), (vec![12], vec![], vec![]));
}

#[test]
fn contradictions_of_collections_are_refused() {
    let relocate = |table| Record::Relocate {
        keyspace: KEYSPACE,
        table,
    };
    let gc_output = |behind| Record::AddGcOutput {
        keyspace: KEYSPACE,
        file: log(11, 2, behind),
    };
    let (one, block) = (moved(10, 11, 40, 2), moved(10, 11, 40, 2).bytes());
    let open = [
        Record::AddValueLog {
            keyspace: KEYSPACE,
            number: FileNumber(13),
        },
        gc_output(block),
        relocate(RelocationTable {
            origin: FileNumber(13),
            ..one
        }),
    ];
    let mut unflushed = add_log(13, 2, 10).to_vec();
    unflushed.push(add_table(25, 13, 1));
    unflushed.extend(succeed(11, 2, &[13]));
    let mut a_run = vec![Record::AddTransientLog {
        keyspace: KEYSPACE,
        file: transient_log(13),
    }];
    a_run.extend(succeed(11, 2, &[13]));
    let few = succeed(11, 1, &[10]);
    for (what, records) in [
        ("entries may come to refer to an open log", open.to_vec()),
        ("entries may come to refer to a sealed log", unflushed),
        ("a run is no log", a_run),
        ("more is referred to than the successor holds", few),
        ("no successor", vec![relocate(one)]),
        (
            "the table begins in the records",
            vec![gc_output(block), relocate(moved(10, 11, 39, 2))],
        ),
        (
            "the table is cut off",
            vec![gc_output(block - 1), relocate(one)],
        ),
        (
            "an origin that was never allocated",
            vec![gc_output(block), relocate(moved(100, 11, 40, 2))],
        ),
        (
            "a successor twice",
            vec![gc_output(block), gc_output(block)],
        ),
        ("a list twice", vec![add_discard_list(21, &[(10, 1)])]),
        (
            "a list that was never allocated",
            vec![add_discard_list(100, &[(10, 1)])],
        ),
        ("a list is not there", vec![take_discard_list(22, &[10])]),
        (
            "the list says nothing of that",
            vec![take_discard_list(21, &[11])],
        ),
        (
            "taken twice",
            vec![take_discard_list(21, &[10]), take_discard_list(21, &[10])],
        ),
        (
            "a table refers to an origin that is gone",
            vec![add_table(25, 9, 1)],
        ),
    ] {
        assert!(!apply(&mut sample(), records), "{what}");
    }
    assert!(apply(&mut sample(), vec![gc_output(block), relocate(one)]));
}
