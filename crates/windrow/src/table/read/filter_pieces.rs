//! Probes of filters by pieces.
//!
//! A piece is read as a data block is: in place in the mapping if it has a mark or is in memory, and else by a system
//! call that moves this piece alone. The page cache keeps it then. Without a mapping the block cache keeps it. An error
//! of the read, or damage of the piece, is an error of the probe. It is never the answer "absent".
//!
//! Invariant I1: no line is used before its piece is verified: in a mapping within this interval of its mark, otherwise
//! when it is loaded.
//!
//! Concurrency: that of [`Table`].

use std::ops::Range;
use std::sync::Arc;

use crate::base::sync::atomic::Ordering;
use crate::base::{Error, Result};
use crate::block::stored::{Place, zeroed};
use crate::cache::Marks;
use crate::vfs::{Region, read_exact_at};

use super::super::format::Handle;
use super::file::TableFile;
use super::filter::PiecedFilter;
use super::segment::Segment;
use super::table::Table;

/// The piece that has the line of a key.
struct Piece<'a> {
    filter: &'a PiecedFilter,
    number: usize,
    /// The place of the line in the piece.
    line: usize,
    handle: Handle,
    place: Place,
}

impl Piece<'_> {
    fn new<'a>(table: &Table, segment: &Segment, filter: &'a PiecedFilter, hash: u64) -> Piece<'a> {
        let (number, handle, line) = filter.piece_of(hash);
        Piece {
            filter,
            number,
            line,
            handle,
            place: table.place(segment, handle.offset),
        }
    }

    /// The range of the piece in the file, and its bytes in the mapping.
    fn mapped<'a>(&self, region: &'a Region) -> Option<(Range<usize>, &'a [u8])> {
        let start = usize::try_from(self.handle.offset).ok()?;
        let length = usize::try_from(self.handle.length).ok()?;
        let range = start..start.checked_add(length)?;
        Some((range.clone(), region.bytes().get(range)?))
    }
}

impl Table {
    /// Whether the key with this hash may be in `segment`, whose filter is `filter`.
    #[inline(never)]
    pub(super) fn passes_pieces(
        &self,
        segment: &Segment,
        filter: &PiecedFilter,
        hash: u64,
    ) -> Result<bool> {
        let file = self.file()?;
        let piece = Piece::new(self, segment, filter, hash);
        let passes = |bytes: &[u8]| {
            let passes = filter.layout.passes(bytes, piece.line, hash);
            passes.ok_or_else(|| self.malformed(piece.handle.offset))
        };
        let Some(region) = &file.region else {
            return passes(&self.cached_piece(&file, &piece)?);
        };
        let (clock, marks) = (&self.context.clock, &filter.marks);
        let Some((range, bytes)) = piece.mapped(region) else {
            let what = "a piece of a filter is beyond the mapping";
            return Err(Error::corruption(&self.name, piece.handle.offset, what));
        };
        if !marks.contains(piece.number, clock) {
            if !region.is_resident(range) {
                clock.note_cold_read(Marks::represented(piece.number));
                return passes(&self.load_piece(&file, &piece)?);
            }
            self.verify_piece(&piece, bytes)?;
            marks.insert(piece.number, clock);
        }
        passes(bytes)
    }

    /// The piece from the block cache, loaded if need be.
    fn cached_piece(&self, file: &TableFile, piece: &Piece<'_>) -> Result<Arc<[u8]>> {
        if let Some(bytes) = self.context.cache.get(self.block_key(piece.place)) {
            return Ok(bytes);
        }
        if !file.file.is_resident(piece.handle.offset) {
            self.context.clock.note_cold_read(1);
        }
        let bytes = self.load_piece(file, piece)?;
        self.context.keep(self.block_key(piece.place), &bytes);
        Ok(bytes)
    }

    /// Loads a piece by a system call.
    fn load_piece(&self, file: &TableFile, piece: &Piece<'_>) -> Result<Arc<[u8]>> {
        let Handle { offset, length } = piece.handle;
        let mut stored = zeroed(usize::try_from(length).unwrap_or(usize::MAX));
        if let Some(target) = Arc::get_mut(&mut stored) {
            read_exact_at(&*file.file, target, offset)
                .map_err(|error| Error::read(&self.name, offset, error))?;
        }
        self.verify_piece(piece, &stored)?;
        if piece.filter.note_read() {
            self.want_filters();
        }
        Ok(stored)
    }

    /// Checks a piece before its use (I1), and counts it.
    fn verify_piece(&self, piece: &Piece<'_>, stored: &[u8]) -> Result<()> {
        let layout = &piece.filter.layout;
        self.context
            .piece_reads
            .loads
            .fetch_add(1, Ordering::Relaxed);
        let verified = layout.verify(piece.number, stored, piece.place);
        self.located(verified, piece.handle.offset)
    }
}
