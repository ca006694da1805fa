//! Cursors over one segment.
//!
//! A [`BlockCursor`] walks blocks; where their bytes come from is its type parameter, so that a
//! move makes no indirect choice: [`SharedBlocks`] for reads, [`ReadAhead`](super::read_ahead) for
//! compaction.
//!
//! Invariants:
//! - I1. While the cursor is valid, `key`, `value` and `trailer` are those of entry `index` of the
//!   loaded block.
//! - I2. The key buffer begins with the loaded block's shared prefix.
//! - I3. After an error the cursor is invalid for good.
//!
//! No move allocates once the key buffer has grown to the longest key.
//!
//! Concurrency: a cursor belongs to one thread at a time.

use std::ops::Range;
use std::sync::Arc;

use crate::base::{Cursor, Error, ErrorKind, Result, SequenceNumber, Trailer};
use crate::block::{Entry, Layout};

use super::counters::ReadCounters;
use super::reader::{BlockBytes, Table};
use super::segment::Segment;

/// Where a cursor takes blocks from.
pub(super) trait Blocks {
    /// Makes block `index` the present one.
    fn load(&mut self, index: usize) -> Result<()>;
    /// The payload of the present block, perhaps with bytes behind it; empty before the first.
    fn bytes(&self) -> &[u8];
    fn table(&self) -> &Arc<Table>;
    fn segment(&self) -> &Segment;
    fn counters(&mut self) -> &mut ReadCounters;
}

/// Blocks of the mapping or the cache.
#[derive(Debug)]
pub(crate) struct SharedBlocks {
    table: Arc<Table>,
    segment: usize,
    block: BlockBytes,
    counters: ReadCounters,
}

impl Blocks for SharedBlocks {
    #[inline]
    fn load(&mut self, index: usize) -> Result<()> {
        let segment = &self.table.segments[self.segment];
        self.block = self.table.block(segment, index, &mut self.counters)?;
        Ok(())
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        self.table.bytes(&self.block)
    }

    #[inline]
    fn table(&self) -> &Arc<Table> {
        &self.table
    }

    #[inline]
    fn segment(&self) -> &Segment {
        &self.table.segments[self.segment]
    }

    fn counters(&mut self) -> &mut ReadCounters {
        &mut self.counters
    }
}

/// A cursor for reads.
pub(crate) type TableCursor = BlockCursor<SharedBlocks>;

/// Walks the entries of one segment.
#[derive(Debug)]
pub(crate) struct BlockCursor<B> {
    blocks: B,
    /// The loaded block, if any.
    loaded: Option<usize>,
    layout: Layout,
    index: usize,
    value: Range<usize>,
    trailer: Trailer,
    key: Vec<u8>,
    valid: bool,
    failed: Option<ErrorKind>,
}

/// Room for most keys, so that the first moves do not grow the buffer again and again.
const KEY_ROOM: usize = 64;

impl Table {
    /// A cursor over the table, for reads.
    pub(crate) fn cursor(self: &Arc<Self>) -> TableCursor {
        BlockCursor::new(SharedBlocks {
            segment: self.only_segment(),
            table: Arc::clone(self),
            block: BlockBytes::Mapped(0..0),
            counters: ReadCounters::default(),
        })
    }

    /// The index of the one segment that a table has as yet.
    pub(super) fn only_segment(&self) -> usize {
        assert_eq!(self.segments.len(), 1, "cursors walk one segment");
        0
    }
}

impl<B: Blocks> BlockCursor<B> {
    pub(super) fn new(blocks: B) -> Self {
        Self {
            blocks,
            loaded: None,
            layout: Layout::default(),
            index: 0,
            value: 0..0,
            trailer: Trailer::new(0, crate::base::Kind::Tombstone),
            key: Vec::with_capacity(KEY_ROOM),
            valid: false,
            failed: None,
        }
    }

    /// Takes the counts since the last call.
    pub(crate) fn take_counters(&mut self) -> ReadCounters {
        std::mem::take(self.blocks.counters())
    }

    /// Loads block `index` unless it is loaded.
    #[inline]
    fn load(&mut self, index: usize) -> Result<()> {
        self.valid = false;
        if self.loaded == Some(index) {
            return Ok(());
        }
        self.loaded = None;
        self.blocks.load(index)?;
        let bytes = self.blocks.bytes();
        let header = Layout::read(bytes).and_then(|layout| Some((layout, layout.prefix(bytes)?)));
        let Some((layout, prefix)) = header else {
            return Err(self.malformed(index));
        };
        self.key.clear();
        self.key.extend_from_slice(prefix);
        self.layout = layout;
        self.loaded = Some(index);
        Ok(())
    }

    /// Takes on `entry` of the loaded block, whose index is `index`.
    #[inline]
    fn settle(&mut self, index: usize, entry: Entry) -> Option<()> {
        let suffix = self.blocks.bytes().get(entry.suffix)?;
        self.key.truncate(self.layout.prefix_length());
        self.key.extend_from_slice(suffix);
        self.index = index;
        self.value = entry.value;
        self.trailer = entry.trailer;
        self.valid = true;
        Some(())
    }

    /// Moves to entry `index` of the loaded block.
    #[inline]
    fn stand_on(&mut self, index: usize) -> Result<()> {
        let bytes = self.blocks.bytes();
        let entry = self
            .layout
            .slot(bytes, index)
            .and_then(|offset| self.layout.entry(bytes, offset));
        match entry.and_then(|entry| self.settle(index, entry)) {
            Some(()) => Ok(()),
            None => Err(self.malformed(self.loaded.unwrap_or_default())),
        }
    }

    #[cold]
    fn malformed(&self, block: usize) -> Error {
        self.blocks.table().malformed(self.blocks.segment(), block)
    }

    /// Keeps the cursor invalid once a move has failed (I3).
    #[inline]
    fn guard(&mut self, result: Result<()>) -> Result<()> {
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

    fn seek_inner(&mut self, key: &[u8], sequence: SequenceNumber) -> Result<()> {
        let blocks = self.blocks.segment().index.blocks();
        let mut block = self.blocks.segment().index.find(key);
        self.valid = false;
        while block < blocks {
            self.load(block)?;
            let found = self.layout.search(self.blocks.bytes(), key, sequence);
            match found {
                None => return Err(self.malformed(block)),
                Some(index) if index < self.layout.count() => return self.stand_on(index),
                // The key lies in the gap behind the block, or its versions go on in the next.
                Some(_) => block += 1,
            }
        }
        Ok(())
    }

    fn enter_next_block(&mut self) -> Result<()> {
        self.valid = false;
        let next = self.loaded.map_or(0, |block| block + 1);
        if next < self.blocks.segment().index.blocks() {
            self.load(next)?;
            self.stand_on(0)?;
        }
        Ok(())
    }

    fn enter_previous_block(&mut self) -> Result<()> {
        self.valid = false;
        if let Some(block) = self.loaded.and_then(|block| block.checked_sub(1)) {
            self.load(block)?;
            self.stand_on(self.layout.count() - 1)?;
        }
        Ok(())
    }

    #[cold]
    fn changed(&mut self) -> Result<()> {
        let error = self.malformed(self.loaded.unwrap_or_default());
        self.guard(Err(error))
    }
}

impl<B: Blocks> Cursor for BlockCursor<B> {
    fn seek_to_first(&mut self) -> Result<()> {
        self.check()?;
        let result = self.load(0).and_then(|()| self.stand_on(0));
        self.guard(result)
    }

    fn seek_to_last(&mut self) -> Result<()> {
        self.check()?;
        let last = self.blocks.segment().index.blocks() - 1;
        let result = self
            .load(last)
            .and_then(|()| self.stand_on(self.layout.count() - 1));
        self.guard(result)
    }

    #[inline]
    fn seek(&mut self, key: &[u8], sequence: SequenceNumber) -> Result<()> {
        self.check()?;
        let result = self.seek_inner(key, sequence);
        self.guard(result)
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        if !self.valid {
            return self.check();
        }
        if self.value.end < self.layout.entries_end() {
            let entry = self.layout.entry(self.blocks.bytes(), self.value.end);
            let index = self.index + 1;
            return match entry.and_then(|entry| self.settle(index, entry)) {
                Some(()) => Ok(()),
                None => self.changed(),
            };
        }
        let result = self.enter_next_block();
        self.guard(result)
    }

    #[inline]
    fn prev(&mut self) -> Result<()> {
        if !self.valid {
            return self.check();
        }
        let result = match self.index.checked_sub(1) {
            Some(index) => self.stand_on(index),
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
        &self.key
    }

    #[inline]
    fn trailer(&self) -> Trailer {
        self.trailer
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.blocks
            .bytes()
            .get(self.value.clone())
            .unwrap_or_default()
    }
}
