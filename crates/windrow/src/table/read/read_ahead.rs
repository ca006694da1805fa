//! Reads blocks from front to back through a read buffer, without cache and mapping: for compaction and
//! verification, which read every block once.
//!
//! Invariant I1: the buffer holds unverified bytes of the file; each block is verified when it becomes
//! the present one.
//!
//! Concurrency: owned by one job.

use std::ops::Range;
use std::sync::Arc;

use crate::base::{Error, Held, Result};
use crate::block::Layout;
use crate::block::stored::{decompress, verify};
use crate::codec::Compression;
use crate::vfs::{Footprint, PassedBytes};

use super::super::format::BlockPlace;
use super::counters::ReadCounters;
use super::cursor::{BlockCursor, Blocks};
use super::segment::Segment;
use super::table::Table;

/// The bytes of one read.
const READ_BUFFER_BYTES: u64 = 256 << 10;

/// The bytes of one read if the memory for jobs is used up.
const SMALL_READ_BUFFER_BYTES: u64 = 32 << 10;

/// A cursor that reads ahead and bypasses the cache.
pub(crate) type SequentialCursor = BlockCursor<ReadAhead>;

/// Blocks from a read buffer.
#[derive(Debug)]
pub(crate) struct ReadAhead {
    table: Arc<Table>,
    segment: usize,
    /// The reads so far; `None` before the first.
    footprint: Option<Footprint>,
    /// Counts the blocks that the job has passed.
    passed: Arc<PassedBytes>,
    read_buffer: Vec<u8>,
    /// Counts the memory of the buffer.
    held: Held,
    /// The offset of the buffer in the file.
    start: u64,
    block: Present,
    counters: ReadCounters,
}

/// The payload of the present block.
#[derive(Debug)]
enum Present {
    /// The offset of the payload in the buffer.
    InReadBuffer(usize),
    Decompressed(Arc<[u8]>),
}

impl Table {
    /// A cursor over a segment that reads ahead and bypasses the cache.
    pub(crate) fn sequential_cursor(self: &Arc<Self>, segment: usize) -> SequentialCursor {
        self.counting_cursor(segment, &Arc::default())
    }

    /// As [`sequential_cursor`](Self::sequential_cursor), and counts what it passes in `passed`.
    pub(crate) fn counting_cursor(
        self: &Arc<Self>,
        segment: usize,
        passed: &Arc<PassedBytes>,
    ) -> SequentialCursor {
        let mut blocks = ReadAhead::new(self, segment);
        blocks.passed = Arc::clone(passed);
        BlockCursor::new(blocks)
    }
}

impl ReadAhead {
    pub(crate) fn new(table: &Arc<Table>, segment: usize) -> Self {
        Self {
            table: Arc::clone(table),
            segment,
            footprint: None,
            passed: Arc::default(),
            read_buffer: Vec::new(),
            held: Held::new(&table.context.memory.jobs, 0),
            start: 0,
            block: Present::InReadBuffer(0),
            counters: ReadCounters::default(),
        }
    }

    /// The range of the buffer that holds `length` bytes at `offset` of the file, if it does.
    fn in_read_buffer(&self, offset: u64, length: usize) -> Option<Range<usize>> {
        let start = usize::try_from(offset.checked_sub(self.start)?).ok()?;
        let end = start.checked_add(length)?;
        (end <= self.read_buffer.len()).then_some(start..end)
    }

    /// The length of the next read. A large buffer stays large.
    fn read_buffer_bytes(&self) -> u64 {
        let memory = &self.table.context.memory;
        let others = memory.jobs.bytes().saturating_sub(self.held.bytes());
        if self.held.bytes() >= READ_BUFFER_BYTES || others + READ_BUFFER_BYTES <= memory.jobs_max {
            READ_BUFFER_BYTES
        } else {
            SMALL_READ_BUFFER_BYTES
        }
    }

    /// Fills the buffer from `block` on.
    fn fill(&mut self, block: BlockPlace) -> Result<Range<usize>> {
        let BlockPlace { offset, length, .. } = block;
        let end = self.segment().index.data_end();
        let bytes = self.read_buffer_bytes();
        let ahead = (end - offset).min(bytes);
        let ahead = usize::try_from(ahead).unwrap_or(length).max(length);
        self.read_buffer.clear();
        self.read_buffer.reserve_exact(ahead);
        self.held.set(self.read_buffer.capacity() as u64);
        self.read_buffer.resize(ahead, 0);
        self.start = offset;
        let footprint = if let Some(footprint) = &mut self.footprint {
            footprint
        } else {
            let file = self.table.file()?;
            self.footprint
                .insert(Footprint::new(Arc::clone(&file.file)))
        };
        footprint.pass(offset);
        let read = footprint.read_exact_at(&mut self.read_buffer, offset);
        if let Err(error) = read {
            self.read_buffer.clear();
            return Err(Error::read(&self.table.name, offset, error));
        }
        self.counters.block_load_bytes += ahead as u64;
        let next = offset + ahead as u64;
        if next < end {
            footprint.ask_ahead(next..end.min(next + bytes));
        }
        Ok(0..length)
    }
}

impl Blocks for ReadAhead {
    fn load(&mut self, place: BlockPlace) -> Result<()> {
        self.counters.block_reads += 1;
        self.counters.block_loads += 1;
        let BlockPlace { offset, length, .. } = place;
        let range = match self.in_read_buffer(offset, length) {
            Some(range) => range,
            None => self.fill(place)?,
        };
        if let Some(footprint) = &self.footprint {
            let length = length as u64;
            let resident = footprint.resident_bytes(offset..offset + length);
            self.passed.add(length, resident);
        }
        let table = &self.table;
        let place = table.place(self.segment(), offset);
        let stored = self.read_buffer.get(range.clone()).unwrap_or_default();
        let (codec, body) = table.located(verify(stored, place), offset)?;
        self.block = if codec == Compression::None {
            table.located(Layout::check(body), offset)?;
            Present::InReadBuffer(range.start)
        } else {
            let payload = table.located(decompress(codec, body), offset)?;
            table.located(Layout::check(&payload), offset)?;
            Present::Decompressed(payload)
        };
        Ok(())
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        match &self.block {
            Present::InReadBuffer(_) => &self.read_buffer,
            Present::Decompressed(payload) => payload,
        }
    }

    #[inline]
    fn origin(&self) -> usize {
        match &self.block {
            Present::InReadBuffer(origin) => *origin,
            Present::Decompressed(_) => 0,
        }
    }

    fn table(&self) -> &Arc<Table> {
        &self.table
    }

    fn segment(&self) -> &Segment {
        &self.table.segments[self.segment]
    }

    fn counters(&mut self) -> &mut ReadCounters {
        &mut self.counters
    }
}
