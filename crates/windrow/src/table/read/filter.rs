//! The filter of an open segment, in memory or read by pieces.
//!
//! A *whole* filter has all of its allocated units in memory. A filter that is read *by pieces* takes next to no
//! memory: a probe of it reads the one piece of its first unit that has the line of the key. Further units would cost
//! another read for each key that passes, and they would only reject a few more absent keys.
//!
//! Concurrency: immutable but for marks and counts; shared freely.

use std::sync::Arc;

use crate::base::Held;
use crate::base::sync::atomic::{AtomicU32, Ordering};
use crate::cache::Marks;
use crate::filter::{Filter, line_number, units_rate};

use super::super::format::{Handle, UnitLayout};
use super::super::memory::{HeldPart, TableMemory};

/// A filter of fewer bytes stays in memory: it holds little more than the description of its pieces.
pub(crate) const SMALL_FILTER_BYTES: usize = 3 * size_of::<PiecedFilter>();

/// A filter is loaded whole when its pieces have cost as many reads as this many loads. A table that is probed now and
/// then comes to that seldom, so it does not take the space of one that is probed often.
const LOADS_WORTH: u32 = 2;

/// The form in which a filter is opened, and how many units are allocated to its segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FilterForm {
    Whole(usize),
    ByPieces(usize),
}

/// The filter of an open segment.
#[derive(Debug, Clone)]
pub(crate) enum SegmentFilter {
    /// No unit is allocated, or none was written.
    Absent,
    Whole(Arc<WholeFilter>),
    ByPieces(Arc<PiecedFilter>),
}

impl SegmentFilter {
    /// The form and the allocated units.
    pub(crate) fn form(&self) -> FilterForm {
        match self {
            Self::Absent => FilterForm::Whole(0),
            Self::Whole(filter) => FilterForm::Whole(filter.units.len()),
            Self::ByPieces(filter) => FilterForm::ByPieces(filter.units),
        }
    }

    /// The rate of false positives of a filter in memory over `keys` keys; 1 for others.
    pub(crate) fn rate(&self, keys: u64) -> f64 {
        match self {
            Self::Whole(filter) => {
                let units = filter.units.iter();
                units_rate(units.map(|unit| unit.memory_bytes() as u64), keys)
            }
            Self::Absent | Self::ByPieces(_) => 1.0,
        }
    }

    /// Whether a filter in memory passes the key with this hash; others pass all.
    #[inline]
    pub(crate) fn may_contain(&self, hash: u64) -> bool {
        match self {
            Self::Whole(filter) => filter.may_contain(hash),
            Self::Absent | Self::ByPieces(_) => true,
        }
    }

    /// Whether the filter is in memory and may leave it.
    pub(crate) fn can_be_dropped(&self) -> bool {
        match self {
            Self::Whole(filter) => !filter.is_small(),
            Self::Absent | Self::ByPieces(_) => false,
        }
    }

    /// The bytes that the filter holds in memory.
    pub(crate) fn memory_bytes(&self) -> u64 {
        match self {
            Self::Absent => 0,
            Self::Whole(filter) => filter.held.bytes(),
            Self::ByPieces(filter) => filter.held.bytes(),
        }
    }
}

/// A filter in memory.
#[derive(Debug)]
pub(crate) struct WholeFilter {
    /// The first units of the segment, at least one.
    units: Box<[Filter]>,
    held: HeldPart,
}

impl WholeFilter {
    /// The filter of these units, the first ones of the segment.
    pub(crate) fn of(units: Box<[Filter]>, memory: &TableMemory) -> SegmentFilter {
        if units.is_empty() {
            return SegmentFilter::Absent;
        }
        let of_units = unit_bytes(&units);
        let bytes = of_units + size_of::<Self>() + size_of_val(&*units);
        let held = if of_units < SMALL_FILTER_BYTES {
            memory.hold_small_filter(bytes)
        } else {
            memory.hold_filter(bytes)
        };
        SegmentFilter::Whole(Arc::new(Self { units, held }))
    }

    /// Whether the filter stays in memory with its segment.
    fn is_small(&self) -> bool {
        unit_bytes(&self.units) < SMALL_FILTER_BYTES
    }

    /// The first `units` of the units.
    pub(crate) fn first(&self, units: usize, memory: &TableMemory) -> SegmentFilter {
        Self::of(self.units.iter().take(units).cloned().collect(), memory)
    }

    pub(crate) fn units(&self) -> &[Filter] {
        &self.units
    }

    /// Whether the key with this hash may be in the segment.
    #[inline]
    pub(crate) fn may_contain(&self, hash: u64) -> bool {
        self.units.iter().all(|unit| unit.may_contain(hash))
    }
}

fn unit_bytes(units: &[Filter]) -> usize {
    units.iter().map(Filter::memory_bytes).sum()
}

/// A filter that is read by pieces.
#[derive(Debug)]
pub(crate) struct PiecedFilter {
    /// The pieces of the first unit.
    pub(crate) layout: UnitLayout,
    /// The allocated units.
    units: usize,
    /// The pieces that readers may use in place in the mapping.
    pub(crate) marks: Marks,
    /// The pieces that were read from the file.
    reads: AtomicU32,
    held: Held,
}

impl PiecedFilter {
    /// The filter whose first unit has these pieces, and of which `units` units are allocated.
    pub(crate) fn new(layout: UnitLayout, units: usize, memory: &TableMemory) -> Self {
        let marks = Marks::new(layout.pieces());
        let bytes = size_of::<Self>() + marks.memory_bytes();
        Self {
            layout,
            units,
            reads: AtomicU32::new(0),
            held: Held::new(&memory.tables, bytes as u64),
            marks,
        }
    }

    /// The number and the place of the piece that has the line of the key with this hash, and the place of the line in
    /// the piece.
    pub(crate) fn piece_of(&self, hash: u64) -> (usize, Handle, usize) {
        let layout = &self.layout;
        let line = line_number(hash, layout.number(), layout.lines());
        let (number, line) = layout.find(line);
        (number, layout.piece(number), line)
    }

    /// Counts a piece that was read from the file. Returns whether it is time to load the whole filter.
    pub(crate) fn note_read(&self) -> bool {
        let reads = self.reads.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        let pieces = u32::try_from(self.layout.pieces()).unwrap_or(u32::MAX);
        reads.is_multiple_of(pieces.saturating_add(1).saturating_mul(LOADS_WORTH))
    }
}
