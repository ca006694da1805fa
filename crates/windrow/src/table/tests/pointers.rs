//! Tables that hold pointers to values elsewhere.

use super::*;
use crate::ErrorKind;
use crate::block::stored::{Place, TRAILER_BYTES, seal};
use crate::codec::Reader;
use crate::table::{References, Referred};
use crate::value::ValuePointer;

fn pointer(file: u64, offset: u64, record_bytes: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    ValuePointer {
        file: FileNumber(file),
        offset,
        record_bytes,
        value_bytes: 90,
    }
    .encode(&mut bytes);
    bytes
}

fn pointing(key: &[u8], pointer: Vec<u8>) -> Owned {
    Owned {
        key: key.to_vec(),
        trailer: Trailer::new(9, Kind::TransientPointer),
        value: pointer,
    }
}

/// Values in place and in the files 7 and 8, and a tombstone.
fn entries() -> Vec<Owned> {
    vec![
        pointing(b"a", pointer(7, 0, 100)),
        Owned::new(b"b", 9, Some(b"in place")),
        pointing(b"c", pointer(7, 100, 98)),
        Owned::new(b"d", 9, None),
        pointing(b"e", pointer(8, 30, 99)),
    ]
}

/// What `verify` finds in `bytes`, and which entries it has asked for.
fn verify(bytes: &[u8], meta: &FileMeta) -> (Vec<String>, Vec<Owned>) {
    let table = open(bytes.to_vec(), meta, BlockSource::Buffered).unwrap();
    let (mut damage, mut asked) = (Vec::new(), Vec::new());
    let mut check = |key: &[u8], pointer: &[u8]| {
        asked.push(pointing(key, pointer.to_vec()));
        Ok(())
    };
    table.verify(&mut damage, &mut check).unwrap();
    (damage.iter().map(ToString::to_string).collect(), asked)
}

#[test]
fn a_table_records_the_references_of_its_entries() {
    let entries = entries();
    let (meta, bytes) = write(&entries, &plain());
    let references: Vec<_> = meta.segments[0].references.iter().collect();
    let of = |file, entries, bytes| {
        (
            FileNumber(file),
            Referred {
                is_log: false,
                entries,
                bytes,
            },
        )
    };
    assert_eq!(references, [of(7, 2, 198), of(8, 1, 99)]);
    // Keys and values, wherever these are.
    assert_eq!(meta.logical_bytes(), 5 + 3 * 90 + 8);
    assert_eq!((meta.transient_bytes(), meta.transient_files()), (297, 2));
    for source in SOURCES {
        let table = open(bytes.clone(), &meta, source).unwrap();
        for entry in &entries {
            let found = get(&table, &entry.key, 9).unwrap();
            assert_eq!(found, Some((entry.trailer, entry.value.clone())));
        }
        assert!(scan(&mut table.cursor(0)).unwrap() == entries);
        assert!(scan(&mut table.sequential_cursor(0)).unwrap() == entries);
    }
    let (damage, asked) = verify(&bytes, &meta);
    assert!(damage.is_empty(), "{damage:?}");
    assert_eq!(
        asked,
        [&entries[0], &entries[2], &entries[4]].map(Owned::clone)
    );
}

#[test]
fn a_malformed_pointer_is_not_written() {
    let vfs = MemoryVfs::default();
    let mut writer = TableWriter::create(&vfs, Path::new(""), NUMBER, SEGMENT, &plain()).unwrap();
    let trailer = Trailer::new(9, Kind::TransientPointer);
    let error = writer.add(b"a", trailer, b"\x07").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
}

/// A table whose first block is sound and says `new` where it said `old`.
fn forged(bytes: &[u8], meta: &FileMeta, old: &[u8], new: &[u8]) -> Vec<u8> {
    assert_eq!(old.len(), new.len());
    let table = open(bytes.to_vec(), meta, BlockSource::Buffered).unwrap();
    let BlockPlace { offset, length, .. } = block(&table, 0);
    assert_eq!(offset, 0);
    let mut block = bytes[..length - TRAILER_BYTES].to_vec();
    let at = block
        .windows(old.len())
        .position(|read_buffer| read_buffer == old);
    block[at.unwrap()..][..old.len()].copy_from_slice(new);
    let place = Place {
        file: NUMBER,
        segment: SEGMENT,
        offset,
    };
    seal(&mut block, 0, Compression::None, place);
    [&block, &bytes[length..]].concat()
}

/// With sound checksums, a pointer or the properties of its table can still be wrong.
#[test]
fn pointers_and_properties_must_agree() {
    let entries = entries();
    let (meta, bytes) = write(&entries, &plain());
    let old = pointer(7, 100, 98);
    let mut beyond = old.clone();
    *beyond.last_mut().unwrap() |= 0x80;
    for (new, what) in [
        (pointer(8, 100, 98), "do not add up to the properties"),
        (pointer(9, 100, 98), "do not add up to the properties"),
        (pointer(7, 100, 97), "do not add up to the properties"),
        (beyond, "a pointer has no length of its value"),
        (pointer(7, 100, 3), "a pointer has an impossible length"),
    ] {
        let (damage, _) = verify(&forged(&bytes, &meta, &old, &new), &meta);
        assert_eq!(damage.len(), 1, "{damage:?}");
        assert!(damage[0].contains(what), "{damage:?}");
        assert!(damage[0].contains(&file_name(NUMBER)), "{damage:?}");
    }
}

#[test]
fn sums_of_references_are_those_of_their_files() {
    let noted = [
        (7, 100, Kind::ValueLogPointer),
        (8, 50, Kind::TransientPointer),
        (7, 30, Kind::ValueLogPointer),
        (9, 20, Kind::TransientPointer),
        (8, 10, Kind::TransientPointer),
    ];
    let mut references = References::default();
    for (file, bytes, kind) in noted {
        let value = pointer(file, 0, bytes);
        references.note(Trailer::new(9, kind), &value).unwrap();
    }
    let mut encoded = Vec::new();
    references.encode(&mut encoded);
    let read = References::read(&mut Reader::new(&encoded)).unwrap();
    assert_eq!(read, references);
    for sums in [&references, &read] {
        assert_eq!((sums.log_bytes(), sums.transient_bytes()), (130, 80));
        assert_eq!((sums.transient_files(), sums.entries()), (2, 5));
    }
}

#[test]
fn the_manifest_must_record_the_references_of_a_table() {
    let (meta, bytes) = write(&entries(), &plain());
    let (other, _) = write(&entries()[..3], &plain());
    for references in [References::default(), other.segments[0].references.clone()] {
        let mut changed = meta.clone();
        changed.segments[0].references = references;
        for source in SOURCES {
            let error = open(bytes.clone(), &changed, source).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corruption);
            assert!(error.to_string().contains(&file_name(NUMBER)), "{error}");
        }
    }
}

/// One damaged value is one fault; a failed read of it says nothing and ends the check.
#[test]
fn errors_of_the_value_check_are_reported() {
    let (meta, bytes) = write(&entries(), &plain());
    let table = open(bytes, &meta, BlockSource::Buffered).unwrap();
    for kind in [ErrorKind::Corruption, ErrorKind::Io] {
        let mut damage = Vec::new();
        let mut check = |key: &[u8], _: &[u8]| match key {
            b"c" => Err(crate::Error::new(kind, "planted")),
            _ => Ok(()),
        };
        let outcome = table.verify(&mut damage, &mut check);
        if kind == ErrorKind::Io {
            assert_eq!(outcome.unwrap_err().kind(), kind);
        } else {
            assert_eq!(outcome.unwrap().entries, 5);
        }
        assert_eq!(damage.len(), usize::from(kind == ErrorKind::Corruption));
    }
}
