//! Values in jobs: a flush separates medium values, a compaction writes them in place or keeps them.

#![cfg(not(any(loom, shuttle)))]

use std::path::Path;
use std::sync::Arc;

use super::job::{CancelCheck, IoPriority, JobContext};
use super::output::{Output, OutputFiles};
use super::values::{TransientRewrite, TransientValues, Values};
use crate::base::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::base::sync::{Mutex, Shared};
use crate::base::{
    Cursor, Error, ErrorKind, FileNumber, KeyspaceId, Kind, MemoryTracker, Result, SegmentId,
    Trailer,
};
use crate::cache::BlockCache;
use crate::codec::Compression;
use crate::manifest::names::FileName;
use crate::manifest::{Edit, ManifestState, Record, ValueFiles, Version};
use crate::options::{BlockSource, KeyspaceOptions};
use crate::table::{FileMeta, Table, TableContext, TableFiles, TableFilters, TableOptions};
use crate::value::{ValueFileMeta, ValueReadBuffers};
use crate::vfs::memory::MemoryVfs;
use crate::vfs::{OpenMode, Vfs};

/// A context on a file system in memory, whose operations fail after a number of successes.
#[derive(Debug, Default)]
struct Context {
    vfs: Arc<MemoryVfs>,
    ids: AtomicU64,
    /// The operations that still succeed.
    successes: AtomicUsize,
    tracker: Arc<MemoryTracker>,
    /// The segments that are known as written.
    written: Mutex<Vec<SegmentId>>,
}

impl Context {
    fn new(successes: usize) -> Self {
        Self {
            successes: AtomicUsize::new(successes),
            ..Self::default()
        }
    }

    fn spend(&self) -> Result<()> {
        let one_less = |successes: usize| successes.checked_sub(1);
        let (order, left) = (Ordering::Relaxed, &self.successes);
        match left.fetch_update(order, order, one_less) {
            Ok(_) => Ok(()),
            Err(_) => Err(Error::new(ErrorKind::Io, "planted")),
        }
    }

    /// The table files and value files on disk.
    fn files(&self) -> Vec<FileName> {
        let numbers = 1..=self.ids.load(Ordering::Relaxed);
        let names = numbers
            .map(FileNumber)
            .flat_map(|number| [FileName::Table(number), FileName::Values(number)]);
        let exists = |name: &FileName| {
            let path = Path::new("").join(name.to_string());
            self.vfs.open(&path, OpenMode::Read).is_ok()
        };
        names.filter(exists).collect()
    }
}

impl JobContext for Context {
    fn vfs(&self) -> &dyn Vfs {
        &*self.vfs
    }

    fn directory(&self) -> &Path {
        Path::new("")
    }

    fn allocate_id(&self) -> Result<u64> {
        self.spend()?;
        Ok(self.ids.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn sync_directory(&self) -> Result<()> {
        self.spend()
    }

    fn request_io(&self, _: IoPriority, _: u64, cancel: CancelCheck<'_>) -> Result<()> {
        self.spend()?;
        cancel()
    }

    fn leave_space(&self, _: IoPriority) -> Result<()> {
        Ok(())
    }

    fn note_written(&self, segment: SegmentId) {
        self.written.lock().push(segment);
    }

    fn memory(&self) -> &Arc<MemoryTracker> {
        &self.tracker
    }
}

type Entry = (Vec<u8>, Trailer, Vec<u8>);

/// Small and medium values, tombstones, and several versions of keys, in the order of a memtable. Commits write large
/// values.
fn entries() -> Vec<Entry> {
    let lengths = [0, 20, 64, 111, 113, 119, 300, 1000, 1019, 115, 116];
    let mut entries = Vec::new();
    for number in 0..220_usize {
        let key = format!("k{number:03}").into_bytes();
        let value = |shift: usize| -> Vec<u8> {
            let length = lengths[(number + shift) % lengths.len()];
            let bytes = (0..length).map(|at| (at * at + 31 * number + shift).to_le_bytes()[0]);
            bytes.collect()
        };
        if number % 7 == 0 {
            entries.push((key.clone(), Trailer::new(900, Kind::Tombstone), Vec::new()));
        }
        entries.push((key.clone(), Trailer::new(500, Kind::Value), value(0)));
        if number % 3 == 0 {
            entries.push((key, Trailer::new(400, Kind::Value), value(6)));
        }
    }
    entries
}

fn options() -> Shared<KeyspaceOptions> {
    let options = KeyspaceOptions {
        file_bytes: 40 << 10,
        medium_from: 120,
        large_from: 1024,
        ..KeyspaceOptions::default()
    };
    Shared::new(options)
}

/// Whether [`options`] make the value of a key of four bytes medium.
fn is_medium(trailer: Trailer, value: &[u8]) -> bool {
    trailer.kind() == Kind::Value && (116..1020).contains(&value.len())
}

/// Writes `entries` to one table.
fn write<'a>(
    context: &'a Context,
    entries: &[Entry],
    values: Values,
) -> Result<(OutputFiles<'a>, u64)> {
    let cancel = || Ok(());
    let options = TableOptions {
        block_bytes: 1024,
        filter_units: [0.0; 4],
        compression: Compression::None,
    };
    let mut output = Output::new(
        context,
        &cancel,
        IoPriority::Flush,
        (KeyspaceId(1), options),
        values,
        None,
    );
    for (key, trailer, value) in entries {
        output.begin_key(key)?;
        output.add(key, *trailer, value)?;
    }
    let read = output.transient_log_bytes_read();
    Ok((output.finish()?, read))
}

fn flush<'a>(context: &'a Context, entries: &[Entry]) -> Result<OutputFiles<'a>> {
    write(
        context,
        entries,
        Values::of_flush(&ValueFiles::default(), options(), false),
    )
    .map(|(written, _)| written)
}

fn read(context: &Context, meta: &FileMeta) -> Vec<Entry> {
    let vfs = Arc::clone(&context.vfs) as Arc<dyn Vfs>;
    let files = TableFiles::new(vfs, "".into(), BlockSource::Buffered, 16);
    let reading = TableContext {
        files: Arc::new(files),
        cache: Arc::new(BlockCache::new(1 << 20)),
        clock: Arc::default(),
        memory: Arc::default(),
        piece_reads: Arc::default(),
        scans: Arc::default(),
    };
    let table = Arc::new(Table::open(meta, reading, TableFilters::WHOLE, None).unwrap());
    let mut cursor = table.cursor(0);
    cursor.seek_to_first().unwrap();
    let mut entries = Vec::new();
    while cursor.is_valid() {
        let value = cursor.value().to_vec();
        entries.push((cursor.key().to_vec(), cursor.trailer(), value));
        cursor.next().unwrap();
    }
    entries
}

/// The value files of a version with these files.
fn value_files(written: &OutputFiles<'_>) -> Shared<ValueFiles> {
    value_files_of(written.transient_logs.iter().copied(), &written.tables)
}

fn value_files_of(
    transient_logs: impl Iterator<Item = ValueFileMeta>,
    tables: &[FileMeta],
) -> Shared<ValueFiles> {
    let keyspace = KeyspaceId(1);
    let mut records = vec![
        Record::NextId(1 << 20),
        Record::CreateKeyspace {
            id: keyspace,
            name: "main".to_owned(),
        },
    ];
    records.extend(transient_logs.map(|file| Record::AddTransientLog { keyspace, file }));
    records.extend(tables.iter().map(|file| Record::AddFile {
        keyspace,
        level: 0,
        file: Arc::new(file.clone()),
    }));
    let mut state = ManifestState::default();
    state.apply(&Edit { records }).unwrap();
    let version = Version::from_state(&state.keyspaces[&keyspace], &Arc::default()).unwrap();
    Shared::clone(version.values())
}

fn read_buffers(context: &Context) -> ValueReadBuffers {
    let vfs: Arc<dyn Vfs> = Arc::<MemoryVfs>::clone(&context.vfs);
    ValueReadBuffers::new(vfs, "".into(), &context.tracker, u64::MAX)
}

fn total_length(files: &[ValueFileMeta]) -> u64 {
    files.iter().map(|file| file.length).sum()
}

#[test]
fn a_flush_separates_medium_values() {
    let context = Context::new(usize::MAX);
    let entries = entries();
    let written = flush(&context, &entries).unwrap();
    assert!(written.transient_logs.len() > 3);
    // I2 of values.
    for transient_log in &written.transient_logs {
        let path = Path::new("").join(FileName::Values(transient_log.number).to_string());
        let file = context.vfs.file(&path);
        assert!(file.syncs.load(Ordering::Relaxed) > 0);
        assert_eq!(file.bytes.lock().len() as u64, transient_log.length);
    }
    let files = value_files(&written);
    let mut read_buffers = read_buffers(&context);
    let stored = read(&context, &written.tables[0]);
    assert_eq!(stored.len(), entries.len());
    for ((key, trailer, value), (stored_key, stored_trailer, beside)) in entries.iter().zip(stored)
    {
        assert_eq!(
            (key, trailer.sequence()),
            (&stored_key, stored_trailer.sequence())
        );
        if is_medium(*trailer, value) {
            assert_eq!(stored_trailer.kind(), Kind::TransientPointer);
            let place = files.resolve(&beside).unwrap();
            assert_eq!(place.read(&mut read_buffers, key).unwrap(), value);
        } else {
            assert_eq!((stored_trailer, &beside), (*trailer, value));
        }
    }
    let mediums = entries.iter().filter(|entry| is_medium(entry.1, &entry.2));
    let separated: u64 = written.transient_logs.iter().map(|it| it.entries).sum();
    assert_eq!(separated, mediums.count() as u64);
    let bytes = total_length(&written.transient_logs);
    assert_eq!(written.tables[0].transient_bytes(), bytes);
    let logical = entries
        .iter()
        .map(|(key, _, value)| key.len() + value.len());
    assert_eq!(
        written.tables[0].logical_bytes(),
        logical.sum::<usize>() as u64
    );
}

fn compacted(
    context: &Context,
    files: Shared<ValueFiles>,
    transient_values: TransientValues,
) -> Values {
    Values::of_compaction(files, read_buffers(context), transient_values, options())
}

fn in_place(files: Shared<ValueFiles>, context: &Context) -> Values {
    compacted(context, files, TransientValues::InPlace)
}

#[test]
fn only_outputs_that_stay_are_noted_as_written() {
    let entry = |number: u32| {
        let key = format!("k{number:06}").into_bytes();
        (key, Trailer::new(1, Kind::Value), vec![7; 40])
    };
    let entries: Vec<Entry> = (0..10_000).map(entry).collect();
    let input = 1 << 20;
    for (resident, is_noted) in [(input, true), (0, false)] {
        let context = Context::new(usize::MAX);
        let buffers = read_buffers(&context);
        buffers.passed().add(input, resident);
        let files = Shared::new(ValueFiles::default());
        let values = Values::of_compaction(files, buffers, TransientValues::InPlace, options());
        let (written, _) = write(&context, &entries, values).unwrap();
        let segment = written.tables[0].segments[0].id;
        assert_eq!(context.written.lock().contains(&segment), is_noted);
    }
}

#[test]
fn a_compaction_in_place_writes_every_value_beside_its_key() {
    let context = Context::new(usize::MAX);
    let entries = entries();
    let flushed = flush(&context, &entries).unwrap();
    let values = in_place(value_files(&flushed), &context);
    let stored = read(&context, &flushed.tables[0]);
    let (merged, bytes_read) = write(&context, &stored, values).unwrap();
    assert!(read(&context, &merged.tables[0]) == entries);
    assert!(merged.transient_logs.is_empty());
    assert_eq!(merged.tables[0].transient_bytes(), 0);
    assert_eq!(bytes_read, flushed.tables[0].transient_bytes());

    // Any other compaction copies the pointers.
    let separate = TransientValues::Separate(TransientRewrite::default());
    let values = compacted(&context, value_files(&flushed), separate);
    let (copied, bytes_read) = write(&context, &stored, values).unwrap();
    assert!(read(&context, &copied.tables[0]) == stored);
    assert_eq!(bytes_read, 0);
    let references = |written: &OutputFiles<'_>| written.tables[0].segments[0].references.clone();
    assert_eq!(references(&copied), references(&flushed));
}

#[test]
fn a_compaction_rewrites_the_values_of_selected_files() {
    let context = Context::new(usize::MAX);
    let entries = entries();
    let flushed = flush(&context, &entries).unwrap();
    let files = value_files(&flushed);
    let stored = read(&context, &flushed.tables[0]);
    let (one, other) = (
        flushed.transient_logs[1].number,
        flushed.transient_logs[3].number,
    );
    let rewrite = TransientValues::Separate(TransientRewrite {
        files: [one, other].into(),
        transient_file_bytes: 16 << 10,
    });
    let (merged, bytes_read) =
        write(&context, &stored, compacted(&context, files, rewrite)).unwrap();
    let rewritten = flushed.transient_logs[1].length + flushed.transient_logs[3].length;
    assert_eq!(bytes_read, rewritten);
    assert_eq!(total_length(&merged.transient_logs), rewritten);
    // No entry refers to the selected files, the other references stay, and so does every value.
    let left = |written: &OutputFiles<'_>| {
        let references = written.tables[0].segments[0].references.transient();
        let is_new = |number| merged.transient_logs.iter().any(|it| it.number == number);
        references.filter(|it| !is_new(it.0)).collect::<Vec<_>>()
    };
    let mut expected = left(&flushed);
    expected.retain(|it| it.0 != one && it.0 != other);
    assert_eq!(left(&merged), expected);
    let transient_logs = flushed.transient_logs.iter().chain(&merged.transient_logs);
    let transient_logs = transient_logs.filter(|it| it.number != one && it.number != other);
    let files = value_files_of(transient_logs.copied(), &merged.tables);
    let merged = read(&context, &merged.tables[0]);
    let (whole, _) = write(&context, &merged, in_place(files, &context)).unwrap();
    assert!(read(&context, &whole.tables[0]) == entries);
}

#[test]
fn a_compaction_in_place_refuses_the_value_of_another_key_or_file() {
    let context = Context::new(usize::MAX);
    let value = vec![7; 200];
    let trailer = Trailer::new(5, Kind::Value);
    let entries = [b"a", b"b"].map(|key| (key.to_vec(), trailer, value.clone()));
    let flushed = flush(&context, &entries).unwrap();
    let mut stored = read(&context, &flushed.tables[0]);
    let exchanged = stored[1].2.clone();
    stored[0].2 = exchanged;
    let values = in_place(value_files(&flushed), &context);
    let error = write(&context, &stored, values).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    let unknown = in_place(Shared::default(), &context);
    let error = write(&context, &stored, unknown).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
}

#[test]
fn a_failed_flush_leaves_nothing_behind() {
    let entries = entries();
    let mut successes = 0;
    loop {
        let context = Context::new(successes);
        match flush(&context, &entries) {
            Ok(_) => break,
            Err(error) => assert_eq!(error.kind(), ErrorKind::Io),
        }
        assert_eq!(context.files(), []);
        successes += 1;
    }
    // An edit that leaves the manifest unchanged removes the files; one that may be durable does not.
    let context = Context::new(usize::MAX);
    for (kind, stays) in [(ErrorKind::NoSpace, false), (ErrorKind::Poisoned, true)] {
        let written = flush(&context, &entries).unwrap();
        let files = written.transient_logs.len() + 1;
        // An id for each file and the segment, requests for I/O, and the sync of the folder.
        assert!(successes > files + 2);
        assert_eq!(context.files().len(), files);
        let refuse = || Err::<(), _>(Error::new(kind, "planted"));
        drop(written.pending.commit(refuse));
        assert_eq!(context.files().len(), if stays { files } else { 0 });
    }
}

#[test]
fn a_flush_without_medium_values_writes_no_transient_log() {
    let context = Context::new(usize::MAX);
    let none = KeyspaceOptions {
        medium_from: u64::MAX,
        large_from: u64::MAX,
        ..KeyspaceOptions::default()
    };
    let entries = entries();
    let values = Values::of_flush(&ValueFiles::default(), Shared::new(none), false);
    let (written, _) = write(&context, &entries, values).unwrap();
    assert!(written.transient_logs.is_empty());
    assert!(read(&context, &written.tables[0]) == entries);
    assert_eq!(context.files(), [FileName::Table(written.tables[0].number)]);
}
