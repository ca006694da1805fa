//! The bytes of a backup's manifest, and what is refused.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{BackupManifest, Binding, CHECKSUM_BYTES};
use crate::backup::names::Piece;
use crate::base::{ErrorKind, FileNumber, KeyspaceId};
use crate::codec::checksum::long_checksum;
use crate::manifest::names::FileName;
use crate::manifest::{Edit, ManifestState, Record};
use crate::value::ValueFileMeta;

const NUMBER: u64 = 3;

fn piece(checksum: u128, length: u64) -> Piece {
    Piece { checksum, length }
}

/// Keyspace 1 with a value log of 60 bytes, and a log of 40.
fn example() -> BackupManifest {
    let mut state = ManifestState::default();
    let number = FileNumber(2);
    let file = ValueFileMeta {
        number,
        length: 60,
        entries: 1,
        value_bytes: 50,
        end: 60,
    };
    let keyspace = KeyspaceId(1);
    let log = FileNumber(1);
    let records = vec![
        Record::FormatVersion,
        Record::NextId(4),
        Record::CreateKeyspace {
            id: keyspace,
            name: "k".to_owned(),
        },
        Record::AddValueLog { keyspace, number },
        Record::SealValueLog {
            keyspace,
            file,
            last_sequence: 9,
        },
        Record::AddLog(log),
        Record::LogEnd {
            number: log,
            offset: 40,
        },
    ];
    state.apply(&Edit { records }).unwrap();
    BackupManifest {
        created: Duration::from_millis(1_790_000_000_123),
        instance: 0x0123_4567_89ab_cdef_0011_2233_4455_6677,
        sequence: 9,
        files: BTreeMap::from([
            (FileName::Wal(log), vec![piece(1, 40)]),
            (FileName::Values(number), vec![piece(2, 45), piece(3, 15)]),
        ]),
        state,
        binding: None,
    }
}

fn bound() -> BackupManifest {
    let binding = Some(Binding {
        history: 0xab << 64,
        place: 7,
        digest: 0xcd << 60,
    });
    BackupManifest {
        binding,
        ..example()
    }
}

#[test]
fn a_manifest_reads_back_as_it_was_written() {
    let manifest = example();
    let bytes = manifest.encode(NUMBER);
    assert_eq!(BackupManifest::decode(NUMBER, &bytes).unwrap(), manifest);
    assert_eq!(manifest.bytes(), 100);
    let bytes = bound().encode(NUMBER);
    assert_eq!(BackupManifest::decode(NUMBER, &bytes).unwrap(), bound());
}

/// I1.
#[test]
fn each_changed_byte_each_cut_and_another_number_are_refused_by_name() {
    let bytes = example().encode(NUMBER);
    let refused = |number, bytes: &[u8]| {
        let error = BackupManifest::decode(number, bytes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
        let name = format!("{number:06}.backup");
        assert!(error.to_string().contains(&name), "{error}");
    };
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << bit;
            refused(NUMBER, &changed);
        }
        refused(NUMBER, &bytes[..at]);
    }
    refused(NUMBER, &[&bytes[..], &[0]].concat());
    refused(NUMBER + 1, &bytes);
}

/// Bytes with a sound checksum.
fn sealed(mut body: Vec<u8>) -> Vec<u8> {
    let sum = long_checksum(NUMBER, &body);
    body.extend(sum.to_le_bytes());
    body
}

/// A change of a manifest.
type Change = fn(&mut BackupManifest);

/// I2. A good checksum does not prove a good form.
#[test]
fn what_contradicts_the_state_is_refused() {
    let log = FileName::Wal(FileNumber(1));
    let changes: [(&str, Change); 5] = [
        ("lacks 000001.wal", |it| {
            it.files.remove(&FileName::Wal(FileNumber(1)));
        }),
        ("lacks 000002.values", |it| {
            it.files.remove(&FileName::Values(FileNumber(2)));
        }),
        ("000003.table", |it| {
            let name = FileName::Table(FileNumber(3));
            it.files.insert(name, vec![piece(4, 1)]);
        }),
        ("another length", |it| {
            it.files
                .insert(FileName::Wal(FileNumber(1)), vec![piece(1, 41)]);
        }),
        ("another length", |it| {
            let pieces = vec![piece(1, u64::MAX), piece(1, 41)];
            it.files.insert(FileName::Wal(FileNumber(1)), pieces);
        }),
    ];
    for (what, change) in changes {
        let mut manifest = example();
        change(&mut manifest);
        let error = BackupManifest::decode(NUMBER, &manifest.encode(NUMBER)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
        assert!(error.to_string().contains(what), "{error}");
    }
    // A file of a name that no backup has would be written outside of its folder, or in place of `CURRENT`.
    let bytes = example().encode(NUMBER);
    let body = &bytes[..bytes.len() - CHECKSUM_BYTES];
    let name = log.to_string();
    let at = body
        .windows(name.len())
        .position(|it| it == name.as_bytes())
        .unwrap();
    for other in ["../000.wal", "000001.xyz", "000001.WAL"] {
        let mut changed = body.to_vec();
        changed[at..at + name.len()].copy_from_slice(other.as_bytes());
        let error = BackupManifest::decode(NUMBER, &sealed(changed)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
    }
}

#[test]
fn damage_under_a_sound_checksum_never_panics() {
    let bytes = example().encode(NUMBER);
    let body = &bytes[..bytes.len() - CHECKSUM_BYTES];
    for at in 8..body.len() {
        for byte in [0, 1, 0x7f, 0x80, 0xff, body[at] ^ 1] {
            let mut changed = body.to_vec();
            changed[at] = byte;
            drop(BackupManifest::decode(NUMBER, &sealed(changed)));
        }
        drop(BackupManifest::decode(NUMBER, &sealed(body[..at].to_vec())));
    }
}

#[test]
fn a_newer_version_is_not_misread() {
    let bytes = example().encode(NUMBER);
    let mut body = bytes[..bytes.len() - CHECKSUM_BYTES].to_vec();
    body[8] = 3;
    let error = BackupManifest::decode(NUMBER, &sealed(body)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
}

/// The example of the document is this manifest.
#[test]
fn the_document_has_these_bytes() {
    let document = include_str!("../../../../../docs/backup.md");
    let bytes = example().encode(NUMBER);
    let lines = bytes.chunks(32).map(|line| {
        let digits: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("    {}\n", digits.join(" "))
    });
    let lines: String = lines.collect();
    assert!(document.contains(&lines), "{lines}");
}
