//! Decides how far a cursor that passes block after block reads ahead.
//!
//! A sequence begins with the blocks that [recent scans](super::scan_lengths) have passed, in one request. If that is one
//! block, the second one is read alone, too, since most scans end there. From the third block on the cursor asks for
//! blocks before it needs them. Each request has twice the bytes of the one before it, and the next request
//! comes halfway through the blocks of the present one, so the device reads while the cursor works.
//!
//! Concurrency: owned by one cursor.

use std::ops::Range;

use crate::base::Result;

use super::super::format::BlockPlace;

/// The bytes of the first request.
const REQUEST_BYTES_MIN: u64 = 8 << 10;

/// The bytes of the largest request.
const REQUEST_BYTES_MAX: u64 = 1 << 20;

/// The first block of a file follows this.
const BEFORE_FIRST: usize = usize::MAX;

/// No block follows this.
const NONE: usize = usize::MAX - 1;

/// The place of a cursor in a sequence of blocks.
#[derive(Debug)]
pub(super) struct Sequence {
    /// The block before; [`NONE`] if nothing follows it, or [`BEFORE_FIRST`] between two files.
    last: usize,
    is_forward: bool,
    /// The blocks of a sequence that goes forward, across files.
    passed: u32,
    /// The bytes of the next request; 0 before the second block of a sequence.
    request_bytes: u64,
    /// Whether the request at the start of the sequence has not been passed yet.
    is_first: bool,
    /// The end of what is read or asked for: the block after it, or in backward direction its first block.
    edge: usize,
}

impl Sequence {
    pub(super) fn new() -> Self {
        Self {
            last: NONE,
            is_forward: true,
            passed: 0,
            request_bytes: 0,
            is_first: false,
            edge: 0,
        }
    }

    /// Continues in another file, with requests of the same size if the cursor enters its first block.
    pub(super) fn switch(&mut self) {
        self.last = BEFORE_FIRST;
        self.edge = 0;
    }

    /// Ends the sequence: the next block follows none. Returns how many blocks it has passed.
    #[inline]
    pub(super) fn end(&mut self) -> u32 {
        self.last = NONE;
        std::mem::take(&mut self.passed)
    }

    /// Notes that the blocks up to `last` were asked for at the start of the sequence.
    pub(super) fn begin(&mut self, first: BlockPlace, last: BlockPlace) {
        self.is_forward = true;
        self.edge = last.number + 1;
        let bytes = 2 * (last.end() - first.offset);
        self.request_bytes = bytes.clamp(REQUEST_BYTES_MIN, REQUEST_BYTES_MAX);
        self.is_first = true;
    }

    /// Notes the load of block `block`. Returns whether it follows the block before, in either direction.
    #[inline]
    pub(super) fn note(&mut self, block: usize) -> bool {
        let last = std::mem::replace(&mut self.last, block);
        let is_forward = block == last.wrapping_add(1);
        let follows = is_forward || block + 1 == last;
        if !follows || is_forward != self.is_forward {
            self.is_forward = is_forward;
            self.request_bytes = 0;
            self.is_first = false;
            self.passed = 0;
        }
        self.passed = self
            .passed
            .saturating_add(u32::from(is_forward || self.passed == 0));
        follows
    }

    /// The first and the last of the blocks to ask for before the load of block `block`, which follows the block
    /// before. No block outside `range` is asked for. `place` gives the place of a block.
    pub(super) fn blocks_ahead(
        &mut self,
        block: usize,
        range: &Range<usize>,
        place: impl Fn(usize) -> Result<BlockPlace>,
    ) -> Result<Option<(BlockPlace, BlockPlace)>> {
        if self.request_bytes == 0 {
            self.request_bytes = REQUEST_BYTES_MIN;
            self.edge = if self.is_forward { block + 1 } else { block };
            return Ok(None);
        }
        // The present request has half the bytes of the next one. Most scans end within the one at their start.
        let half = if self.is_first {
            0
        } else {
            self.request_bytes / 4
        };
        let ahead = if self.is_forward {
            let from = self.edge.max(block);
            if from >= range.end {
                return Ok(None);
            }
            let first = place(from)?;
            if first.offset - place(block)?.offset > half {
                return Ok(None);
            }
            let mut last = first;
            while last.end() < first.offset + self.request_bytes && last.number + 1 < range.end {
                last = place(last.number + 1)?;
            }
            self.edge = last.number + 1;
            (first, last)
        } else {
            let to = self.edge.min(block + 1);
            if to <= range.start {
                return Ok(None);
            }
            let last = place(to - 1)?;
            if place(block)?.end() - last.end() > half {
                return Ok(None);
            }
            let mut first = last;
            while last.end() - first.offset < self.request_bytes && first.number > range.start {
                first = place(first.number - 1)?;
            }
            self.edge = first.number;
            (first, last)
        };
        self.is_first = false;
        self.request_bytes = (2 * self.request_bytes).min(REQUEST_BYTES_MAX);
        Ok(Some(ahead))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The requests of a cursor that loads `blocks` of 4096 bytes.
    fn requests(
        blocks: impl IntoIterator<Item = usize>,
        range: &Range<usize>,
    ) -> Vec<Range<usize>> {
        let place = |number: usize| {
            Ok(BlockPlace {
                number,
                offset: 4096 * number as u64,
                length: 4096,
            })
        };
        let mut sequence = Sequence::new();
        let mut requests = Vec::new();
        for block in blocks {
            if sequence.note(block)
                && let Some((first, last)) = sequence.blocks_ahead(block, range, place).unwrap()
            {
                requests.push(first.number..last.number + 1);
            }
        }
        requests
    }

    #[test]
    fn requests_double_and_are_asked_for_early() {
        assert!(requests([100, 101], &(0..2000)).is_empty());
        assert_eq!(requests(100..104, &(0..2000)), [102..104, 104..108]);
        let forward = requests(100..2000, &(0..2000));
        assert_eq!(forward[..4], [102..104, 104..108, 108..116, 116..132]);
        let backward = requests((0..=1899).rev(), &(0..2000));
        assert_eq!(backward[..3], [1896..1898, 1892..1896, 1884..1892]);
        for (requests, is_forward) in [(forward, true), (backward, false)] {
            for pair in requests.windows(2) {
                if is_forward {
                    assert_eq!(pair[0].end, pair[1].start);
                } else {
                    assert_eq!(pair[0].start, pair[1].end);
                }
                assert!(pair[1].len() <= 256);
            }
            assert!(requests.iter().any(|request| request.len() == 256));
        }
    }

    #[test]
    fn nothing_is_asked_for_beyond_the_end_or_after_a_jump() {
        let requests_to_end = requests(100..120, &(0..120));
        assert_eq!(requests_to_end.last(), Some(&(116..120)));
        let requests_to_start = requests((100..120).rev(), &(100..2000));
        assert_eq!(requests_to_start.last(), Some(&(100..104)));
        assert_eq!(
            requests([5, 900, 7, 300, 301, 20, 21, 20, 19, 18], &(0..2000)),
            [18..20, 14..18]
        );
    }
}
