//! A cursor that concatenates the segments of one sorted run.
//!
//! The manifest has the smallest and the largest key of each segment. A seek to a key before a segment
//! stays *ahead* of it, and so does a seek to an end of the run: the cursor shows the smallest or the
//! largest key, and opens the file and reads a block only at [`arrive`](Cursor::arrive). So a seek over
//! many runs reads only the runs that hold keys on both sides of the target, and a scan reads the others
//! when it reaches them.
//!
//! Concurrency: owned by one thread; it keeps its files alive.

use std::fmt;
use std::sync::Arc;

use super::merge::iteration_failed;
use crate::base::key::SEQUENCE_MAX;
use crate::base::sync::Shared;
use crate::base::{Cursor, ErrorKind, Kind, Result, SequenceNumber, Step, Trailer};
use crate::block::{Reach, Stride, Striding};
use crate::manifest::{FileHandle, Level, Place};
use crate::table::{
    Bounds, OpenTables, ReadCounters, SegmentMeta, SequentialCursor, Table, TableCursor,
};
use crate::vfs::PassedBytes;

/// A cursor that can be opened on a table.
pub(crate) trait OpenCursor: Cursor + Sized {
    /// Whether the reads of the cursor are those of a user, not of a compaction.
    const IS_READ: bool;
    /// What the cursors of one run have in common.
    type Common: fmt::Debug + Clone + Default;
    /// A cursor over a segment of `table`.
    fn open(table: &Arc<Table>, segment: usize, common: &Self::Common) -> Self;
    /// Switches to another segment and reuses the cursor's memory.
    fn switch(&mut self, table: &Arc<Table>, segment: usize, common: &Self::Common);
    /// Asks for what a seek to `key` and the scan after it will read of a segment.
    fn announce_seek(_table: &Table, _segment: usize, _key: &[u8], _common: &Self::Common) {}
    /// Notes that [`announce_seek`](Self::announce_seek) has asked for what the next seek will read.
    fn note_announced(&mut self) {}
    /// Asks for the block that a step backward will read, if it will read one.
    fn announce_prev(&self) {}
    /// What the cursors of a run have in common that runs ahead of another one.
    fn of_sibling(common: &Self::Common) -> Self::Common {
        common.clone()
    }
    /// Takes the counts since the last call.
    fn take_counters(&mut self) -> ReadCounters;
}

/// For reads: blocks from the block source that the options name.
impl OpenCursor for TableCursor {
    const IS_READ: bool = true;
    /// Nothing is read ahead beyond them.
    type Common = Bounds;

    fn announce_seek(table: &Table, segment: usize, key: &[u8], bounds: &Bounds) {
        table.announce(segment, key, bounds);
    }

    fn note_announced(&mut self) {
        self.note_announced();
    }

    /// A scan counts once.
    fn of_sibling(bounds: &Bounds) -> Bounds {
        Bounds {
            scans: None,
            ..bounds.clone()
        }
    }

    fn open(table: &Arc<Table>, segment: usize, bounds: &Bounds) -> Self {
        table.cursor(segment).within(bounds.clone())
    }

    fn switch(&mut self, table: &Arc<Table>, segment: usize, _: &Bounds) {
        self.switch(table, segment);
    }

    fn announce_prev(&self) {
        self.announce_prev();
    }

    fn take_counters(&mut self) -> ReadCounters {
        self.take_counters()
    }
}

/// For compactions: blocks in file order, without the cache.
impl OpenCursor for SequentialCursor {
    const IS_READ: bool = false;
    /// They count what they pass.
    type Common = Arc<PassedBytes>;

    fn open(table: &Arc<Table>, segment: usize, passed: &Arc<PassedBytes>) -> Self {
        table.counting_cursor(segment, passed)
    }

    fn switch(&mut self, table: &Arc<Table>, segment: usize, passed: &Arc<PassedBytes>) {
        *self = table.counting_cursor(segment, passed);
    }

    fn take_counters(&mut self) -> ReadCounters {
        self.take_counters()
    }
}

/// The segments of a run, ascending and disjoint.
#[derive(Debug, Clone)]
pub(crate) enum Run {
    /// One segment, or some of a level.
    Segments(Box<[(Shared<FileHandle>, usize)]>),
    /// One of the segment runs of a level below level 0.
    OfLevel(Shared<Level>, usize),
}

impl Run {
    /// The runs of `files`, which are disjoint and ascending, oldest first. Their number is the largest number of
    /// segments of a file.
    pub(crate) fn of_files(files: &[Shared<FileHandle>]) -> impl DoubleEndedIterator<Item = Self> {
        let most = files.iter().map(|file| file.meta.segments.len()).max();
        let run = |segment: usize| {
            let has_it = |file: &&Shared<FileHandle>| file.meta.segments.len() > segment;
            let members = files.iter().filter(has_it).map(Shared::clone);
            Self::Segments(members.map(|file| (file, segment)).collect())
        };
        (0..most.unwrap_or(0)).map(run)
    }

    /// The first place; behind the end in an empty run.
    fn first(&self) -> Place {
        match self {
            Self::Segments(_) => Place::at(0),
            Self::OfLevel(level, run) => level.run_first(*run),
        }
    }

    fn last(&self) -> Option<Place> {
        match self {
            Self::Segments(segments) => segments.len().checked_sub(1).map(Place::at),
            Self::OfLevel(level, run) => level.run_last(*run),
        }
    }

    fn next(&self, place: Place) -> Place {
        match self {
            Self::Segments(_) => Place::at(place.position() + 1),
            Self::OfLevel(level, run) => level.run_next(*run, place),
        }
    }

    fn previous(&self, place: Place) -> Option<Place> {
        match self {
            Self::Segments(_) => place.position().checked_sub(1).map(Place::at),
            Self::OfLevel(level, run) => level.run_previous(*run, place),
        }
    }

    /// The file of the segment at `place`, and the segment's index in the file.
    #[inline]
    pub(super) fn get(&self, place: Place) -> Option<(&Shared<FileHandle>, usize)> {
        match self {
            Self::Segments(segments) => {
                let (file, segment) = segments.get(place.position())?;
                Some((file, *segment))
            }
            Self::OfLevel(level, run) => Some((level.segment_file(*run, place)?, *run)),
        }
    }

    /// The metadata of the segment at `place`.
    fn meta(&self, place: Place) -> Option<&SegmentMeta> {
        let (file, segment) = self.get(place)?;
        file.meta.segments.get(segment)
    }

    /// The first segment that may hold `key` or a greater one.
    #[inline]
    pub(super) fn lower_bound(&self, key: &[u8]) -> Place {
        match self {
            Self::Segments(segments) => {
                Place::at(segments.partition_point(|(file, segment)| {
                    file.meta.segments[*segment].largest() < key
                }))
            }
            Self::OfLevel(level, run) => level.run_lower_bound(*run, key),
        }
    }

    /// Counts a visit of the segment at `place` for its file, if a compaction would save it: a visit of a segment of
    /// level 0, or of a segment that is not the first of its file. The addition to a word with little contention
    /// costs less than sampling.
    fn note_visit(&self, place: Place) {
        match self {
            Self::Segments(_) => {
                if let Some((file, _)) = self.get(place) {
                    file.note_visit();
                }
            }
            Self::OfLevel(_, 0) => {}
            Self::OfLevel(level, run) => level.note_visit(*run, place),
        }
    }
}

/// The position of a cursor that is ahead: before the first entry of a segment, or behind the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ahead {
    First(Place),
    Last(Place),
}

/// Concatenates the segments of a run.
#[derive(Debug)]
pub(crate) struct RunCursor<C: OpenCursor> {
    /// The field precedes `run`, so the cursor of a file is dropped before the handle on the file.
    current: Option<C>,
    /// An unused cursor, kept for its memory.
    spare: Option<C>,
    /// Without a `current`: the end of a segment at which the cursor is ahead.
    ahead: Option<Ahead>,
    /// The segment that `current` reads, or that `spare` has read.
    position: Place,
    run: Run,
    common: C::Common,
    /// Whether the blocks of the next seek were asked for.
    is_announced: bool,
    tables: Arc<OpenTables>,
    /// The kind of the first error. After an error the cursor reads nothing.
    failed: Option<ErrorKind>,
    /// The counts of the cursors of earlier files.
    counters: ReadCounters,
}

impl<C: OpenCursor> RunCursor<C> {
    pub(crate) fn new(tables: Arc<OpenTables>, run: Run) -> Self {
        Self {
            current: None,
            spare: None,
            ahead: None,
            position: Place::at(0),
            run,
            common: C::Common::default(),
            is_announced: false,
            tables,
            failed: None,
            counters: ReadCounters::default(),
        }
    }

    /// With what the cursors of the run have in common.
    #[must_use]
    pub(crate) fn with(mut self, common: C::Common) -> Self {
        self.common = common;
        self
    }

    /// A new cursor over the same run.
    pub(crate) fn sibling(&self) -> Self {
        Self::new(Arc::clone(&self.tables), self.run.clone()).with(C::of_sibling(&self.common))
    }

    /// What the cursors of the run have in common.
    pub(super) fn common(&self) -> &C::Common {
        &self.common
    }

    /// The table that a seek to `key` enters.
    pub(super) fn table_for(&self, key: &[u8]) -> Option<&Shared<FileHandle>> {
        let place = self.run.lower_bound(key);
        self.run.get(place).map(|(file, _)| file)
    }

    /// The number of tables.
    pub(super) fn tables(&self) -> usize {
        match &self.run {
            Run::Segments(segments) => segments.len(),
            Run::OfLevel(level, _) => level.len(),
        }
    }

    /// Takes the counts since the last call.
    pub(crate) fn take_counters(&mut self) -> ReadCounters {
        self.keep_counts();
        std::mem::take(&mut self.counters)
    }

    /// Keeps the counts of the current file's cursor.
    fn keep_counts(&mut self) {
        if let Some(current) = &mut self.current {
            self.counters.add(&current.take_counters());
        }
    }

    /// Enters the segment at `position` and positions its cursor with `place`. Without such a segment
    /// the cursor becomes invalid.
    fn enter(
        &mut self,
        position: Option<Place>,
        place: impl FnOnce(&mut C) -> Result<()>,
    ) -> Result<()> {
        self.refuse_after_error()?;
        self.ahead = None;
        let segment = position.and_then(|position| Some((position, self.run.get(position)?)));
        let Some((position, (file, segment))) = segment else {
            self.keep_spare();
            return Ok(());
        };
        if self.position != position || self.current.is_none() {
            let opened = self.tables.get(file.slot(), &file.meta);
            if self.current.is_none() {
                self.current = self.spare.take();
            }
            match (opened, &mut self.current) {
                (Ok(table), Some(current)) => current.switch(&table, segment, &self.common),
                (Ok(table), None) => {
                    self.current = Some(C::open(&table, segment, &self.common));
                }
                (Err(error), _) => return self.fail(Err(error)),
            }
            self.position = position;
        }
        let placed = match &mut self.current {
            Some(current) => place(current),
            None => Ok(()),
        };
        self.fail(placed)
    }

    /// Whether the cursor should ask for blocks before it reads them.
    #[inline]
    fn is_cold(&self) -> bool {
        C::IS_READ && self.failed.is_none() && self.tables.context().clock.is_cold()
    }

    /// Asks for the block that a seek to `key` will read, if it will read one and the table is open.
    #[cold]
    fn announce_block(&mut self, key: &[u8]) {
        let position = self.run.lower_bound(key);
        let Some((file, segment)) = self.run.get(position) else {
            return;
        };
        let holds_key = |meta: &SegmentMeta| meta.smallest() <= key;
        if !self.run.meta(position).is_some_and(holds_key) {
            return;
        }
        // The open of a table waits.
        if let Some(table) = file.slot().get() {
            C::announce_seek(&table, segment, key, &self.common);
            self.is_announced = true;
        }
    }

    /// Counts a visit of the present segment.
    fn note_visit(&mut self) {
        if C::IS_READ && self.current.is_some() {
            self.counters.runs_visited += 1;
            self.run.note_visit(self.position);
        }
    }

    /// Makes the current cursor the spare one.
    fn keep_spare(&mut self) {
        self.keep_counts();
        if self.current.is_some() {
            self.spare = self.current.take();
        }
    }

    /// Stays ahead, at an end of an existing segment.
    fn stay_ahead(&mut self, ahead: Ahead) -> Result<()> {
        self.refuse_after_error()?;
        self.keep_spare();
        self.ahead = Some(ahead);
        Ok(())
    }

    fn refuse_after_error(&self) -> Result<()> {
        self.failed
            .map_or(Ok(()), |kind| Err(iteration_failed(kind)))
    }

    #[inline]
    fn fail(&mut self, outcome: Result<()>) -> Result<()> {
        if let Err(error) = &outcome {
            self.failed = Some(error.kind());
            self.keep_counts();
            self.current = None;
        }
        outcome
    }

    /// Continues after `moved`, the step in the current segment: an error, or the segment's end.
    #[cold]
    fn leave_forward(&mut self, moved: Option<Result<Step>>) -> Result<Step> {
        match moved {
            Some(moved) => {
                self.fail(moved.map(drop))?;
                self.enter_next()?;
            }
            None if self.ahead.is_some() => {
                self.arrive()?;
                return self.next();
            }
            None => self.enter(None, |_| Ok(()))?,
        }
        // A user key never spans two segments of a run.
        Ok(match &self.current {
            Some(current) if current.is_valid() => Step::to(current.trailer(), false),
            _ => Step::END,
        })
    }

    #[cold]
    fn enter_next(&mut self) -> Result<()> {
        self.enter(Some(self.run.next(self.position)), C::seek_to_first)
    }

    #[cold]
    fn enter_previous(&mut self) -> Result<()> {
        self.enter(self.run.previous(self.position), C::seek_to_last)
    }

    fn is_exhausted(&self) -> bool {
        self.current
            .as_ref()
            .is_some_and(|current| !current.is_valid())
    }

    #[cold]
    fn key_ahead(&self) -> &[u8] {
        let end = match self.ahead {
            Some(Ahead::First(position)) => self.run.meta(position).map(SegmentMeta::smallest),
            Some(Ahead::Last(position)) => self.run.meta(position).map(SegmentMeta::largest),
            None => None,
        };
        match end {
            Some(key) => key,
            None => unreachable!("{NO_ENTRY}"),
        }
    }

    #[cold]
    fn trailer_ahead(&self) -> Trailer {
        match self.ahead {
            Some(Ahead::First(_)) => Trailer::new(SEQUENCE_MAX, Kind::Value),
            Some(Ahead::Last(_)) => Trailer::new(0, Kind::Value),
            None => unreachable!("{NO_ENTRY}"),
        }
    }
}

const NO_ENTRY: &str = "only a valid cursor has an entry";

impl<C: OpenCursor> Cursor for RunCursor<C> {
    fn seek_to_first(&mut self) -> Result<()> {
        let first = self.run.first();
        match self.run.get(first) {
            None => self.enter(None, |_| Ok(())),
            Some(_) => self.stay_ahead(Ahead::First(first)),
        }
    }

    fn seek_to_last(&mut self) -> Result<()> {
        match self.run.last() {
            None => self.enter(None, |_| Ok(())),
            Some(last) => self.stay_ahead(Ahead::Last(last)),
        }
    }

    fn seek(&mut self, key: &[u8], sequence: SequenceNumber) -> Result<()> {
        let position = self.run.lower_bound(key);
        let begins_behind = |segment: &SegmentMeta| key < segment.smallest();
        if self.run.meta(position).is_some_and(begins_behind) {
            return self.stay_ahead(Ahead::First(position));
        }
        let is_announced = std::mem::take(&mut self.is_announced);
        self.enter(Some(position), |current| {
            if is_announced {
                current.note_announced();
            }
            current.seek(key, sequence)
        })?;
        self.note_visit();
        // All versions of the last key may be newer than `sequence`.
        if self.is_exhausted() {
            self.enter_next()
        } else {
            Ok(())
        }
    }

    #[inline]
    fn announce(&mut self, key: &[u8]) -> bool {
        let is_cold = self.is_cold();
        if is_cold {
            self.announce_block(key);
        }
        is_cold
    }

    #[cold]
    fn announce_prev(&mut self) -> bool {
        let is_cold = self.is_cold();
        if is_cold && let Some(current) = &self.current {
            current.announce_prev();
        }
        is_cold
    }

    #[inline]
    fn next(&mut self) -> Result<Step> {
        match self.current.as_mut().map(Cursor::next) {
            Some(Ok(step)) if !step.is_end() => Ok(step),
            moved => self.leave_forward(moved),
        }
    }

    #[inline]
    fn is_ahead(&self) -> bool {
        self.ahead.is_some()
    }

    #[cold]
    fn arrive(&mut self) -> Result<()> {
        match self.ahead {
            None => return Ok(()),
            Some(Ahead::First(position)) => self.enter(Some(position), C::seek_to_first)?,
            Some(Ahead::Last(position)) => self.enter(Some(position), C::seek_to_last)?,
        }
        self.note_visit();
        Ok(())
    }

    fn prev(&mut self) -> Result<()> {
        match self.ahead {
            Some(Ahead::First(position)) => {
                return match self.run.previous(position) {
                    None => self.enter(None, |_| Ok(())),
                    Some(previous) => self.stay_ahead(Ahead::Last(previous)),
                };
            }
            Some(Ahead::Last(_)) => self.arrive()?,
            None => {}
        }
        let Some(current) = &mut self.current else {
            return self.enter(None, |_| Ok(()));
        };
        let moved = current.prev();
        if moved.is_ok() && current.is_valid() {
            return Ok(());
        }
        self.fail(moved)?;
        self.enter_previous()
    }

    #[inline]
    fn is_valid(&self) -> bool {
        match &self.current {
            Some(current) => current.is_valid(),
            None => self.ahead.is_some(),
        }
    }

    #[inline]
    fn key(&self) -> &[u8] {
        match &self.current {
            Some(current) => current.key(),
            None => self.key_ahead(),
        }
    }

    #[inline]
    fn trailer(&self) -> Trailer {
        match &self.current {
            Some(current) => current.trailer(),
            None => self.trailer_ahead(),
        }
    }

    #[inline]
    fn value(&self) -> &[u8] {
        match &self.current {
            Some(current) => current.value(),
            None => unreachable!("{NO_ENTRY}"),
        }
    }
}

impl<C: OpenCursor + Striding> Striding for RunCursor<C> {
    #[inline]
    fn begin_stride(&self, stride: &mut Stride, reach: Reach<'_>) -> bool {
        let current = self.current.as_ref();
        current.is_some_and(|current| current.begin_stride(stride, reach))
    }

    fn end_stride(&mut self, stride: &Stride) -> Result<()> {
        let current = self.current.as_mut();
        let moved = current.map_or(Ok(()), |current| current.end_stride(stride));
        self.fail(moved)
    }
}
