//! Asks the system in advance for what a read will need, without a wait for a device.
//!
//! Nothing here changes an answer. The read that follows reports what fails.
//!
//! Concurrency: that of [`Table`].

use crate::vfs::Advice;

use super::super::format::BlockPlace;
use super::cursor::{Blocks, Bounds, TableCursor};
use super::file::TableFile;
use super::filter::{PiecedFilter, SegmentFilter};
use super::segment::Segment;
use super::table::Table;

impl TableCursor {
    /// Asks the system, without a wait, for the block that a step backward enters, or for the index partition that
    /// leads to it. Asks for nothing if the step stays in its block.
    pub(crate) fn announce_prev(&self) {
        let Some(number) = self.block_of_prev() else {
            return;
        };
        let (table, segment) = (self.blocks.table(), self.blocks.segment());
        let partition = segment.index.partition_of(number);
        match segment.loaded_partition(partition) {
            Some(partition) => {
                let block = partition.block(number);
                table.announce_blocks(segment, block, block);
            }
            None => table.announce_partition(segment, partition),
        }
    }
}

impl Table {
    /// Asks the system, without a wait, for the blocks that a scan within `bounds` usually reads after a seek to `key` in
    /// a segment, or for the index partition that leads to them.
    pub(crate) fn announce(&self, segment: usize, key: &[u8], bounds: &Bounds) {
        self.announce_key(&self.segments[segment], key, bounds);
    }

    /// The last block that a scan from block `first` usually reads, within `bounds` and the same index partition.
    pub(super) fn typical_end(
        &self,
        segment: &Segment,
        first: BlockPlace,
        bounds: &Bounds,
    ) -> BlockPlace {
        let lengths = &self.context.scans;
        let blocks = bounds.scans.map_or(1, |scans| lengths.typical(scans));
        let index = &segment.index;
        let number = index.partition_of(first.number);
        let Some(partition) = segment.loaded_partition(number).filter(|_| blocks > 1) else {
            return first;
        };
        let end = bounds.end.as_ref().and_then(|end| index.find(end));
        let end = end.filter(|end| end.partition == number);
        let bound = end.map_or(usize::MAX, |end| partition.find(end).number + 1);
        let behind = (first.number + blocks).min(index.blocks_of(number).end);
        partition.block(behind.min(bound).max(first.number + 1) - 1)
    }

    /// Asks the system, without a wait, for what [`get`](Self::get) will read first, and for the pieces of filters that
    /// it will probe before. Returns whether a filter in memory passes the key.
    pub(crate) fn announce_get(&self, key: &[u8], hash: u64) -> bool {
        let one_block = Bounds::default();
        let mut segments = self.segments.iter().rev();
        segments.any(|segment| {
            self.announce_probe(segment, hash) && self.announce_key(segment, key, &one_block)
        })
    }

    /// Whether the block at `place` of `segment` is in memory, as far as the marks, the cache and the system say.
    pub(super) fn is_near(&self, file: &TableFile, segment: &Segment, place: BlockPlace) -> bool {
        let region = file.region.as_ref();
        if region.is_some() && segment.marks.contains(place.number, &self.context.clock) {
            return true;
        }
        let cache = &self.context.cache;
        let key = || self.block_key(self.place(segment, place.offset));
        if cache.has_had_blocks() && cache.get(key()).is_some() {
            return true;
        }
        region.is_some_and(|region| {
            let start = usize::try_from(place.offset).unwrap_or(usize::MAX);
            region.is_resident(start..start.saturating_add(place.length))
        })
    }

    /// Whether a filter in memory passes the key with this hash. Asks the system for the piece of a filter that is not
    /// in memory. What the key needs after such a piece is not known yet.
    fn announce_probe(&self, segment: &Segment, hash: u64) -> bool {
        match &segment.filter {
            SegmentFilter::ByPieces(filter) => {
                self.announce_piece(segment, filter, hash) == Some(true)
            }
            filter => filter.may_contain(hash),
        }
    }

    /// Whether the piece of a filter that has the key with this hash passes it, if the piece is in memory. Else asks
    /// the system for the piece.
    fn announce_piece(&self, segment: &Segment, filter: &PiecedFilter, hash: u64) -> Option<bool> {
        let (clock, cache) = (&self.context.clock, &self.context.cache);
        let (number, handle, _) = filter.piece_of(hash);
        let key = || self.block_key(self.place(segment, handle.offset));
        let is_cached = || cache.has_had_blocks() && cache.get(key()).is_some();
        let is_near = filter.marks.contains(number, clock)
            || is_cached()
            || self.announce_range(handle.offset, handle.offset + handle.length);
        // The read that follows reports an error.
        is_near.then(|| {
            let passes = self.passes_pieces(segment, filter, hash);
            passes.unwrap_or(true)
        })
    }

    /// Asks the system for the block of `segment` that may have `key`, with those that a scan within `bounds` usually
    /// reads, or for the index partition that leads to it. Returns whether there is one.
    fn announce_key(&self, segment: &Segment, key: &[u8], bounds: &Bounds) -> bool {
        let Some(search) = segment.index.find(key) else {
            return false;
        };
        match segment.loaded_partition(search.partition) {
            Some(partition) => {
                let first = partition.find(search);
                let last = self.typical_end(segment, first, bounds);
                self.announce_blocks(segment, first, last);
            }
            None => self.announce_partition(segment, search.partition),
        }
        true
    }

    /// Asks the system for a partition of the index that is not loaded, unless it is in memory.
    fn announce_partition(&self, segment: &Segment, partition: usize) {
        let place = segment.index.partition(partition);
        self.announce_range(place.offset, place.offset + place.length);
    }

    /// Asks the system for the blocks of `segment` from `first` to `last`, unless they are in memory.
    pub(super) fn announce_blocks(&self, segment: &Segment, first: BlockPlace, last: BlockPlace) {
        let (cache, clock) = (&self.context.cache, &self.context.clock);
        let is_single = first == last;
        let key = || self.block_key(self.place(segment, first.offset));
        let is_cached = || cache.has_had_blocks() && cache.get(key()).is_some();
        if is_single && (segment.marks.contains(first.number, clock) || is_cached()) {
            clock.note_warm_read();
        } else {
            self.announce_range_after(first.offset, last.end(), || self.forget_written(segment));
        }
    }

    /// Asks the system for the bytes from `start` to `end`, unless they are in memory. Returns whether they are. The
    /// read that follows reports a file that cannot be opened.
    fn announce_range(&self, start: u64, end: u64) -> bool {
        self.announce_range_after(start, end, || ())
    }

    /// As [`announce_range`](Self::announce_range), after a call of `before` if it asks.
    fn announce_range_after(&self, start: u64, end: u64, before: impl FnOnce()) -> bool {
        let Ok(file) = self.file() else {
            return false;
        };
        let is_near = match &file.region {
            Some(region) => {
                let range = usize::try_from(start).unwrap_or(usize::MAX)
                    ..usize::try_from(end).unwrap_or(usize::MAX);
                region.is_resident(range)
            }
            None => file.file.is_resident(start) && file.file.is_resident(end - 1),
        };
        if is_near {
            self.context.clock.note_warm_read();
        } else {
            before();
            file.file.advise(start..end, Advice::WillNeed);
        }
        is_near
    }
}
