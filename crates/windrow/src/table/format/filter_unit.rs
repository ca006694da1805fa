//! The stored form of a filter unit: pieces that are read and verified alone.
//!
//! A piece is a stored block with the shape of the unit and some of its lines. It ends where a page of the file ends,
//! so that a cold read of it moves one page; zeros fill what is too short for a line. Only a first piece that begins
//! where its page has no space for a line ends with the next page. The last piece ends with its last line. A unit of
//! one piece is one block. See "Filter units" in `docs/format.md`.
//!
//! Invariant I1: the place of a unit in the file determines its number of lines, its pieces, and the lines of each. So
//! a reader finds the piece of a line without reading another.

use crate::block::stored::{Place, TRAILER_BYTES, verify};
use crate::codec::Compression;
use crate::codec::reader::DecodeError;
use crate::filter::{Filter, LINE_BYTES, Line, SHAPE_BYTES, UnitShape};

use super::footer::Handle;

/// The distance of the ends of pieces, except those of the first and the last one.
const PIECE_BYTES: u64 = 4096;

/// The bytes of a piece beside its lines and zeros.
const OVERHEAD_BYTES: u64 = (SHAPE_BYTES + TRAILER_BYTES) as u64;

const LINE: u64 = LINE_BYTES as u64;

/// The lines of a piece that fills a page.
const PIECE_LINES: u64 = (PIECE_BYTES - OVERHEAD_BYTES) / LINE;

/// The end of the piece that begins at `start` of the file, if another piece follows: the first end of a page that
/// leaves it space for a line.
fn piece_end(start: u64) -> Option<u64> {
    start
        .checked_add(OVERHEAD_BYTES + LINE)?
        .checked_next_multiple_of(PIECE_BYTES)
}

/// The lines that a piece of `bytes` can hold.
fn lines_in(bytes: u64) -> u64 {
    bytes.saturating_sub(OVERHEAD_BYTES) / LINE
}

/// The bodies of the pieces of `filter`, whose first one begins at `start` of the file; passes each to `write`, which
/// returns where the next one begins.
pub(crate) fn write_pieces<E>(
    filter: &Filter,
    mut start: u64,
    mut write: impl FnMut(&[u8]) -> Result<u64, E>,
) -> Result<(), E> {
    let mut rest = filter.lines();
    let mut body = Vec::new();
    while !rest.is_empty() {
        let bytes = piece_end(start).map_or(u64::MAX, |end| end - start);
        let capacity = usize::try_from(lines_in(bytes)).unwrap_or(usize::MAX);
        let (lines, behind) = rest.split_at(capacity.min(rest.len()));
        body.clear();
        body.extend_from_slice(&filter.shape().encode());
        for line in lines {
            line.write(&mut body);
        }
        if !behind.is_empty() {
            let filled = usize::try_from(bytes).unwrap_or(usize::MAX) - TRAILER_BYTES;
            body.resize(filled, 0);
        }
        start = write(&body)?;
        rest = behind;
    }
    Ok(())
}

/// The pieces of a unit (I1).
#[derive(Debug, Clone, Copy)]
pub(crate) struct UnitLayout {
    /// The place of the unit in the file.
    start: u64,
    end: u64,
    /// The number of the unit in its segment.
    number: usize,
    lines: u32,
    /// The lines of the first piece.
    first_lines: u32,
    /// The end of the first piece.
    first_end: u64,
}

impl UnitLayout {
    /// The pieces of unit `number`, which fills `unit` in the file.
    pub(crate) fn new(unit: Handle, number: usize) -> Result<Self, DecodeError> {
        let layout = Self::of(unit, number);
        layout.ok_or(DecodeError::damaged(0, "a filter has an impossible length"))
    }

    fn of(unit: Handle, number: usize) -> Option<Self> {
        let (start, end) = (unit.offset, unit.end()?);
        let first_end = piece_end(start)?.min(end);
        let first_lines = lines_in(first_end - start);
        // Full pieces, and the last one if it is not the first.
        let behind = end - first_end;
        let (full, last) = (behind / PIECE_BYTES, behind % PIECE_BYTES);
        let last = if behind == 0 { end - start } else { last };
        if last < OVERHEAD_BYTES + LINE || !(last - OVERHEAD_BYTES).is_multiple_of(LINE) {
            return None;
        }
        let last_lines = if behind == 0 { 0 } else { lines_in(last) };
        let lines = first_lines + full * PIECE_LINES + last_lines;
        Some(Self {
            start,
            end,
            number,
            lines: u32::try_from(lines).ok()?,
            first_lines: u32::try_from(first_lines).ok()?,
            first_end,
        })
    }

    /// The number of lines.
    pub(crate) fn lines(&self) -> u32 {
        self.lines
    }

    /// The number of the unit in its segment.
    pub(crate) fn number(&self) -> usize {
        self.number
    }

    /// The place of the unit in the file.
    pub(crate) fn unit(&self) -> Handle {
        Handle {
            offset: self.start,
            length: self.end - self.start,
        }
    }

    /// The number of pieces.
    pub(crate) fn pieces(&self) -> usize {
        let behind = (self.end - self.first_end).div_ceil(PIECE_BYTES);
        usize::try_from(behind)
            .unwrap_or(usize::MAX)
            .saturating_add(1)
    }

    /// The place of piece `number` in the file.
    pub(crate) fn piece(&self, number: usize) -> Handle {
        let start_of = |number: u64| match number {
            0 => self.start,
            // Beyond the last piece this may be no offset.
            _ => self
                .first_end
                .saturating_add((number - 1).saturating_mul(PIECE_BYTES)),
        };
        let number = number as u64;
        let offset = start_of(number);
        Handle {
            offset,
            length: start_of(number + 1).min(self.end) - offset,
        }
    }

    /// The piece of `line`, and the place of the line in it.
    pub(crate) fn find(&self, line: usize) -> (usize, usize) {
        match line.checked_sub(self.first_lines as usize) {
            None => (0, line),
            Some(behind) => {
                let in_piece = usize::try_from(PIECE_LINES).unwrap_or(usize::MAX);
                (1 + behind / in_piece, behind % in_piece)
            }
        }
    }

    /// Checks the stored bytes of piece `number`, which is at `place`.
    pub(crate) fn verify(
        &self,
        number: usize,
        stored: &[u8],
        place: Place,
    ) -> Result<(), DecodeError> {
        let (codec, body) = verify(stored, place)?;
        if codec != Compression::None {
            let what = "only data blocks may be compressed";
            return Err(DecodeError::damaged(0, what));
        }
        if (body.len() + TRAILER_BYTES) as u64 != self.piece(number).length {
            return Err(DecodeError::damaged(
                0,
                "a piece of a filter has a wrong length",
            ));
        }
        self.shape(body).map(drop)
    }

    fn shape(&self, piece: &[u8]) -> Result<UnitShape, DecodeError> {
        UnitShape::decode(piece, self.number, self.lines)
    }

    /// Whether the key with `hash` may be in the segment, whose line is the one at `position` of `piece`; `None` if the
    /// piece is not what was verified.
    pub(crate) fn passes(&self, piece: &[u8], position: usize, hash: u64) -> Option<bool> {
        let shape = self.shape(piece).ok()?;
        let bytes = piece.get(SHAPE_BYTES + position * LINE_BYTES..)?;
        Some(shape.passes(&Line::read(bytes.first_chunk()?), hash))
    }

    /// The unit whose stored bytes are `stored`. `place` is that of its first piece. An error has the offset of its
    /// piece in the unit.
    pub(crate) fn decode(&self, stored: &[u8], place: Place) -> Result<Filter, DecodeError> {
        let wrong = DecodeError::damaged(0, "a filter does not fit its header");
        let mut lines = Vec::with_capacity((stored.len() / LINE_BYTES).min(self.lines as usize));
        let mut shape = None;
        for number in 0..self.pieces() {
            let Handle { offset, length } = self.piece(number);
            let start = usize::try_from(offset - self.start).unwrap_or(usize::MAX);
            let end = start.saturating_add(usize::try_from(length).unwrap_or(usize::MAX));
            let at = |error: DecodeError| DecodeError {
                offset: start + error.offset,
                ..error
            };
            let piece = stored.get(start..end).ok_or(wrong)?;
            self.verify(number, piece, Place { offset, ..place })
                .map_err(at)?;
            let of_unit = self.shape(piece).map_err(at)?;
            if *shape.get_or_insert(of_unit) != of_unit {
                return Err(at(wrong));
            }
            let (chunks, _) = piece[SHAPE_BYTES..].as_chunks::<LINE_BYTES>();
            let count = usize::try_from(lines_in(length)).unwrap_or(usize::MAX);
            lines.extend(chunks.iter().take(count).map(Line::read));
        }
        shape
            .and_then(|shape| Filter::new(shape, lines))
            .ok_or(wrong)
    }
}

#[cfg(test)]
mod tests;
