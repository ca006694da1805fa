//! The range tombstones of the sources of a cursor.
//!
//! They are looked up by key, apart from the cursors over the entries: a source may have left its range tombstone behind
//! long before other sources come to the keys that it covers. A range tombstone of a source also says how far the older
//! sources can be passed, because all that they hold of its keys is older. So each one counts only within the
//! bounds of its segment; beyond them, older levels may hold newer entries.
//!
//! Invariant I1: A newer source holds nothing that a range tombstone deletes, and an older one only what it deletes. Where a
//! cursor meets an entry and the newest range tombstone over it, anything else is an error, for the reason of I2 of the
//! [merge](super::merge).
//!
//! Concurrency: owned by one thread; it keeps what it reads alive.

use std::cmp::Ordering;
use std::sync::Arc;

use super::run::Run;
use crate::base::key::SEQUENCE_MAX;
use crate::base::limits::RANGE_END_BYTES_MAX;
use crate::base::{
    Cursor, Error, ErrorKind, RangeTombstone, RangeTombstones, Result, SequenceNumber,
};
use crate::memtable::Memtable;
use crate::table::OpenTables;

/// A source with range tombstones.
#[derive(Debug)]
pub(crate) enum CoveringSource {
    Memtable(Arc<Memtable>),
    Run(RunRanges),
}

/// The range tombstones of a run.
#[derive(Debug)]
pub(crate) struct RunRanges {
    run: Run,
    tables: Arc<OpenTables>,
    /// The segment of the last key.
    known: Option<KnownSegment>,
}

#[derive(Debug)]
struct KnownSegment {
    smallest: Box<[u8]>,
    largest: Box<[u8]>,
    ranges: Option<Arc<RangeTombstones>>,
}

impl RunRanges {
    pub(crate) fn new(run: Run, tables: Arc<OpenTables>) -> Self {
        let known = None;
        Self { run, tables, known }
    }

    /// Those of the segment that may hold `key`.
    fn around(&mut self, key: &[u8]) -> Result<Option<&RangeTombstones>> {
        let is_known = |it: &KnownSegment| *it.smallest <= *key && *key <= *it.largest;
        if !self.known.as_ref().is_some_and(is_known) {
            self.known = self.load(key)?;
        }
        let known = self.known.as_ref();
        Ok(known.and_then(|known| known.ranges.as_deref()))
    }

    fn load(&self, key: &[u8]) -> Result<Option<KnownSegment>> {
        let place = self.run.lower_bound(key);
        let Some((file, segment)) = self.run.get(place) else {
            return Ok(None);
        };
        let meta = &file.meta.segments[segment];
        if meta.smallest() > key {
            return Ok(None);
        }
        let mut ranges = None;
        if meta.range_tombstones > 0 {
            let table = self.tables.get(file.slot(), &file.meta)?;
            ranges.clone_from(&table.segments[segment].ranges);
        }
        Ok(Some(KnownSegment {
            smallest: meta.smallest().into(),
            largest: meta.largest().into(),
            ranges,
        }))
    }
}

impl CoveringSource {
    fn newest<R>(
        &mut self,
        key: &[u8],
        sequence: SequenceNumber,
        look: impl FnOnce(&RangeTombstone) -> R,
    ) -> Result<Option<R>> {
        Ok(match self {
            Self::Memtable(memtable) => memtable.newest_range(key, sequence, look),
            Self::Run(run) => {
                let ranges = run.around(key)?;
                let newest = ranges.and_then(|ranges| ranges.newest(key, sequence));
                newest.map(look)
            }
        })
    }

    fn sibling(&self) -> Self {
        match self {
            Self::Memtable(memtable) => Self::Memtable(Arc::clone(memtable)),
            Self::Run(it) => Self::Run(RunRanges::new(it.run.clone(), Arc::clone(&it.tables))),
        }
    }
}

/// The range tombstones of a cursor's sources, at its sequence number.
#[derive(Debug)]
pub(crate) struct Coverage {
    /// Newest first, each with its position among all sources of the cursor.
    sources: Vec<(usize, CoveringSource)>,
    sequence: SequenceNumber,
    hole: Hole,
}

/// A range of keys of which the sources behind one hold nothing visible.
#[derive(Debug, Default)]
pub(crate) struct Hole {
    /// The position of that source.
    pub(crate) newest: usize,
    /// The first key.
    pub(crate) start: Vec<u8>,
    /// The first key behind it.
    pub(crate) end: Vec<u8>,
}

impl Coverage {
    /// For `sources`, newest first; none if there are none.
    pub(crate) fn new(
        sources: Vec<(usize, CoveringSource)>,
        sequence: SequenceNumber,
    ) -> Option<Box<Self>> {
        let coverage = Self {
            sources,
            sequence: sequence.min(SEQUENCE_MAX),
            hole: Hole::default(),
        };
        (!coverage.sources.is_empty()).then(|| Box::new(coverage))
    }

    /// For another cursor over the same sources.
    pub(super) fn sibling(&self) -> Self {
        let sources = self.sources.iter();
        Self {
            sources: sources
                .map(|(at, source)| (*at, source.sibling()))
                .collect(),
            sequence: self.sequence,
            hole: Hole::default(),
        }
    }

    /// All visible entries of `key` below this sequence number are deleted; 0 if no range tombstone covers it.
    fn floor(&mut self, key: &[u8]) -> Result<SequenceNumber> {
        let hole = &mut self.hole;
        for (position, source) in &mut self.sources {
            let floor = source.newest(key, self.sequence, |range| {
                hole.newest = *position;
                hole.start.clear();
                hole.start.extend_from_slice(&range.start);
                hole.end.clear();
                match &*range.end {
                    [] => hole.end.resize(RANGE_END_BYTES_MAX, u8::MAX),
                    end => hole.end.extend_from_slice(end),
                }
                range.sequence
            })?;
            // The newest source has the newest one.
            if let Some(floor) = floor {
                return Ok(floor);
            }
        }
        Ok(0)
    }

    /// The [`floor`](Self::floor) of the entry of `merged`.
    ///
    /// # Errors
    /// `Corruption` if the entry and the range tombstone are not in the order of the age of their sources (I1); those of
    /// reading a table.
    pub(super) fn floor_of(&mut self, merged: &impl Cursor) -> Result<SequenceNumber> {
        let floor = self.floor(merged.key())?;
        self.refuse_disorder(floor, merged)?;
        Ok(floor)
    }

    /// Refuses an entry of the last key that [`floor`](Self::floor) was asked for, if it and the range tombstone that gave
    /// `floor` are not in the order of the age of their sources (I1).
    ///
    /// # Errors
    /// `Corruption`.
    pub(super) fn refuse_disorder(
        &self,
        floor: SequenceNumber,
        merged: &impl Cursor,
    ) -> Result<()> {
        let is_deleted = merged.trailer().sequence() < floor;
        let is_ordered = match merged.source().cmp(&self.hole.newest) {
            Ordering::Less => !is_deleted,
            Ordering::Equal => true,
            Ordering::Greater => is_deleted,
        };
        if floor == 0 || is_ordered {
            return Ok(());
        }
        let key = merged.key().escape_ascii();
        let found = format!(
            "a range tombstone is in an older sorted run than what it deletes, or in a newer one than what it does not delete, at key \"{key}\""
        );
        Err(Error::new(ErrorKind::Corruption, found))
    }

    /// What covers the last key that had a floor.
    pub(super) fn hole(&self) -> &Hole {
        &self.hole
    }
}
