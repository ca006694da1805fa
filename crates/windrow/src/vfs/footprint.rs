//! Reads of jobs, which leave the page cache as they found it: what readers had there stays, and what only the job has
//! read is dropped.
//!
//! A [`Footprint`] notes, before the first read of a piece of a file, which pages of the piece are in the page cache.
//! Once the job has passed the piece, it drops the pages that it has read and that were not there.
//!
//! Invariants:
//! - I1. A page that was in the page cache before the first read of its piece is not dropped.
//! - I2. A page that this footprint has not read is not dropped.
//! - I3. No system call reads ahead by itself: a page that nobody has asked for would stay.
//!
//! Concurrency: owned by one job. A page that a reader has loaded after the job is dropped too, unless the reader has
//! mapped it.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use crate::base::Result;
use crate::base::sync::atomic::{AtomicU64, Ordering};

use super::{Advice, File, read_exact_at};

/// The bytes of a page, whatever the size of the system's pages.
pub(super) const PAGE_BYTES: u64 = 4096;

/// The bytes of a file of whose pages the system is asked at a time, and that stay in the page cache or leave it
/// together when they are written. Pieces lie at multiples of this.
pub(crate) const PIECE_BYTES: u64 = 64 * PAGE_BYTES;

/// Reads a file for a job. A drop passes everything.
#[derive(Debug)]
pub(crate) struct Footprint {
    file: Arc<dyn File>,
    /// The pieces that are not passed, by number.
    pieces: BTreeMap<u64, Piece>,
    /// The end of the bytes that were last asked for.
    asked: u64,
}

/// A set of pages of a piece; bit 0 is the first.
type Pages = u64;

#[derive(Debug, Clone, Copy)]
struct Piece {
    /// The pages that were resident before.
    before: Pages,
    /// The pages that were read or asked for.
    read: Pages,
}

impl Footprint {
    /// The footprint of reads through `file`, a handle that nobody reads in sequence without a footprint (I3).
    pub(crate) fn new(file: Arc<dyn File>) -> Self {
        file.advise(0..i64::MAX.unsigned_abs(), Advice::Random);
        Self {
            file,
            pieces: BTreeMap::new(),
            asked: 0,
        }
    }

    pub(crate) fn file(&self) -> &dyn File {
        &*self.file
    }

    /// Fills `buffer` from `offset`.
    ///
    /// # Errors
    /// Those of [`read_exact_at`].
    pub(crate) fn read_exact_at(&mut self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.touch(offset..offset + buffer.len() as u64);
        read_exact_at(&*self.file, buffer, offset)
    }

    /// Asks the system to read `range` in the background, which follows what was read. Does nothing while more than
    /// half of the range is asked for already, so that requests are long.
    pub(crate) fn ask_ahead(&mut self, range: Range<u64>) {
        let is_known = range.contains(&self.asked) || self.asked == range.end;
        let start = if is_known { self.asked } else { range.start };
        if start - range.start > (range.end - range.start) / 2 || start >= range.end {
            return;
        }
        self.asked = range.end;
        let new = start..range.end;
        self.touch(new.clone());
        if self.resident_bytes(new.clone()) < new.end - new.start {
            self.file.advise(new, Advice::WillNeed);
        }
    }

    /// Notes what of `range` is resident, if it is not noted yet.
    pub(crate) fn note(&mut self, range: Range<u64>) {
        for (number, _) in parts(range) {
            let file = &self.file;
            self.pieces.entry(number).or_insert_with(|| Piece {
                before: file.resident_pages(number * PIECE_BYTES),
                read: 0,
            });
        }
    }

    /// As [`note`](Self::note), for a range that is going to be read, or that was read after it was noted.
    pub(crate) fn touch(&mut self, range: Range<u64>) {
        self.note(range.clone());
        for (number, pages) in parts(range) {
            if let Some(piece) = self.pieces.get_mut(&number) {
                piece.read |= pages;
            }
        }
    }

    /// How many bytes of `range`, which was read and not passed, were resident before.
    pub(crate) fn resident_bytes(&self, range: Range<u64>) -> u64 {
        let before = |number: u64| self.pieces.get(&number).map_or(0, |piece| piece.before);
        let of_page = |page: u64| {
            let start = page * PAGE_BYTES;
            range.end.min(start + PAGE_BYTES) - range.start.max(start)
        };
        let resident = |(number, pages): (u64, Pages)| {
            let mut left = pages & before(number);
            let first = number * u64::from(Pages::BITS);
            std::iter::from_fn(move || {
                let page = left.trailing_zeros();
                left &= left.checked_sub(1)?;
                Some(first + u64::from(page))
            })
        };
        parts(range.clone()).flat_map(resident).map(of_page).sum()
    }

    /// Drops what reads of pieces before `offset` have brought into the page cache. Later reads of these pieces are
    /// first reads again.
    pub(crate) fn pass(&mut self, offset: u64) {
        while let Some(piece) = self.pieces.first_entry() {
            if piece.key() + 1 > offset / PIECE_BYTES {
                return;
            }
            let start = piece.key() * PIECE_BYTES;
            let Piece { before, read } = piece.remove();
            for run in runs(read & !before) {
                let range = start + run.start * PAGE_BYTES..start + run.end * PAGE_BYTES;
                self.file.advise(range, Advice::DontNeed); // I1, I2
            }
        }
    }

    /// As [`pass`](Self::pass), for all pieces.
    pub(crate) fn pass_all(&mut self) {
        self.pass(u64::MAX);
    }

    /// The bytes of memory of the noted pieces.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.pieces.len() * size_of::<(u64, Piece)>()
    }
}

impl Drop for Footprint {
    fn drop(&mut self) {
        self.pass_all();
    }
}

/// The pieces that `range` meets, each with the pages that it meets.
fn parts(range: Range<u64>) -> impl Iterator<Item = (u64, Pages)> {
    let pages = range.start / PAGE_BYTES..range.end.div_ceil(PAGE_BYTES);
    let each = u64::from(Pages::BITS);
    let numbers = if range.is_empty() {
        0..0
    } else {
        pages.start / each..pages.end.div_ceil(each)
    };
    numbers.map(move |number| {
        let first = number * each;
        let start = pages.start.max(first) - first;
        let end = pages.end.min(first + each) - first;
        (number, (Pages::MAX >> (each - (end - start))) << start)
    })
}

/// The runs of ones in `pages`.
fn runs(mut pages: Pages) -> impl Iterator<Item = Range<u64>> {
    let mut passed = 0;
    std::iter::from_fn(move || {
        if pages == 0 {
            return None;
        }
        let zeros = pages.trailing_zeros();
        let ones = (pages >> zeros).trailing_ones();
        let start = passed + zeros;
        passed = start + ones;
        pages = (pages >> zeros).checked_shr(ones).unwrap_or(0);
        Some(u64::from(start)..u64::from(passed))
    })
}

/// Hears how many bytes a check has read. Returns whether it goes on; an error ends it at once.
pub(crate) type PassBytes<'a> = dyn FnMut(u64) -> Result<bool> + 'a;

/// Counts the bytes that the inputs of a job have passed, and how many of these readers had in the page cache.
///
/// Concurrency: the job alone counts; it may move from thread to thread.
#[derive(Debug, Default)]
pub(crate) struct PassedBytes {
    read: AtomicU64,
    resident: AtomicU64,
}

impl PassedBytes {
    /// Counts `read` bytes, of which `resident` were in the page cache before the job read them.
    pub(crate) fn add(&self, read: u64, resident: u64) {
        self.read.fetch_add(read, Ordering::Relaxed);
        self.resident.fetch_add(resident, Ordering::Relaxed);
    }

    /// All bytes so far, and how many of them were resident.
    pub(crate) fn totals(&self) -> (u64, u64) {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (load(&self.read), load(&self.resident))
    }
}

#[cfg(test)]
#[cfg(not(any(loom, shuttle)))]
mod tests;
