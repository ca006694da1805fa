//! An open table file: point reads, and the two sources of blocks.
//!
//! *Mapped*: uncompressed blocks with a [mark](crate::cache::Marks) are read in place. A block without one is verified
//! in place and marked if it is in memory, and else loaded by a system call for one reader. *Buffered*: blocks are
//! loaded, verified and kept in the block cache. Compressed blocks always use the cache.
//!
//! Invariants:
//! - I1. No block is used before its checksum and form are verified: in a mapping within this
//!   interval of its mark, otherwise when it is loaded.
//! - I2. Newer segments are later in the file and are searched first.
//!
//! Concurrency: shared freely; nothing here blocks but I/O and the cache's short locks.

use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use crate::base::{Error, FileNumber, Result, SequenceNumber, Trailer};
use crate::block::stored::{Place, decompress, verify, zeroed};
use crate::block::{Layout, PinnedValue};
use crate::cache::{BlockCache, MarkClock, Marks};
use crate::codec::Compression;
use crate::codec::reader::DecodeError;
use crate::filter::LoadedUnits;
use crate::options::BlockSource;
use crate::vfs::{Advice, File, Region, read_exact_at};

use super::super::format::{FileMeta, SegmentMeta};
use super::super::memory::TableMemory;
use super::counters::ReadCounters;
use super::segment::Segment;

/// What all tables of a database share.
#[derive(Debug, Clone)]
pub(crate) struct TableContext {
    pub(crate) source: BlockSource,
    pub(crate) cache: Arc<BlockCache>,
    pub(crate) clock: Arc<MarkClock>,
    pub(crate) memory: Arc<TableMemory>,
}

impl TableContext {
    /// Keeps a verified payload in the cache, which first shrinks to what tables and cursors leave.
    pub(crate) fn keep(&self, place: Place, block: &Arc<[u8]>) {
        self.cache.fit(self.memory.left_for_cache());
        self.cache.insert(place, Arc::clone(block));
    }
}

/// An open table file.
pub(crate) struct Table {
    pub(crate) name: String,
    pub(crate) number: FileNumber,
    pub(crate) file: Arc<dyn File>,
    /// The mapping, in mapped mode.
    pub(crate) region: Option<Arc<Region>>,
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
    /// The offset of the block in the bytes that [`Table::bytes`] returns for it.
    #[inline]
    pub(crate) fn origin(&self) -> usize {
        match self {
            Self::Mapped(origin) => *origin,
            Self::Cached(_) => 0,
        }
    }
}

/// What a point read found.
pub(crate) struct Found<'a> {
    table: &'a Table,
    block: Block,
    value: Range<usize>,
    trailer: Trailer,
}

impl Found<'_> {
    /// The sequence number and kind.
    #[inline]
    pub(crate) fn trailer(&self) -> Trailer {
        self.trailer
    }

    /// The value in place.
    #[inline]
    pub(crate) fn value(&self) -> &[u8] {
        self.table
            .bytes(&self.block)
            .get(self.value.clone())
            .unwrap_or_default()
    }

    /// The value in place, for longer than the table is held.
    pub(crate) fn pin(self) -> PinnedValue {
        match (self.block, &self.table.region) {
            (Block::Cached(block), _) => PinnedValue::cached(block, self.value),
            (Block::Mapped(_), Some(region)) => PinnedValue::mapped(Arc::clone(region), self.value),
            (Block::Mapped(_), None) => unreachable!("only a mapping has mapped blocks"),
        }
    }
}

impl fmt::Debug for Found<'_> {
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
    /// Opens the file that `meta` describes and checks its footers, indexes, filters and
    /// properties against it. `name` is the name of the file in errors; `units` of the filters are
    /// loaded. Equal segments are shared with `known`, an open table of the same file.
    pub(crate) fn open(
        file: Arc<dyn File>,
        name: String,
        meta: &FileMeta,
        context: TableContext,
        units: LoadedUnits,
        known: Option<&Self>,
    ) -> Result<Self> {
        let end = meta.end();
        let length = file
            .length()
            .map_err(|error| Error::io("read the length of", Path::new(&name), error))?;
        if meta.segments.is_empty() || length < end {
            let what = "the file ends before its recorded end";
            return Err(Error::corruption(&name, length, what));
        }
        let tracker = &context.memory.tables;
        let segment = |(position, segment): (usize, &SegmentMeta)| {
            let known = known.and_then(|known| known.segments.get(position));
            let units = units.of(position).min(segment.filter_unit_count());
            match known.filter(|known| known.id == segment.id && known.filters.len() == units) {
                Some(known) => Ok(Arc::clone(known)),
                None => Segment::open(&*file, &name, meta, segment, units, tracker).map(Arc::new),
            }
        };
        let segments = meta.segments.iter().enumerate().map(segment);
        let segments = segments.collect::<Result<Box<[_]>>>()?;
        file.advise(0..end, Advice::Random);
        let region = match context.source {
            BlockSource::Buffered => None,
            BlockSource::Mapped => Some(
                file.map(end)
                    .map_err(|error| Error::io("map", Path::new(&name), error))?,
            ),
        };
        Ok(Self {
            number: meta.number,
            name,
            file,
            region,
            segments,
            context,
        })
    }

    /// Finds the newest version of `key` that is at most `sequence`; `hash` is the key's
    /// [`key_hash`](crate::codec::checksum::key_hash).
    #[inline]
    pub(crate) fn get(
        &self,
        key: &[u8],
        hash: u64,
        sequence: SequenceNumber,
        counters: &mut ReadCounters,
    ) -> Result<Option<Found<'_>>> {
        // I2
        for segment in self.segments.iter().rev() {
            counters.runs_probed += 1;
            if !segment.filters.is_empty() {
                counters.filter_probes += 1;
                if !segment.may_contain(hash) {
                    counters.filter_rejects += 1;
                    continue;
                }
            }
            let found = self.get_in(segment, key, sequence, counters)?;
            if found.is_some() {
                return Ok(found);
            }
            counters.filter_false_positives += u64::from(!segment.filters.is_empty());
        }
        Ok(None)
    }

    /// Asks the system, without a wait, for the block that a seek to `key` in a segment will read.
    pub(crate) fn announce(&self, segment: usize, key: &[u8]) {
        let segment = &self.segments[segment];
        let index = segment.index.find(key);
        if index < segment.index.blocks() {
            self.announce_blocks(segment, index..index + 1);
        }
    }

    /// Asks the system, without a wait, for the first block that [`get`](Self::get) will read. Returns whether it
    /// will read one.
    pub(crate) fn announce_get(&self, key: &[u8], hash: u64) -> bool {
        let mut segments = self.segments.iter().rev();
        let Some(segment) = segments.find(|segment| segment.may_contain(hash)) else {
            return false;
        };
        let index = segment.index.find(key);
        let exists = index < segment.index.blocks();
        if exists {
            self.announce_blocks(segment, index..index + 1);
        }
        exists
    }

    /// Asks the system for `blocks` of `segment`, which are not empty, unless they are in memory.
    pub(super) fn announce_blocks(&self, segment: &Segment, blocks: Range<usize>) {
        let (start, _) = segment.index.block(blocks.start);
        let (last, last_length) = segment.index.block(blocks.end - 1);
        let end = last + last_length as u64;
        let is_single = blocks.len() == 1;
        let is_cached = || {
            let cache = &self.context.cache;
            is_single && cache.has_had_blocks() && cache.get(self.place(segment, start)).is_some()
        };
        let is_near = || match &self.region {
            Some(region) => {
                let is_marked =
                    is_single && segment.marks.contains(blocks.start, &self.context.clock);
                let range = usize::try_from(start).unwrap_or(usize::MAX)
                    ..usize::try_from(end).unwrap_or(usize::MAX);
                is_marked || region.is_resident(range)
            }
            None => self.file.is_resident(start) && self.file.is_resident(end - 1),
        };
        if is_cached() || is_near() {
            self.context.clock.note_warm_read();
        } else {
            self.file.advise(start..end, Advice::WillNeed);
        }
    }

    /// Whether a key with this hash may be in any segment.
    pub(crate) fn may_contain(&self, hash: u64) -> bool {
        let mut segments = self.segments.iter().rev();
        segments.any(|segment| segment.may_contain(hash))
    }

    /// The rate of false positives of each segment.
    pub(crate) fn filter_rates(&self) -> impl Iterator<Item = f64> {
        self.segments.iter().map(|segment| segment.filter_rate())
    }

    /// About how many bytes of all segments lie between two keys; `None` is an end of the table.
    pub(crate) fn bytes_between(&self, from: Option<&[u8]>, to: Option<&[u8]>) -> u64 {
        let between = |segment: &Arc<Segment>| {
            let index = &segment.index;
            let end = to.map_or(index.bytes(), |key| index.bytes_before(key));
            end.saturating_sub(from.map_or(0, |key| index.bytes_before(key)))
        };
        self.segments.iter().map(between).sum()
    }

    #[inline]
    fn get_in(
        &self,
        segment: &Segment,
        key: &[u8],
        sequence: SequenceNumber,
        counters: &mut ReadCounters,
    ) -> Result<Option<Found<'_>>> {
        let blocks = segment.index.blocks();
        let mut index = segment.index.find(key);
        while index < blocks {
            let block = self.block(segment, index, counters)?;
            let bytes = self.bytes(&block);
            match look_up(bytes, block.origin(), key, sequence) {
                Some(LookUp::Found(value, trailer)) => {
                    return Ok(Some(Found {
                        table: self,
                        block,
                        value,
                        trailer,
                    }));
                }
                Some(LookUp::Absent) => return Ok(None),
                Some(LookUp::InNextBlock) => index += 1,
                None => return Err(self.malformed(segment, index)),
            }
        }
        Ok(None)
    }

    /// Block `index` of `segment`, verified (I1).
    #[inline]
    pub(crate) fn block(
        &self,
        segment: &Segment,
        index: usize,
        counters: &mut ReadCounters,
    ) -> Result<Block> {
        counters.block_reads += 1;
        let (offset, length) = segment.index.block(index);
        if let Some(region) = &self.region {
            if segment.marks.contains(index, &self.context.clock) {
                #[expect(clippy::cast_possible_truncation, reason = "the file is mapped whole")]
                return Ok(Block::Mapped(offset as usize));
            }
            return self.load_mapped(region, segment, index, counters);
        }
        let place = self.place(segment, offset);
        if let Some(block) = self.context.cache.get(place) {
            return Ok(Block::Cached(block));
        }
        if !self.file.is_resident(offset) {
            self.context.clock.note_cold_read(1);
        }
        self.load(place, length, counters)
    }

    /// The bytes that contain `block`.
    #[inline]
    fn bytes<'a>(&'a self, block: &'a Block) -> &'a [u8] {
        match (block, &self.region) {
            (Block::Cached(bytes), _) => bytes,
            (Block::Mapped(_), Some(region)) => region.bytes(),
            (Block::Mapped(_), None) => &[],
        }
    }

    pub(crate) fn place(&self, segment: &Segment, offset: u64) -> Place {
        Place {
            file: self.number,
            segment: segment.id,
            offset,
        }
    }

    #[cold]
    fn load_mapped(
        &self,
        region: &Region,
        segment: &Segment,
        index: usize,
        counters: &mut ReadCounters,
    ) -> Result<Block> {
        let (offset, length) = segment.index.block(index);
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
            && let Some(block) = self.context.cache.get(place)
        {
            return Ok(Block::Cached(block));
        }
        if !region.is_resident(range.clone()) {
            let reads = Marks::represented(index);
            self.context.clock.note_cold_read(reads);
            return self.load(place, length, counters);
        }
        counters.block_loads += 1;
        counters.block_load_bytes += length as u64;
        let (codec, body) = self.located(verify(stored, place), offset)?;
        if codec == Compression::None {
            self.located(Layout::check(body), offset)?;
            segment.marks.insert(index, &self.context.clock);
            return Ok(Block::Mapped(range.start));
        }
        self.decompress_to_cache(codec, body, place)
    }

    /// Loads a block by a system call. The cache keeps it, except an uncompressed block of a mapped table: the page
    /// cache has it now.
    #[cold]
    fn load(&self, place: Place, length: usize, counters: &mut ReadCounters) -> Result<Block> {
        counters.block_loads += 1;
        counters.block_load_bytes += length as u64;
        let mut stored = zeroed(length);
        if let Some(target) = Arc::get_mut(&mut stored) {
            read_exact_at(&*self.file, target, place.offset)
                .map_err(|error| Error::read(&self.name, place.offset, error))?;
        }
        let (codec, body) = self.located(verify(&stored, place), place.offset)?;
        if codec != Compression::None {
            return self.decompress_to_cache(codec, body, place);
        }
        self.located(Layout::check(body), place.offset)?;
        if self.region.is_none() {
            self.context.keep(place, &stored);
        }
        Ok(Block::Cached(stored))
    }

    fn decompress_to_cache(&self, codec: Compression, body: &[u8], place: Place) -> Result<Block> {
        let payload = self.located(decompress(codec, body), place.offset)?;
        self.located(Layout::check(&payload), place.offset)?;
        self.context.keep(place, &payload);
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

    /// The error of a block that changed after its verification.
    #[cold]
    pub(crate) fn malformed(&self, segment: &Segment, index: usize) -> Error {
        let offset = if index < segment.index.blocks() {
            segment.index.block(index).0
        } else {
            0
        };
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
fn look_up(bytes: &[u8], origin: usize, key: &[u8], sequence: SequenceNumber) -> Option<LookUp> {
    let layout = Layout::read(bytes, origin)?;
    let position = layout.search(bytes, key, sequence)?;
    Some(if position.matches {
        let entry = layout.entry(bytes, position.offset)?;
        LookUp::Found(entry.value..entry.end, entry.trailer)
    } else if position.follows && position.index == layout.count() {
        LookUp::InNextBlock
    } else {
        LookUp::Absent
    })
}
