//! What is left of a damaged table: all that the damage did not touch.

use super::super::format::{FOOTER_BYTES, Footer};
use super::super::read::{Blocks as _, ReadAhead};
use super::super::{SegmentPlace, find_segments};
use super::*;
use crate::block::stored::Place;

/// Keys so long that the index has several partitions.
fn entries() -> Vec<Owned> {
    let key = |number: u32| [&[b'p'; 120][..], &number.to_be_bytes()].concat();
    let value = |number: u32| [number.to_be_bytes(); 12].concat();
    let entry = |number| Owned::new(&key(number), u64::from(number) + 7, Some(&value(number)));
    (0..400).map(entry).collect()
}

fn options(compression: Compression) -> TableOptions {
    TableOptions {
        block_bytes: 300,
        compression,
        ..plain()
    }
}

/// What is sound of `bytes`, and how many parts are lost.
fn salvage(place: &SegmentPlace, bytes: Vec<u8>) -> (Vec<Owned>, usize) {
    let file = MemoryFile::holding(bytes);
    let mut found = Vec::new();
    let lost = place.salvage(&*file, "000012.table", &mut |key, trailer, value| {
        found.push(Owned {
            key: key.to_vec(),
            trailer,
            value: value.to_vec(),
        });
        Ok(())
    });
    (found, lost.unwrap().len())
}

#[test]
fn a_flipped_bit_loses_at_most_the_block_that_it_is_in() {
    for compression in [Compression::None, Compression::Lz4] {
        let entries = entries();
        let (meta, bytes) = write(&entries, &options(compression));
        let table = open(bytes.clone(), &meta, BlockSource::Buffered).unwrap();
        let index = &table.segments[0].index;
        assert!(index.partitions() > 1);
        let data_end = usize::try_from(index.data_end()).unwrap();
        let place = SegmentPlace::of(meta.checksum_file(), &meta.segments[0]);
        assert_eq!(salvage(&place, bytes.clone()), (entries.clone(), 0));
        let in_data = (0..data_end).step_by(97);
        for at in in_data.chain((data_end..bytes.len()).step_by(3)) {
            let mut bytes = bytes.clone();
            bytes[at] ^= 1 << (at % 8);
            let (found, lost) = salvage(&place, bytes);
            if at >= data_end {
                assert_eq!(
                    (found.len(), lost),
                    (entries.len(), 0),
                    "{compression:?} {at}"
                );
                assert!(found == entries);
                continue;
            }
            let mut blocks = (0..index.blocks()).map(|number| block(&table, number));
            let hit = blocks.rfind(|block| block.offset <= at as u64).unwrap();
            let mut blocks = ReadAhead::new(&table, 0);
            blocks.load(hit).unwrap();
            let layout = crate::block::Layout::read(blocks.bytes(), blocks.origin()).unwrap();
            assert_eq!(lost, 1, "{compression:?} {at}");
            assert_eq!(
                found.len() + layout.count(),
                entries.len(),
                "{compression:?} {at}"
            );
            assert!(found.iter().all(|entry| entries.contains(entry)));
        }
    }
}

#[test]
fn a_range_tombstone_of_a_lost_block_is_found_or_the_loss_reaches_to_any_key() {
    let mut entries = entries();
    let range = |number: usize| Owned {
        trailer: Trailer::new(1000, Kind::RangeTombstone),
        value: entries[number + 300].key.clone(),
        key: entries[number].key.clone(),
    };
    let tombstone = range(20);
    entries.insert(20, tombstone.clone());
    let (meta, bytes) = write(&entries, &options(Compression::None));
    let table = open(bytes.clone(), &meta, BlockSource::Buffered).unwrap();
    let place = SegmentPlace::of(meta.checksum_file(), &meta.segments[0]);
    let index = &table.segments[0].index;
    // Its keys stand beside each other in the block of ranges alone.
    let length = u8::try_from(tombstone.value.len()).unwrap();
    let both = [&tombstone.key[..], &[length], &tombstone.value].concat();
    let in_ranges = bytes.windows(both.len()).position(|it| *it == *both);
    for with_ranges in [false, true] {
        let mut bytes = bytes.clone();
        for number in 0..index.blocks() - 1 {
            let at = usize::try_from(block(&table, number).offset).unwrap();
            bytes[at] ^= 1;
        }
        bytes[in_ranges.unwrap()] ^= u8::from(with_ranges);
        let file = MemoryFile::holding(bytes);
        let mut is_found = false;
        let lost = place.salvage(&*file, "000012.table", &mut |key, trailer, value| {
            is_found |= trailer == tombstone.trailer
                && (key, value) == (&*tombstone.key, &*tombstone.value);
            Ok(())
        });
        let lost = lost.unwrap();
        assert_eq!(is_found, !with_ranges);
        assert_eq!(lost.len(), 1);
        assert_eq!(lost[0].to.is_none(), with_ranges);
    }
}

#[test]
fn a_damaged_index_and_a_damaged_block_lose_the_rest_and_say_so() {
    let entries = entries();
    let (meta, mut bytes) = write(&entries, &options(Compression::None));
    let table = open(bytes.clone(), &meta, BlockSource::Buffered).unwrap();
    let place = SegmentPlace::of(meta.checksum_file(), &meta.segments[0]);
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    let hit = block(&table, 5);
    bytes[usize::try_from(hit.offset).unwrap()] ^= 1;
    let (found, lost) = salvage(&place, bytes);
    assert_eq!(lost, 1);
    assert!(!found.is_empty() && found[..] == entries[..found.len()]);
}

#[test]
fn a_walk_over_zeros_tries_all_lengths_of_a_block() {
    // Each zero may be the code of no compression, so each length counts. With a checksum for each this takes hours.
    let bytes = vec![0; 4 << 20];
    let place = SegmentPlace {
        file: NUMBER,
        id: SEGMENT,
        offset: 0,
        end: bytes.len() as u64,
        raise: 0,
        entries: Some(1),
        ranges: None,
    };
    assert_eq!(salvage(&place, bytes), (Vec::new(), 1));
}

#[test]
fn segments_are_found_without_a_manifest() {
    let entries = entries();
    let vfs = MemoryVfs::default();
    let (older, newer) = entries.split_at(200);
    let table = write_to(&vfs, NUMBER, older, &plain());
    let table = append(&vfs, &table, 14, newer, &plain());
    let file = vfs.file(Path::new(&file_name(NUMBER)));
    let bytes = file.bytes.lock().clone();
    for (name, bytes, expected) in [
        ("whole", bytes.clone(), 2),
        ("longer", [&bytes[..], &[7; 1000]].concat(), 2),
        ("cut", bytes[..bytes.len() - 1].to_vec(), 1),
        ("empty", Vec::new(), 0),
    ] {
        let (found, _) = find_segments(&*MemoryFile::holding(bytes.clone()), name, NUMBER).unwrap();
        let places = found
            .iter()
            .map(|place| (place.id, place.offset, place.end));
        let segments = table.segments.iter();
        let known = segments.map(|meta| (meta.id, meta.offset, meta.end()));
        assert!(places.eq(known.take(expected)), "{name}");
        for (place, entries) in found.iter().zip([older, newer]) {
            assert_eq!(salvage(place, bytes.clone()), (entries.to_vec(), 0));
        }
    }
}

/// Somebody may put footers one behind the other, each of which claims all that is before it.
#[test]
fn footers_that_claim_the_same_bytes_do_not_multiply_them() {
    let vfs = MemoryVfs::default();
    write_to(&vfs, NUMBER, &entries(), &plain());
    let file = vfs.file(Path::new(&file_name(NUMBER)));
    let mut bytes = file.bytes.lock().clone();
    let mut offset = bytes.len() as u64 - FOOTER_BYTES as u64;
    let place = |offset| Place {
        file: NUMBER,
        segment: SEGMENT,
        offset,
    };
    let last = &bytes[bytes.len() - FOOTER_BYTES..];
    let (mut footer, _) = Footer::read(last, place(offset)).unwrap();
    let length = bytes.len() as u64;
    for _ in 0..1000 {
        offset += FOOTER_BYTES as u64;
        footer.properties.length += FOOTER_BYTES as u64;
        bytes.extend_from_slice(&footer.encode(place(offset)).0);
    }
    let (found, are_all) =
        find_segments(&*MemoryFile::holding(bytes.clone()), "t", NUMBER).unwrap();
    assert!(!are_all && !found.is_empty());
    let claimed: u64 = found.iter().map(|place| place.end - place.offset).sum();
    assert!(claimed <= 17 * bytes.len() as u64, "{claimed} of {length}");
}

proptest::proptest! {
    #[test]
    fn arbitrary_bytes_give_no_entry_and_no_panic(
        bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..600),
        end in 0..700_u64,
    ) {
        let place = SegmentPlace {
            file: NUMBER,
            id: SEGMENT,
            offset: 0,
            end,
            raise: 0,
            entries: Some(1),
            ranges: None,
        };
        let (found, lost) = salvage(&place, bytes.clone());
        proptest::prop_assert!(found.is_empty());
        proptest::prop_assert_eq!(lost, 1);
        let file = MemoryFile::holding(bytes);
        proptest::prop_assert_eq!(find_segments(&*file, "t", NUMBER).unwrap().0.len(), 0);
    }
}
