//! Damage of every kind: the right value or an error that names file and offset.

use std::cell::RefCell;

use super::super::ValueReadBuffers;
use super::*;
use crate::base::{Error, MemoryTracker};
use crate::codec::checksum::{checksum, seed};
use crate::{ErrorKind, PinnedValue};

/// Whether `error` says that the file is damaged and where.
fn names_the_place(error: &Error) -> bool {
    let message = error.to_string();
    error.kind() == ErrorKind::Corruption
        && message.contains(&file_name(NUMBER))
        && message.contains("offset")
}

/// The outcome of each way to read one pointer.
fn read_in_every_way(
    vfs: &Arc<MemoryVfs>,
    meta: &ValueFileMeta,
    key: &[u8],
    pointer: &ValuePointer,
) -> Vec<Result<Vec<u8>>> {
    let mut outcomes = Vec::new();
    for source in SOURCES {
        let file = match open(vfs, meta, source) {
            Ok(file) => file,
            Err(error) => {
                outcomes.push(Err(error));
                continue;
            }
        };
        outcomes.push(file.read(key, pointer).map(|value| value.to_vec()));
        let mut buffer = b"before".to_vec();
        let outcome = file.read_into(key, pointer, &mut buffer);
        assert!(outcome.is_ok() || buffer.is_empty());
        outcomes.push(outcome.map(|_| buffer));
    }
    let mut read_buffers = read_buffers(vfs);
    let outcome = read_buffers.read(meta, key, pointer);
    outcomes.push(outcome.map(<[u8]>::to_vec));
    outcomes
}

fn read_buffers(vfs: &Arc<MemoryVfs>) -> ValueReadBuffers {
    let vfs = Arc::clone(vfs) as Arc<dyn crate::vfs::Vfs>;
    ValueReadBuffers::new(vfs, "".into(), &Arc::<MemoryTracker>::default(), u64::MAX)
}

/// A file of a few records, short and long, compressed and not.
struct Fixture {
    vfs: Arc<MemoryVfs>,
    meta: ValueFileMeta,
    entries: Vec<Owned>,
    pointers: Vec<ValuePointer>,
}

fn fixture(keys: Keys, lengths: &[usize]) -> Fixture {
    let vfs = Arc::new(MemoryVfs::default());
    let entries = entries(lengths);
    let (meta, pointers) = write(&vfs, NUMBER, keys, &entries);
    Fixture {
        vfs,
        meta,
        entries,
        pointers,
    }
}

impl Fixture {
    /// Reads every record in every way; each answer must be right or name the damage. Returns the damaged
    /// records.
    fn read_all(&self) -> Vec<usize> {
        let mut damaged = Vec::new();
        for (index, (entry, pointer)) in self.entries.iter().zip(&self.pointers).enumerate() {
            let outcomes = read_in_every_way(&self.vfs, &self.meta, &entry.key, pointer);
            let errors = outcomes.iter().filter(|outcome| outcome.is_err()).count();
            assert!(errors == 0 || errors == outcomes.len(), "{outcomes:?}");
            for outcome in outcomes {
                match outcome {
                    Ok(value) => assert!(value == entry.value),
                    Err(error) => assert!(names_the_place(&error), "{error}"),
                }
            }
            if errors > 0 {
                damaged.push(index);
            }
        }
        damaged
    }

    /// Asserts that no way to read finds a value of `key` at `pointer`.
    fn refuses(&self, key: &[u8], pointer: &ValuePointer) {
        for outcome in read_in_every_way(&self.vfs, &self.meta, key, pointer) {
            let error = outcome.unwrap_err();
            assert!(names_the_place(&error), "{error}");
        }
    }
}

#[test]
fn every_bit_flip_is_detected() {
    for keys in KEYS {
        let fixture = fixture(keys, &[0, 30, 300, 1, 280, 90]);
        assert!(fixture.read_all().is_empty());
        let mut damaged = bytes(&fixture.vfs, NUMBER);
        for bit in 0..damaged.len() * 8 {
            damaged[bit / 8] ^= 1 << (bit % 8);
            set_bytes(&fixture.vfs, NUMBER, &damaged);
            let offset = (bit / 8) as u64;
            let struck = fixture
                .pointers
                .iter()
                .position(|pointer| offset < pointer.offset + pointer.record_bytes);
            assert_eq!(fixture.read_all(), [struck.unwrap()], "bit {bit}");
            damaged[bit / 8] ^= 1 << (bit % 8);
        }
    }
}

#[test]
fn every_truncation_is_detected() {
    let fixture = fixture(Keys::InTables, &[30, 300, 90]);
    let whole = bytes(&fixture.vfs, NUMBER);
    for length in 0..whole.len() {
        set_bytes(&fixture.vfs, NUMBER, &whole[..length]);
        assert_eq!(fixture.read_all(), [0, 1, 2]);
    }
    // Bytes after the recorded end have no effect.
    set_bytes(&fixture.vfs, NUMBER, &[&whole[..], &whole[..]].concat());
    assert!(fixture.read_all().is_empty());
    let mut beyond = fixture.pointers[0];
    beyond.offset = fixture.meta.length;
    fixture.refuses(&fixture.entries[0].key, &beyond);
}

/// A file that is truncated while it is open ends before its recorded end.
#[test]
fn a_truncated_open_file_is_damage() {
    // The last does not shrink, so no buffer holds it.
    let fixture = fixture(Keys::InTables, &[30, 300, 90, 70_000]);
    let file = open(&fixture.vfs, &fixture.meta, BlockSource::Buffered).unwrap();
    let mut read_buffers = read_buffers(&fixture.vfs);
    let read = |read_buffers: &mut ValueReadBuffers, index: usize| {
        let (entry, pointer) = (&fixture.entries[index], &fixture.pointers[index]);
        let result = read_buffers.read(&fixture.meta, &entry.key, pointer);
        result.map(|value| assert!(*value == entry.value))
    };
    read(&mut read_buffers, 0).unwrap();
    set_bytes(&fixture.vfs, NUMBER, &[0; 10]);
    let last = (&fixture.entries[3].key, &fixture.pointers[3]);
    let error = file.read(last.0, last.1).unwrap_err();
    assert!(names_the_place(&error), "{error}");
    let error = read(&mut read_buffers, 3).unwrap_err();
    assert!(names_the_place(&error), "{error}");
    // The bytes in the buffer are still valid.
    read(&mut read_buffers, 0).unwrap();
    read(&mut read_buffers, 1).unwrap();
}

// I1 of records
#[test]
fn a_record_of_another_key_file_or_place_is_damage() {
    for keys in KEYS {
        // Equal lengths, so only the checksum distinguishes them.
        let fixture = fixture(keys, &[40, 40, 40]);
        let (key, pointer) = (&fixture.entries[0].key, &fixture.pointers[0]);
        for other in &fixture.entries[1..] {
            fixture.refuses(&other.key, pointer);
        }
        for absent in [&b""[..], b"key", b"key000000"] {
            fixture.refuses(absent, pointer);
        }
        let whole = bytes(&fixture.vfs, NUMBER);
        let length = usize::try_from(pointer.record_bytes).unwrap();
        let mut swapped = whole.clone();
        swapped[length..2 * length].copy_from_slice(&whole[..length]);
        set_bytes(&fixture.vfs, NUMBER, &swapped);
        fixture.refuses(key, &fixture.pointers[1]);
        fixture.refuses(&fixture.entries[1].key, &fixture.pointers[1]);
        // The same bytes in a file with another number.
        let number = FileNumber(16);
        let (_, pointers) = write(&fixture.vfs, number, keys, &fixture.entries);
        set_bytes(&fixture.vfs, NUMBER, &bytes(&fixture.vfs, number));
        assert_eq!(fixture.read_all(), [0, 1, 2]);
        // A pointer to another file than the one that is read.
        fixture.refuses(key, &pointers[0]);
    }
}

#[test]
fn a_pointer_with_other_lengths_is_refused() {
    let fixture = fixture(Keys::InRecords, &[40, 300, 400, 90]);
    let lengths = [0, 1, 6, 7, 40, 300, 400, 1 << 24, (1 << 24) + 1, u64::MAX];
    for (entry, pointer) in fixture.entries.iter().zip(&fixture.pointers) {
        for length in lengths {
            let changed = [
                ValuePointer {
                    record_bytes: length,
                    ..*pointer
                },
                ValuePointer {
                    value_bytes: length,
                    ..*pointer
                },
                ValuePointer {
                    offset: length,
                    ..*pointer
                },
            ];
            for changed in changed.iter().filter(|changed| *changed != pointer) {
                fixture.refuses(&entry.key, changed);
            }
        }
    }
}

/// A sound checksum does not prove a sound form.
#[test]
fn a_malformed_record_with_a_sound_checksum_is_refused() {
    let key = b"key";
    let sealed = |rest: &[u8]| {
        let sum = checksum(seed(NUMBER.0, 0, 0) ^ key_hash(key), rest);
        [&sum.to_le_bytes()[..], rest].concat()
    };
    let vfs = Arc::new(MemoryVfs::default());
    write(&vfs, NUMBER, Keys::InTables, &[]);
    let long = [&[1, 0, 30, 0, 0, 0, 1][..], &[0; 26]].concat();
    let unlike = [&[1, 0, 8, 5, 0, 0, 0][..], &[0x40, 1, 2, 3]].concat();
    for (rest, value_bytes, is_sound) in [
        (&[0, 0, 3, 1, 2, 3][..], 3, true),
        (&[0, 3, b'k', b'e', b'y', 1, 9], 1, true),
        // Another key, one that is cut off, one that is too long.
        (&[0, 3, b'k', b'e', b'x', 1, 9], 1, false),
        (&[0, 9, b'k', b'e', b'y', 1, 9], 1, false),
        (&[0, 0xff, 0xff, 0xff, 0xff, 0x7f, 1], 1, false),
        // A value that is cut off, followed by bytes, too long, or of a length in a long form.
        (&[0, 0, 3, 1, 2], 3, false),
        (&[0, 0, 3, 1, 2, 3, 4], 3, false),
        (&[0, 0, 0xff, 0xff, 0xff, 0x7f, 1], 1, false),
        (&[0, 0, 0x83, 0, 1, 2, 3], 3, false),
        (&[0, 0, 3, 1, 2, 3], 2, false),
        // A compressed value without a length, with an impossible one, and of garbage.
        (&[1, 0, 3, 1, 2, 3], 3, false),
        (&long, 1 << 24, false),
        (&unlike, 5, false),
    ] {
        let record = sealed(rest);
        set_bytes(&vfs, NUMBER, &record);
        let length = record.len() as u64;
        let meta = ValueFileMeta {
            number: NUMBER,
            length,
            entries: 1,
            value_bytes,
            end: length,
        };
        let pointer = ValuePointer {
            file: NUMBER,
            offset: 0,
            record_bytes: length,
            value_bytes,
        };
        for outcome in read_in_every_way(&vfs, &meta, key, &pointer) {
            match outcome {
                Ok(value) => assert!(is_sound && value.len() as u64 == value_bytes, "{rest:?}"),
                Err(error) => assert!(!is_sound && names_the_place(&error), "{rest:?}: {error}"),
            }
        }
    }
    // An unknown codec.
    let record = sealed(&[3, 0, 1, 9]);
    set_bytes(&vfs, NUMBER, &record);
    let pointer = ValuePointer {
        file: NUMBER,
        offset: 0,
        record_bytes: record.len() as u64,
        value_bytes: 1,
    };
    let meta = ValueFileMeta {
        number: NUMBER,
        length: record.len() as u64,
        entries: 1,
        value_bytes: 1,
        end: record.len() as u64,
    };
    for outcome in read_in_every_way(&vfs, &meta, key, &pointer) {
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Unsupported);
    }
}

#[test]
fn a_wrong_pointer_allocates_at_most_the_length_of_the_file() {
    let fixture = fixture(Keys::InTables, &[40, 300, 90]);
    let key = &fixture.entries[0].key;
    let pointer = ValuePointer {
        value_bytes: 1 << 24,
        record_bytes: fixture.meta.length,
        ..fixture.pointers[0]
    };
    for source in SOURCES {
        let file = open(&fixture.vfs, &fixture.meta, source).unwrap();
        let value: RefCell<Option<Result<PinnedValue>>> = RefCell::default();
        let allocated = allocation_counter::measure(|| {
            *value.borrow_mut() = Some(file.read(key, &pointer));
        });
        assert!(value.take().unwrap().is_err());
        assert!(allocated.bytes_max < 4096, "{allocated:?}");
    }
}

/// Nothing records how long a growing file is, and a pointer into it may come from a log that somebody has made.
#[test]
fn a_pointer_into_a_growing_file_allocates_at_most_the_length_of_the_file() {
    let fixture = fixture(Keys::InTables, &[40]);
    let key = &fixture.entries[0].key;
    let pointer = ValuePointer {
        value_bytes: 1 << 30,
        record_bytes: 1 << 30,
        ..fixture.pointers[0]
    };
    let meta = ValueFileMeta::growing(fixture.meta.number);
    let file = open(&fixture.vfs, &meta, BlockSource::Buffered).unwrap();
    let mut read_buffers = read_buffers(&fixture.vfs);
    let allocated = allocation_counter::measure(|| {
        let error = file.read(key, &pointer).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption);
        let error = read_buffers.read(&meta, key, &pointer).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption);
    });
    assert!(allocated.bytes_max < 64 << 10, "{allocated:?}");
}

#[test]
fn a_missing_file_is_damage_and_a_failed_read_is_not() {
    let fixture = fixture(Keys::InTables, &[40]);
    let (key, pointer) = (&fixture.entries[0].key, &fixture.pointers[0]);
    let handle = fixture.vfs.file(Path::new(&file_name(NUMBER)));
    *handle.fails_from.lock() = Some(0);
    let file = open(&fixture.vfs, &fixture.meta, BlockSource::Buffered).unwrap();
    assert_eq!(file.read(key, pointer).unwrap_err().kind(), ErrorKind::Io);
    let mut read_buffers = read_buffers(&fixture.vfs);
    let error = read_buffers.read(&fixture.meta, key, pointer).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    // The next read succeeds.
    *handle.fails_from.lock() = None;
    assert!(file.read(key, pointer).is_ok());
    assert!(read_buffers.read(&fixture.meta, key, pointer).is_ok());
    crate::vfs::Vfs::remove(&*fixture.vfs, Path::new(&file_name(NUMBER))).unwrap();
    fixture.refuses(key, pointer);
}
