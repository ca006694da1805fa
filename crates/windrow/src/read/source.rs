//! The sources of one keyspace as cursors of one type. So the merging cursor needs no virtual calls.
//!
//! Concurrency: owned by one thread.

use std::sync::Arc;

use super::coverage::{CoveringSource, RunRanges};
use super::run::{Run, RunCursor};
use super::state::ReadState;
use super::visible::KeyRange;
use crate::base::sync::Shared;
use crate::base::{Cursor, KeyspaceId, Result, SequenceNumber, Sibling, Step, Trailer};
use crate::block::{Reach, Stride, Striding};
use crate::memtable::MemtableCursor;
use crate::table::{Bounds, LevelScans, Measure, OpenTables, ReadCounters, TableCursor};

/// A cursor over a memtable or over a run of tables.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "memtables are few, and an indirection at each step costs more than the space"
)]
pub(crate) enum SourceCursor {
    Memtable(MemtableCursor),
    Run(RunCursor<TableCursor>),
}

impl SourceCursor {
    /// Cursors over the sources of `state` that may hold keys of `range`, newest first. With them come those that have
    /// range tombstones, each with its position.
    pub(crate) fn all(
        state: &ReadState,
        keyspace: KeyspaceId,
        tables: &Arc<OpenTables>,
        range: &KeyRange,
    ) -> (Vec<Self>, Vec<(usize, CoveringSource)>) {
        let mut sources = Vec::new();
        let mut covering = Vec::new();
        for memtable in state.memtables().filter(|memtable| !memtable.is_empty()) {
            if memtable.has_ranges() {
                let ranges = CoveringSource::Memtable(Arc::clone(memtable));
                covering.push((sources.len(), ranges));
            }
            sources.push(Self::Memtable(MemtableCursor::new(memtable)));
        }
        let (start, end) = range.ends();
        let mut bounds = Bounds {
            start: start.map(Arc::from),
            end: end.map(Arc::from),
            scans: None,
        };
        for (index, level) in state.version.levels().iter().enumerate() {
            bounds.scans = Some(LevelScans {
                keyspace,
                level: index,
            });
            let mut add = |run: Run, has_ranges: bool| {
                if has_ranges {
                    let ranges = RunRanges::new(run.clone(), Arc::clone(tables));
                    covering.push((sources.len(), CoveringSource::Run(ranges)));
                }
                let cursor = RunCursor::new(Arc::clone(tables), run).with(bounds.clone());
                sources.push(Self::Run(cursor));
            };
            if index == 0 {
                let files = level.newest_first().iter();
                let overlapping =
                    files.filter(|file| range.may_overlap(file.smallest(), file.largest()));
                for file in overlapping {
                    let runs = Run::of_files(std::slice::from_ref(file)).rev();
                    let has_ranges = file.meta.range_tombstones() > 0;
                    runs.for_each(|run| add(run, has_ranges));
                }
            } else {
                let has_ranges = level.sums().get(Measure::RangeTombstones) > 0;
                let runs = (0..level.runs()).rev();
                runs.for_each(|index| add(Run::OfLevel(Shared::clone(level), index), has_ranges));
            }
        }
        (sources, covering)
    }

    /// Takes the counts since the last call.
    pub(crate) fn take_counters(&mut self) -> ReadCounters {
        match self {
            Self::Memtable(_) => ReadCounters::default(),
            Self::Run(run) => run.take_counters(),
        }
    }
}

/// Calls a method of either cursor.
macro_rules! either {
    ($self:expr, $cursor:ident => $call:expr) => {
        match $self {
            SourceCursor::Memtable($cursor) => $call,
            SourceCursor::Run($cursor) => $call,
        }
    };
}

impl Sibling for SourceCursor {
    fn sibling(&self) -> Self {
        match self {
            Self::Memtable(cursor) => Self::Memtable(cursor.sibling()),
            Self::Run(cursor) => Self::Run(cursor.sibling()),
        }
    }
}

impl Cursor for SourceCursor {
    fn seek_to_first(&mut self) -> Result<()> {
        either!(self, cursor => cursor.seek_to_first())
    }

    fn seek_to_last(&mut self) -> Result<()> {
        either!(self, cursor => cursor.seek_to_last())
    }

    fn seek(&mut self, key: &[u8], sequence: SequenceNumber) -> Result<()> {
        either!(self, cursor => cursor.seek(key, sequence))
    }

    #[inline]
    fn announce(&mut self, key: &[u8]) -> bool {
        either!(self, cursor => cursor.announce(key))
    }

    fn announce_prev(&mut self) -> bool {
        either!(self, cursor => cursor.announce_prev())
    }

    #[inline]
    fn next(&mut self) -> Result<Step> {
        either!(self, cursor => cursor.next())
    }

    #[inline]
    fn is_ahead(&self) -> bool {
        either!(self, cursor => cursor.is_ahead())
    }

    fn arrive(&mut self) -> Result<()> {
        either!(self, cursor => cursor.arrive())
    }

    fn prev(&mut self) -> Result<()> {
        either!(self, cursor => cursor.prev())
    }

    #[inline]
    fn is_valid(&self) -> bool {
        either!(self, cursor => cursor.is_valid())
    }

    #[inline]
    fn key(&self) -> &[u8] {
        either!(self, cursor => cursor.key())
    }

    #[inline]
    fn trailer(&self) -> Trailer {
        either!(self, cursor => cursor.trailer())
    }

    #[inline]
    fn value(&self) -> &[u8] {
        either!(self, cursor => cursor.value())
    }
}

impl Striding for SourceCursor {
    #[inline]
    fn begin_stride(&self, stride: &mut Stride, reach: Reach<'_>) -> bool {
        match self {
            Self::Memtable(_) => false,
            Self::Run(run) => run.begin_stride(stride, reach),
        }
    }

    fn end_stride(&mut self, stride: &Stride) -> Result<()> {
        match self {
            Self::Memtable(_) => Ok(()),
            Self::Run(run) => run.end_stride(stride),
        }
    }
}
