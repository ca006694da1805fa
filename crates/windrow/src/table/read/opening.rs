//! Opens tables, and makes tables that have more or less in memory of tables that are open.
//!
//! Tables of one file share what they have in common. Readers keep the table that they hold.
//!
//! Concurrency: none; that of [`Table`].

use std::ops::Range;
use std::sync::{Arc, Weak};

use crate::base::{Error, Result};
use crate::cache::FileSlot;
use crate::filter::LoadedUnits;

use super::super::format::{FileMeta, SegmentMeta, file_name};
use super::file::TableFileSlot;
use super::filter::{FilterForm, SegmentFilter};
use super::segment::{Segment, SegmentFile, TAIL_BYTES};
use super::table::{Table, TableContext};

/// The units of its filters that a table is opened with, and their form.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TableFilters {
    pub(crate) units: LoadedUnits,
    /// Whether segments that have no filter in either form yet get theirs in memory.
    pub(crate) are_whole: bool,
}

impl TableFilters {
    /// All filters in memory.
    pub(crate) const WHOLE: Self = Self {
        units: LoadedUnits::ALL,
        are_whole: true,
    };

    /// The form of the filter of segment `position`, which is open as `known` or not open.
    fn form(self, position: usize, segment: &SegmentMeta, known: Option<&Segment>) -> FilterForm {
        let units = self.units.of(position).min(segment.filter_unit_count());
        let is_pieced = match known.map(|known| &known.filter) {
            Some(SegmentFilter::ByPieces(_)) => true,
            Some(SegmentFilter::Whole(_)) => false,
            Some(SegmentFilter::Absent) | None => !self.are_whole,
        };
        if is_pieced && units > 0 {
            FilterForm::ByPieces(units)
        } else {
            FilterForm::Whole(units)
        }
    }
}

impl Table {
    /// Opens the file that `meta` describes and checks its footers, indexes, filters in memory and
    /// properties against it. Equal segments are shared with `known`, an open table of the same file, and keep the form
    /// of their filters.
    pub(crate) fn open(
        meta: &FileMeta,
        context: TableContext,
        filters: TableFilters,
        known: Option<&Self>,
    ) -> Result<Self> {
        let end = meta.end();
        let slot = match known {
            Some(known) if known.end == end => Arc::clone(&known.file),
            _ => Arc::default(),
        };
        Self::open_in(slot, meta, context, filters, known)
    }

    /// As [`open`](Self::open), with the file in `slot` if it is open.
    fn open_in(
        slot: Arc<TableFileSlot>,
        meta: &FileMeta,
        context: TableContext,
        filters: TableFilters,
        known: Option<&Self>,
    ) -> Result<Self> {
        let (name, end) = (file_name(meta.number), meta.end());
        if meta.segments.is_empty() {
            let what = "a table without segments is recorded";
            return Err(Error::corruption(&name, 0, what));
        }
        let open = context.files.get(&slot, &name, end)?;
        let file = SegmentFile {
            file: &*open.file,
            name: &name,
            number: meta.checksum_file(),
        };
        let segment = |(position, segment): (usize, &SegmentMeta)| {
            let known = known.and_then(|known| known.segments.get(position));
            let known = known.filter(|known| known.id == segment.id);
            let form = filters.form(position, segment, known.map(|known| &**known));
            match known {
                Some(known) if known.filter.form() == form => Ok(Arc::clone(known)),
                Some(known) => known.with_filter(file, form, &context.memory).map(Arc::new),
                None => {
                    let written_in = context.clock.written_in(segment.id);
                    Segment::open(file, meta, segment, form, &context.memory, written_in)
                        .map(Arc::new)
                }
            }
        };
        let segments = meta.segments.iter().enumerate().map(segment);
        let segments = segments.collect::<Result<Box<[_]>>>()?;
        drop(open);
        Ok(Self {
            number: meta.number,
            checksum_file: meta.checksum_file(),
            name,
            end,
            file: slot,
            home: Weak::new(),
            segments,
            context,
        })
    }

    /// The bytes of the file that an open reads, and the other filters, indexes and footers. `meta` describes it.
    pub(crate) fn metadata(&self, meta: &FileMeta) -> impl Iterator<Item = Range<u64>> {
        let segments = self.segments.iter().zip(&meta.segments);
        segments.map(|(segment, meta)| {
            let tail = meta.end() - meta.length.min(TAIL_BYTES);
            segment.index.data_end().min(tail)..meta.end()
        })
    }

    /// As [`open`](Self::open), with `file` as its file.
    #[cfg(test)]
    pub(crate) fn open_holding(
        file: Arc<dyn crate::vfs::File>,
        meta: &FileMeta,
        context: TableContext,
        filters: TableFilters,
    ) -> Result<Self> {
        let slot = Arc::default();
        let (name, end) = (file_name(meta.number), meta.end());
        context.files.hold(&slot, file, &name, end)?;
        Self::open_in(slot, meta, context, filters, None)
    }

    /// This table, which is going to be in `home`.
    #[must_use]
    pub(crate) fn at_home(mut self, home: &Arc<FileSlot<Self>>) -> Self {
        self.home = Arc::downgrade(home);
        self
    }

    /// This table with all filters in memory that it reads by pieces; `None` if it reads none so.
    pub(crate) fn with_whole_filters(&self) -> Result<Option<Self>> {
        let open = self.file()?;
        let file = self.segment_file(&open);
        self.try_changed(|segment| match segment.filter.form() {
            FilterForm::Whole(_) => Ok(None),
            FilterForm::ByPieces(units) => {
                let form = FilterForm::Whole(units);
                segment
                    .with_filter(file, form, &self.context.memory)
                    .map(Some)
            }
        })
    }

    /// This table with its filters read by pieces; `None` if it has none in memory.
    pub(crate) fn without_filters(&self) -> Option<Self> {
        self.changed(|segment| segment.without_filter(&self.context.memory))
    }

    /// This table without index partitions; `None` if it has none.
    pub(crate) fn without_partitions(&self) -> Option<Self> {
        self.changed(Segment::without_partitions)
    }

    fn changed(&self, change: impl Fn(&Segment) -> Option<Segment>) -> Option<Self> {
        self.try_changed(|segment| Ok(change(segment)))
            .ok()
            .flatten()
    }

    /// This table with what `change` makes of its segments, and with those that it leaves; `None` if it leaves all.
    fn try_changed(
        &self,
        change: impl Fn(&Segment) -> Result<Option<Segment>>,
    ) -> Result<Option<Self>> {
        let changed = self.segments.iter().map(|segment| change(segment));
        let changed = changed.collect::<Result<Vec<_>>>()?;
        if changed.iter().all(Option::is_none) {
            return Ok(None);
        }
        let segments = self.segments.iter().zip(changed);
        let segments = segments.map(|(segment, changed)| match changed {
            Some(changed) => Arc::new(changed),
            None => Arc::clone(segment),
        });
        Ok(Some(Self {
            name: self.name.clone(),
            number: self.number,
            checksum_file: self.checksum_file,
            end: self.end,
            file: Arc::clone(&self.file),
            home: Weak::clone(&self.home),
            segments: segments.collect(),
            context: self.context.clone(),
        }))
    }
}
