//! A cursor over the files of one sorted run, one behind the other.
//!
//! A file is opened only when the cursor comes to it.
//!
//! Concurrency: owned by one thread; it keeps its files alive.

use std::sync::Arc;

use super::merge::iteration_failed;
use crate::base::sync::Shared;
use crate::base::{Cursor, ErrorKind, Result, SequenceNumber, Step, Trailer};
use crate::manifest::{FileHandle, Level};
use crate::table::{OpenTables, ReadCounters, SequentialCursor, Table, TableCursor};

/// A cursor that can be opened on a table.
pub(crate) trait OpenCursor: Cursor + Sized {
    /// A cursor over `table`.
    fn open(table: &Arc<Table>) -> Self;
    /// Goes over to another table, with the memory it has.
    fn switch(&mut self, table: &Arc<Table>);
    /// Takes what it has counted since the last call.
    fn take_counters(&mut self) -> ReadCounters;
}

/// For reads: blocks from the block source that the options name.
impl OpenCursor for TableCursor {
    fn open(table: &Arc<Table>) -> Self {
        table.cursor()
    }

    fn switch(&mut self, table: &Arc<Table>) {
        self.switch(table);
    }

    fn take_counters(&mut self) -> ReadCounters {
        self.take_counters()
    }
}

/// For merges: blocks from front to back, past the cache.
impl OpenCursor for SequentialCursor {
    fn open(table: &Arc<Table>) -> Self {
        table.sequential_cursor()
    }

    fn switch(&mut self, table: &Arc<Table>) {
        *self = table.sequential_cursor();
    }

    fn take_counters(&mut self) -> ReadCounters {
        self.take_counters()
    }
}

/// The files of a run, ascending and disjoint.
#[derive(Debug, Clone)]
pub(crate) enum Run {
    /// One file, or some of a level.
    Files(Box<[Shared<FileHandle>]>),
    /// A whole level below level 0.
    Level(Shared<Level>),
}

impl Run {
    fn files(&self) -> &[Shared<FileHandle>] {
        match self {
            Self::Files(files) => files,
            Self::Level(level) => level.files(),
        }
    }

    /// The first file that may hold `key` or a greater one.
    #[inline]
    fn lower_bound(&self, key: &[u8]) -> usize {
        match self {
            Self::Files(files) => files.partition_point(|file| file.meta.largest() < key),
            Self::Level(level) => level.lower_bound(key),
        }
    }
}

/// Concatenates the files of a run.
#[derive(Debug)]
pub(crate) struct RunCursor<C> {
    /// Stands before `run`: what reads a file is dropped before what keeps it from being removed.
    current: Option<C>,
    /// A cursor that left the run at either end, kept for its memory.
    spare: Option<C>,
    /// The file that `current` reads.
    file: usize,
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
            file: 0,
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

    /// Goes to the file at `position` and places its cursor with `place`; without such a file the
    /// cursor becomes invalid.
    fn enter(
        &mut self,
        position: Option<usize>,
        place: impl FnOnce(&mut C) -> Result<()>,
    ) -> Result<()> {
        if let Some(kind) = self.failed {
            return Err(iteration_failed(kind));
        }
        let file = position.and_then(|position| Some((position, self.run.files().get(position)?)));
        let Some((position, file)) = file else {
            self.keep_counts();
            if self.current.is_some() {
                self.spare = self.current.take();
            }
            return Ok(());
        };
        if self.file != position || self.current.is_none() {
            let opened = self.tables.get(file.slot(), &file.meta);
            if self.current.is_none() {
                self.current = self.spare.take();
            }
            match (opened, &mut self.current) {
                (Ok(table), Some(current)) => current.switch(&table),
                (Ok(table), None) => self.current = Some(C::open(&table)),
                (Err(error), _) => return self.fail(Err(error)),
            }
            self.file = position;
        }
        let placed = match &mut self.current {
            Some(current) => place(current),
            None => Ok(()),
        };
        self.fail(placed)
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

    /// Goes on from what a step in the current file, if there is one, came to: an error, or its end.
    #[cold]
    fn leave_forward(&mut self, moved: Option<Result<Step>>) -> Result<Step> {
        match moved {
            Some(moved) => {
                self.fail(moved.map(drop))?;
                self.enter_next()?;
            }
            None => self.enter(None, |_| Ok(()))?,
        }
        // A user key never spans two files.
        Ok(match &self.current {
            Some(current) if current.is_valid() => Step::to(current.trailer(), false),
            _ => Step::END,
        })
    }

    /// Goes on with the next file when the current one is exhausted.
    #[cold]
    fn enter_next(&mut self) -> Result<()> {
        self.enter(Some(self.file + 1), C::seek_to_first)
    }

    #[cold]
    fn enter_previous(&mut self) -> Result<()> {
        self.enter(self.file.checked_sub(1), C::seek_to_last)
    }

    fn is_exhausted(&self) -> bool {
        self.current
            .as_ref()
            .is_some_and(|current| !current.is_valid())
    }
}

/// Stands in where a caller asks an invalid cursor for its entry.
const NO_ENTRY: &str = "a cursor is asked for an entry only while it is valid";

impl<C: OpenCursor> Cursor for RunCursor<C> {
    fn seek_to_first(&mut self) -> Result<()> {
        self.enter(Some(0), C::seek_to_first)
    }

    fn seek_to_last(&mut self) -> Result<()> {
        self.enter(self.run.files().len().checked_sub(1), C::seek_to_last)
    }

    fn seek(&mut self, key: &[u8], sequence: SequenceNumber) -> Result<()> {
        let position = self.run.lower_bound(key);
        self.enter(Some(position), |current| current.seek(key, sequence))?;
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

    fn prev(&mut self) -> Result<()> {
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
        self.current.as_ref().is_some_and(Cursor::is_valid)
    }

    #[inline]
    fn key(&self) -> &[u8] {
        match &self.current {
            Some(current) => current.key(),
            None => unreachable!("{NO_ENTRY}"),
        }
    }

    #[inline]
    fn trailer(&self) -> Trailer {
        match &self.current {
            Some(current) => current.trailer(),
            None => unreachable!("{NO_ENTRY}"),
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
