//! A table in memory: point reads, and the two sources of blocks.
//!
//! The top-level index stays in memory with the table, index partitions from their first use, and filters if there is
//! space for them. Else probes read pieces of filters (`filter_pieces.rs`). The file is opened when a block is read
//! ([`TableFiles`]).
//!
//! *Mapped*: uncompressed blocks with a [mark](crate::cache::Marks) are read in place. A block without one is verified
//! in place and marked if it is in memory, and else loaded by a system call for one reader. *Buffered*: blocks are
//! loaded, verified and kept in the block cache. Compressed blocks always use the cache.
//!
//! Invariants:
//! - I1. No block is used before its checksum and form are verified: in a mapping within this interval of its mark,
//!   unless this process wrote the block in this interval; otherwise when it is loaded.
//! - I2. Newer segments are later in the file and are searched first.
//!
//! Concurrency: shared freely; nothing here blocks but I/O and the short locks of the caches.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Weak};

use crate::base::expiry::split_expiring;
use crate::base::sync::Mutex;
use crate::base::sync::atomic::{AtomicU64, Ordering};
use crate::base::{
    Error, FileNumber, Kind, Moment, RangeTombstones, Result, SequenceNumber, Trailer,
};
use crate::block::stored::{Place, decompress, verify, zeroed};
use crate::block::{Layout, PinnedValue};
use crate::cache::{BlockCache, BlockKey, FileSlot, MarkClock, Marks, OpenFile};
use crate::codec::Compression;
use crate::codec::reader::DecodeError;
use crate::vfs::{Region, read_exact_at};

use super::super::format::{BlockPlace, IndexPartition};
use super::super::memory::TableMemory;
use super::counters::{PointRead, ReadCounters};
use super::file::{TableFile, TableFileSlot, TableFiles};
use super::filter::SegmentFilter;
use super::scan_lengths::ScanLengths;
use super::segment::{Segment, SegmentFile};

/// What all tables of a database share.
#[derive(Debug, Clone)]
pub(crate) struct TableContext {
    pub(crate) files: Arc<TableFiles>,
    pub(crate) cache: Arc<BlockCache>,
    pub(crate) clock: Arc<MarkClock>,
    pub(crate) memory: Arc<TableMemory>,
    pub(crate) piece_reads: Arc<PieceReads>,
    pub(crate) scans: Arc<ScanLengths>,
}

/// What reads of filters by pieces have in common.
#[derive(Debug, Default)]
pub(crate) struct PieceReads {
    /// The pieces that were read, or verified in a mapping.
    pub(super) loads: AtomicU64,
    /// The slots of tables that are to load their filters, since pieces of them have cost as much.
    wanted: Mutex<Vec<Weak<FileSlot<Table>>>>,
}

impl PieceReads {
    /// The pieces that were read, or verified in a mapping.
    pub(crate) fn loads(&self) -> u64 {
        self.loads.load(Ordering::Relaxed)
    }

    /// The slots of tables that have asked for their filters since the last call.
    pub(crate) fn take_wanted(&self) -> Vec<Weak<FileSlot<Table>>> {
        std::mem::take(&mut self.wanted.lock())
    }
}

impl TableContext {
    /// Keeps a verified payload in the cache, which first shrinks to what tables and cursors leave.
    pub(crate) fn keep(&self, key: BlockKey, block: &Arc<[u8]>) {
        self.cache.fit(self.memory.left_for_cache());
        self.cache.insert(key, Arc::clone(block));
    }
}

/// An open table file.
pub(crate) struct Table {
    pub(crate) name: String,
    pub(super) number: FileNumber,
    /// The file number in its checksums.
    pub(super) checksum_file: FileNumber,
    /// The offset just after the last segment.
    pub(super) end: u64,
    pub(super) file: Arc<TableFileSlot>,
    /// The slot that holds the table, if any.
    pub(super) home: Weak<FileSlot<Self>>,
    /// In file order (I2). A grown file reuses the segments of its earlier table.
    pub(crate) segments: Box<[Arc<Segment>]>,
    pub(crate) context: TableContext,
}

/// A verified block; bytes may follow its payload.
#[derive(Debug)]
pub(crate) enum Block {
    /// The offset of the block in the mapping.
    Mapped(usize),
    Cached(Arc<[u8]>),
}

impl Block {
    /// The offset of the block in the bytes that [`bytes`](Self::bytes) returns.
    #[inline]
    pub(crate) fn origin(&self) -> usize {
        match self {
            Self::Mapped(origin) => *origin,
            Self::Cached(_) => 0,
        }
    }

    /// The bytes that contain the block, which is of `file`.
    #[inline]
    fn bytes<'a>(&'a self, file: &'a TableFile) -> &'a [u8] {
        match (self, &file.region) {
            (Self::Cached(bytes), _) => bytes,
            (Self::Mapped(_), Some(region)) => region.bytes(),
            (Self::Mapped(_), None) => &[],
        }
    }
}

/// The newest of `ranges` that covers `key` and is at most `sequence`; 0 if there is none.
#[cold]
fn deleted_at(ranges: &RangeTombstones, key: &[u8], sequence: SequenceNumber) -> SequenceNumber {
    ranges
        .newest(key, sequence)
        .map_or(0, |range| range.sequence)
}

/// What a point read found.
pub(crate) struct Found {
    file: OpenFile<TableFile>,
    block: Block,
    value: Range<usize>,
    trailer: Trailer,
}

impl Found {
    /// The sequence number and kind.
    #[inline]
    pub(crate) fn trailer(&self) -> Trailer {
        self.trailer
    }

    /// The expiry of an entry that expires, and the entry with its value or pointer alone.
    #[must_use]
    pub(crate) fn split_expiry(mut self) -> (Moment, Self) {
        let (expiry, value) = split_expiring(self.value());
        self.value.start = self.value.end - value.len();
        (expiry, self)
    }

    /// What the entry stores, in place.
    #[inline]
    pub(crate) fn value(&self) -> &[u8] {
        let bytes = self.block.bytes(&self.file);
        bytes.get(self.value.clone()).unwrap_or_default()
    }

    /// Whether its block shows that no other version of its key follows.
    fn is_last_of_its_key(&self) -> bool {
        let bytes = self.block.bytes(&self.file);
        let next = || {
            let layout = Layout::read(bytes, self.block.origin())?;
            let next = self.value.end;
            (next < layout.entries_end()).then(|| layout.entry(bytes, next))?
        };
        next().is_some_and(|next| !next.step.repeats_key())
    }

    /// The value in place, for longer than the table is held.
    pub(crate) fn pin(self) -> PinnedValue {
        match (self.block, &self.file.region) {
            (Block::Cached(block), _) => PinnedValue::cached(block, self.value),
            (Block::Mapped(_), Some(region)) => PinnedValue::mapped(Arc::clone(region), self.value),
            (Block::Mapped(_), None) => unreachable!("only a mapping has mapped blocks"),
        }
    }
}

impl fmt::Debug for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Found")
            .field("trailer", &self.trailer)
            .field("value", &self.value())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table")
            .field("name", &self.name)
            .field("segments", &self.segments.len())
            .finish_non_exhaustive()
    }
}

impl Table {
    /// Asks for the filters of this table to be loaded.
    #[cold]
    pub(super) fn want_filters(&self) {
        let home = Weak::clone(&self.home);
        self.context.piece_reads.wanted.lock().push(home);
        self.context.memory.note_due();
    }

    /// The file, opened if need be.
    #[inline]
    pub(crate) fn file(&self) -> Result<OpenFile<TableFile>> {
        self.context.files.get(&self.file, &self.name, self.end)
    }

    /// `file`, the file of this table, for its segments.
    pub(in crate::table) fn segment_file<'a>(&'a self, file: &'a TableFile) -> SegmentFile<'a> {
        SegmentFile {
            file: &*file.file,
            name: &self.name,
            number: self.checksum_file,
        }
    }

    /// Finds the newest version of `key` that is at most `sequence`; `hash` is the key's
    /// [`key_hash`](crate::codec::checksum::key_hash). The version may be a range tombstone that covers the key. There is
    /// none, too, if `read` [is far](PointRead::is_far) then.
    #[inline]
    pub(crate) fn get(
        &self,
        key: &[u8],
        hash: u64,
        sequence: SequenceNumber,
        read: &mut PointRead,
    ) -> Result<Option<Found>> {
        // I2
        for segment in self.segments.iter().rev() {
            let ranges = segment.ranges.as_deref();
            let deleted = ranges.map_or(0, |ranges| deleted_at(ranges, key, sequence));
            if deleted > 0 && self.file.get().is_none() && read.ends_here() {
                return Ok(None);
            }
            read.counters.runs_probed += 1;
            let passes = match &segment.filter {
                SegmentFilter::Whole(filter) => filter.may_contain(hash),
                SegmentFilter::ByPieces(_) if read.ends_here() => return Ok(None),
                SegmentFilter::ByPieces(filter) => self.passes_pieces(segment, filter, hash)?,
                SegmentFilter::Absent => true,
            };
            let has_filter = !matches!(segment.filter, SegmentFilter::Absent);
            read.counters.filter_probes += u64::from(has_filter);
            if !passes {
                read.counters.filter_rejects += 1;
                if deleted > 0 {
                    return self.newer_of(None, deleted);
                }
                continue;
            }
            let found = self.get_in(segment, key, sequence, read)?;
            if found.is_none() && read.is_far() {
                return Ok(None);
            }
            if deleted > 0 {
                return self.newer_of(found, deleted);
            }
            if found.is_some() {
                return Ok(found);
            }
            read.counters.filter_false_positives += u64::from(has_filter);
        }
        Ok(None)
    }

    /// Whether the table may have older versions of the key of `found` in it. If not, a search for them is spared.
    pub(crate) fn may_have_older(&self, found: &Found) -> bool {
        match &*self.segments {
            [only] if only.ranges.is_none() => !found.is_last_of_its_key(),
            _ => true,
        }
    }

    /// The newer one of `found` and a range tombstone at `deleted` that covers its key.
    #[cold]
    fn newer_of(&self, found: Option<Found>, deleted: SequenceNumber) -> Result<Option<Found>> {
        if found
            .as_ref()
            .is_some_and(|it| it.trailer.sequence() >= deleted)
        {
            return Ok(found);
        }
        Ok(Some(Found {
            file: self.file()?,
            block: Block::Cached(Arc::default()),
            value: 0..0,
            trailer: Trailer::new(deleted, Kind::RangeTombstone),
        }))
    }

    /// Partition `number` of the index of `segment`.
    #[inline]
    pub(crate) fn partition<'a>(
        &self,
        segment: &'a Segment,
        number: usize,
    ) -> Result<&'a IndexPartition> {
        match segment.loaded_partition(number) {
            Some(partition) => Ok(partition),
            None => self.load_partition(segment, number),
        }
    }

    #[cold]
    fn load_partition<'a>(
        &self,
        segment: &'a Segment,
        number: usize,
    ) -> Result<&'a IndexPartition> {
        let file = self.file()?;
        let memory = &self.context.memory;
        let partition = segment.load_partition(number, self.segment_file(&file), memory);
        memory.note_growth();
        partition
    }

    /// The block of `segment` to search for `key`; `None` if all keys are less.
    #[inline]
    pub(crate) fn find_block(&self, segment: &Segment, key: &[u8]) -> Result<Option<BlockPlace>> {
        let Some(search) = segment.index.find(key) else {
            return Ok(None);
        };
        let partition = self.partition(segment, search.partition)?;
        Ok(Some(partition.find(search)))
    }

    /// The place of block `number` of `segment`, which exists.
    pub(crate) fn block_place(&self, segment: &Segment, number: usize) -> Result<BlockPlace> {
        let partition = self.partition(segment, segment.index.partition_of(number))?;
        Ok(partition.block(number))
    }

    /// Whether a key with this hash may be in any segment, as far as filters in memory know.
    pub(crate) fn may_contain(&self, hash: u64) -> bool {
        let mut segments = self.segments.iter().rev();
        segments.any(|segment| segment.filter.may_contain(hash))
    }

    /// The stored bytes of the filters that are read by pieces.
    pub(crate) fn pieced_bytes(&self) -> u64 {
        let bytes = self.segments.iter().map(|segment| segment.pieced_bytes());
        bytes.fold(0, u64::saturating_add)
    }

    /// The rate of false positives of each segment's filter in memory.
    pub(crate) fn filter_rates(&self) -> impl Iterator<Item = f64> {
        let rate = |segment: &Arc<Segment>| segment.filter.rate(segment.properties.entries);
        self.segments.iter().map(rate)
    }

    /// About how many bytes of all segments lie between two keys; `None` is an end of the table. Within an index
    /// partition that cannot be read, the middle counts; the reads of its blocks report the error.
    pub(crate) fn bytes_between(&self, from: Option<&[u8]>, to: Option<&[u8]>) -> u64 {
        let between = |segment: &Arc<Segment>| {
            let index = &segment.index;
            let start = from.map_or(index.data(0).offset, |key| self.block_start(segment, key));
            let end = to.map_or(index.data_end(), |key| self.block_start(segment, key));
            end.saturating_sub(start)
        };
        self.segments.iter().map(between).sum()
    }

    /// About the offset in the file of the block to search for `key`; the end of all blocks if there is none.
    fn block_start(&self, segment: &Segment, key: &[u8]) -> u64 {
        let Some(search) = segment.index.find(key) else {
            return segment.index.data_end();
        };
        if let Ok(partition) = self.partition(segment, search.partition) {
            partition.find(search).offset
        } else {
            let data = segment.index.data(search.partition);
            data.offset + data.length / 2
        }
    }

    #[inline]
    fn get_in(
        &self,
        segment: &Segment,
        key: &[u8],
        sequence: SequenceNumber,
        read: &mut PointRead,
    ) -> Result<Option<Found>> {
        let Some(search) = segment.index.find(key) else {
            return Ok(None);
        };
        let partition = match segment.loaded_partition(search.partition) {
            Some(partition) => partition,
            None if read.ends_here() => return Ok(None),
            None => self.load_partition(segment, search.partition)?,
        };
        let file = match self.file.get() {
            Some(file) => file,
            None if read.ends_here() => return Ok(None),
            None => self.file()?,
        };
        let mut place = partition.find(search);
        loop {
            if read.must_not_wait() && !self.is_near(&file, segment, place) {
                read.end();
                return Ok(None);
            }
            let block = self.block(&file, segment, place, &mut read.counters)?;
            let bytes = block.bytes(&file);
            match look_up(bytes, block.origin(), segment.raise(), key, sequence) {
                Some(LookUp::Found(value, trailer)) => {
                    return Ok(Some(Found {
                        file,
                        block,
                        value,
                        trailer,
                    }));
                }
                Some(LookUp::Absent) => return Ok(None),
                Some(LookUp::InNextBlock) if place.number + 1 == segment.index.blocks() => {
                    return Ok(None);
                }
                Some(LookUp::InNextBlock) => {
                    let next = place.number + 1;
                    let partition = segment.index.partition_of(next);
                    if segment.loaded_partition(partition).is_none() && read.ends_here() {
                        return Ok(None);
                    }
                    place = self.block_place(segment, next)?;
                }
                None => return Err(self.malformed(place.offset)),
            }
        }
    }

    /// The block of `segment` at `place` of `file`, verified (I1).
    #[inline]
    pub(crate) fn block(
        &self,
        file: &TableFile,
        segment: &Segment,
        place: BlockPlace,
        counters: &mut ReadCounters,
    ) -> Result<Block> {
        counters.block_reads += 1;
        if let Some(region) = &file.region {
            if segment.marks.contains(place.number, &self.context.clock) {
                #[expect(clippy::cast_possible_truncation, reason = "the file is mapped whole")]
                return Ok(Block::Mapped(place.offset as usize));
            }
            return self.load_mapped(file, region, segment, place, counters);
        }
        let place_of_block = self.place(segment, place.offset);
        if let Some(block) = self.context.cache.get(self.block_key(place_of_block)) {
            return Ok(Block::Cached(block));
        }
        if !file.file.is_resident(place.offset) {
            self.context.clock.note_cold_read(1);
        }
        self.load(file, place_of_block, place.length, counters)
    }

    pub(crate) fn place(&self, segment: &Segment, offset: u64) -> Place {
        Place {
            file: self.checksum_file,
            segment: segment.id,
            offset,
        }
    }

    /// The key of the block at `place` in the cache.
    #[inline]
    pub(super) fn block_key(&self, place: Place) -> BlockKey {
        BlockKey::new(self.number, place)
    }

    #[cold]
    fn load_mapped(
        &self,
        file: &TableFile,
        region: &Region,
        segment: &Segment,
        block: BlockPlace,
        counters: &mut ReadCounters,
    ) -> Result<Block> {
        let BlockPlace {
            number,
            offset,
            length,
        } = block;
        let place = self.place(segment, offset);
        let range = usize::try_from(offset)
            .ok()
            .and_then(|start| Some(start..start.checked_add(length)?));
        let Some((range, stored)) =
            range.and_then(|range| Some((range.clone(), region.bytes().get(range)?)))
        else {
            let what = "a block is beyond the mapping";
            return Err(Error::corruption(&self.name, offset, what));
        };
        if self.context.cache.has_had_blocks()
            && let Some(block) = self.context.cache.get(self.block_key(place))
        {
            return Ok(Block::Cached(block));
        }
        if segment.marks.are_written(&self.context.clock)
            && self.mark_written(region, segment, number)
        {
            return Ok(Block::Mapped(range.start));
        }
        if !region.is_resident(range.clone()) {
            let reads = Marks::represented(number);
            self.context.clock.note_cold_read(reads);
            self.forget_written(segment);
            return self.load(file, place, length, counters);
        }
        counters.block_loads += 1;
        counters.block_load_bytes += length as u64;
        let (codec, body) = self.located(verify(stored, place), offset)?;
        if codec == Compression::None {
            self.located(Layout::check(body), offset)?;
            segment.marks.insert(number, &self.context.clock);
            return Ok(Block::Mapped(range.start));
        }
        self.decompress_to_cache(codec, body, place)
    }

    /// Whether block `number` of a segment that this process has written needs no verification (I1): it and those around
    /// it are in memory. They get their marks. The group ends with the index partition of the block, which is loaded.
    fn mark_written(&self, region: &Region, segment: &Segment, number: usize) -> bool {
        let number_of_partition = segment.index.partition_of(number);
        let partition = segment.loaded_partition(number_of_partition);
        let Some(partition) = partition.filter(|_| !Marks::is_sentinel(number)) else {
            return false;
        };
        let blocks = segment.index.blocks_of(number_of_partition);
        let group = Marks::group(number);
        let group = group.start.max(blocks.start)..group.end.min(blocks.end);
        let (first, last) = (partition.block(group.start), partition.block(group.end - 1));
        let ends = (usize::try_from(first.offset), usize::try_from(last.end()));
        let (Ok(start), Ok(end)) = ends else {
            return false;
        };
        let is_resident = region.is_resident(start..end);
        if is_resident {
            segment.marks.insert_written(group, &self.context.clock);
        } else {
            self.forget_written(segment);
        }
        is_resident
    }

    /// Notes that pages of `segment` have left memory.
    pub(super) fn forget_written(&self, segment: &Segment) {
        segment
            .marks
            .forget_written(segment.id, &self.context.clock);
    }

    /// Loads a block by a system call. The cache keeps it, except an uncompressed block of a mapped table: the page
    /// cache has it now.
    #[cold]
    fn load(
        &self,
        file: &TableFile,
        place: Place,
        length: usize,
        counters: &mut ReadCounters,
    ) -> Result<Block> {
        counters.block_loads += 1;
        counters.block_load_bytes += length as u64;
        let mut stored = zeroed(length);
        if let Some(target) = Arc::get_mut(&mut stored) {
            read_exact_at(&*file.file, target, place.offset)
                .map_err(|error| Error::read(&self.name, place.offset, error))?;
        }
        let (codec, body) = self.located(verify(&stored, place), place.offset)?;
        if codec != Compression::None {
            return self.decompress_to_cache(codec, body, place);
        }
        self.located(Layout::check(body), place.offset)?;
        if file.region.is_none() {
            self.context.keep(self.block_key(place), &stored);
        }
        Ok(Block::Cached(stored))
    }

    fn decompress_to_cache(&self, codec: Compression, body: &[u8], place: Place) -> Result<Block> {
        let payload = self.located(decompress(codec, body), place.offset)?;
        self.located(Layout::check(&payload), place.offset)?;
        self.context.keep(self.block_key(place), &payload);
        Ok(Block::Cached(payload))
    }

    /// Gives a decoding error the file and the offset.
    pub(crate) fn located<T>(
        &self,
        result: std::result::Result<T, DecodeError>,
        offset: u64,
    ) -> Result<T> {
        result.map_err(|error| error.in_file(&self.name, offset))
    }

    /// The error of the block at `offset`, which changed after its verification.
    #[cold]
    pub(crate) fn malformed(&self, offset: u64) -> Error {
        let what = "a block changed after it was verified";
        Error::corruption(&self.name, offset, what)
    }
}

/// The outcome of a search in one block.
enum LookUp {
    Found(Range<usize>, Trailer),
    Absent,
    /// All versions here are newer than `sequence`; older ones may follow in the next block.
    InNextBlock,
}

#[inline]
fn look_up(
    bytes: &[u8],
    origin: usize,
    raise: SequenceNumber,
    key: &[u8],
    sequence: SequenceNumber,
) -> Option<LookUp> {
    let layout = Layout::read(bytes, origin)?.raised(raise);
    let position = layout.search(bytes, key, sequence)?;
    Some(if position.matches {
        let entry = layout.entry(bytes, position.offset)?;
        LookUp::Found(entry.value..entry.end, entry.step.trailer())
    } else if position.follows && position.index == layout.count() {
        LookUp::InNextBlock
    } else {
        LookUp::Absent
    })
}
