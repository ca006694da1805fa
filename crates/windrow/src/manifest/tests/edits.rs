//! The bytes of edits.

use proptest::prelude::*;

use super::super::change_records::{ChangeEvent, ConsumerState, KeptLog};
use super::super::edit::{Edit, Record};
use super::{
    History, count_references, file, garbage, log, moved, options, refer, refer_to_log, steps,
    transient_log,
};
use crate::base::{FileNumber, KeyspaceId, Totals};
use crate::codec::reader::DecodeError;
use crate::codec::varint::put_bytes;
use crate::log::tests::hex;
use crate::table::{Expiring, FenceKeys, FileMeta, SegmentMeta};
use crate::value::{DiscardList, RelocationTable, ValueFileMeta};

fn encode(edit: &Edit) -> Vec<u8> {
    let mut bytes = Vec::new();
    edit.encode(&mut bytes);
    bytes
}

/// One edit with a record of each kind.
fn one_of_each() -> Edit {
    let keyspace = KeyspaceId(300);
    let number = FileNumber(1000);
    let mut two_segments = file(7, b"a", b"k", (1, 5));
    let mut second = two_segments.segments[0].clone();
    second.offset = 8192;
    second.overwrites = 10;
    second.keys = FenceKeys::new(second.smallest(), &[b'z'; 200]);
    two_segments.segments.push(second.clone());
    refer(&mut two_segments, &[9, 12], 2);
    let mut to_log = file(8, b"a", b"b", (1, 5));
    refer_to_log(&mut to_log, 300, 2);
    second.references = to_log.segments[0].references.clone();
    second.offset = 16384;
    second.range_tombstones = 3;
    second.hidden_below = 400;
    second.operands = 6;
    second.expiring = Some(Box::new(Expiring {
        entries: 1,
        bytes: 7,
        moments: [100; Expiring::PARTS + 1],
    }));
    two_segments.segments.push(second.clone());
    Edit {
        records: vec![
            Record::FormatVersion,
            Record::NextId(u64::MAX),
            Record::CreateKeyspace {
                id: keyspace,
                name: "a name".to_owned(),
            },
            Record::AddFile {
                keyspace,
                level: 15,
                file: two_segments.into(),
            },
            Record::RemoveFile {
                keyspace,
                level: 0,
                number,
            },
            Record::AddSegment {
                keyspace,
                level: 15,
                number,
                segment: second,
            },
            Record::AddTransientLog {
                keyspace,
                file: transient_log(9),
            },
            Record::AddValueLog { keyspace, number },
            Record::ValueLogAt {
                keyspace,
                file: transient_log(10),
            },
            Record::SealValueLog {
                keyspace,
                file: transient_log(10),
                last_sequence: 76,
            },
            Record::AddGcOutput {
                keyspace,
                file: log(11, 2, 27),
            },
            Record::Relocate {
                keyspace,
                table: moved(10, 11, 40, 341),
            },
            Record::AddDiscardList {
                keyspace,
                list: garbage(12, &[(9, 1000), (300, 1)]),
            },
            Record::TakeDiscardList {
                keyspace,
                list: FileNumber(12),
                files: vec![number, FileNumber(300)],
            },
            count_references(&[(9, -1, -20), (10, i64::MAX, i64::MIN), (300, 0, 7)]),
            Record::Totals(Totals::from([(1, 300), (1 << 40, u64::MAX)])),
            Record::KeyspaceTotals {
                keyspace,
                totals: Totals::from([(33, 1)]),
            },
            Record::LevelCount { keyspace, count: 3 },
            Record::Flushed {
                keyspace,
                sequence: 77,
            },
            Record::AddLog(number),
            Record::OldestLog(number),
            Record::LogEnd {
                number,
                offset: 1 << 40,
            },
            Record::LogSynced {
                number: FileNumber(1),
                offset: 1 << 50,
            },
            Record::KeyspaceOptions {
                keyspace,
                options: options(&[("a", "1"), ("b", "")]),
            },
            Record::MergeOperator {
                keyspace,
                name: "an operator".to_owned(),
            },
            Record::ExpiredBy(1 << 41),
            Record::Consumer {
                name: "c".to_owned(),
                state: ConsumerState {
                    acknowledged: 1 << 50,
                    moment: 1 << 40,
                    is_behind: true,
                },
            },
            Record::RemoveConsumer("d".to_owned()),
            Record::KeepLog {
                number,
                log: KeptLog {
                    length: 1 << 33,
                    first: 1,
                    last: 1 << 49,
                    moment: 1 << 41,
                },
            },
            Record::ChangeEvent {
                sequence: 300,
                event: ChangeEvent::Created {
                    keyspace,
                    name: "n".to_owned(),
                },
            },
            Record::ChangeEvent {
                sequence: 301,
                event: ChangeEvent::Dropped {
                    keyspace,
                    name: "n".to_owned(),
                },
            },
            Record::ChangeEvent {
                sequence: 302,
                event: ChangeEvent::Renamed {
                    keyspace,
                    from: "n".to_owned(),
                    to: "m".to_owned(),
                },
            },
            Record::ChangeEvent {
                sequence: 303,
                event: ChangeEvent::TablesAdded(vec![keyspace, KeyspaceId(1)]),
            },
            Record::DropKeyspace(keyspace),
            Record::RenameKeyspace {
                keyspace,
                name: "other".to_owned(),
            },
            Record::Used {
                keyspace,
                sequence: 1 << 50,
            },
        ],
    }
}

proptest! {
    #[test]
    fn histories_round_trip(steps in steps(0..30)) {
        let mut history = History::default();
        for step in steps {
            let edit = history.edit(step);
            prop_assert_eq!(Edit::decode(&encode(&edit)), Ok(edit));
        }
        let snapshot = history.state.snapshot();
        prop_assert_eq!(Edit::decode(&encode(&snapshot)), Ok(snapshot));
    }

    // I1
    #[test]
    fn an_edit_has_one_encoding(position: usize, byte: u8, cut: usize) {
        let mut bytes = encode(&one_of_each());
        let position = position % bytes.len();
        bytes[position] = byte;
        bytes.truncate(bytes.len() - cut % 4);
        if let Ok(edit) = Edit::decode(&bytes) {
            prop_assert_eq!(encode(&edit), bytes);
        }
    }

    #[test]
    fn arbitrary_bytes_are_an_error_or_one_encoding(bytes in proptest::collection::vec(0..20u8, 0..60)) {
        if let Ok(edit) = Edit::decode(&bytes) {
            prop_assert_eq!(encode(&edit), bytes);
        }
    }
}

#[test]
fn each_kind_round_trips_and_a_cut_is_detected() {
    let edit = one_of_each();
    let bytes = encode(&edit);
    assert_eq!(Edit::decode(&bytes).as_ref(), Ok(&edit));
    for length in 0..bytes.len() {
        // A cut between records is a shorter edit; the log's checksum guards against that.
        if let Ok(shorter) = Edit::decode(&bytes[..length]) {
            assert_eq!(shorter.records, edit.records[..shorter.records.len()]);
        }
    }
}

#[test]
fn unknown_records_and_newer_formats_are_unsupported() {
    for (tag, body) in [(0, 1), (31, 1), (100, 1), (1, 2)] {
        let mut bytes = encode(&Edit {
            records: vec![Record::NextId(5)],
        });
        let offset = bytes.len();
        bytes.push(tag);
        put_bytes(&mut bytes, &[body]);
        let error = Edit::decode(&bytes).unwrap_err();
        assert!(error.unsupported, "tag {tag}");
        assert_eq!(error.offset, offset);
    }
}

#[test]
fn faults_name_their_offset() {
    let mut bytes = encode(&Edit {
        records: vec![Record::NextId(5)],
    });
    let start = bytes.len();
    // A level count with a level beyond the deepest: tag, length, keyspace, count.
    bytes.extend([6, 2, 1, 99]);
    let error = Edit::decode(&bytes).unwrap_err();
    assert!(!error.unsupported);
    assert_eq!(error.offset, start + 3);
}

fn decode(record: Record) -> Result<Edit, DecodeError> {
    let records = vec![record];
    Edit::decode(&encode(&Edit { records }))
}

type Damage<T> = fn(&mut T);

#[test]
fn impossible_segments_and_files_are_refused() {
    let (keyspace, level, number) = (KeyspaceId(1), 1, FileNumber(7));
    let add_file = |file| Record::AddFile {
        keyspace,
        level,
        file,
    };
    let add_segment = |segment| Record::AddSegment {
        keyspace,
        level,
        number,
        segment,
    };
    let sound = file(7, b"b", b"c", (4, 9));
    let segments: [(&str, Damage<SegmentMeta>); 9] = [
        ("end overflows", |segment| segment.offset = u64::MAX - 4095),
        ("unaligned", |segment| segment.offset = 4097),
        ("entries", |segment| segment.entries = 0),
        ("tombstones", |segment| segment.tombstones = 11),
        ("range tombstones", |segment| segment.range_tombstones = 4),
        ("hidden entries", |segment| segment.hidden_below = 1),
        ("operands", |segment| segment.operands = 8),
        ("keys", |segment| segment.keys = FenceKeys::new(b"b", b"a")),
        ("sequences", |segment| segment.sequence_max = 3),
    ];
    for (what, damage) in segments {
        let mut file = sound.clone();
        damage(&mut file.segments[0]);
        for record in [add_segment(file.segments[0].clone()), add_file(file.into())] {
            assert!(!decode(record).expect_err(what).unsupported);
        }
    }
    let mut segment = sound.segments[0].clone();
    decode(add_segment(segment.clone())).unwrap();
    segment.overwrites = 11;
    assert!(!decode(add_segment(segment)).unwrap_err().unsupported);
    let files: [(&str, Damage<FileMeta>); 3] = [
        ("no segments", |file| file.segments = Vec::new().into()),
        ("13 segments", |file| {
            file.segments = vec![file.segments[0].clone(); 13].into();
        }),
        ("overlap", |file| {
            file.segments.push(file.segments[0].clone());
        }),
    ];
    for (what, damage) in files {
        let mut file = sound.clone();
        damage(&mut file);
        assert!(!decode(add_file(file.into())).expect_err(what).unsupported);
    }
}

#[test]
fn impossible_tables_lists_and_files_are_refused() {
    let keyspace = KeyspaceId(1);
    let table = |change: fn(&mut RelocationTable)| {
        let mut table = moved(10, 11, 40, 3);
        change(&mut table);
        Record::Relocate { keyspace, table }
    };
    let list = |change: fn(&mut DiscardList)| {
        let mut list = garbage(12, &[(9, 1), (300, 1000)]);
        change(&mut list);
        Record::AddDiscardList { keyspace, list }
    };
    let file = |change: fn(&mut ValueFileMeta)| {
        let mut file = log(11, 2, 27);
        change(&mut file);
        Record::AddGcOutput { keyspace, file }
    };
    for (record, is_sound) in [
        (table(|_| {}), true),
        (table(|table| table.entries = 0), false),
        (table(|table| table.entries = 401), false),
        (table(|table| table.offset = 1 << 48), false),
        (table(|table| table.offset = u64::MAX), false),
        (
            table(|table| {
                table.entries = u64::MAX;
                table.origin_bytes = u64::MAX;
            }),
            false,
        ),
        (list(|_| {}), true),
        (list(|list| list.length = 999), false),
        (
            list(|list| *list.counts.entry(FileNumber(9)).or_default() = 0),
            false,
        ),
        (file(|_| {}), true),
        (file(|file| file.entries = 41), false),
        (
            file(|file| (file.length, file.end) = (u64::MAX, u64::MAX)),
            false,
        ),
    ] {
        assert_eq!(decode(record.clone()).is_ok(), is_sound, "{record:?}");
    }
    // An end beyond 64 bits; value files of a list out of order.
    for (tag, body) in [
        (19, [&[1, 11, 40, 2, 22][..], &[255; 9], &[1]].concat()),
        (21, vec![1, 12, 40, 2, 9, 1, 9, 1]),
        (21, vec![1, 12, 40, 2, 9, 1, 8, 1]),
        (21, vec![1, 12, 40, 2, 9, 1]),
    ] {
        let mut bytes = vec![tag];
        put_bytes(&mut bytes, &body);
        let error = Edit::decode(&bytes).unwrap_err();
        assert!(!error.unsupported, "{error:?}");
    }
}

#[test]
fn impossible_changes_of_references_are_refused() {
    let sound = count_references(&[(9, -1, -20), (300, 2, 40)]);
    let bytes = encode(&Edit {
        records: vec![sound.clone()],
    });
    // Keyspace 4; file 9 with -1 and -20, file 291 later with 2 and 40.
    assert_eq!(bytes, [26, 8, 4, 9, 1, 39, 0xa3, 2, 4, 80][..].to_vec());
    decode(sound).unwrap();
    for (what, body) in [
        ("the same file twice", vec![4, 9, 1, 39, 0, 2, 80]),
        ("file 0", vec![4, 0, 1, 39]),
        ("no change", vec![4, 9, 1, 39, 1, 0, 0]),
        ("cut off in the file", vec![4, 9, 1, 39, 0xa3]),
        ("cut off before the bytes", vec![4, 9, 1]),
        (
            "the number overflows",
            [&[4, 9, 1, 39][..], &[255; 9], &[1, 2, 80]].concat(),
        ),
    ] {
        let mut bytes = vec![26];
        put_bytes(&mut bytes, &body);
        let error = Edit::decode(&bytes).expect_err(what);
        assert!(!error.unsupported, "{what}: {error:?}");
    }
}

#[test]
fn the_format_document_names_each_tag_and_shows_a_true_example() {
    let document = include_str!("../../../../../docs/format.md");
    for record in one_of_each().records {
        let debug = format!("{record:?}");
        let name = debug.split([' ', '(']).next().unwrap();
        let tag = encode(&Edit {
            records: vec![record.clone()],
        })[0];
        assert!(
            document.contains(&format!("| {tag} | {name} |")),
            "{tag} {name}"
        );
    }
    let keyspace = KeyspaceId(1);
    let example = encode(&Edit {
        records: vec![
            Record::NextId(9),
            Record::AddFile {
                keyspace,
                level: 0,
                file: file(8, b"apple", b"pear", (1, 300)).into(),
            },
            Record::Flushed {
                keyspace,
                sequence: 300,
            },
        ],
    });
    assert!(document.contains(&hex(&example)), "{}", hex(&example));
}
