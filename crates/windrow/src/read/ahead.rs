//! Reads ahead of a cursor that goes forward over values that stand apart from their keys.
//!
//! Each such value may lie anywhere, so the system's own read-ahead is of no use, and a cold scan would
//! wait for the device once per value. Here a *scout*, a second cursor over the same entries, goes ahead
//! and tells the system what will be needed, in windows, so that the device works on many at once.
//! Where values lie near to one another, as in a run, a window takes one call per file.
//!
//! It costs a scan in the page cache next to nothing: only now and then one *looks* whether the value
//! that is fetched is at hand, seldomer each time it is. The third that is not sends the scout, and a
//! window of which everything is at hand calls it back.
//!
//! Invariants:
//! - I1. What a cursor answers does not depend on it: errors of the scout are left to the cursor, which
//!   meets them when it comes there, if it does.
//! - I2. It asks for values within the range of its cursor only, and at most for [`READ_BUFFER_MAX`] values
//!   and [`READ_BUFFER_BYTES`] at a time.
//!
//! Concurrency: owned by one thread.

use std::ops::Range;

use super::values::ValueReader;
use super::visible::VisibleCursor;
use crate::base::{FileNumber, Held, Result, Sibling};

/// The values of the scout's first window; each is twice as large as the one before.
const READ_BUFFER_MIN: usize = 8;

/// The most values in a window.
const READ_BUFFER_MAX: usize = 64;

/// The most bytes of a window.
const READ_BUFFER_BYTES: u64 = 1 << 20;

/// How many entries a scout passes per value that it looks for.
const STEPS_PER_VALUE: usize = 8;

/// Records with no more than this between them are asked for together.
const GAP_BYTES: u64 = 16 << 10;

/// How many values that were not at hand, near to one another, come before a scout is sent.
const WAITS: u32 = 2;

/// How many values are fetched from one look to the next while all are at hand. Behind one that was not
/// it is two, and twice as many each time.
const INTERVAL_MAX: usize = 64;

/// What goes ahead of one cursor.
pub(super) struct ReadAhead<C> {
    /// Stands behind what was asked for.
    prefetcher: Option<VisibleCursor<C>>,
    /// How many of the last looks have met a value that was not at hand.
    waits: u32,
    /// How many values are fetched until the next look while all are at hand.
    interval: usize,
    /// How many values the next window has.
    read_buffer: usize,
    /// How many values that were asked for will not be fetched yet at the next look.
    ahead: usize,
    wanted: Vec<Wanted>,
    _memory: Held,
}

/// The record of a value that will be fetched.
#[derive(Debug)]
struct Wanted {
    file: FileNumber,
    range: Range<u64>,
}

impl<C: Sibling> ReadAhead<C> {
    pub(super) fn new(reader: ValueReader<'_>) -> Self {
        let bytes = size_of::<Self>() + READ_BUFFER_MAX * size_of::<Wanted>();
        Self {
            prefetcher: None,
            waits: 0,
            interval: INTERVAL_MAX,
            read_buffer: READ_BUFFER_MIN,
            ahead: 0,
            wanted: Vec::new(),
            _memory: Held::new(reader.open.cursors(), bytes as u64),
        }
    }

    /// The cursor stands elsewhere: nothing is known of what comes there.
    pub(super) fn begin(&mut self) {
        self.waits = 0;
        self.interval = INTERVAL_MAX;
    }

    /// What goes ahead, once it does.
    pub(super) fn prefetcher(&mut self) -> Option<&mut VisibleCursor<C>> {
        self.prefetcher.as_mut()
    }

    /// Asks for what will be needed soon, where that has to be waited for, before the value is fetched
    /// that `pointer` leads to and `cursor` stands on. Returns how many values may be fetched behind it
    /// until the next look.
    pub(super) fn look(
        &mut self,
        cursor: &VisibleCursor<C>,
        reader: ValueReader<'_>,
        pointer: &[u8],
    ) -> usize {
        if self.waits < WAITS {
            self.wanted.clear();
            self.wanted.extend(Self::want(reader, pointer));
            if self.ask(reader) > 0 {
                self.waits += 1;
                self.interval = 1;
                (self.read_buffer, self.ahead) = (READ_BUFFER_MIN, 0);
                return 0;
            }
            if self.interval >= INTERVAL_MAX {
                self.waits = 0;
            }
            self.interval = (2 * self.interval).min(INTERVAL_MAX);
            return self.interval - 1;
        }
        // What the scout has met the cursor meets by itself.
        if self.prefetch_bytes(cursor, reader).is_err() {
            self.prefetcher = None;
            return usize::MAX;
        }
        let found = self.wanted.len();
        if found > 0 && self.ask(reader) == 0 {
            self.begin();
        }
        // The next window is asked for when the first half of this one was fetched.
        let fetched = self.ahead + found - found / 2;
        (self.ahead, self.read_buffer) = (found / 2, (2 * self.read_buffer).min(READ_BUFFER_MAX));
        fetched.saturating_sub(1)
    }

    /// Collects the next window.
    fn prefetch_bytes(&mut self, cursor: &VisibleCursor<C>, reader: ValueReader<'_>) -> Result<()> {
        self.wanted.clear();
        let prefetcher = self.prefetcher.get_or_insert_with(|| cursor.sibling());
        if self.ahead == 0 || prefetcher.is_valid() && prefetcher.key() <= cursor.key() {
            self.ahead = 0;
            prefetcher.seek(cursor.key())?;
        }
        let mut bytes = READ_BUFFER_BYTES;
        for _ in 0..STEPS_PER_VALUE * self.read_buffer {
            if !prefetcher.is_valid() || self.wanted.len() == self.read_buffer || bytes == 0 {
                break;
            }
            if prefetcher.shows_pointer()
                && let Some(mut wanted) = Self::want(reader, prefetcher.value())
            {
                let end = wanted.range.start.saturating_add(bytes);
                wanted.range.end = wanted.range.end.min(end);
                bytes -= wanted.range.end - wanted.range.start;
                self.wanted.push(wanted);
            }
            prefetcher.next()?;
        }
        Ok(())
    }

    /// Where the value is that `pointer` leads to; nowhere if it is damaged.
    fn want(reader: ValueReader<'_>, pointer: &[u8]) -> Option<Wanted> {
        let place = reader.files.resolve(pointer).ok()?;
        let meta = &place.file.meta;
        let mut pointer = place.pointer;
        if place.table.is_some() {
            let file = reader.open.get(place.file.slot(), meta).ok()?;
            pointer = place.pointer_in(&file).ok()?;
        }
        let end = pointer.offset.checked_add(pointer.record_bytes)?;
        (end <= meta.length).then_some(Wanted {
            file: meta.number,
            range: pointer.offset..end,
        })
    }

    /// Asks the system for what is wanted and not at hand; returns how many values that is.
    fn ask(&mut self, reader: ValueReader<'_>) -> usize {
        self.wanted
            .sort_unstable_by_key(|wanted| (wanted.file, wanted.range.start));
        let is_near = |left: &Wanted, right: &Wanted| {
            left.file == right.file && right.range.start <= left.range.end.saturating_add(GAP_BYTES)
        };
        let mut asked = 0;
        for near in self.wanted.chunk_by(is_near) {
            let (Some(first), Some(last)) = (near.first(), near.last()) else {
                continue;
            };
            let Some(handle) = reader.files.find(first.file) else {
                continue;
            };
            // Who fetches the values will say what is wrong with the file.
            let Ok(file) = reader.open.get(handle.slot(), &handle.meta) else {
                continue;
            };
            if near.iter().all(|it| file.is_at_hand(it.range.start)) {
                continue;
            }
            file.will_need(first.range.start..last.range.end);
            asked += near.len();
        }
        reader.open.count_prefetched(asked as u64);
        asked
    }
}
