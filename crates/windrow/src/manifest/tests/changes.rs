//! What consumers of changes hold.

use super::super::change_records::{ChangeEvent, ConsumerState, KeptLog};
use super::values::{add_log, add_table, remove_table};
use super::{KEYSPACE, apply, create_keyspace, flushed, restored};
use crate::base::{FileNumber, KeyspaceId, SequenceNumber};
use crate::manifest::{ManifestState, Record};

fn consumer(name: &str, acknowledged: SequenceNumber, is_behind: bool) -> Record {
    Record::Consumer {
        name: name.to_owned(),
        state: ConsumerState {
            acknowledged,
            moment: acknowledged * 1000,
            is_behind,
        },
    }
}

fn remove(name: &str) -> Record {
    Record::RemoveConsumer(name.to_owned())
}

fn keep_log(number: u64, first: SequenceNumber, last: SequenceNumber) -> Record {
    Record::KeepLog {
        number: FileNumber(number),
        log: KeptLog {
            length: 100 * number,
            first,
            last,
            moment: last * 1000,
        },
    }
}

fn tables_added(sequence: SequenceNumber) -> Record {
    Record::ChangeEvent {
        sequence,
        event: ChangeEvent::TablesAdded(vec![KEYSPACE]),
    }
}

/// Logs 1 to 5, of which recovery needs the last one. Consumers hold the others.
fn sample() -> ManifestState {
    let mut state = ManifestState::default();
    let mut records = vec![
        Record::FormatVersion,
        Record::NextId(100),
        create_keyspace("k"),
    ];
    records.extend((1..=5).map(|number| Record::AddLog(FileNumber(number))));
    records.extend([consumer("slow", 0, false), consumer("fast", 25, false)]);
    apply(&mut state, records).unwrap();
    let mut records: Vec<Record> = (1..=4)
        .map(|it| keep_log(it, it * 10, it * 10 + 9))
        .collect();
    records.extend([Record::OldestLog(FileNumber(5)), flushed(49)]);
    records.extend([12, 29, 30].map(tables_added));
    apply(&mut state, records).unwrap();
    state
}

/// The kept logs, and the numbers of the events.
fn held(state: &ManifestState) -> (Vec<u64>, Vec<SequenceNumber>) {
    let logs = state.changes.kept_logs.keys().map(|number| number.0);
    (
        logs.collect(),
        state.changes.events.keys().copied().collect(),
    )
}

// I2
#[test]
fn what_stays_is_what_the_slowest_consumer_holds() {
    let cases: [(&[Record], &[u64], &[u64]); 9] = [
        (&[], &[1, 2, 3, 4], &[12, 29, 30]),
        (&[consumer("slow", 18, false)], &[1, 2, 3, 4], &[29, 30]),
        (&[consumer("slow", 19, false)], &[2, 3, 4], &[29, 30]),
        (&[consumer("slow", 0, true)], &[2, 3, 4], &[29, 30]),
        (&[consumer("slow", 28, false)], &[2, 3, 4], &[29, 30]),
        (
            &[remove("slow"), consumer("fast", 29, false)],
            &[3, 4],
            &[30],
        ),
        (&[consumer("slow", 49, false), remove("fast")], &[], &[]),
        (&[remove("slow"), remove("fast")], &[], &[]),
        (
            &[consumer("slow", 0, true), consumer("fast", 25, true)],
            &[],
            &[],
        ),
    ];
    for (records, logs, events) in cases {
        let mut state = sample();
        apply(&mut state, records.to_vec()).unwrap();
        assert_eq!(
            held(&state),
            (logs.to_vec(), events.to_vec()),
            "{records:?}"
        );
        assert_eq!(restored(&state), state);
        assert_eq!(state.logs, [FileNumber(5)].into());
    }
}

#[test]
fn contradictions_are_refused() {
    for records in [
        vec![consumer("fast", 24, false)],
        vec![consumer("fast", 25, true), consumer("fast", 26, false)],
        vec![remove("other")],
        vec![keep_log(4, 50, 59)],
        vec![keep_log(5, 49, 59)],
        vec![tables_added(12)],
    ] {
        assert!(
            apply(&mut sample(), records.clone()).is_err(),
            "{records:?}"
        );
    }
}

// I1
#[test]
fn a_value_log_stays_while_a_consumer_holds_an_entry_that_points_to_it() {
    for (acknowledged, stays) in [(0, true), (39, true), (40, false), (41, false)] {
        let mut state = ManifestState::default();
        let mut records = vec![
            Record::FormatVersion,
            Record::NextId(100),
            create_keyspace("k"),
        ];
        records.push(consumer("c", 0, false));
        records.extend(add_log(20, 3, 40));
        records.push(flushed(45));
        records.extend(add_table(21, 20, 3));
        apply(&mut state, records).unwrap();
        let is_collectable = |state: &ManifestState| {
            let own = &state.keyspaces[&KEYSPACE];
            own.values.files[&FileNumber(20)].is_collectable(own.settled)
        };
        assert!(!is_collectable(&state));
        apply(&mut state, vec![consumer("c", acknowledged, false)]).unwrap();
        assert_eq!(is_collectable(&state), !stays);
        apply(&mut state, remove_table(21, 20, 3)).unwrap();
        let has_log = |state: &ManifestState| {
            let files = &state.keyspaces[&KEYSPACE].values.files;
            files.contains_key(&FileNumber(20))
        };
        assert_eq!(has_log(&state), stays, "{acknowledged}");
        assert_eq!(restored(&state), state);
        apply(&mut state, vec![remove("c")]).unwrap();
        assert!(!has_log(&state));
        assert_eq!(restored(&state), state);
    }
}

#[test]
fn a_copy_forgets_consumers_and_what_they_hold() {
    let mut state = sample();
    state.forget_consumers().unwrap();
    assert_eq!(held(&state), (vec![], vec![]));
    assert!(state.changes.consumers.is_empty());
}

#[test]
fn what_is_acknowledged_is_a_used_sequence_number() {
    let mut state = sample();
    assert_eq!(state.last_sequence(), 49);
    apply(&mut state, vec![consumer("fast", 70, false)]).unwrap();
    assert_eq!(state.last_sequence(), 70);
    apply(&mut state, vec![tables_added(75)]).unwrap();
    assert_eq!(state.last_sequence(), 75);
}

#[test]
fn names_are_those_of_the_time() {
    let mut state = sample();
    let renamed = |sequence, keyspace, from: &str, to: &str| Record::ChangeEvent {
        sequence,
        event: ChangeEvent::Renamed {
            keyspace: KeyspaceId(keyspace),
            from: from.to_owned(),
            to: to.to_owned(),
        },
    };
    // 1: a, b, c, b. 2: b, a. 3: c from 45 on.
    let events = vec![
        renamed(40, 1, "a", "b"),
        renamed(42, 1, "b", "c"),
        renamed(44, 1, "c", "b"),
        renamed(45, 3, "x", "c"),
    ];
    apply(&mut state, events).unwrap();
    let now = [(1, "b"), (2, "a"), (3, "c")].map(|(id, name)| (KeyspaceId(id), name.to_owned()));
    for (sequence, expected) in [
        (39, ["a", "b", "x"]),
        (40, ["b", "a", "x"]),
        (41, ["b", "a", "x"]),
        (42, ["c", "a", "x"]),
        (44, ["b", "a", "x"]),
        (45, ["b", "a", "c"]),
        (99, ["b", "a", "c"]),
    ] {
        let names = state.changes.names_at(sequence, now.clone().into());
        assert_eq!(
            names.into_values().collect::<Vec<_>>(),
            expected,
            "{sequence}"
        );
    }
}
