//! The page cache of a simulated disk: which pages of files are in memory.
//!
//! It decides nothing about bytes: only what [`File::resident_pages`](windrow::vfs::File::resident_pages) answers, and
//! what tests see of it. Reads and writes load pages. Advice drops them, except those whose write back has not ended.
//! No page leaves otherwise.
//!
//! Concurrency: under the lock of the disk.

use super::directory::InodeId;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The bytes that are in memory together.
pub(super) const PAGE_BYTES: u64 = 4096;

/// The pages of all files.
#[derive(Debug, Default)]
pub(super) struct PageCache(BTreeMap<InodeId, Pages>);

/// The pages of a file, by number.
#[derive(Debug, Default)]
struct Pages {
    resident: BTreeSet<u64>,
    /// Those that are not written back.
    dirty: BTreeSet<u64>,
    /// Those of `dirty` whose write back was begun.
    begun: BTreeSet<u64>,
}

impl PageCache {
    fn of(&mut self, file: InodeId) -> &mut Pages {
        self.0.entry(file).or_default()
    }

    /// The bytes `range` of `file` were read, or asked for.
    pub(super) fn load(&mut self, file: InodeId, range: Range<u64>) {
        self.of(file).resident.extend(pages(range));
    }

    /// The bytes `range` of `file` were written.
    pub(super) fn write(&mut self, file: InodeId, range: Range<u64>) {
        let of = self.of(file);
        for page in pages(range) {
            of.resident.insert(page);
            of.dirty.insert(page);
            of.begun.remove(&page);
        }
    }

    /// The write back of `range` begins.
    pub(super) fn begin_write_back(&mut self, file: InodeId, range: Range<u64>) {
        let of = self.of(file);
        of.begun
            .extend(pages(range).filter(|page| of.dirty.contains(page)));
    }

    /// What was begun in `range` is written back.
    pub(super) fn end_write_back(&mut self, file: InodeId, range: Range<u64>) {
        let of = self.of(file);
        for page in pages(range) {
            if of.begun.remove(&page) {
                of.dirty.remove(&page);
            }
        }
    }

    /// The file was synced.
    pub(super) fn sync(&mut self, file: InodeId) {
        let of = self.of(file);
        of.dirty.clear();
        of.begun.clear();
    }

    /// Drops the clean pages that lie within `range`, which ends a file of `length` bytes if it reaches it.
    pub(super) fn drop_pages(&mut self, file: InodeId, range: Range<u64>, length: u64) {
        let of = self.of(file);
        let end = if range.end >= length {
            range.end.div_ceil(PAGE_BYTES)
        } else {
            range.end / PAGE_BYTES
        };
        let whole = range.start.div_ceil(PAGE_BYTES)..end;
        let dirty = &of.dirty;
        of.resident
            .retain(|page| !whole.contains(page) || dirty.contains(page));
    }

    /// The 64 pages from `offset` on: bit 0 is the first.
    pub(super) fn bits(&self, file: InodeId, offset: u64) -> u64 {
        let first = offset / PAGE_BYTES;
        let of = self.0.get(&file);
        let resident = of
            .iter()
            .flat_map(|of| of.resident.range(first..first + 64));
        resident.fold(0, |bits, page| bits | 1 << (page - first))
    }

    /// The resident pages of `file`, by number.
    pub(super) fn resident(&self, file: InodeId) -> BTreeSet<u64> {
        self.0
            .get(&file)
            .map(|of| of.resident.clone())
            .unwrap_or_default()
    }

    /// Drops all pages of `file`, clean or not.
    pub(super) fn forget(&mut self, file: InodeId) {
        self.0.remove(&file);
    }
}

fn pages(range: Range<u64>) -> Range<u64> {
    if range.is_empty() {
        return 0..0;
    }
    range.start / PAGE_BYTES..range.end.div_ceil(PAGE_BYTES)
}
