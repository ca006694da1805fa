//! Written values are read back, in bounded memory.

use std::sync::atomic::Ordering;

use proptest::prelude::*;

use super::*;
use crate::ErrorKind;
use crate::base::limits::{KEY_BYTES_MAX, VALUE_BYTES_COMPRESSED_MAX};
use crate::vfs::WRITE_BYTES;

/// Lengths around every bound, most of them short.
fn length() -> impl Strategy<Value = usize> {
    prop_oneof![
        8 => 0..2000usize,
        2 => 0..100_000usize,
        1 => WRITE_BYTES - 20..WRITE_BYTES + 20,
        1 => 2 * WRITE_BYTES..3 * WRITE_BYTES,
    ]
}

fn entry() -> impl Strategy<Value = Owned> {
    let key = proptest::collection::vec(any::<u8>(), 1..200);
    let compression = proptest::sample::select(codecs());
    (key, length(), any::<u64>(), any::<bool>(), compression).prop_map(
        |(key, length, seed, shrinks, compression)| Owned {
            key,
            value: value(length, seed, shrinks),
            compression,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn values_round_trip(entries in proptest::collection::vec(entry(), 0..40)) {
        for keys in KEYS {
            let vfs = MemoryVfs::default();
            let (meta, pointers) = write(&vfs, NUMBER, keys, &entries);
            let raw: usize = entries.iter().map(|entry| entry.value.len()).sum();
            prop_assert_eq!(meta.number, NUMBER);
            prop_assert_eq!(meta.entries, entries.len() as u64);
            prop_assert_eq!(meta.value_bytes, raw as u64);
            prop_assert_eq!(meta.length, bytes(&vfs, NUMBER).len() as u64);
            // I1 of the writer: no gaps.
            let mut end = 0;
            for pointer in &pointers {
                prop_assert_eq!(pointer.offset, end);
                end += pointer.record_bytes;
            }
            prop_assert_eq!(end, meta.length);
            for source in SOURCES {
                let file = open(&vfs, &meta, source).unwrap();
                let mut buffer = Vec::new();
                for (entry, pointer) in entries.iter().zip(&pointers) {
                    let pinned = file.read(&entry.key, pointer).unwrap();
                    prop_assert!(*pinned == *entry.value);
                    file.read_into(&entry.key, pointer, &mut buffer).unwrap();
                    prop_assert!(buffer == entry.value);
                }
            }
        }
    }
}

#[test]
fn the_longest_keys_and_compressed_values_round_trip() {
    for keys in KEYS {
        for compression in codecs() {
            let entry = Owned {
                key: vec![7; KEY_BYTES_MAX],
                value: value(VALUE_BYTES_COMPRESSED_MAX, 1, true),
                compression,
            };
            let vfs = MemoryVfs::default();
            let (meta, pointers) = write(&vfs, NUMBER, keys, std::slice::from_ref(&entry));
            for source in SOURCES {
                let file = open(&vfs, &meta, source).unwrap();
                let found = file.read(&entry.key, &pointers[0]).unwrap();
                assert!(*found == *entry.value);
            }
        }
    }
}

#[test]
fn values_are_compressed_if_that_saves_an_eighth() {
    for compression in codecs() {
        if compression == Compression::None {
            continue;
        }
        for (length, shrinks, is_compressed) in [
            (255, true, false),
            (256, true, true),
            (5000, true, true),
            (5000, false, false),
        ] {
            let vfs = MemoryVfs::default();
            let entry = Owned {
                key: b"key".to_vec(),
                value: value(length, 3, shrinks),
                compression,
            };
            let (meta, _) = write(&vfs, NUMBER, Keys::InTables, &[entry]);
            // Its header and lengths.
            let stored = meta.length - 8;
            let is_shorter = stored <= (length - length / 8) as u64;
            assert_eq!(is_shorter, is_compressed);
            assert!(is_shorter || stored == length as u64);
        }
    }
}

// I2 of the writer
#[test]
fn the_writer_holds_one_buffer_and_no_long_value() {
    let vfs = MemoryVfs::default();
    let mut writer = ValueWriter::create(&vfs, Path::new(""), NUMBER).unwrap();
    let long = value(5 * WRITE_BYTES, 1, false);
    let bound = WRITE_BYTES as u64 + 1000;
    for piece in [&long[..100], &long, &long[..WRITE_BYTES - 1], &long[..9]]
        .into_iter()
        .cycle()
        .take(40)
    {
        let before = writer.bytes();
        let pointer = writer.append(b"key", piece, Compression::None).unwrap();
        assert_eq!(pointer.offset, before);
        assert!(writer.memory_bytes() <= bound, "{}", writer.memory_bytes());
    }
    for compression in codecs() {
        writer.append(b"key", &long, compression).unwrap();
        assert!(writer.memory_bytes() <= bound, "{}", writer.memory_bytes());
    }
    let end = writer.bytes();
    assert_eq!(writer.finish().unwrap().length, end);
}

#[test]
fn an_empty_file_can_be_opened() {
    let vfs = MemoryVfs::default();
    let (meta, _) = write(&vfs, NUMBER, Keys::InTables, &[]);
    assert_eq!((meta.length, meta.entries, meta.value_bytes), (0, 0, 0));
    for source in SOURCES {
        open(&vfs, &meta, source).unwrap();
    }
}

#[test]
fn the_writer_syncs_before_it_reports() {
    let vfs = MemoryVfs::default();
    write(&vfs, NUMBER, Keys::InTables, &entries(&[10]));
    let file = vfs.file(Path::new(&file_name(NUMBER)));
    assert_eq!(file.syncs.load(Ordering::Relaxed), 1);
    let again = ValueWriter::create(&vfs, Path::new(""), NUMBER);
    assert_eq!(again.unwrap_err().kind(), ErrorKind::Io);
}

#[test]
fn a_failed_write_is_an_error_that_names_the_file() {
    for length in [100, 3 * WRITE_BYTES] {
        let vfs = MemoryVfs::default();
        let mut writer = ValueWriter::create(&vfs, Path::new(""), NUMBER).unwrap();
        let file = vfs.file(Path::new(&file_name(NUMBER)));
        *file.full_at.lock() = Some(50);
        let appended = writer.append(b"key", &value(length, 1, false), Compression::None);
        let error = appended
            .map(drop)
            .and_then(|()| writer.finish().map(drop))
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NoSpace);
        assert!(error.to_string().contains("000015.values"), "{error}");
    }
}

#[test]
fn a_copy_into_a_large_buffer_allocates_nothing() {
    let vfs = MemoryVfs::default();
    let entries = entries(&[5000, 30, 0, 70_000]);
    let plain: Vec<Owned> = entries
        .into_iter()
        .map(|entry| Owned {
            compression: Compression::None,
            ..entry
        })
        .collect();
    let (meta, pointers) = write(&vfs, NUMBER, Keys::InTables, &plain);
    let file = open(&vfs, &meta, BlockSource::Mapped).unwrap();
    let mut buffer = Vec::with_capacity(71_000);
    let place = buffer.as_ptr();
    for (entry, pointer) in plain.iter().zip(&pointers) {
        let allocated = allocation_counter::measure(|| {
            file.read_into(&entry.key, pointer, &mut buffer).unwrap();
        });
        assert_eq!(allocated.count_total, 0);
        assert!(buffer == entry.value && buffer.as_ptr() == place);
    }
}

#[test]
#[should_panic(expected = "within the limits")]
fn the_writer_refuses_an_empty_key() {
    let vfs = MemoryVfs::default();
    let mut writer = ValueWriter::create(&vfs, Path::new(""), NUMBER).unwrap();
    drop(writer.append(b"", b"value", Compression::None));
}
