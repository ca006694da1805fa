//! Cursors over one segment.
//!
//! A [`BlockCursor`] moves over the entries of blocks. Its type parameter is the source of the blocks,
//! which avoids indirect calls: [`SharedBlocks`] for reads, [`ReadAhead`](super::read_ahead) for
//! compaction.
//!
//! Invariants:
//! - I1. While the cursor is valid, `key`, `value` and `trailer` are those of entry `index` of the
//!   loaded block.
//! - I2. The key buffer's prefix is the loaded block's.
//! - I3. After an error the cursor is invalid for good.
//!
//! No move allocates once the key buffer has grown to the longest key.
//!
//! Concurrency: a cursor belongs to one thread at a time.

use std::sync::Arc;

use crate::base::{Cursor, Error, ErrorKind, Held, Kind, Result, SequenceNumber, Step, Trailer};
use crate::block::{BlockBytes, Layout, Reach, Stride, StrideStart, Striding};

use super::super::format::BlockPlace;
use super::counters::ReadCounters;
use super::file::TableFile;
use super::key_buffer::KeyBuffer;
use super::scan_lengths::LevelScans;
use super::segment::Segment;
use super::sequence::Sequence;
use super::table::{Block, Table};

/// The source of the blocks of a cursor.
pub(crate) trait Blocks {
    /// Makes the block at `place` the present one.
    fn load(&mut self, place: BlockPlace) -> Result<()>;
    /// The bytes that contain the present block; empty before the first.
    fn bytes(&self) -> &[u8];
    /// The offset of the present block in them.
    fn origin(&self) -> usize;
    fn table(&self) -> &Arc<Table>;
    fn segment(&self) -> &Segment;
    fn counters(&mut self) -> &mut ReadCounters;
    /// Notes that the next block does not follow the present one.
    fn jump(&mut self) {}
}

/// What a cursor will be asked for. `None` for a key is no bound.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bounds {
    pub(crate) start: Option<Arc<[u8]>>,
    pub(crate) end: Option<Arc<[u8]>>,
    /// How far scans go; `None` for a cursor that is not counted among them.
    pub(crate) scans: Option<LevelScans>,
}

/// Blocks of the mapping or the cache.
#[derive(Debug)]
pub(crate) struct SharedBlocks {
    table: Arc<Table>,
    /// The file of the table, from the first block on.
    file: Option<Arc<TableFile>>,
    segment: usize,
    /// A mapping is kept from block to block.
    block: BlockBytes,
    origin: usize,
    sequence: Sequence,
    /// Whether the blocks of the next scan were asked for.
    is_announced: bool,
    /// Nothing is read ahead beyond these keys.
    bounds: Bounds,
    counters: ReadCounters,
    /// Counts the memory of the cursor and of the largest block that it held.
    memory: Held,
}

impl SharedBlocks {
    /// Asks for blocks after block `number`, if this is a good moment.
    ///
    /// # Errors
    /// Of index partitions that a scan may never need: for the caller to drop.
    #[cold]
    fn read_ahead(&mut self, number: usize) -> Result<()> {
        let (table, segment) = (&self.table, &self.table.segments[self.segment]);
        let blocks = segment.index.blocks();
        let block_of = |key: &Option<Arc<[u8]>>| {
            let block = key.as_ref().map(|key| table.find_block(segment, key));
            block.transpose().map(Option::flatten)
        };
        let start = block_of(&self.bounds.start)?.map_or(0, |block| block.number);
        let end = block_of(&self.bounds.end)?.map_or(blocks, |block| block.number + 1);
        let place = |number| table.block_place(segment, number);
        if let Some((first, last)) = self.sequence.blocks_ahead(number, &(start..end), place)? {
            table.announce_blocks(segment, first, last);
        }
        Ok(())
    }
}

impl SharedBlocks {
    /// Asks for the blocks that scans from `first` usually read.
    #[cold]
    fn begin_scan(&mut self, first: BlockPlace) {
        let (table, segment) = (&self.table, &self.table.segments[self.segment]);
        let last = table.typical_end(segment, first, &self.bounds);
        let is_announced = std::mem::take(&mut self.is_announced);
        if last.number > first.number {
            if !is_announced {
                table.announce_blocks(segment, first, last);
            }
            self.sequence.begin(first, last);
        }
    }

    /// Ends the scan since the last seek, which counts if it has found blocks on the device.
    #[inline]
    fn end_scan(&mut self) {
        let passed = self.sequence.end();
        if passed > 0
            && self.table.context.clock.is_cold()
            && let Some(scans) = self.bounds.scans
        {
            self.table.context.scans.note(scans, passed);
        }
    }
}

impl Drop for SharedBlocks {
    #[inline]
    fn drop(&mut self) {
        self.end_scan();
    }
}

impl Blocks for SharedBlocks {
    #[inline]
    fn load(&mut self, place: BlockPlace) -> Result<()> {
        let follows = self.sequence.note(place.number);
        if self.table.context.clock.is_cold() {
            if follows {
                // The read that needs what cannot be read reports it.
                drop(self.read_ahead(place.number));
            } else {
                self.begin_scan(place);
            }
        }
        let file = match &self.file {
            Some(file) => file,
            None => self.file.insert(Arc::clone(&*self.table.file()?)),
        };
        let segment = &self.table.segments[self.segment];
        let block = self.table.block(file, segment, place, &mut self.counters)?;
        self.origin = block.origin();
        match (block, &self.block) {
            (Block::Mapped(_), BlockBytes::Mapped(_)) => {}
            (Block::Mapped(_), _) => {
                let region = file.region.as_ref();
                self.block = region.map_or(BlockBytes::Nothing, |region| {
                    BlockBytes::Mapped(Arc::clone(region))
                });
            }
            (Block::Cached(block), _) => {
                self.memory
                    .grow_to((size_of::<TableCursor>() + block.len()) as u64);
                self.block = BlockBytes::Cached(block);
            }
        }
        Ok(())
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        self.block.get()
    }

    #[inline]
    fn origin(&self) -> usize {
        self.origin
    }

    #[inline]
    fn table(&self) -> &Arc<Table> {
        &self.table
    }

    #[inline]
    fn segment(&self) -> &Segment {
        &self.table.segments[self.segment]
    }

    #[inline]
    fn jump(&mut self) {
        self.end_scan();
    }

    fn counters(&mut self) -> &mut ReadCounters {
        &mut self.counters
    }
}

/// A cursor for reads.
pub(crate) type TableCursor = BlockCursor<SharedBlocks>;

/// Moves over the entries of one segment.
#[derive(Debug)]
pub(crate) struct BlockCursor<B> {
    pub(super) blocks: B,
    /// The loaded block, if any.
    loaded: Option<BlockPlace>,
    layout: Layout,
    index: usize,
    /// The start of the value in the bytes of the block.
    value: usize,
    /// The end of the value and start of the next entry.
    end: usize,
    trailer: Trailer,
    /// Scratch for the last key of a block while the next one is entered.
    last_key: Vec<u8>,
    key: KeyBuffer,
    valid: bool,
    failed: Option<ErrorKind>,
}

impl Table {
    /// A cursor over a segment, for reads.
    pub(crate) fn cursor(self: &Arc<Self>, segment: usize) -> TableCursor {
        let tracker = &self.context.memory.cursors;
        BlockCursor::new(SharedBlocks {
            segment,
            table: Arc::clone(self),
            file: None,
            block: BlockBytes::Nothing,
            origin: 0,
            sequence: Sequence::new(),
            is_announced: false,
            bounds: Bounds::default(),
            counters: ReadCounters::default(),
            memory: Held::new(tracker, size_of::<TableCursor>() as u64),
        })
    }
}

impl TableCursor {
    /// Reads nothing ahead beyond `bounds`.
    pub(crate) fn within(mut self, bounds: Bounds) -> Self {
        self.blocks.bounds = bounds;
        self
    }

    /// Notes that [`Table::announce`] has asked for the blocks of the next seek.
    pub(crate) fn note_announced(&mut self) {
        self.blocks.is_announced = true;
    }

    /// Moves the cursor to a segment of `table` and reuses its memory; invalid until a seek.
    pub(crate) fn switch(&mut self, table: &Arc<Table>, segment: usize) {
        let blocks = &mut self.blocks;
        blocks.segment = segment;
        if !Arc::ptr_eq(&blocks.table, table) {
            blocks.table = Arc::clone(table);
            blocks.file = None;
        }
        blocks.block = BlockBytes::Nothing;
        blocks.origin = 0;
        blocks.sequence.switch();
        self.loaded = None;
        self.valid = false;
    }
}

impl<B: Blocks> BlockCursor<B> {
    pub(super) fn new(blocks: B) -> Self {
        Self {
            blocks,
            loaded: None,
            layout: Layout::default(),
            index: 0,
            value: 0,
            end: 0,
            trailer: Trailer::new(0, Kind::Tombstone),
            last_key: Vec::new(),
            key: KeyBuffer::new(),
            valid: false,
            failed: None,
        }
    }

    /// Takes the counts since the last call.
    pub(crate) fn take_counters(&mut self) -> ReadCounters {
        std::mem::take(self.blocks.counters())
    }

    /// Loads the block at `place` unless it is loaded.
    #[expect(
        clippy::inline_always,
        reason = "half of a seek is spent here; measured"
    )]
    #[inline(always)]
    fn load(&mut self, place: BlockPlace) -> Result<()> {
        self.valid = false;
        if self
            .loaded
            .is_some_and(|loaded| loaded.number == place.number)
        {
            return Ok(());
        }
        self.loaded = None;
        self.blocks.load(place)?;
        let bytes = self.blocks.bytes();
        let Some(layout) = Layout::read(bytes, self.blocks.origin()) else {
            return Err(self.malformed(place.offset));
        };
        let Some(rest) = layout.prefix_on(bytes) else {
            return Err(self.malformed(place.offset));
        };
        self.key.set_prefix(rest, layout.prefix_length());
        self.layout = layout.raised(self.blocks.segment().raise());
        self.loaded = Some(place);
        Ok(())
    }

    /// Loads block `number` of the segment unless it is loaded.
    fn load_number(&mut self, number: usize) -> Result<()> {
        let place = self.place(number)?;
        self.load(place)
    }

    /// The place of block `number` of the segment.
    fn place(&self, number: usize) -> Result<BlockPlace> {
        self.blocks
            .table()
            .block_place(self.blocks.segment(), number)
    }

    /// Moves to the entry at `offset` of the loaded block, whose index is `index`; `None`, with nothing
    /// changed, if it is malformed. A repeated key is that of the previous entry in this block.
    #[expect(
        clippy::inline_always,
        reason = "this is all that most moves do; measured"
    )]
    #[inline(always)]
    fn settle(&mut self, index: usize, offset: usize) -> Option<Step> {
        let bytes = self.blocks.bytes();
        let entry = self.layout.entry(bytes, offset)?;
        let suffix = bytes.get(entry.suffix..)?;
        self.key.set_suffix(suffix, entry.value - entry.suffix);
        self.index = index;
        self.value = entry.value;
        self.end = entry.end;
        self.trailer = entry.step.trailer();
        self.valid = true;
        Some(entry.step)
    }

    /// Moves to the entry at `offset` of the loaded block.
    #[inline]
    fn stand_on(&mut self, index: usize, offset: usize) -> Result<Step> {
        match self.settle(index, offset) {
            Some(step) => Ok(step),
            None => Err(self.malformed_here()),
        }
    }

    /// Moves to entry `index` of the loaded block.
    #[inline]
    fn stand_on_slot(&mut self, index: usize) -> Result<Step> {
        match self.layout.slot(self.blocks.bytes(), index) {
            Some(offset) => self.stand_on(index, offset),
            None => Err(self.malformed_here()),
        }
    }

    #[cold]
    fn malformed(&self, offset: u64) -> Error {
        self.blocks.table().malformed(offset)
    }

    /// The error of the loaded block.
    #[cold]
    fn malformed_here(&self) -> Error {
        self.malformed(self.loaded.map_or(0, |block| block.offset))
    }

    /// Keeps the cursor invalid once a move has failed (I3).
    #[inline]
    fn guard<T>(&mut self, result: Result<T>) -> Result<T> {
        if let Err(error) = &result {
            self.valid = false;
            self.failed = Some(error.kind());
        }
        result
    }

    #[inline]
    fn check(&self) -> Result<()> {
        match self.failed {
            None => Ok(()),
            Some(kind) => Err(self.failed_before(kind)),
        }
    }

    #[cold]
    fn failed_before(&self, kind: ErrorKind) -> Error {
        let name = &self.blocks.table().name;
        Error::new(kind, format!("an earlier read of {name} failed"))
    }

    /// The number of the block that a step backward enters, if it leaves the loaded one.
    pub(super) fn block_of_prev(&self) -> Option<usize> {
        let loaded = self.loaded.filter(|_| self.valid && self.index == 0)?;
        loaded.number.checked_sub(1)
    }

    fn seek_inner(&mut self, key: &[u8], sequence: SequenceNumber) -> Result<()> {
        let mut next = self.blocks.table().find_block(self.blocks.segment(), key)?;
        self.blocks.jump();
        self.valid = false;
        while let Some(block) = next {
            self.load(block)?;
            let found = self.layout.search(self.blocks.bytes(), key, sequence);
            let Some(found) = found else {
                return Err(self.malformed(block.offset));
            };
            if found.index < self.layout.count() {
                return self.stand_on(found.index, found.offset).map(drop);
            }
            // The key lies between the blocks, or its versions continue in the next.
            let after = block.number + 1;
            next = (after < self.blocks.segment().index.blocks())
                .then(|| self.place(after))
                .transpose()?;
        }
        Ok(())
    }

    /// Completes a `next` that found no entry in the block.
    #[inline(never)]
    fn next_beyond(&mut self) -> Result<Step> {
        if !self.valid {
            return self.check().map(|()| Step::END);
        }
        let result = if self.end < self.layout.entries_end() {
            Err(self.malformed_here())
        } else {
            self.enter_next_block()
        };
        self.guard(result)
    }

    fn enter_next_block(&mut self) -> Result<Step> {
        self.valid = false;
        let next = self.loaded.map_or(0, |block| block.number + 1);
        if next >= self.blocks.segment().index.blocks() {
            return Ok(Step::END);
        }
        self.last_key.clear();
        self.last_key.extend_from_slice(self.key.key());
        self.load_number(next)?;
        self.stand_on_slot(0)?;
        Ok(Step::to(self.trailer, self.key.key() == self.last_key))
    }

    fn enter_previous_block(&mut self) -> Result<()> {
        self.valid = false;
        let before = self.loaded.and_then(|block| block.number.checked_sub(1));
        if let Some(block) = before {
            self.load_number(block)?;
            self.stand_on_slot(self.layout.count() - 1)?;
        }
        Ok(())
    }
}

impl<B: Blocks> Cursor for BlockCursor<B> {
    fn seek_to_first(&mut self) -> Result<()> {
        self.check()?;
        let result = self.load_number(0).and_then(|()| self.stand_on_slot(0));
        self.guard(result).map(drop)
    }

    fn seek_to_last(&mut self) -> Result<()> {
        self.check()?;
        let last = self.blocks.segment().index.blocks() - 1;
        let result = self
            .load_number(last)
            .and_then(|()| self.stand_on_slot(self.layout.count() - 1));
        self.guard(result).map(drop)
    }

    #[inline]
    fn seek(&mut self, key: &[u8], sequence: SequenceNumber) -> Result<()> {
        self.check()?;
        let result = self.seek_inner(key, sequence);
        self.guard(result)
    }

    #[inline]
    fn next(&mut self) -> Result<Step> {
        let has_next = self.valid && self.end < self.layout.entries_end();
        if has_next && let Some(step) = self.settle(self.index + 1, self.end) {
            Ok(step)
        } else {
            self.next_beyond()
        }
    }

    #[inline]
    fn is_ahead(&self) -> bool {
        false
    }

    fn arrive(&mut self) -> Result<()> {
        Ok(())
    }

    #[inline]
    fn prev(&mut self) -> Result<()> {
        if !self.valid {
            return self.check();
        }
        let result = match self.index.checked_sub(1) {
            Some(index) => self.stand_on_slot(index).map(drop),
            None => self.enter_previous_block(),
        };
        self.guard(result)
    }

    #[inline]
    fn is_valid(&self) -> bool {
        self.valid
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.key.key()
    }

    #[inline]
    fn trailer(&self) -> Trailer {
        self.trailer
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.blocks
            .bytes()
            .get(self.value..self.end)
            .unwrap_or_default()
    }
}

impl Striding for TableCursor {
    #[inline]
    fn begin_stride(&self, stride: &mut Stride, reach: Reach<'_>) -> bool {
        let start = StrideStart {
            index: self.index,
            kind: self.trailer.kind(),
            key: self.key.key(),
            value: self.value,
            end: self.end,
        };
        self.valid && stride.begin(&self.blocks.block, &self.layout, start, reach)
    }

    fn end_stride(&mut self, stride: &Stride) -> Result<()> {
        let (index, offset) = stride.cursor_place();
        if index == self.index {
            return Ok(());
        }
        let moved = match offset {
            Some(offset) => self.stand_on(index, offset),
            None => self.stand_on_slot(index),
        };
        self.guard(moved).map(drop)
    }
}
