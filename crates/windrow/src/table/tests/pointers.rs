//! Tables that hold pointers to values elsewhere.

use super::*;
use crate::ErrorKind;
use crate::block::stored::{Place, TRAILER_BYTES, seal};
use crate::table::{FOOTER_BYTES, Referred, SegmentReferences};
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

/// The same values in value logs.
fn in_logs(mut entries: Vec<Owned>) -> Vec<Owned> {
    for entry in &mut entries {
        if entry.trailer.is_pointer() {
            entry.trailer = Trailer::new(9, Kind::ValueLogPointer);
        }
    }
    entries
}

fn referred(file: u64, entries: u64, bytes: u64) -> (FileNumber, Referred) {
    (FileNumber(file), Referred { entries, bytes })
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
    let references: Vec<_> = meta.segments[0].references.transient().collect();
    assert_eq!(references, [referred(7, 2, 198), referred(8, 1, 99)]);
    assert_eq!(meta.segments[0].references.logs(), None);
    assert_eq!(meta.segments[0].references.entries(), 3);
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

/// The manifest has the sums of the references to value logs. The segment has the list.
#[test]
fn a_table_lists_the_value_logs_of_its_entries() {
    let entries = in_logs(entries());
    let (meta, bytes) = write(&entries, &plain());
    let references = &meta.segments[0].references;
    assert_eq!(references.transient().count(), 0);
    assert_eq!((references.entries(), references.log_bytes()), (3, 297));
    let sums = references.logs().unwrap().sums;
    assert_eq!(
        (sums.smallest, sums.largest),
        (FileNumber(7), FileNumber(8))
    );
    for source in SOURCES {
        let table = open(bytes.clone(), &meta, source).unwrap();
        let lists: Vec<_> = table.log_references().map(Result::unwrap).collect();
        assert_eq!(lists.len(), 1);
        let listed: Vec<_> = lists[0].iter().collect();
        assert_eq!(listed, [referred(7, 2, 198), referred(8, 1, 99)]);
        assert_eq!(lists[0].log_sums(), Some(sums));
    }
    let (damage, _) = verify(&bytes, &meta);
    assert!(damage.is_empty(), "{damage:?}");
}

/// The bytes of the block of references that `listed` encodes to.
fn block_of(listed: &[u8], bytes: &[u8]) -> std::ops::Range<usize> {
    let found = bytes
        .windows(listed.len())
        .position(|it| it == listed)
        .unwrap();
    found..found + listed.len() + TRAILER_BYTES
}

/// Each list is under a checksum, and must add up to the sums of the manifest.
#[test]
fn a_damaged_list_of_value_logs_is_found() {
    let (meta, bytes) = write(&in_logs(entries()), &plain());
    // Two files: 7 with 2 entries and 198 bytes, then 8 with 1 and 99.
    let listed = [2, 7, 2, 0xc6, 0x01, 1, 1, 99];
    let place = block_of(&listed, &bytes);
    let error = |bytes: Vec<u8>| {
        let table = open(bytes.clone(), &meta, BlockSource::Buffered).unwrap();
        let error = table.log_references().next().unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption);
        let (damage, _) = verify(&bytes, &meta);
        assert_eq!(damage, [error.to_string()]);
        error.to_string()
    };
    for position in place.clone() {
        let mut damaged = bytes.clone();
        damaged[position] ^= 1;
        assert!(error(damaged).contains("checksum"), "{position}");
    }
    let forge = |listed: [u8; 8]| {
        let mut block = listed.to_vec();
        let offset = place.start as u64;
        let place_of = Place {
            file: NUMBER,
            segment: SEGMENT,
            offset,
        };
        seal(&mut block, 0, Compression::None, place_of);
        let mut forged = bytes.clone();
        forged[place.clone()].copy_from_slice(&block);
        forged
    };
    for forged in [
        [2, 7, 1, 0xc6, 0x01, 1, 1, 99],
        [2, 7, 2, 0xc7, 0x01, 1, 1, 99],
        [2, 7, 2, 0xc6, 0x01, 2, 1, 99],
    ] {
        let message = error(forge(forged));
        assert!(
            message.contains("do not add up to its properties"),
            "{message}"
        );
    }
    // The sums are right, but not the parts.
    let (damage, _) = verify(&forge([2, 7, 1, 0xc6, 0x01, 1, 2, 99]), &meta);
    assert_eq!(damage.len(), 1, "{damage:?}");
    assert!(
        damage[0].contains("do not add up to the properties"),
        "{damage:?}"
    );
}

/// The footer says where the list is; the properties say whether there is one.
#[test]
fn a_table_has_a_list_if_its_properties_have_sums() {
    let (meta, bytes) = write(&in_logs(entries()), &plain());
    let (without, others) = write(&entries(), &plain());
    assert!(bytes.len() > FOOTER_BYTES && others.len() > FOOTER_BYTES);
    let mut changed = meta.clone();
    changed.segments[0].references = without.segments[0].references.clone();
    open(bytes, &changed, BlockSource::Buffered).unwrap_err();
    let mut changed = without;
    changed.segments[0].references = meta.segments[0].references.clone();
    open(others, &changed, BlockSource::Buffered).unwrap_err();
}

#[test]
fn the_manifest_must_record_the_references_of_a_table() {
    for entries in [entries(), in_logs(entries())] {
        let (meta, bytes) = write(&entries, &plain());
        let (other, _) = write(&entries[..3], &plain());
        let others = other.segments[0].references.clone();
        for references in [SegmentReferences::default(), others] {
            let mut changed = meta.clone();
            changed.segments[0].references = references;
            for source in SOURCES {
                let error = open(bytes.clone(), &changed, source).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Corruption);
                assert!(error.to_string().contains(&file_name(NUMBER)), "{error}");
            }
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
