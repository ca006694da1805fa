//! Read buffers return the values of point reads, and read each byte once.

use std::sync::atomic::Ordering;

use proptest::prelude::*;

use super::super::ValueReadBuffers;
use super::super::read_buffers::{
    FILES_OPEN_MAX, READ_BUFFER_BYTES, READ_BUFFERS_BYTES, READ_BUFFERS_MAX,
    SMALL_READ_BUFFER_BYTES,
};
use super::*;
use crate::base::MemoryTracker;

/// A few files with pointers into them.
struct Fixture {
    vfs: Arc<MemoryVfs>,
    files: Vec<ValueFileMeta>,
    /// The file, the entry and its place.
    places: Vec<(usize, Owned, ValuePointer)>,
}

fn fixture(files: &[Vec<usize>]) -> Fixture {
    let vfs = Arc::new(MemoryVfs::default());
    let mut places = Vec::new();
    let mut metas = Vec::new();
    for (index, lengths) in files.iter().enumerate() {
        let entries = entries(lengths);
        let number = FileNumber(index as u64 + 1);
        let (meta, pointers) = write(&vfs, number, KEYS[index % 2], &entries);
        metas.push(meta);
        let found = entries.into_iter().zip(pointers);
        places.extend(found.map(|(entry, pointer)| (index, entry, pointer)));
    }
    Fixture {
        vfs,
        files: metas,
        places,
    }
}

impl Fixture {
    fn read_buffers(&self, tracker: &Arc<MemoryTracker>) -> ValueReadBuffers {
        self.read_buffers_within(tracker, u64::MAX)
    }

    fn read_buffers_within(
        &self,
        tracker: &Arc<MemoryTracker>,
        tracked_max: u64,
    ) -> ValueReadBuffers {
        let vfs = Arc::clone(&self.vfs) as Arc<dyn crate::vfs::Vfs>;
        ValueReadBuffers::new(vfs, "".into(), tracker, tracked_max)
    }

    fn read(&self, read_buffers: &mut ValueReadBuffers, place: usize) {
        let (file, entry, pointer) = &self.places[place];
        let meta = &self.files[*file];
        let value = read_buffers.read(meta, &entry.key, pointer).unwrap();
        assert!(*value == *entry.value);
    }

    /// How many bytes of each file were read, and its length.
    fn read_bytes(&self) -> Vec<(usize, u64)> {
        let files = self.files.iter().map(|meta| {
            let file = self.vfs.file(Path::new(&file_name(meta.number)));
            (file.read_bytes.load(Ordering::Relaxed), meta.length)
        });
        files.collect()
    }
}

fn length() -> impl Strategy<Value = usize> {
    prop_oneof![
        8 => 0..3000usize,
        2 => 0..READ_BUFFER_BYTES,
        1 => READ_BUFFER_BYTES - 20..READ_BUFFER_BYTES + 20,
        1 => READ_BUFFER_BYTES..5 * READ_BUFFER_BYTES,
    ]
}

fn files() -> impl Strategy<Value = Vec<Vec<usize>>> {
    proptest::collection::vec(proptest::collection::vec(length(), 1..60), 1..4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    // I1: some of the places in ascending order, alternating between files.
    #[test]
    fn ascending_pointers_read_no_byte_twice(
        files in files(),
        tracked_max in prop_oneof![Just(u64::MAX), 0..3 * READ_BUFFER_BYTES as u64],
        turns in proptest::collection::vec((0..4usize, 0..3usize), 0..300),
    ) {
        let fixture = fixture(&files);
        let tracker = Arc::default();
        let mut read_buffers = fixture.read_buffers_within(&tracker, tracked_max);
        let mut next: Vec<usize> = vec![0; files.len()];
        for (turn, skipped) in turns {
            let file = turn % files.len();
            let within = next[file] + skipped;
            next[file] = within + 1;
            if within < files[file].len() {
                let before: usize = files[..file].iter().map(Vec::len).sum();
                fixture.read(&mut read_buffers, before + within);
            }
        }
        for (read, length) in fixture.read_bytes() {
            prop_assert!(read as u64 <= length, "{} of {}", read, length);
        }
    }

    #[test]
    fn pointers_in_any_order_are_followed(
        files in files(),
        order in proptest::collection::vec(any::<proptest::sample::Index>(), 0..200),
    ) {
        let fixture = fixture(&files);
        let mut read_buffers = fixture.read_buffers(&Arc::default());
        for index in order {
            fixture.read(&mut read_buffers, index.index(fixture.places.len()));
        }
    }
}

#[test]
fn a_file_is_read_whole_in_few_reads() {
    let fixture = fixture(&[vec![700; 3000]]);
    let mut read_buffers = fixture.read_buffers(&Arc::default());
    (0..3000).for_each(|place| fixture.read(&mut read_buffers, place));
    let file = fixture.vfs.file(Path::new("000001.values"));
    let (read, length) = fixture.read_bytes()[0];
    assert_eq!(read as u64, length);
    let reads = file.reads.load(Ordering::Relaxed) as u64;
    assert!(
        reads <= length / (READ_BUFFER_BYTES as u64 - 1000) + 1,
        "{reads}"
    );
}

/// The number of buffers unless the number of files is given.
const FEW: usize = READ_BUFFERS_BYTES / READ_BUFFER_BYTES;

// I2
#[test]
fn read_buffers_are_bounded_and_tracked() {
    let count = FEW + 20;
    let fixture = fixture(&vec![vec![40_000, 40_000]; count]);
    let tracker: Arc<MemoryTracker> = Arc::default();
    let mut read_buffers = fixture.read_buffers(&tracker);
    let read_buffer = READ_BUFFER_BYTES as u64;
    let mut peak = 0;
    for round in 0..2 {
        for file in 0..count {
            fixture.read(&mut read_buffers, 2 * file + round);
            peak = peak.max(tracker.bytes());
        }
    }
    let all = READ_BUFFERS_BYTES as u64;
    assert!(peak > all / 2 && peak <= all + read_buffer, "{peak}");
    // A buffer that is used all the time is not evicted.
    let opened = || fixture.vfs.opened.load(Ordering::Relaxed);
    assert_eq!(opened(), 2 * count);
    let last = count - 1;
    for file in 0..last {
        fixture.read(&mut read_buffers, 2 * file);
        let before = opened();
        fixture.read(&mut read_buffers, 2 * last + 1);
        assert_eq!(opened(), before);
    }
    drop(read_buffers);
    assert_eq!(tracker.bytes(), 0);
}

// I1, I2 and I4: each of many files has a buffer and is read once.
#[test]
fn many_files_have_smaller_buffers() {
    for count in [FEW, FEW + 1, 3 * FEW, 1500] {
        let fixture = fixture(&vec![vec![700; 30]; count]);
        let tracker: Arc<MemoryTracker> = Arc::default();
        let mut read_buffers = fixture.read_buffers(&tracker).over(count);
        let read_buffer = (READ_BUFFERS_BYTES / count).max(SMALL_READ_BUFFER_BYTES);
        // Space for the growth of the last buffer.
        let most = (count * read_buffer + READ_BUFFER_BYTES) as u64;
        for entry in 0..30 {
            for file in 0..count {
                fixture.read(&mut read_buffers, 30 * file + entry);
                assert!(tracker.bytes() <= most, "{} of {most}", tracker.bytes());
                assert!(read_buffers.open_files() <= FILES_OPEN_MAX);
            }
        }
        for (read, length) in fixture.read_bytes() {
            assert_eq!(read as u64, length);
        }
    }
    let fixture = fixture(&vec![vec![100]; READ_BUFFERS_MAX + 1]);
    let mut read_buffers = fixture.read_buffers(&Arc::default()).over(usize::MAX);
    for file in (0..=READ_BUFFERS_MAX).chain(1..=READ_BUFFERS_MAX) {
        fixture.read(&mut read_buffers, file);
    }
    let opened = fixture.vfs.opened.load(Ordering::Relaxed);
    assert_eq!(opened, READ_BUFFERS_MAX + 1, "each file was opened once");
}

// I5: slices shorter and longer than a buffer, and one with gaps.
#[test]
fn only_the_range_of_a_slice_is_read() {
    let fixture = fixture(&[vec![700; 300], vec![700; 300]]);
    let record = fixture.places[0].2.record_bytes;
    for (wanted, step) in [(1, 1), (20, 1), (100, 1), (180, 1), (90, 2)] {
        let slice = wanted * record;
        let number = |file: usize| fixture.files[file].number;
        let slices = [(number(0), slice), (number(1), slice)].into();
        let mut read_buffers = fixture.read_buffers(&Arc::default()).over_slices(slices);
        for entry in (0..wanted).map(|entry| usize::try_from(entry * step).unwrap()) {
            fixture.read(&mut read_buffers, 100 + entry);
            fixture.read(&mut read_buffers, 400 + entry);
        }
        let read = read_buffers.bytes_read();
        let beyond = if step > 1 { SMALL_READ_BUFFER_BYTES } else { 0 };
        let most = 2 * ((slice * step).max(SMALL_READ_BUFFER_BYTES as u64) + beyond as u64);
        assert!(read <= most, "{read} of {most} for {wanted}");
    }
}

// I2
#[test]
fn read_buffers_are_small_if_memory_is_used_up() {
    let fixture = fixture(&vec![vec![700; 100]; FEW]);
    let tracker: Arc<MemoryTracker> = Arc::default();
    let most = 3 * READ_BUFFER_BYTES as u64;
    let mut read_buffers = fixture.read_buffers_within(&tracker, most);
    let small = (FEW * SMALL_READ_BUFFER_BYTES) as u64;
    for entry in 0..100 {
        for file in 0..FEW {
            fixture.read(&mut read_buffers, 100 * file + entry);
            assert!(tracker.bytes() <= most + small, "{}", tracker.bytes());
        }
    }
    assert!(tracker.bytes() > most);
    for (read, length) in fixture.read_bytes() {
        assert_eq!(read as u64, length);
    }
}

// I2
#[test]
fn the_buffer_of_an_unsorted_file_is_small() {
    const COUNT: usize = 3000;
    let fixture = fixture(&[vec![700; COUNT]]);
    let tracker: Arc<MemoryTracker> = Arc::default();
    let mut read_buffers = fixture.read_buffers(&tracker);
    for place in 0..COUNT {
        // Far from the previous one, in either direction.
        fixture.read(&mut read_buffers, place * 1009 % COUNT);
    }
    let (read, _) = fixture.read_bytes()[0];
    assert!(
        read <= 3 * READ_BUFFER_BYTES + COUNT * SMALL_READ_BUFFER_BYTES,
        "{read}"
    );
}

#[test]
fn a_failed_read_keeps_the_bytes_of_the_buffer() {
    let fixture = fixture(&[vec![30_000; 9]]);
    let mut read_buffers = fixture.read_buffers(&Arc::default());
    let file = fixture.vfs.file(Path::new("000001.values"));
    fixture.read(&mut read_buffers, 0);
    *file.fails_from.lock() = Some(READ_BUFFER_BYTES as u64);
    let (_, entry, pointer) = fixture
        .places
        .iter()
        .find(|(_, _, pointer)| pointer.offset + pointer.record_bytes > READ_BUFFER_BYTES as u64)
        .unwrap();
    let error = read_buffers.read(&fixture.files[0], &entry.key, pointer);
    assert_eq!(error.unwrap_err().kind(), crate::ErrorKind::Io);
    *file.fails_from.lock() = None;
    (0..9).for_each(|place| fixture.read(&mut read_buffers, place));
}
