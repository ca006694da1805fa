//! Damage of every kind: the right answer or an error that names file and offset.

use super::super::FenceKeys;
use super::*;
use crate::base::key::SEQUENCE_MAX;
use crate::{Error, ErrorKind};

/// A few blocks, tombstones, several versions, compressible and not.
fn entries() -> Vec<Owned> {
    let mut entries = Vec::new();
    for number in 0..24u32 {
        let key = format!("key{number:03}");
        let value = [number.to_le_bytes()[0]; 25];
        entries.push(Owned::new(key.as_bytes(), 300, Some(&value)));
        if number % 5 == 0 {
            entries.push(Owned::new(key.as_bytes(), 200, None));
            entries.push(Owned::new(key.as_bytes(), 100, Some(b"older")));
        }
    }
    entries
}

fn small(compression: Compression) -> TableOptions {
    TableOptions {
        block_bytes: 300,
        filter_units: [10.0, 0.0, 0.0, 0.0],
        compression,
    }
}

/// Whether `error` says that the table is damaged and where.
fn names_the_place(error: &Error) -> bool {
    let message = error.to_string();
    error.kind() == ErrorKind::Corruption
        && message.contains(&file_name(NUMBER))
        && message.contains("offset")
}

/// Reads every entry in every way; each answer must be right or name the damage. Returns whether
/// there was an error.
fn read_all(bytes: &[u8], meta: &FileMeta, entries: &[Owned], source: BlockSource) -> bool {
    let table = match open(bytes.to_vec(), meta, source) {
        Ok(table) => table,
        Err(error) => {
            assert!(names_the_place(&error), "{error}");
            return true;
        }
    };
    let mut errors = 0;
    for entry in entries {
        match get(&table, &entry.key, entry.trailer.sequence()) {
            Ok(found) => assert_eq!(found, Some((entry.trailer, entry.value.clone()))),
            Err(error) => {
                assert!(names_the_place(&error), "{error}");
                errors += 1;
            }
        }
    }
    for absent in [&b"a"[..], b"key0005", b"z"] {
        match get(&table, absent, SEQUENCE_MAX) {
            Ok(found) => assert_eq!(found, None),
            Err(error) => assert!(names_the_place(&error), "{error}"),
        }
    }
    let scanned = [
        scan(&mut table.cursor(0)),
        scan(&mut table.sequential_cursor(0)),
    ];
    for scanned in scanned {
        match scanned {
            Ok(scanned) => assert!(scanned == entries),
            Err(error) => {
                assert!(names_the_place(&error), "{error}");
                errors += 1;
            }
        }
    }
    let mut damage = Vec::new();
    table.verify(&mut damage, &mut |_, _| Ok(())).unwrap();
    assert!(damage.iter().all(names_the_place), "{damage:?}");
    assert_eq!(
        errors > 0,
        !damage.is_empty(),
        "verify finds the damage that reads find"
    );
    !damage.is_empty()
}

/// Every bit of a table with every section, one at a time, in both sources.
#[test]
fn every_bit_flip_is_detected() {
    let entries = entries();
    for compression in [Compression::None, Compression::Lz4] {
        let (meta, bytes) = write(&entries, &small(compression));
        assert!(meta.segments[0].filter_bytes() > 0);
        for source in SOURCES {
            assert!(!read_all(&bytes, &meta, &entries, source));
            let mut damaged = bytes.clone();
            for bit in 0..bytes.len() * 8 {
                damaged[bit / 8] ^= 1 << (bit % 8);
                let detected = read_all(&damaged, &meta, &entries, source);
                assert!(detected, "the flip of bit {bit} was not detected");
                damaged[bit / 8] ^= 1 << (bit % 8);
            }
        }
    }
}

#[test]
fn every_truncation_is_detected() {
    let entries = entries();
    let (meta, bytes) = write(&entries, &small(Compression::None));
    for length in 0..bytes.len() {
        for source in SOURCES {
            let error = open(bytes[..length].to_vec(), &meta, source).unwrap_err();
            assert!(names_the_place(&error), "{error}");
        }
    }
    // The bytes of a failed append after the recorded end have no effect.
    let mut extended = bytes.clone();
    extended.extend_from_slice(&bytes);
    assert!(!read_all(&extended, &meta, &entries, BlockSource::Mapped));
}

/// Swaps sound blocks within a file and between files and segments.
#[test]
fn misplaced_blocks_are_detected() {
    // Keys and values of one length make blocks of one length.
    let entries: Vec<Owned> = (0..64u32)
        .map(|number| Owned::new(format!("{number:04}").as_bytes(), 9, Some(&[1; 20])))
        .collect();
    let (meta, bytes) = write(&entries, &small(Compression::None));
    let table = open(bytes.clone(), &meta, BlockSource::Buffered).unwrap();
    let (first, second) = (block(&table, 0), block(&table, 1));
    let length = first.length;
    assert_eq!((first.offset, length), (0, second.length));
    let second = usize::try_from(second.offset).unwrap();

    let mut swapped = bytes.clone();
    swapped[..length].copy_from_slice(&bytes[second..second + length]);
    swapped[second..second + length].copy_from_slice(&bytes[..length]);
    for source in SOURCES {
        assert!(read_all(&swapped, &meta, &entries, source));
    }

    // The same entries under another number, and under another segment id.
    let vfs = MemoryVfs::default();
    write_to(&vfs, FileNumber(99), &entries, &small(Compression::None));
    let file = vfs.file(Path::new(&file_name(FileNumber(99))));
    let foreign = file.bytes.lock().clone();
    for range in [0..length, 0..foreign.len()] {
        let mut mixed = bytes.clone();
        mixed[range.clone()].copy_from_slice(&foreign[range]);
        for source in SOURCES {
            assert!(read_all(&mixed, &meta, &entries, source));
        }
    }
    let mut stale = meta.clone();
    stale.segments[0].id = SegmentId(SEGMENT.0 + 1);
    let error = open(bytes, &stale, BlockSource::Mapped).unwrap_err();
    assert!(names_the_place(&error), "{error}");
}

/// A manifest that records anything else of the segment is refused.
#[test]
fn the_manifest_and_the_table_must_agree() {
    let (meta, bytes) = write(&entries(), &small(Compression::None));
    let changes: [fn(&mut super::super::SegmentMeta); 10] = [
        |segment| segment.offset += 1,
        |segment| segment.length -= 1,
        |segment| segment.length = 10,
        |segment| segment.entries += 1,
        |segment| segment.tombstones += 1,
        |segment| segment.keys = FenceKeys::new(b"k", segment.largest()),
        |segment| segment.keys = FenceKeys::new(segment.smallest(), b"k"),
        |segment| segment.sequence_max += 1,
        |segment| segment.logical_bytes += 1,
        |segment| segment.footer_checksum ^= 1,
    ];
    for change in changes {
        let mut changed = meta.clone();
        change(&mut changed.segments[0]);
        for source in SOURCES {
            let error = open(bytes.clone(), &changed, source).unwrap_err();
            assert!(names_the_place(&error), "{error}");
        }
    }
}

/// Damage to a verified block is detected in the next scrub interval, and causes no panic before.
#[test]
fn a_mapping_is_verified_again_after_the_scrub_interval() {
    #[derive(Debug)]
    struct Shifting(Arc<crate::base::sync::Mutex<usize>>, Vec<Vec<u8>>);
    impl crate::vfs::RegionBytes for Shifting {
        fn bytes(&self) -> &[u8] {
            &self.1[*self.0.lock()]
        }
    }
    #[derive(Debug)]
    struct Mapped(Arc<MemoryFile>, Arc<crate::vfs::Region>);
    impl crate::vfs::File for Mapped {
        fn read_at(&self, buffer: &mut [u8], offset: u64) -> std::io::Result<usize> {
            self.0.read_at(buffer, offset)
        }
        fn write_at(&self, _: &[u8], _: u64) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::Unsupported.into())
        }
        fn length(&self) -> std::io::Result<u64> {
            self.0.length()
        }
        fn reserve(&self, _: u64, _: u64) -> std::io::Result<()> {
            Ok(())
        }
        fn sync_data(&self) -> std::io::Result<()> {
            Ok(())
        }
        fn advise(&self, _: std::ops::Range<u64>, _: crate::vfs::Advice) {}
        fn map(&self, _: u64) -> std::io::Result<Arc<crate::vfs::Region>> {
            Ok(Arc::clone(&self.1))
        }
    }

    let entries = entries();
    let (meta, bytes) = write(&entries, &small(Compression::None));
    // Each image after the first has one inverted byte of data.
    let mut images = vec![bytes.clone()];
    for at in 0..700 {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0xff;
        images.push(damaged);
    }
    let count = images.len();
    let shown = Arc::new(crate::base::sync::Mutex::new(0));
    let region = crate::vfs::Region::new(Shifting(Arc::clone(&shown), images));
    let file = Arc::new(Mapped(MemoryFile::holding(bytes), Arc::new(region)));
    let context = context(BlockSource::Mapped);
    let clock = Arc::clone(&context.clock);
    let table = open_file(file, &meta, context).unwrap();
    let read = || -> Result<Vec<Owned>> {
        for entry in &entries {
            get(&table, &entry.key, entry.trailer.sequence())?;
        }
        let mut cursor = table.cursor(0);
        cursor.seek_to_last()?;
        while cursor.is_valid() {
            cursor.prev()?;
        }
        scan(&mut table.cursor(0))
    };
    for image in 1..count {
        *shown.lock() = 0;
        clock.advance();
        assert!(read().unwrap() == entries);
        *shown.lock() = image;
        // The block was verified before: any outcome except a panic.
        drop(read());
        clock.advance();
        assert!(names_the_place(&read().unwrap_err()));
    }
}

#[test]
fn a_failed_read_is_not_damage_and_invalidates_the_cursor() {
    let entries = entries();
    let (meta, bytes) = write(&entries, &small(Compression::None));
    let file = MemoryFile::holding(bytes);
    let context = context(BlockSource::Buffered);
    let table = open_file(
        Arc::clone(&file) as Arc<dyn crate::vfs::File>,
        &meta,
        context,
    )
    .unwrap();
    *file.fails_from.lock() = Some(block(&table, 1).offset);
    let mut cursor = table.cursor(0);
    let error = scan(&mut cursor).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    *file.fails_from.lock() = None;
    assert!(!cursor.is_valid());
    assert_eq!(cursor.next().unwrap_err().kind(), ErrorKind::Io);
    for step in [Cursor::prev, Cursor::seek_to_first, Cursor::seek_to_last] {
        assert_eq!(step(&mut cursor).unwrap_err().kind(), ErrorKind::Io);
        assert!(!cursor.is_valid());
    }
    assert_eq!(cursor.seek(b"key", 1).unwrap_err().kind(), ErrorKind::Io);
    // A new cursor works.
    assert!(scan(&mut table.cursor(0)).unwrap() == entries);
}
