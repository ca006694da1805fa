//! A cursor over visible entries that reads their separated values and folds their operands.
//!
//! It reads or folds a value at the first call of [`value`](EntryCursor::value), once per entry. This can fail. A scan
//! of keys alone reads no separated values and folds nothing.
//!
//! Concurrency: owned by one thread; it keeps the value files of its version alive.

use std::cell::{Cell, OnceCell};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use super::ahead::ReadAhead;
use super::state::ReadState;
use super::value_reader::ValueReader;
use super::visible::VisibleCursor;
use crate::base::sync::Shared;
use crate::base::{KeyspaceId, Result, Sibling};
use crate::block::Striding;
use crate::latency::{Latencies, Operation};
use crate::manifest::ValueFiles;
use crate::merge_operator::KeyspaceOperator;
use crate::value::OpenValues;

/// A [`VisibleCursor`] that also reads values.
pub(crate) struct EntryCursor<C> {
    visible: VisibleCursor<C>,
    /// The separated value of the present entry, after its read.
    fetched: OnceCell<Vec<u8>>,
    /// A buffer for the next value.
    spare: Cell<Vec<u8>>,
    /// The number of values to read before the next check of the read-ahead.
    until_check: Cell<usize>,
    /// Whether the cursor has moved in another way than forward since the last check.
    has_jumped: Cell<bool>,
    ahead: Cell<Option<Box<ReadAhead<C>>>>,
    /// Reads that are not counted yet. An atomic addition per value would cost a scan 5 % (measured).
    transient_log_reads: Cell<u64>,
    value_log_reads: Cell<u64>,
    /// Seeks that are not counted yet.
    seeks: u64,
    /// A step that finds 1 here does more than move: it drops a value that was read, or is timed. So a plain step pays for
    /// both by one counter.
    until_pause: Cell<u32>,
    /// What stood there before a value was read.
    until_timed: Cell<u32>,
    timing: Option<Timing>,
    files: Shared<ValueFiles>,
    open: Arc<OpenValues>,
    operator: Arc<KeyspaceOperator>,
    keyspace: KeyspaceId,
}

impl<C: Sibling + Striding> EntryCursor<C> {
    pub(crate) fn new(
        visible: VisibleCursor<C>,
        keyspace: KeyspaceId,
        state: &ReadState,
        open: Arc<OpenValues>,
    ) -> Self {
        Self {
            visible,
            fetched: OnceCell::new(),
            spare: Cell::default(),
            until_check: Cell::new(0),
            has_jumped: Cell::new(false),
            ahead: Cell::default(),
            transient_log_reads: Cell::default(),
            value_log_reads: Cell::default(),
            seeks: 0,
            until_pause: Cell::new(u32::MAX),
            until_timed: Cell::new(u32::MAX),
            timing: None,
            files: Shared::clone(state.version.values()),
            open,
            operator: Arc::clone(&state.operator),
            keyspace,
        }
    }

    /// Times some of the moves.
    pub(crate) fn timed_by(mut self, latencies: &Arc<Latencies>) -> Self {
        let first = latencies.first_timed_move();
        if first > 0 {
            self.until_pause.set(first);
            self.timing = Some(Timing {
                latencies: Arc::clone(latencies),
                until_seek: first,
            });
        }
        self
    }

    /// Moves to the first entry; returns whether it exists.
    pub(crate) fn seek_to_first(&mut self) -> Result<bool> {
        self.seek_by(VisibleCursor::seek_to_first)
    }

    /// Moves to the last entry; returns whether it exists.
    pub(crate) fn seek_to_last(&mut self) -> Result<bool> {
        self.seek_by(VisibleCursor::seek_to_last)
    }

    /// Moves to the first entry whose key is `key` or greater; returns whether it exists.
    pub(crate) fn seek(&mut self, key: &[u8]) -> Result<bool> {
        self.seek_by(|visible| visible.seek(key))
    }

    #[inline]
    fn seek_by(
        &mut self,
        seek: impl FnOnce(&mut VisibleCursor<C>) -> Result<bool>,
    ) -> Result<bool> {
        let start = self.timing.as_mut().and_then(Timing::begin_seek);
        let found = seek(self.moving());
        self.end_timed(Operation::Seek, start);
        found
    }

    #[inline]
    fn end_timed(&self, operation: Operation, start: Option<Duration>) {
        if let (Some(timing), Some(start)) = (&self.timing, start) {
            timing.latencies.end(operation, start);
        }
    }

    /// The underlying cursor, for a move to any entry that is not timed.
    #[inline]
    pub(crate) fn moving(&mut self) -> &mut VisibleCursor<C> {
        self.leave();
        self.until_check.set(0);
        self.has_jumped.set(true);
        self.seeks += 1;
        &mut self.visible
    }

    /// Takes the number of calls of [`moving`](Self::moving) since the last call.
    pub(crate) fn take_seeks(&mut self) -> u64 {
        std::mem::take(&mut self.seeks)
    }

    /// Takes the number of entries that moves have passed since the last call.
    pub(crate) fn take_passed(&mut self) -> u64 {
        self.visible.take_passed()
    }

    /// Moves to the next entry; returns whether it exists.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<bool> {
        let until_pause = self.until_pause.get_mut();
        *until_pause -= 1;
        if *until_pause == 0 {
            return self.next_after_pause();
        }
        self.visible.next()
    }

    /// As `next`, for a step that does more than move.
    #[inline(never)]
    fn next_after_pause(&mut self) -> Result<bool> {
        if self.fetched.get().is_some() {
            self.leave();
            // This step counts.
            *self.until_pause.get_mut() -= 1;
            if self.until_pause.get() > 0 {
                return self.visible.next();
            }
        }
        let latencies = self.timing.as_ref().map(|timing| &timing.latencies);
        let interval = latencies.map_or(u32::MAX, |latencies| latencies.moves_interval());
        self.until_pause.set(interval);
        let start = latencies.map(|latencies| latencies.now());
        let found = self.visible.next();
        self.end_timed(Operation::Next, start);
        found
    }

    /// Moves to the previous entry; returns whether it exists.
    pub(crate) fn prev(&mut self) -> Result<bool> {
        self.leave();
        self.has_jumped.set(true);
        self.visible.prev()
    }

    /// Ends the cursor's last scan, and counts all reads.
    pub(crate) fn count_reads(&self) {
        if let Some(mut ahead) = self.ahead.take() {
            ahead.end_scan(self.reads(), self.open.scan_lengths(self.keyspace));
            self.ahead.set(Some(ahead));
        }
        self.open.count_reads(true, self.transient_log_reads.take());
        self.open.count_reads(false, self.value_log_reads.take());
    }

    /// The reads of values so far.
    fn reads(&self) -> u64 {
        self.transient_log_reads.get() + self.value_log_reads.get()
    }

    /// Visits the merged cursor and that of the prefetcher.
    pub(crate) fn visit_merged(&mut self, mut visit: impl FnMut(&mut C)) {
        visit(self.visible.merged_mut());
        if let Some(prefetcher) = self.ahead.get_mut().as_mut().and_then(|it| it.prefetcher()) {
            visit(prefetcher.merged_mut());
        }
    }

    /// Drops the value of the present entry.
    #[inline]
    fn leave(&mut self) {
        if let Some(value) = self.fetched.take() {
            self.spare.set(value);
            self.until_pause.set(self.until_timed.get());
        }
    }

    /// The value; empty while invalid.
    ///
    /// # Errors
    /// As [`ValueReader::read`]; `Merge`.
    #[inline]
    pub(crate) fn value(&self) -> Result<&[u8]> {
        let (value, is_indirect) = self.visible.stored();
        if is_indirect {
            self.fetch(value)
        } else {
            Ok(value)
        }
    }

    fn fetch(&self, pointer: &[u8]) -> Result<&[u8]> {
        if self.fetched.get().is_none() {
            let mut value = self.spare.take();
            let reader = ValueReader {
                files: &self.files,
                open: &self.open,
            };
            if let Some(unfolded) = self.visible.unfolded() {
                let key = self.visible.key();
                unfolded.fold_into(key, &self.operator, reader, &mut value)?;
                return Ok(self.keep(value));
            }
            match self.until_check.get() {
                0 => self.check_ahead(reader, pointer),
                values => self.until_check.set(values - 1),
            }
            let key = self.visible.key();
            let read = reader.read_uncounted(key, pointer, &mut value)?;
            if read.is_cold {
                self.note_cold(reader, pointer);
            }
            let reads = if read.is_transient {
                &self.transient_log_reads
            } else {
                &self.value_log_reads
            };
            reads.set(reads.get() + 1);
            return Ok(self.keep(value));
        }
        Ok(self.fetched.get().map_or(&[], Vec::as_slice))
    }

    /// Keeps the value of the present entry until the next move.
    fn keep(&self, value: Vec<u8>) -> &[u8] {
        self.until_timed.set(self.until_pause.replace(1));
        self.fetched.get_or_init(|| value)
    }

    /// Lets the read-ahead follow a read that waited for the device.
    #[cold]
    fn note_cold(&self, reader: ValueReader<'_>, pointer: &[u8]) {
        if let Some(mut ahead) = self.ahead.take() {
            if ahead.note_cold(reader, pointer) {
                self.until_check.set(0);
            }
            self.ahead.set(Some(ahead));
        }
    }

    /// Runs the check of the read-ahead before the read of a value.
    #[inline(never)]
    fn check_ahead(&self, reader: ValueReader<'_>, pointer: &[u8]) {
        let ahead = self.ahead.take();
        let mut ahead = ahead.unwrap_or_else(|| Box::new(ReadAhead::new(reader)));
        let lengths = self.open.scan_lengths(self.keyspace);
        if self.has_jumped.take() {
            ahead.end_scan(self.reads(), lengths);
        }
        self.until_check
            .set(ahead.check(&self.visible, reader, pointer, lengths));
        self.ahead.set(Some(ahead));
    }
}

/// Which moves of a cursor are timed.
struct Timing {
    latencies: Arc<Latencies>,
    /// A seek that finds 1 here is timed.
    until_seek: u32,
}

impl Timing {
    /// The time, if the seek that begins is timed.
    fn begin_seek(&mut self) -> Option<Duration> {
        self.until_seek -= 1;
        if self.until_seek > 0 {
            return None;
        }
        self.until_seek = self.latencies.moves_interval();
        Some(self.latencies.now())
    }
}

impl<C> Deref for EntryCursor<C> {
    type Target = VisibleCursor<C>;

    #[inline]
    fn deref(&self) -> &VisibleCursor<C> {
        &self.visible
    }
}

impl<C> fmt::Debug for EntryCursor<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EntryCursor").finish_non_exhaustive()
    }
}
