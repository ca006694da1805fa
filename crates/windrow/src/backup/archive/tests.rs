//! The bytes of a stretch, what is refused, and which states the notes of stretches leave.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::histories::{Histories, unreachable};
use super::items::Item;
use super::stretch::{Note, Stretch};
use crate::backup::names::{Piece, StretchName};
use crate::backup::objects::Objects;
use crate::base::{ErrorKind, KeyspaceId, SequenceNumber};
use crate::codec::Reader;
use crate::codec::checksum::long_checksum;
use crate::manifest::{ChangeEvent, Edit, Record};

const CHECKSUM_BYTES: usize = 8;

fn name(first: SequenceNumber, last: SequenceNumber) -> StretchName {
    StretchName {
        history: 0x0123_4567_89ab_cdef_0011_2233_4455_6677,
        first,
        last,
    }
}

/// Changes 101 to 250 in two pieces, with a drop and a load.
fn example() -> Stretch {
    let keyspace = KeyspaceId(2);
    Stretch {
        name: name(101, 250),
        moment: Duration::from_millis(1_790_000_000_123),
        digest: 7,
        pieces: vec![
            Piece {
                checksum: 1,
                length: 400,
            },
            Piece {
                checksum: 2,
                length: 50,
            },
        ],
        notes: vec![
            Note::LeftOut {
                keyspace,
                first: 110,
                last: 140,
            },
            Note::Dropped {
                keyspace,
                sequence: 141,
            },
            Note::TablesAdded(200),
        ],
    }
}

#[test]
fn a_stretch_reads_back_as_it_was_written() {
    let stretch = example();
    let read = Stretch::decode(stretch.name, &stretch.encode()).unwrap();
    assert_eq!(read, stretch);
    assert_eq!(stretch.bytes(), 450);
}

/// I1 of the stretch.
#[test]
fn each_changed_byte_each_cut_and_another_name_are_refused_by_name() {
    let bytes = example().encode();
    let refused = |name: StretchName, bytes: &[u8]| {
        let error = Stretch::decode(name, bytes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
        assert!(error.to_string().contains(&name.to_string()), "{error}");
    };
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << bit;
            refused(example().name, &changed);
        }
        refused(example().name, &bytes[..at]);
    }
    refused(example().name, &[&bytes[..], &[0]].concat());
    refused(name(101, 251), &bytes);
    refused(name(100, 250), &bytes);
    let history = 5;
    refused(
        StretchName {
            history,
            ..name(101, 250)
        },
        &bytes,
    );
}

/// Bytes with a sound checksum.
fn sealed(mut body: Vec<u8>) -> Vec<u8> {
    let sum = long_checksum(0, &body);
    body.extend(sum.to_le_bytes());
    body
}

#[test]
fn damage_under_a_sound_checksum_never_panics() {
    let bytes = example().encode();
    let body = &bytes[..bytes.len() - CHECKSUM_BYTES];
    for at in 8..body.len() {
        for byte in [0, 1, 2, 3, 0x7f, 0x80, 0xff, body[at] ^ 1] {
            let mut changed = body.to_vec();
            changed[at] = byte;
            drop(Stretch::decode(example().name, &sealed(changed)));
        }
        let cut = sealed(body[..at].to_vec());
        assert!(Stretch::decode(example().name, &cut).is_err());
    }
}

#[test]
fn a_newer_version_is_not_misread() {
    let bytes = example().encode();
    let mut body = bytes[..bytes.len() - CHECKSUM_BYTES].to_vec();
    body[8] = 2;
    let error = Stretch::decode(example().name, &sealed(body)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
}

/// The example of the document is this stretch.
#[test]
fn the_document_has_these_bytes() {
    let document = include_str!("../../../../../docs/backup.md");
    let bytes = example().encode();
    let lines = bytes.chunks(32).map(|line| {
        let digits: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("    {}\n", digits.join(" "))
    });
    let lines: String = lines.collect();
    assert!(document.contains(&lines), "{lines}");
}

/// I1 of the items.
#[test]
fn items_read_back_as_they_were_written() {
    let event = ChangeEvent::Dropped {
        keyspace: KeyspaceId(3),
        name: "k".to_owned(),
    };
    let event = Record::ChangeEvent { sequence: 9, event };
    let create = Record::CreateKeyspace {
        id: KeyspaceId(4),
        name: "new".to_owned(),
    };
    // One entry: the number of an event.
    let payload = [4, 0, 0, 1, 1];
    let items = [
        Item::Batch {
            record: 77,
            payload: &payload,
        },
        Item::Numbered {
            record: u64::MAX,
            edit: Edit {
                records: vec![event],
            },
        },
        Item::Numbered {
            record: 0,
            edit: Edit::default(),
        },
        Item::Keyspace(Edit {
            records: vec![create],
        }),
    ];
    let mut bytes = Vec::new();
    for item in &items {
        item.encode(&mut bytes);
    }
    let mut reader = Reader::new(&bytes);
    let lasts = [Some(5), Some(5), Some(5), None];
    for (item, last) in items.iter().zip(lasts) {
        let read = Item::read(&mut reader).unwrap();
        assert_eq!(read, *item);
        assert_eq!(read.last(5).unwrap(), last);
    }
    assert!(reader.is_empty());
    for at in 0..bytes.len() {
        for byte in [0, 1, 2, 3, 0x7f, 0x80, 0xff] {
            let mut changed = bytes.clone();
            changed[at] = byte;
            let mut reader = Reader::new(&changed);
            while !reader.is_empty() {
                match Item::read(&mut reader) {
                    Ok(item) => drop(item.last(5)),
                    Err(_) => break,
                }
            }
        }
    }
}

fn objects(stretches: &[(SequenceNumber, SequenceNumber)]) -> Objects {
    let names = stretches.iter().map(|&(first, last)| name(first, last));
    Objects {
        backups: BTreeSet::new(),
        pieces: BTreeMap::new(),
        stretches: names.collect(),
    }
}

/// I2 of the archive.
#[test]
fn a_chain_ends_at_a_gap_and_overlaps_are_refused() {
    let histories = Histories::new(&objects(&[(5, 9), (10, 10), (11, 30), (40, 50)]));
    let history = name(1, 1).history;
    for (from, chain) in [
        (4, &[][..]),
        (5, &[(5, 9), (10, 10), (11, 30)][..]),
        (9, &[(5, 9), (10, 10), (11, 30)]),
        (10, &[(10, 10), (11, 30)]),
        (30, &[(11, 30)]),
        (31, &[]),
        (40, &[(40, 50)]),
        (51, &[]),
    ] {
        let found = histories.chain(history, from).unwrap();
        let found: Vec<_> = found.iter().map(|it| (it.first, it.last)).collect();
        assert_eq!(found, chain, "from {from}");
    }
    assert!(histories.chain(history + 1, 5).unwrap().is_empty());
    for stretches in [
        &[(5, 9), (9, 12)][..],
        &[(5, 9), (5, 8)],
        &[(1, 20), (5, 8)],
    ] {
        let histories = Histories::new(&objects(stretches));
        let error = histories.chain(history, 5).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
    }
}

#[test]
fn states_without_their_changes_are_known() {
    type Case<'a> = (&'a [Note], &'a [(u64, Option<u64>)]);

    let keyspace = KeyspaceId(2);
    let left_out = |first, last| Note::LeftOut {
        keyspace,
        first,
        last,
    };
    let dropped = |sequence| Note::Dropped { keyspace, sequence };
    let other = Note::Dropped {
        keyspace: KeyspaceId(3),
        sequence: 25,
    };
    let cases: [Case<'_>; 8] = [
        (&[], &[]),
        (&[Note::TablesAdded(20)], &[(20, None)]),
        (&[Note::TablesAdded(10)], &[]),
        // It holds until the drop, also if that is in a later stretch.
        (&[left_out(20, 30), other, dropped(40)], &[(20, Some(39))]),
        (&[left_out(20, 30)], &[(20, None)]),
        // Of what is missing before the backup, nothing matters; of a part behind it, it may begin at once.
        (&[left_out(5, 10), dropped(40)], &[]),
        (&[left_out(5, 12), dropped(40)], &[(11, Some(39))]),
        // A drop before it is that of an earlier time, which never comes again for one id.
        (&[dropped(15), left_out(20, 30)], &[(20, None)]),
    ];
    for (notes, expected) in cases {
        let found = unreachable(10, notes);
        let found: Vec<_> = found.iter().map(|it| (it.first, it.last)).collect();
        assert_eq!(found, expected, "{notes:?}");
    }
}
