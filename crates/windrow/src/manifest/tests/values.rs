//! Value logs, GC outputs, relocations and discard lists in histories, and their invariants.

use std::collections::{BTreeMap, BTreeSet};

use super::super::edit::Record;
use super::super::state::ManifestState;
use super::super::values::{ValueFileKind, ValueFileState, ValueState};
use super::{
    KEYSPACE, add_discard_list, add_file, add_gc_output, add_transient_log, add_value_log, apply,
    count_references, counted, create_keyspace, file, flushed, garbage, log, moved, refer_to_log,
    relocate, remove_file, restored, seal_value_log, take_discard_list, transient_log,
};
use crate::base::{FileNumber, KeyspaceId};
use crate::table::{FileMeta, Referred};
use crate::value::RelocationTable;

/// The change of the value files of `keyspace` that `[verb, first, second]` makes. The next id is free.
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
        // A log that is sealed at once, then one that stays open.
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
            let known: Vec<u64> = origins_and_logs(values).map(|known| known.0).collect();
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

/// Value logs, and the origins of relocations.
fn origins_and_logs(values: &ValueState) -> impl Iterator<Item = FileNumber> {
    let is_log = |it: &&ValueFileState| it.kind != ValueFileKind::TransientLog;
    let logs = values.files.values().filter(is_log);
    let logs = logs.map(|it| it.file.number);
    logs.chain(values.relocations.iter().map(|(origin, _)| *origin))
}

/// A table that refers to a record of a value log or an origin with an unreferenced record, if any.
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
    let known: Vec<_> = origins_and_logs(values).filter(has_space).collect();
    let number = known.get(usize::from(first) % known.len().max(1))?;
    let mut table = file(id, &[first], &[first, second], (id, id + 5));
    refer_to_log(&mut table, number.0, 1);
    let mut records = Vec::from_iter(counted(keyspace, &table, true));
    records.push(Record::AddFile {
        keyspace,
        level: second % 16,
        file: table.into(),
    });
    Some(records)
}

/// The references to `number`, also through relocation tables.
fn live(values: &ValueState, number: FileNumber) -> Referred {
    let relocations = values.relocations.values();
    let through = relocations.filter(|it| it.table.gc_output == number);
    let direct = values.files[&number].referred;
    through.fold(direct, |live, it| live.plus(it.referred))
}

/// The edit of a garbage collection of one log, two, or none.
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
    let relocated = tables.filter(|table| victims.contains(&table.gc_output));
    let origins: Vec<FileNumber> = victims
        .iter()
        .copied()
        .chain(relocated.map(|table| table.origin))
        .collect();
    let mut end = log(id, entries, 0).length;
    let mut composed: Vec<RelocationTable> = Vec::new();
    for origin in &origins {
        let table = moved(origin.0, id, end, 1 + u64::from(second % 3));
        end = table.end().unwrap();
        composed.push(table);
    }
    let file = log(id, entries, end - 20 * entries);
    let mut records = vec![Record::AddGcOutput { keyspace, file }];
    records.extend(
        composed
            .into_iter()
            .map(|table| Record::Relocate { keyspace, table }),
    );
    // The job has not read lists that were added while it ran.
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

/// Checks I1 to I4 of value files, and that the counted references are those of the tables.
pub(super) fn check(state: &ManifestState) {
    for keyspace in state.keyspaces.values() {
        let tables = keyspace.levels.iter().flat_map(BTreeMap::values);
        let segments = tables.flat_map(|file| &file.segments);
        let mut expected: BTreeMap<FileNumber, (u64, u64)> = BTreeMap::new();
        for references in segments.map(|segment| &segment.references) {
            // A segment refers to one value log.
            let logs = references.logs().map(|it| it.sums);
            let logs = logs.map(|sums| (sums.smallest, sums.referred));
            for (number, more) in references.transient().chain(logs) {
                let sum = expected.entry(number).or_default();
                *sum = (sum.0 + more.entries, sum.1 + more.bytes);
            }
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
        for (number, known) in values.files.iter() {
            let live = live(values, *number);
            assert_eq!(known.live(), live); // I4
            let relocations = values.relocations.values().map(|it| it.table);
            let own = relocations.filter(|table| table.gc_output == *number);
            assert!(own.clone().eq(values.relocations_to(*number).copied())); // I4
            let entries: u64 = own.map(|table| table.entries).sum();
            assert_eq!(known.relocated_entries, entries); // I4
            assert!(live.entries <= known.file.entries);
            let may_be_unflushed = match known.kind {
                ValueFileKind::OpenLog => true,
                ValueFileKind::SealedLog { last_sequence } => last_sequence > keyspace.flushed,
                ValueFileKind::TransientLog | ValueFileKind::GcOutput => false,
            };
            assert!(live.entries > 0 || may_be_unflushed, "{number} stays");
        }
        let known: BTreeSet<FileNumber> = origins_and_logs(values).collect();
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

/// Applies `records` and checks the result; returns whether they fit.
fn fits(state: &mut ManifestState, records: Vec<Record>) -> bool {
    let fits = apply(state, records).is_ok();
    if fits {
        check(state);
        assert_eq!(&restored(state), state);
    }
    fits
}

pub(super) fn add_log(number: u64, entries: u64, last_sequence: u64) -> [Record; 2] {
    [
        add_value_log(number),
        seal_value_log(log(number, entries, 0), last_sequence),
    ]
}

/// Table `number` with pointers to `entries` records of `log_number`.
fn table_of(number: u64, log_number: u64, entries: u64) -> FileMeta {
    let mut table = file(number, b"a", b"b", (number, number));
    refer_to_log(&mut table, log_number, entries);
    table
}

/// Adds a [table](table_of).
pub(super) fn add_table(number: u64, log_number: u64, entries: u64) -> Vec<Record> {
    let table = table_of(number, log_number, entries);
    let mut records = Vec::from_iter(counted(KEYSPACE, &table, true));
    records.push(add_file(u8::try_from(number % 16).unwrap(), table));
    records
}

/// Removes the [table](table_of).
pub(super) fn remove_table(number: u64, log_number: u64, entries: u64) -> Vec<Record> {
    let table = table_of(number, log_number, entries);
    let mut records = vec![remove_file(u8::try_from(number % 16).unwrap(), number)];
    records.extend(counted(KEYSPACE, &table, false));
    records
}

/// GC output `number` with `entries` records, and the relocations of `origins` to it.
fn collected(number: u64, entries: u64, origins: &[u64]) -> Vec<Record> {
    let mut end = 20 * entries;
    let mut tables = Vec::new();
    for origin in origins {
        let table = moved(*origin, number, end, entries);
        end = table.end().unwrap();
        tables.push(relocate(table));
    }
    let file = log(number, entries, end - 20 * entries);
    let mut records = vec![add_gc_output(file)];
    records.extend(tables);
    records
}

/// Log 10 with three values: list 21 names one as garbage, table 20 refers to the others.
fn sample() -> ManifestState {
    let mut state = ManifestState::default();
    let mut records = vec![
        Record::FormatVersion,
        Record::NextId(100),
        create_keyspace("map"),
        flushed(9),
    ];
    records.extend(add_log(10, 3, 9));
    records.extend(add_table(20, 10, 2));
    records.push(add_discard_list(21, &[(10, 1)]));
    assert!(fits(&mut state, records));
    state
}

/// The state after the garbage collection of [`sample`]: GC output 11 holds two values.
fn sample_collected() -> ManifestState {
    let mut state = sample();
    let mut records = collected(11, 2, &[10]);
    records.push(take_discard_list(21, &[10]));
    assert!(fits(&mut state, records));
    state
}

/// The existing value files, origins and lists.
fn existing(state: &ManifestState) -> (Vec<u64>, Vec<u64>, Vec<u64>) {
    let values = &state.keyspaces[&KEYSPACE].values;
    let numbers = |keys: Vec<&FileNumber>| keys.into_iter().map(|number| number.0).collect();
    (
        numbers(values.files.iter().map(|it| it.0).collect()),
        numbers(values.relocations.iter().map(|it| it.0).collect()),
        numbers(values.discard_lists.keys().collect()),
    )
}

#[test]
fn a_gc_output_replaces_a_log_until_nothing_refers_to_it() {
    let mut state = sample_collected();
    assert_eq!(existing(&state), (vec![11], vec![10], vec![]));
    // A compaction that rewrites one pointer and drops the other.
    let compacted = [
        remove_table(20, 10, 2),
        add_table(22, 11, 1),
        vec![add_discard_list(23, &[(10, 1)])],
    ];
    assert!(fits(&mut state, compacted.concat()));
    assert_eq!(
        existing(&state),
        (vec![11], vec![10], vec![23]),
        "the list names the origin"
    );
    let mut taken = state.clone();
    assert!(fits(&mut taken, vec![take_discard_list(23, &[10])]));
    assert_eq!(existing(&taken), (vec![11], vec![], vec![]));
    assert!(fits(&mut state, remove_table(22, 11, 1)));
    assert_eq!(existing(&state), (vec![], vec![], vec![]));
}

#[test]
fn a_relocation_stays_while_an_older_origin_resolves_to_the_same_file() {
    let mut state = sample_collected();
    // The GC output is collected too, while a compaction writes pointers into it.
    assert!(fits(&mut state, collected(12, 2, &[10, 11])));
    assert_eq!(existing(&state), (vec![12], vec![10, 11], vec![]));
    assert!(fits(
        &mut state,
        [remove_table(20, 10, 2), add_table(22, 11, 2)].concat()
    ));
    assert_eq!(
        existing(&state),
        (vec![12], vec![11], vec![]),
        "the older origin is removed"
    );
    assert!(fits(
        &mut state,
        [remove_table(22, 11, 2), add_table(24, 12, 2)].concat()
    ));
    assert_eq!(existing(&state), (vec![12], vec![], vec![]));
}

#[test]
fn contradictions_of_garbage_collections_are_refused() {
    let gc_output = |behind| add_gc_output(log(11, 2, behind));
    let (one, block) = (moved(10, 11, 40, 2), moved(10, 11, 40, 2).bytes());
    let open = [
        add_value_log(13),
        gc_output(block),
        relocate(RelocationTable {
            origin: FileNumber(13),
            ..one
        }),
    ];
    let mut unflushed = add_log(13, 2, 10).to_vec();
    unflushed.extend(add_table(25, 13, 1));
    unflushed.extend(collected(11, 2, &[13]));
    let mut transient = vec![add_transient_log(transient_log(13))];
    transient.extend(collected(11, 2, &[13]));
    let few = collected(11, 1, &[10]);
    for (what, records) in [
        ("the log is open", open.to_vec()),
        ("entries of the log are unflushed", unflushed),
        ("a transient log is not a value log", transient),
        ("tables refer to more than the GC output holds", few),
        ("no GC output", vec![relocate(one)]),
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
            "a GC output twice",
            vec![gc_output(block), gc_output(block)],
        ),
        ("a list twice", vec![add_discard_list(21, &[(10, 1)])]),
        (
            "a list that was never allocated",
            vec![add_discard_list(100, &[(10, 1)])],
        ),
        ("an unknown list", vec![take_discard_list(22, &[10])]),
        (
            "the list does not name the file",
            vec![take_discard_list(21, &[11])],
        ),
        (
            "taken twice",
            vec![take_discard_list(21, &[10]), take_discard_list(21, &[10])],
        ),
        ("a table refers to an unknown origin", add_table(25, 9, 1)),
    ] {
        assert!(!fits(&mut sample(), records), "{what}");
    }
    assert!(fits(&mut sample(), vec![gc_output(block), relocate(one)]));
}

// I5
#[test]
fn counted_references_must_add_up_to_those_of_the_tables() {
    let [add, remove] = [add_table(25, 10, 1), remove_table(20, 10, 2)];
    let alone = |records: &[Record], count: bool| {
        let is_count = |it: &&Record| matches!(it, Record::CountReferences { .. }) == count;
        records.iter().filter(is_count).cloned().collect::<Vec<_>>()
    };
    let counts = |changes: &[&[(u64, i64, i64)]]| {
        let changes = changes.iter().map(|changes| count_references(changes));
        changes.collect::<Vec<_>>()
    };
    let with = |records: &[Record], more: Vec<Record>| [records.to_vec(), more].concat();
    let (added, removed) = (alone(&add, false), alone(&remove, false));
    let moves = vec![remove_file(4, 20), add_file(5, table_of(20, 10, 2))];
    let transient = vec![add_transient_log(transient_log(13))];
    for (what, records, is_sound) in [
        ("a table comes", add.clone(), true),
        ("a table goes", remove.clone(), true),
        (
            "one comes and one goes",
            [remove.clone(), add.clone()].concat(),
            true,
        ),
        ("a table moves", moves, true),
        (
            "the counts come first",
            [alone(&add, true), added.clone()].concat(),
            true,
        ),
        ("a table comes uncounted", added.clone(), false),
        ("a table goes uncounted", removed.clone(), false),
        ("counts alone", alone(&add, true), false),
        (
            "counted twice",
            [add.clone(), alone(&add, true)].concat(),
            false,
        ),
        (
            "more entries",
            with(&added, counts(&[&[(10, 2, 20)]])),
            false,
        ),
        (
            "fewer bytes",
            with(&added, counts(&[&[(10, 1, 19)]])),
            false,
        ),
        (
            "below zero",
            with(&removed, counts(&[&[(10, -3, -40)]])),
            false,
        ),
        (
            "bytes below zero",
            with(&removed, counts(&[&[(10, -2, -41)]])),
            false,
        ),
        (
            "bytes without entries",
            with(&removed, counts(&[&[(10, -2, -39)]])),
            false,
        ),
        (
            "below zero for a while",
            with(&removed, counts(&[&[(10, -3, -40)], &[(10, 1, 0)]])),
            false,
        ),
        (
            "beyond what a snapshot counts",
            counts(&[&[(10, i64::MAX, 0)]]),
            false,
        ),
        (
            "an unknown log",
            with(&added, counts(&[&[(9, 1, 20)]])),
            false,
        ),
        (
            "a table is no log",
            with(&added, counts(&[&[(20, 1, 20)]])),
            false,
        ),
        (
            "a transient log",
            [transient, added, counts(&[&[(13, 1, 20)]])].concat(),
            false,
        ),
    ] {
        assert_eq!(fits(&mut sample(), records), is_sound, "{what}");
    }
    // The same of an origin.
    let origin = |entries: i64| {
        let mut records = collected(11, 2, &[10]);
        records.extend(alone(&remove, false));
        records.push(count_references(&[(10, -entries, -40)]));
        records
    };
    assert!(fits(&mut sample(), origin(2)));
    assert!(!fits(&mut sample(), origin(1)));
    assert!(!fits(&mut sample(), origin(3)));
}
