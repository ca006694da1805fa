//! What jobs do with values: a flush parts mediums from their keys, a merge brings them back.

#![cfg(not(any(loom, shuttle)))]

use std::path::Path;
use std::sync::Arc;

use super::output::{IoClass, JobContext, Output, Wanted, Written};
use super::values::{InTransientLogs, MovingOn, Values};
use crate::base::sync::Shared;
use crate::base::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::base::{
    Cursor, Error, ErrorKind, FileNumber, KeyspaceId, Kind, MemoryTracker, Result, Trailer,
};
use crate::cache::BlockCache;
use crate::codec::Compression;
use crate::filter::LoadedUnits;
use crate::manifest::names::FileName;
use crate::manifest::{Edit, ManifestState, Record, ValueFiles, Version};
use crate::options::{BlockSource, KeyspaceOptions};
use crate::table::{FileMeta, ScrubClock, Table, TableContext, TableOptions, file_name};
use crate::value::{ValueFileMeta, ValueReadBuffers};
use crate::vfs::memory::MemoryVfs;
use crate::vfs::{OpenMode, Vfs};

/// An engine that has files and numbers, and may run out of luck.
#[derive(Debug, Default)]
struct Context {
    vfs: Arc<MemoryVfs>,
    ids: AtomicU64,
    /// So many more operations succeed.
    luck: AtomicUsize,
    tracker: Arc<MemoryTracker>,
}

impl Context {
    fn new(luck: usize) -> Self {
        Self {
            luck: AtomicUsize::new(luck),
            ..Self::default()
        }
    }

    fn try_luck(&self) -> Result<()> {
        let used = self
            .luck
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |luck| {
                luck.checked_sub(1)
            });
        used.map(drop)
            .map_err(|_| Error::new(ErrorKind::Io, "out of luck"))
    }

    /// Which of the files that could be there are.
    fn files(&self) -> Vec<FileName> {
        let numbers = 1..=self.ids.load(Ordering::Relaxed);
        let names = numbers.map(FileNumber).flat_map(|number| {
            let names = [FileName::Table(number), FileName::Values(number)];
            names.into_iter()
        });
        let is_there = |name: &FileName| {
            let path = Path::new("").join(name.to_string());
            self.vfs.open(&path, OpenMode::Read).is_ok()
        };
        names.filter(is_there).collect()
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
        self.try_luck()?;
        Ok(self.ids.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn sync_directory(&self) -> Result<()> {
        self.try_luck()
    }

    fn rate_limiter(&self, _: IoClass, _: u64, wanted: Wanted<'_>) -> Result<()> {
        self.try_luck()?;
        wanted()
    }

    fn memory(&self) -> &Arc<MemoryTracker> {
        &self.tracker
    }
}

type Entry = (Vec<u8>, Trailer, Vec<u8>);

/// Every class, tombstones, several versions of a key; as in a memtable.
fn entries() -> Vec<Entry> {
    let lengths = [0, 20, 64, 111, 113, 119, 300, 1000, 1019, 1020, 5000];
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

/// Whether a value under a key of four bytes is medium by these options.
fn is_medium(trailer: Trailer, value: &[u8]) -> bool {
    trailer.kind() == Kind::Value && (116..1020).contains(&value.len())
}

/// Writes `entries` to one table.
fn write<'a>(
    context: &'a Context,
    entries: &[Entry],
    values: Values,
) -> Result<(Written<'a>, u64)> {
    let wanted = || Ok(());
    let options = TableOptions {
        block_bytes: 1024,
        filter_units: [0.0; 4],
        compression: Compression::None,
    };
    let mut output = Output::new(context, &wanted, IoClass::Flush, options, values, None);
    for (key, trailer, value) in entries {
        output.begin_key(key)?;
        output.add(key, *trailer, value)?;
    }
    let read = output.transient_log_bytes_read();
    Ok((output.finish()?, read))
}

fn flush<'a>(context: &'a Context, entries: &[Entry]) -> Result<Written<'a>> {
    write(context, entries, Values::separated(options(), false)).map(|(written, _)| written)
}

fn read(context: &Context, meta: &FileMeta) -> Vec<Entry> {
    let name = file_name(meta.number);
    let file = context.vfs.open(Path::new(&name), OpenMode::Read).unwrap();
    let reading = TableContext {
        source: BlockSource::Buffered,
        cache: Arc::new(BlockCache::new(1 << 20)),
        scrub: Arc::new(ScrubClock::default()),
        memory: Arc::default(),
    };
    let table = Arc::new(Table::open(file, name, meta, reading, LoadedUnits::ALL, None).unwrap());
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

/// The value files as the manifest would have them.
fn value_files(written: &Written<'_>) -> Shared<ValueFiles> {
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
        file: file.clone(),
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

#[test]
fn a_flush_parts_mediums_from_their_keys() {
    let context = Context::new(usize::MAX);
    let entries = entries();
    let written = flush(&context, &entries).unwrap();
    assert!(written.transient_logs.len() > 3);
    // I2 of values: synced before it is told.
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
    let referred: u64 = written
        .transient_logs
        .iter()
        .map(|transient_log| transient_log.entries)
        .sum();
    assert_eq!(referred, mediums.count() as u64);
    let bytes: u64 = written
        .transient_logs
        .iter()
        .map(|transient_log| transient_log.length)
        .sum();
    assert_eq!(written.tables[0].transient_bytes(), bytes);
    let logical = entries
        .iter()
        .map(|(key, _, value)| key.len() + value.len());
    assert_eq!(
        written.tables[0].logical_bytes(),
        logical.sum::<usize>() as u64
    );
}

/// Puts values in place.
fn back(files: Shared<ValueFiles>, context: &Context) -> Values {
    Values::merged(
        files,
        read_buffers(context),
        InTransientLogs::ComeBack,
        options(),
    )
}

#[test]
fn a_merge_in_place_brings_every_value_back() {
    let context = Context::new(usize::MAX);
    let entries = entries();
    let flushed = flush(&context, &entries).unwrap();
    let values = back(value_files(&flushed), &context);
    let stored = read(&context, &flushed.tables[0]);
    let (merged, bytes_read) = write(&context, &stored, values).unwrap();
    assert!(read(&context, &merged.tables[0]) == entries);
    assert!(merged.transient_logs.is_empty());
    assert_eq!(merged.tables[0].transient_bytes(), 0);
    assert_eq!(bytes_read, flushed.tables[0].transient_bytes());

    // Any other merge hands on where they stand.
    let values = Values::merged(
        value_files(&flushed),
        read_buffers(&context),
        InTransientLogs::Stay(MovingOn::default()),
        options(),
    );
    let (copied, bytes_read) = write(&context, &stored, values).unwrap();
    assert!(read(&context, &copied.tables[0]) == stored);
    assert_eq!(bytes_read, 0);
    let references = |written: &Written<'_>| written.tables[0].segments[0].references.clone();
    assert_eq!(references(&copied), references(&flushed));
}

#[test]
fn a_merge_gathers_what_is_left_in_sparse_files() {
    let context = Context::new(usize::MAX);
    let entries = entries();
    let flushed = flush(&context, &entries).unwrap();
    let files = value_files(&flushed);
    let stored = read(&context, &flushed.tables[0]);
    let (one, other) = (
        flushed.transient_logs[1].number,
        flushed.transient_logs[3].number,
    );
    let sparse = [one, other].into();
    let moving_on = InTransientLogs::Stay(MovingOn {
        files: sparse,
        transient_file_bytes: 16 << 10,
    });
    let values = Values::merged(files, read_buffers(&context), moving_on, options());
    let (merged, bytes_read) = write(&context, &stored, values).unwrap();
    let moved = flushed.transient_logs[1].length + flushed.transient_logs[3].length;
    assert_eq!(bytes_read, moved);
    assert_eq!(
        merged
            .transient_logs
            .iter()
            .map(|transient_log| transient_log.length)
            .sum::<u64>(),
        moved
    );
    // Nothing refers to them any more, to the others as before, and every value is what it was.
    let left = |written: &Written<'_>| {
        let references = written.tables[0].segments[0].references.iter();
        let transient_logs = &merged.transient_logs;
        let known = references.filter(|it| {
            transient_logs
                .iter()
                .all(|transient_log| transient_log.number != it.0)
        });
        known.collect::<Vec<_>>()
    };
    let mut expected = left(&flushed);
    expected.retain(|it| it.0 != one && it.0 != other);
    assert_eq!(left(&merged), expected);
    let transient_logs = flushed
        .transient_logs
        .iter()
        .chain(&merged.transient_logs)
        .copied();
    let transient_logs = transient_logs
        .filter(|transient_log| transient_log.number != one && transient_log.number != other);
    let files = value_files_of(transient_logs, &merged.tables);
    let merged = read(&context, &merged.tables[0]);
    let values = back(files, &context);
    let (back, _) = write(&context, &merged, values).unwrap();
    assert!(read(&context, &back.tables[0]) == entries);
}

/// Neither a neighbour's value nor one of another file passes for a key's own.
#[test]
fn a_merge_in_place_refuses_the_value_of_another_key() {
    let context = Context::new(usize::MAX);
    let value = vec![7; 200];
    let trailer = Trailer::new(5, Kind::Value);
    let entries = [b"a", b"b"].map(|key| (key.to_vec(), trailer, value.clone()));
    let flushed = flush(&context, &entries).unwrap();
    let mut stored = read(&context, &flushed.tables[0]);
    let exchanged = stored[1].2.clone();
    stored[0].2 = exchanged;
    let values = back(value_files(&flushed), &context);
    let error = write(&context, &stored, values).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    let unknown = back(Shared::default(), &context);
    let error = write(&context, &stored, unknown).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
}

#[test]
fn a_failed_flush_leaves_nothing_behind() {
    let entries = entries();
    let mut luck = 0;
    loop {
        let context = Context::new(luck);
        match flush(&context, &entries) {
            Ok(_) => break,
            Err(error) => assert_eq!(error.kind(), ErrorKind::Io),
        }
        assert_eq!(context.files(), []);
        luck += 1;
    }
    // An edit that is refused without a trace takes the files with it; one that may count does not.
    let context = Context::new(usize::MAX);
    for (kind, stays) in [(ErrorKind::NoSpace, false), (ErrorKind::Poisoned, true)] {
        let written = flush(&context, &entries).unwrap();
        let files = written.transient_logs.len() + 1;
        // A number for each file and the segment, some pacing, and the sync of the folder.
        assert!(luck > files + 2);
        assert_eq!(context.files().len(), files);
        let refuse = || Err::<(), _>(Error::new(kind, "planted"));
        drop(written.created.name_by(refuse));
        assert_eq!(context.files().len(), if stays { files } else { 0 });
    }
}

/// Nothing is medium that is too short to gain from it, and nothing at all where options say so.
#[test]
fn a_flush_without_mediums_makes_no_run() {
    let context = Context::new(usize::MAX);
    let none = KeyspaceOptions {
        medium_from: u64::MAX,
        large_from: u64::MAX,
        ..KeyspaceOptions::default()
    };
    let entries = entries();
    let (written, _) = write(
        &context,
        &entries,
        Values::separated(Shared::new(none), false),
    )
    .unwrap();
    assert!(written.transient_logs.is_empty());
    assert!(read(&context, &written.tables[0]) == entries);
    assert_eq!(context.files(), [FileName::Table(written.tables[0].number)]);
}
