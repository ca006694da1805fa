//! The files of a keyspace as readers see them.
//!
//! A version is immutable; a change makes a new one, which shares the levels that did not change.
//! Readers hold versions, versions hold file handles, and the last holder of a file that has left
//! the manifest hands its name over for deletion.
//!
//! I1. In levels 1 and deeper the files are disjoint at user keys and in ascending order.
//! I2. In level 0 newer files stand first, and where two files overlap, every entry of the newer one
//!     is newer than every entry of the older.
//! I3. A file's name reaches [`Obsolete`] at most once, when its handle was marked and nobody
//!     holds it any more.
//! I4. Every value file that a table of the version refers to is in the version.
//!
//! Concurrency: everything is shared freely.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::base::prefix_index::PrefixIndex;
use crate::base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::base::sync::{Mutex, Shared};
use crate::base::{Error, ErrorKind, FileNumber, Result};
use crate::table::{FileMeta, SegmentMeta, TableSlot};
use crate::value::{
    RelocationTable, ValueFile, ValueFileMeta, ValuePointer, ValueReadBuffers, ValueSlot,
};

use super::names::FileName;
use super::state::{Contradiction, KeyspaceState};
use super::values::{LogUse, ValueFileKind, ValueFileState, ValueState};

/// Files that may be deleted.
#[derive(Debug, Default)]
pub(crate) struct Obsolete(Mutex<Vec<FileName>>);

impl Obsolete {
    /// One more file, which no version has.
    pub(crate) fn add(&self, file: FileName) {
        self.0.lock().push(file);
    }

    /// Takes the files that have come together since the last call.
    pub(crate) fn take(&self) -> Vec<FileName> {
        std::mem::take(&mut *self.0.lock())
    }
}

/// Hands a file over for deletion when it is dropped marked.
#[derive(Debug)]
struct Fate {
    file: FileName,
    is_obsolete: AtomicBool,
    obsolete: Arc<Obsolete>,
}

impl Fate {
    fn new(file: FileName, obsolete: Arc<Obsolete>) -> Self {
        Self {
            file,
            is_obsolete: AtomicBool::new(false),
            obsolete,
        }
    }

    fn mark(&self) {
        self.is_obsolete.store(true, Ordering::Release);
    }

    fn is_marked(&self) -> bool {
        self.is_obsolete.load(Ordering::Acquire)
    }
}

impl Drop for Fate {
    fn drop(&mut self) {
        if self.is_marked() {
            self.obsolete.0.lock().push(self.file); // I3
        }
    }
}

/// A table file in use.
///
/// A file that has grown has a new handle; who holds an older one sees the segments of then.
#[derive(Debug)]
pub(crate) struct FileHandle {
    pub(crate) meta: FileMeta,
    /// The segments that hold the smallest and the largest key.
    ends: (usize, usize),
    /// How often range reads have visited a run more for the file: it is one of level 0, or these were
    /// segments but one. Of the handle, so that a file that has grown begins anew.
    visits: AtomicU64,
    slot: Arc<TableSlot>,
    /// Shared by all handles on the file.
    fate: Arc<Fate>,
}

impl FileHandle {
    /// A handle on the file that `meta` describes.
    pub(crate) fn new(meta: FileMeta, obsolete: Arc<Obsolete>) -> Shared<Self> {
        let fate = Fate::new(FileName::Table(meta.number), obsolete);
        Self::with_fate(meta, Arc::default(), Arc::new(fate))
    }

    /// A handle on the same file, which has grown to what `meta` describes.
    pub(crate) fn grown(&self, meta: FileMeta) -> Shared<Self> {
        let slot = self.slot.grown(self.meta.segments.len());
        Self::with_fate(meta, Arc::new(slot), Arc::clone(&self.fate))
    }

    fn with_fate(meta: FileMeta, slot: Arc<TableSlot>, fate: Arc<Fate>) -> Shared<Self> {
        let segments = || meta.segments.iter().enumerate();
        let smallest = segments().min_by_key(|(_, segment)| &segment.smallest);
        let largest = segments().max_by_key(|(_, segment)| &segment.largest);
        let position = |end: Option<(usize, &SegmentMeta)>| end.map_or(0, |(position, _)| position);
        Shared::new(Self {
            ends: (position(smallest), position(largest)),
            meta,
            visits: AtomicU64::new(0),
            slot,
            fate,
        })
    }

    /// How often range reads have visited a run more for the file.
    pub(crate) fn visits(&self) -> u64 {
        self.visits.load(Ordering::Relaxed)
    }

    /// Range reads have visited a run more for the file, so many times.
    pub(crate) fn note_visits(&self, visits: u64) {
        self.visits.fetch_add(visits, Ordering::Relaxed);
    }

    /// The smallest key.
    #[inline]
    pub(crate) fn smallest(&self) -> &[u8] {
        &self.meta.segments[self.ends.0].smallest
    }

    /// The largest key.
    #[inline]
    pub(crate) fn largest(&self) -> &[u8] {
        &self.meta.segments[self.ends.1].largest
    }

    /// Where the open table is kept.
    #[inline]
    pub(crate) fn slot(&self) -> &Arc<TableSlot> {
        &self.slot
    }

    /// Whether `key` lies between the smallest and the largest key.
    #[inline]
    pub(crate) fn covers(&self, key: &[u8]) -> bool {
        self.smallest() <= key && key <= self.largest()
    }

    /// The edit that drops the file is durable: the file goes when its last holder goes.
    pub(crate) fn mark_obsolete(&self) {
        self.fate.mark();
    }
}

impl Drop for FileHandle {
    fn drop(&mut self) {
        if self.fate.is_marked() {
            self.slot.close(); // Whoever takes the name may remove the file at once.
        }
    }
}

/// A value file in use.
#[derive(Debug)]
pub(crate) struct ValueHandle {
    pub(crate) meta: ValueFileMeta,
    /// Whether it is of a transient log.
    pub(crate) is_transient: bool,
    slot: Arc<ValueSlot>,
    /// Shared with the handles that the file had while it was being written.
    fate: Arc<Fate>,
}

impl ValueHandle {
    /// Where the open file is kept.
    #[inline]
    pub(crate) fn slot(&self) -> &Arc<ValueSlot> {
        &self.slot
    }
}

impl Drop for ValueHandle {
    fn drop(&mut self) {
        if self.fate.is_marked() {
            self.slot.close(); // As for tables.
        }
    }
}

/// How much of a value file is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Usage {
    pub(crate) length: u64,
    /// Bytes of the records that tables refer to.
    pub(crate) referred: u64,
}

impl Usage {
    /// What references to `bytes` of it keep of its length: their part of all references.
    fn pinned_by(self, bytes: u64) -> u64 {
        let product = u128::from(self.length) * u128::from(bytes);
        let pinned = product / u128::from(self.referred.max(1));
        u64::try_from(pinned).unwrap_or(u64::MAX)
    }
}

/// The value files of a keyspace, and what else belongs to them.
#[derive(Debug, Default)]
pub(crate) struct ValueFiles {
    files: Vec<Shared<ValueHandle>>,
    /// Their numbers, ascending: to search them here misses the processor's caches less than to ask files.
    numbers: Vec<FileNumber>,
    usages: Vec<Usage>,
    /// Where the values of collected logs have gone, ascending by origin.
    tables: Vec<RelocationTable>,
    /// The lists of garbage values, which only jobs read: they stay until nobody holds this.
    garbage: BTreeMap<FileNumber, Arc<Fate>>,
}

/// Where a value stands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    /// The file.
    pub(crate) file: &'a Shared<ValueHandle>,
    /// As the entry has it.
    pub(crate) pointer: ValuePointer,
    /// What leads on to the file, where the pointer names a log that was collected.
    pub(crate) table: Option<&'a RelocationTable>,
}

impl Place<'_> {
    /// What leads to the value in `file`, which is open at this place.
    #[inline]
    pub(crate) fn pointer_in(&self, file: &ValueFile) -> Result<ValuePointer> {
        match self.table {
            None => Ok(self.pointer),
            Some(table) => file.relocate(table, &self.pointer),
        }
    }

    /// What leads to the value in the file of this place, which is read through `windows`.
    pub(crate) fn pointer_by(&self, read_buffers: &mut ValueReadBuffers) -> Result<ValuePointer> {
        match self.table {
            None => Ok(self.pointer),
            Some(table) => read_buffers.relocate(&self.file.meta, table, &self.pointer),
        }
    }

    /// The value of `key` at this place, read through `windows`.
    pub(crate) fn read<'w>(
        &self,
        read_buffers: &'w mut ValueReadBuffers,
        key: &[u8],
    ) -> Result<&'w [u8]> {
        let pointer = self.pointer_by(read_buffers)?;
        read_buffers.read(&self.file.meta, key, &pointer)
    }
}

impl ValueFiles {
    /// The file with this number.
    #[inline]
    pub(crate) fn find(&self, number: FileNumber) -> Option<&Shared<ValueHandle>> {
        self.files.get(self.position(number)?)
    }

    /// The table that leads on from pointers into `origin`.
    pub(crate) fn table(&self, origin: FileNumber) -> Option<&RelocationTable> {
        let position = self
            .tables
            .binary_search_by_key(&origin, |table| table.origin);
        self.tables.get(position.ok()?)
    }

    #[inline]
    fn position(&self, number: FileNumber) -> Option<usize> {
        self.numbers.binary_search(&number).ok()
    }

    /// How long the file with this number is, and how many bytes of it tables refer to.
    pub(crate) fn usage(&self, number: FileNumber) -> Option<Usage> {
        Some(self.usages[self.position(number)?])
    }

    /// The bytes of runs that `table` keeps: of each file as much as it has of all references to it,
    /// garbage values included.
    pub(crate) fn pinned_bytes(&self, table: &FileMeta) -> u64 {
        let segments = table.segments.iter();
        let segments = segments.filter(|segment| segment.references.transient_files() > 0);
        let references = segments.flat_map(|it| it.references.iter());
        let runs = references.filter(|(_, referred)| !referred.is_log);
        let pinned = runs.map(|(file, referred)| {
            let usage = self.usage(file).unwrap_or_default();
            usage.pinned_by(referred.bytes)
        });
        pinned.fold(0, u64::saturating_add)
    }

    /// The bytes of values that `table` refers to by where they were before a collection.
    pub(crate) fn moved_bytes(&self, table: &FileMeta) -> u64 {
        if self.tables.is_empty() {
            return 0;
        }
        let references = table.segments.iter().flat_map(|it| it.references.iter());
        let moved = references.filter(|(file, _)| self.table(*file).is_some());
        let bytes = moved.map(|(_, referred)| referred.bytes);
        bytes.fold(0, u64::saturating_add)
    }

    /// Where the value stands that an entry's `pointer` leads to.
    ///
    /// # Errors
    /// `Corruption`: damage that a table's checksums did not find, or a bug.
    #[inline]
    pub(crate) fn resolve(&self, pointer: &[u8]) -> Result<Place<'_>> {
        let pointer = ValuePointer::decode(pointer).map_err(|error| misled(error.what))?;
        if let Some(file) = self.find(pointer.file) {
            return Ok(Place {
                file,
                pointer,
                table: None,
            });
        }
        self.resolve_moved(pointer)
    }

    fn resolve_moved(&self, pointer: ValuePointer) -> Result<Place<'_>> {
        let table = self.table(pointer.file);
        let file = table.and_then(|table| self.find(table.gc_output));
        let file = file.ok_or_else(|| {
            let name = FileName::Values(pointer.file);
            misled(&format!("{name} is not part of the database"))
        })?;
        Ok(Place {
            file,
            pointer,
            table,
        })
    }

    /// All files.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Shared<ValueHandle>> {
        self.files.iter()
    }

    /// The files that the manifest has: handles that are there are kept, new ones made, and those
    /// that went are marked, for their edit is durable.
    fn follow(this: &Shared<Self>, values: &ValueState, obsolete: &Arc<Obsolete>) -> Shared<Self> {
        let tables = values.relocated.values().map(|relocated| &relocated.table);
        let usage = |file: &ValueFileState| Usage {
            length: file.as_read().length,
            referred: file.referred.bytes,
        };
        let usages = values.files.values().map(usage);
        let is_same = this
            .iter()
            .map(|file| file.meta)
            .eq(values.files.values().map(ValueFileState::as_read))
            && this.usages.iter().copied().eq(usages.clone())
            && this.tables.iter().eq(tables.clone())
            && this.garbage.keys().eq(values.garbage.keys());
        if is_same {
            return Shared::clone(this);
        }
        for file in &this.files {
            if !values.files.contains_key(&file.meta.number) {
                file.fate.mark();
            }
        }
        for (number, fate) in &this.garbage {
            if !values.garbage.contains_key(number) {
                fate.mark();
            }
        }
        let fate = |name: FileName| Arc::new(Fate::new(name, Arc::clone(obsolete)));
        let handle = |file: &ValueFileState| {
            let meta = file.as_read();
            match this.find(meta.number) {
                Some(known) if known.meta == meta => Shared::clone(known),
                known => Shared::new(ValueHandle {
                    meta,
                    is_transient: file.kind == ValueFileKind::TransientLog,
                    slot: Arc::default(),
                    fate: known.map_or_else(
                        || fate(FileName::Values(meta.number)),
                        |known| Arc::clone(&known.fate),
                    ),
                }),
            }
        };
        let list = |&number: &FileNumber| {
            let known = this.garbage.get(&number).map(Arc::clone);
            (
                number,
                known.unwrap_or_else(|| fate(FileName::DiscardList(number))),
            )
        };
        Shared::new(Self {
            files: values.files.values().map(handle).collect(),
            numbers: values.files.keys().copied().collect(),
            usages: usages.collect(),
            tables: tables.copied().collect(),
            garbage: values.garbage.keys().map(list).collect(),
        })
    }

    /// Nothing of it is part of the database any more, durably.
    fn mark(&self) {
        for file in &self.files {
            file.fate.mark();
        }
        for fate in self.garbage.values() {
            fate.mark();
        }
    }
}

#[cold]
fn misled(what: &str) -> Error {
    let message = format!("the pointer to a value leads nowhere: {what}");
    Error::new(ErrorKind::Corruption, message)
}

/// The files of one level.
#[derive(Debug, Default)]
pub(crate) struct Level {
    files: Vec<Shared<FileHandle>>,
    /// The largest key of each file; empty in level 0.
    fences: Shared<PrefixIndex>,
    /// The sorted runs that the level consists of; empty in level 0.
    layers: Box<[Layer]>,
}

/// The segments that are so manieth in their files: one sorted run. Of most levels below the first few
/// there is one, with every file.
#[derive(Debug)]
pub(crate) struct Layer {
    /// Which segment of its file each is, counted from 0.
    pub(crate) segment: usize,
    /// The files that have so many segments, as positions in the level.
    files: Box<[usize]>,
    /// The largest key of each segment.
    fences: Shared<PrefixIndex>,
}

impl Layer {
    /// How many segments there are.
    pub(crate) fn len(&self) -> usize {
        self.files.len()
    }

    /// Where in the level the file of the segment at `position` is.
    #[inline]
    pub(crate) fn file(&self, position: usize) -> Option<usize> {
        self.files.get(position).copied()
    }

    /// The position of the first segment whose largest key is `key` or greater.
    #[inline]
    pub(crate) fn lower_bound(&self, key: &[u8]) -> usize {
        self.fences.lower_bound(key)
    }
}

impl Level {
    /// Level 0 of these files, in any order.
    fn runs(mut files: Vec<Shared<FileHandle>>) -> std::result::Result<Self, Contradiction> {
        files.sort_by_key(|file| std::cmp::Reverse(file.meta.sequence_max()));
        for (position, newer) in files.iter().enumerate() {
            for older in &files[position + 1..] {
                if overlap(newer, older) && newer.meta.sequence_min() <= older.meta.sequence_max() {
                    return Err(Contradiction::new(format!(
                        "table files {} and {} of level 0 overlap in keys and in age",
                        newer.meta.number, older.meta.number
                    ))); // I2
                }
            }
        }
        Ok(Self {
            files,
            ..Self::default()
        })
    }

    /// A deeper level of these files, in any order.
    fn sorted(mut files: Vec<Shared<FileHandle>>) -> std::result::Result<Self, Contradiction> {
        files.sort_by(|left, right| left.smallest().cmp(right.smallest()));
        for pair in files.windows(2) {
            let (left, right) = (&pair[0], &pair[1]);
            if left.largest() >= right.smallest() {
                return Err(Contradiction::new(format!(
                    "table files {} and {} of one level overlap",
                    left.meta.number, right.meta.number
                ))); // I1
            }
        }
        let fences = PrefixIndex::new(files.iter().map(|file| file.largest()));
        let fences = Shared::new(fences);
        let most = files.iter().map(|file| file.meta.segments.len()).max();
        let layer = |segment: usize| {
            let has_it = |position: &usize| files[*position].meta.segments.len() > segment;
            let members: Box<[usize]> = (0..files.len()).filter(has_it).collect();
            let largest = |&position: &usize| &*files[position].meta.segments[segment].largest;
            Layer {
                segment,
                fences: match most {
                    Some(1) => Shared::clone(&fences),
                    _ => Shared::new(PrefixIndex::new(members.iter().map(largest))),
                },
                files: members,
            }
        };
        let layers = (0..most.unwrap_or(0)).map(layer).collect();
        Ok(Self {
            files,
            fences,
            layers,
        })
    }

    /// The files: newest first in level 0, in key order in the others.
    pub(crate) fn files(&self) -> &[Shared<FileHandle>] {
        &self.files
    }

    /// The sorted runs that the level consists of. Not for level 0.
    pub(crate) fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// The one file that can hold `key`. Not for level 0.
    #[inline]
    pub(crate) fn find(&self, key: &[u8]) -> Option<&Shared<FileHandle>> {
        let file = self.files.get(self.fences.lower_bound(key))?;
        (file.smallest() <= key).then_some(file)
    }
}

/// All files of a keyspace at one time.
#[derive(Debug)]
pub(crate) struct Version {
    /// Level 0 first; the deepest is not empty unless it is level 0.
    levels: Vec<Shared<Level>>,
    values: Shared<ValueFiles>,
    /// What is left of value logs.
    logs: Shared<Vec<LogUse>>,
}

impl Default for Version {
    /// The version without files.
    fn default() -> Self {
        Self::trimmed(Vec::new())
    }
}

impl Version {
    /// The version of these files, level 0 first, in any order within a level.
    pub(crate) fn new(
        levels: Vec<Vec<Shared<FileHandle>>>,
    ) -> std::result::Result<Self, Contradiction> {
        let levels = (0..).zip(levels).map(|(level, files)| build(level, files));
        let levels = levels.collect::<std::result::Result<_, _>>()?;
        Ok(Self::trimmed(levels))
    }

    /// The version of a keyspace as the manifest has it.
    pub(crate) fn from_state(
        keyspace: &KeyspaceState,
        obsolete: &Arc<Obsolete>,
    ) -> std::result::Result<Self, Contradiction> {
        let handle = |file: &FileMeta| FileHandle::new(file.clone(), Arc::clone(obsolete));
        let levels = keyspace.levels.iter();
        let version = Self::new(
            levels
                .map(|files| files.values().map(handle).collect())
                .collect(),
        )?;
        Ok(version.with_values(keyspace, obsolete))
    }

    /// This version with the value files that the manifest has for its keyspace now.
    pub(crate) fn with_values(&self, keyspace: &KeyspaceState, obsolete: &Arc<Obsolete>) -> Self {
        Self {
            levels: self.levels.clone(),
            values: ValueFiles::follow(&self.values, &keyspace.values, obsolete),
            logs: Shared::new(keyspace.values.logs(keyspace.flushed)),
        }
    }

    /// The keyspace was dropped by a durable edit: its files go when their last holders go.
    pub(crate) fn mark_obsolete(&self) {
        for file in self.levels.iter().flat_map(|level| level.files()) {
            file.mark_obsolete();
        }
        self.values.mark();
    }

    /// The value files.
    pub(crate) fn values(&self) -> &Shared<ValueFiles> {
        &self.values
    }

    /// What is left of value logs.
    pub(crate) fn logs(&self) -> &[LogUse] {
        &self.logs
    }

    /// How many files of transient logs there are: all value files but logs.
    pub(crate) fn transient_files(&self) -> usize {
        self.values.files.len() - self.logs.len()
    }

    /// The levels, level 0 first, down to the deepest that holds files.
    pub(crate) fn levels(&self) -> &[Shared<Level>] {
        &self.levels
    }

    /// This version without the files `removes` and with the files `adds`, each with its level.
    ///
    /// # Errors
    /// Where a removed file is not there, or the result would break I1 or I2.
    pub(crate) fn apply(
        &self,
        adds: &[(u8, Shared<FileHandle>)],
        removes: &[(u8, FileNumber)],
    ) -> std::result::Result<Self, Contradiction> {
        let mut levels = self.levels.clone();
        let changed = adds.iter().map(|(level, _)| *level);
        let mut changed: Vec<u8> = changed
            .chain(removes.iter().map(|(level, _)| *level))
            .collect();
        changed.sort_unstable();
        changed.dedup();
        for level in changed {
            let index = usize::from(level);
            if levels.len() <= index {
                levels.resize_with(index + 1, Shared::default);
            }
            let mut files = levels[index].files.clone();
            for (_, number) in removes.iter().filter(|(removed, _)| *removed == level) {
                let position = files.iter().position(|file| file.meta.number == *number);
                let position = position.ok_or_else(|| {
                    Contradiction::new(format!("table file {number} is not in level {level}"))
                })?;
                files.swap_remove(position);
            }
            let adds = adds.iter().filter(|(added, _)| *added == level);
            files.extend(adds.map(|(_, file)| Shared::clone(file)));
            levels[index] = build(level, files)?;
        }
        Ok(Self {
            values: Shared::clone(&self.values),
            logs: Shared::clone(&self.logs),
            ..Self::trimmed(levels)
        })
    }

    /// Checks the order of every level anew.
    ///
    /// # Errors
    /// Where I1 or I2 does not hold.
    pub(crate) fn check(&self) -> std::result::Result<(), Contradiction> {
        for (number, level) in (0..).zip(&self.levels) {
            build(number, level.files.clone())?;
        }
        Ok(())
    }

    fn trimmed(mut levels: Vec<Shared<Level>>) -> Self {
        let held = levels.iter().rposition(|level| !level.files.is_empty());
        levels.truncate(held.map_or(0, |deepest| deepest + 1));
        if levels.is_empty() {
            levels.push(Shared::default());
        }
        Self {
            levels,
            values: Shared::default(),
            logs: Shared::default(),
        }
    }
}

fn build(
    level: u8,
    files: Vec<Shared<FileHandle>>,
) -> std::result::Result<Shared<Level>, Contradiction> {
    let built = if level == 0 {
        Level::runs(files)
    } else {
        Level::sorted(files)
    };
    built.map(Shared::new)
}

fn overlap(left: &FileHandle, right: &FileHandle) -> bool {
    left.smallest() <= right.largest() && right.smallest() <= left.largest()
}
