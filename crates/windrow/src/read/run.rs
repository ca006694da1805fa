//! A cursor over the segments of one sorted run, one behind the other.
//!
//! A seek that leads to the end of a segment, whose key the manifest has, does not go there but stays
//! *ahead*: the file is opened and a block read only when somebody arrives. So a seek among many runs
//! reads of those only that hold keys on both sides of what is sought, and a scan of the others only
//! when it comes to them.
//!
//! Concurrency: owned by one thread; it keeps its files alive.

use std::sync::Arc;

use super::merge::iteration_failed;
use crate::base::key::SEQUENCE_MAX;
use crate::base::sync::Shared;
use crate::base::{Cursor, ErrorKind, Kind, Result, SequenceNumber, Step, Trailer};
use crate::manifest::{FileHandle, Level};
use crate::table::{OpenTables, ReadCounters, SegmentMeta, SequentialCursor, Table, TableCursor};

/// A cursor that can be opened on a table.
pub(crate) trait OpenCursor: Cursor + Sized {
    /// Whether it is a user who reads.
    const IS_READ: bool;
    /// A cursor over a segment of `table`.
    fn open(table: &Arc<Table>, segment: usize) -> Self;
    /// Goes over to another segment, with the memory it has.
    fn switch(&mut self, table: &Arc<Table>, segment: usize);
    /// Takes what it has counted since the last call.
    fn take_counters(&mut self) -> ReadCounters;
}

/// For reads: blocks from the block source that the options name.
impl OpenCursor for TableCursor {
    const IS_READ: bool = true;

    fn open(table: &Arc<Table>, segment: usize) -> Self {
        table.cursor(segment)
    }

    fn switch(&mut self, table: &Arc<Table>, segment: usize) {
        self.switch(table, segment);
    }

    fn take_counters(&mut self) -> ReadCounters {
        self.take_counters()
    }
}

/// For merges: blocks from front to back, past the cache.
impl OpenCursor for SequentialCursor {
    const IS_READ: bool = false;

    fn open(table: &Arc<Table>, segment: usize) -> Self {
        table.sequential_cursor(segment)
    }

    fn switch(&mut self, table: &Arc<Table>, segment: usize) {
        *self = table.sequential_cursor(segment);
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
    /// A layer of a level below level 0.
    Layer(Shared<Level>, usize),
}

impl Run {
    /// The runs that `files` consist of, which are disjoint and ascend: as many as one of them has
    /// segments.
    pub(crate) fn of_files(files: &[Shared<FileHandle>]) -> impl Iterator<Item = Self> {
        let most = files.iter().map(|file| file.meta.segments.len()).max();
        let run = |segment: usize| {
            let has_it = |file: &&Shared<FileHandle>| file.meta.segments.len() > segment;
            let members = files.iter().filter(has_it).map(Shared::clone);
            Self::Segments(members.map(|file| (file, segment)).collect())
        };
        (0..most.unwrap_or(0)).map(run)
    }

    fn len(&self) -> usize {
        match self {
            Self::Segments(segments) => segments.len(),
            Self::Layer(level, layer) => level.layers()[*layer].len(),
        }
    }

    /// The file of the segment at `position`, and which of its segments it is.
    #[inline]
    fn get(&self, position: usize) -> Option<(&Shared<FileHandle>, usize)> {
        match self {
            Self::Segments(segments) => {
                let (file, segment) = segments.get(position)?;
                Some((file, *segment))
            }
            Self::Layer(level, layer) => {
                let layer = &level.layers()[*layer];
                Some((&level.files()[layer.file(position)?], layer.segment))
            }
        }
    }

    /// What the manifest knows of the segment at `position`.
    fn meta(&self, position: usize) -> Option<&SegmentMeta> {
        let (file, segment) = self.get(position)?;
        file.meta.segments.get(segment)
    }

    /// The first segment that may hold `key` or a greater one.
    #[inline]
    fn lower_bound(&self, key: &[u8]) -> usize {
        match self {
            Self::Segments(segments) => segments
                .partition_point(|(file, segment)| *file.meta.segments[*segment].largest < *key),
            Self::Layer(level, layer) => level.layers()[*layer].lower_bound(key),
        }
    }
}

/// Where a cursor is ahead: before the first entry of a segment, or behind the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ahead {
    First(usize),
    Last(usize),
}

/// Concatenates the segments of a run.
#[derive(Debug)]
pub(crate) struct RunCursor<C> {
    /// Stands before `run`: what reads a file is dropped before what keeps it from being removed.
    current: Option<C>,
    /// A cursor that left the run at either end, or is behind where this one is ahead, kept for its memory.
    spare: Option<C>,
    /// While there is no `current`: the end of a segment that a seek has led to.
    ahead: Option<Ahead>,
    /// The segment that `current` reads, or the spare one did.
    position: usize,
    run: Run,
    tables: Arc<OpenTables>,
    /// The kind of the error that was met, after which nothing can be read.
    failed: Option<ErrorKind>,
    /// What the cursors of files that were left have counted.
    counters: ReadCounters,
}

impl<C: OpenCursor> RunCursor<C> {
    pub(crate) fn new(tables: Arc<OpenTables>, run: Run) -> Self {
        Self {
            current: None,
            spare: None,
            ahead: None,
            position: 0,
            run,
            tables,
            failed: None,
            counters: ReadCounters::default(),
        }
    }

    /// A new cursor over the same run.
    pub(crate) fn sibling(&self) -> Self {
        Self::new(Arc::clone(&self.tables), self.run.clone())
    }

    /// Takes what was counted since the last call.
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

    /// Goes to the segment at `position` and places its cursor with `place`; without such a segment the
    /// cursor becomes invalid.
    fn enter(
        &mut self,
        position: Option<usize>,
        place: impl FnOnce(&mut C) -> Result<()>,
    ) -> Result<()> {
        self.refuse_after_error()?;
        self.ahead = None;
        let segment = position.and_then(|position| Some((position, self.run.get(position)?)));
        let Some((position, (file, segment))) = segment else {
            self.lay_aside();
            return Ok(());
        };
        if self.position != position || self.current.is_none() {
            let opened = self.tables.get(file.slot(), &file.meta);
            if self.current.is_none() {
                self.current = self.spare.take();
            }
            match (opened, &mut self.current) {
                (Ok(table), Some(current)) => current.switch(&table, segment),
                (Ok(table), None) => self.current = Some(C::open(&table, segment)),
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

    /// Counts that the present segment was gone to, and for its file that this was a run more than there
    /// might be: it is in level 0, or not the first of the file. An addition to a word that others seldom
    /// touch costs less than to choose some of the visits.
    fn note_visit(&mut self) {
        if !C::IS_READ || self.current.is_none() {
            return;
        }
        self.counters.runs_visited += 1;
        let is_more = match self.run {
            Run::Segments(_) => true,
            Run::Layer(_, layer) => layer > 0,
        };
        if is_more && let Some((file, _)) = self.run.get(self.position) {
            file.note_visits(1);
        }
    }

    /// Keeps the cursor over the present segment for its memory.
    fn lay_aside(&mut self) {
        self.keep_counts();
        if self.current.is_some() {
            self.spare = self.current.take();
        }
    }

    /// Stays ahead, at an end of a segment that there is.
    fn stay_ahead(&mut self, ahead: Ahead) -> Result<()> {
        self.refuse_after_error()?;
        self.lay_aside();
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

    /// Goes on from what a step in the current segment, if there is one, came to: an error, or its end.
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

    /// Goes on with the next segment when the current one is exhausted.
    #[cold]
    fn enter_next(&mut self) -> Result<()> {
        self.enter(Some(self.position + 1), C::seek_to_first)
    }

    #[cold]
    fn enter_previous(&mut self, position: usize) -> Result<()> {
        self.enter(position.checked_sub(1), C::seek_to_last)
    }

    fn is_exhausted(&self) -> bool {
        self.current
            .as_ref()
            .is_some_and(|current| !current.is_valid())
    }

    #[cold]
    fn key_ahead(&self) -> &[u8] {
        let end = match self.ahead {
            Some(Ahead::First(position)) => self.run.meta(position).map(|it| &it.smallest),
            Some(Ahead::Last(position)) => self.run.meta(position).map(|it| &it.largest),
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

/// Stands in where a caller asks an invalid cursor for its entry.
const NO_ENTRY: &str = "a cursor is asked for an entry only while it is valid";

impl<C: OpenCursor> Cursor for RunCursor<C> {
    fn seek_to_first(&mut self) -> Result<()> {
        match self.run.len() {
            0 => self.enter(None, |_| Ok(())),
            _ => self.stay_ahead(Ahead::First(0)),
        }
    }

    fn seek_to_last(&mut self) -> Result<()> {
        match self.run.len().checked_sub(1) {
            None => self.enter(None, |_| Ok(())),
            Some(last) => self.stay_ahead(Ahead::Last(last)),
        }
    }

    fn seek(&mut self, key: &[u8], sequence: SequenceNumber) -> Result<()> {
        let position = self.run.lower_bound(key);
        let begins_behind = |segment: &SegmentMeta| *key < *segment.smallest;
        if self.run.meta(position).is_some_and(begins_behind) {
            return self.stay_ahead(Ahead::First(position));
        }
        self.enter(Some(position), |current| current.seek(key, sequence))?;
        self.note_visit();
        // All versions of the last key may be newer than `sequence`.
        if self.is_exhausted() {
            self.enter_next()
        } else {
            Ok(())
        }
    }

    #[inline]
    fn next(&mut self) -> Result<Step> {
        match self.current.as_mut().map(Cursor::next) {
            Some(Ok(step)) if !step.is_end() => Ok(step),
            moved => self.leave_forward(moved),
        }
    }

    #[inline]
    fn step(&mut self) -> Option<Step> {
        self.current.as_mut()?.step()
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
            Some(Ahead::First(0)) => return self.enter(None, |_| Ok(())),
            Some(Ahead::First(position)) => return self.stay_ahead(Ahead::Last(position - 1)),
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
        self.enter_previous(self.position)
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
