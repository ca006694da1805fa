//! The writer of tables, and the cursors that read them from front to back.

use super::*;
use crate::ErrorKind;
use crate::base::sync::atomic::Ordering;
use crate::table::TableMemory;

/// Ten thousand entries in one segment.
fn many() -> Vec<Owned> {
    let key = |number: u32| format!("{number:08}").into_bytes();
    (0..10_000)
        .map(|number| Owned::new(&key(number), 1, Some(&[3; 90])))
        .collect()
}

#[test]
fn the_writer_syncs_before_it_reports() {
    let vfs = MemoryVfs::default();
    write_to(&vfs, NUMBER, &many(), &plain());
    let file = vfs.file(Path::new(&file_name(NUMBER)));
    assert_eq!(file.syncs.load(Ordering::Relaxed), 1);
    let error = TableWriter::create(&vfs, Path::new(""), NUMBER, SEGMENT, &plain()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
}

#[test]
fn the_writer_estimates_the_length_of_the_file() {
    let vfs = MemoryVfs::default();
    let options = plain();
    let mut writer = TableWriter::create(&vfs, Path::new(""), NUMBER, SEGMENT, &options).unwrap();
    for number in 0..20_000u32 {
        let key = format!("{number:08}");
        let trailer = Trailer::new(5, Kind::Value);
        writer.add(key.as_bytes(), trailer, &[3; 90]).unwrap();
    }
    let estimate = writer.bytes_written_so_far();
    let actual = writer.finish().unwrap().file.bytes();
    assert!(estimate <= actual && estimate > actual * 95 / 100);
}

#[test]
#[should_panic(expected = "must ascend")]
fn the_writer_refuses_entries_out_of_order() {
    let vfs = MemoryVfs::default();
    let disorder = [Owned::new(b"b", 1, None), Owned::new(b"b", 2, None)];
    write_to(&vfs, NUMBER, &disorder, &plain());
}

#[test]
fn read_buffers_are_small_if_jobs_hold_their_memory() {
    let entries = many();
    let (meta, bytes) = write(&entries, &plain());
    let context = TableContext {
        memory: Arc::new(TableMemory {
            jobs_max: 600 << 10,
            ..TableMemory::default()
        }),
        ..context(BlockSource::Buffered)
    };
    let jobs = Arc::clone(&context.memory.jobs);
    let table = open_file(MemoryFile::holding(bytes), &meta, context).unwrap();
    let mut cursors: Vec<_> = (0..40).map(|_| table.sequential_cursor(0)).collect();
    for cursor in &mut cursors {
        cursor.seek_to_first().unwrap();
    }
    let (large, small) = (2 * (260 << 10), 38 * (40 << 10));
    assert!(jobs.bytes() <= large + small, "{}", jobs.bytes());
    for cursor in &mut cursors {
        assert!(scan(cursor).unwrap() == entries);
    }
    drop(cursors);
    assert_eq!(jobs.bytes(), 0);
}

#[test]
fn a_sequential_cursor_reads_ahead_and_bypasses_the_cache() {
    let entries = many();
    let (meta, bytes) = write(&entries, &plain());
    let file = MemoryFile::holding(bytes);
    let context = context(BlockSource::Buffered);
    let shared = Arc::clone(&file) as Arc<dyn crate::vfs::File>;
    let table = open_file(shared, &meta, context.clone()).unwrap();
    let before = file.reads.load(Ordering::Relaxed);
    assert!(scan(&mut table.sequential_cursor(0)).unwrap() == entries);
    let buffers = meta.bytes() / (256 << 10) + 1;
    // The file gives at most 100,000 bytes a read: three for a buffer. The index is read
    // partition by partition.
    let reads = file.reads.load(Ordering::Relaxed) - before;
    let partitions = table.segments[0].index.partitions();
    assert!(
        reads as u64 <= 3 * buffers + partitions as u64,
        "{reads} reads"
    );
    assert_eq!(context.cache.bytes(), 0);
}

#[test]
fn entries_with_and_without_numbers_make_no_table() {
    for numbers in [[0, 5], [5, 0]] {
        let vfs = MemoryVfs::default();
        let mut writer =
            TableWriter::create(&vfs, Path::new(""), NUMBER, SEGMENT, &plain()).unwrap();
        for (key, number) in [b"a", b"b"].into_iter().zip(numbers) {
            let trailer = Trailer::new(number, Kind::Value);
            writer.add(key, trailer, b"value").unwrap();
        }
        assert_eq!(writer.finish().unwrap_err().kind(), ErrorKind::Corruption);
    }
}
