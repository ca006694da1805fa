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

use super::ahead::ReadAhead;
use super::state::ReadState;
use super::value_reader::ValueReader;
use super::visible::VisibleCursor;
use crate::base::sync::Shared;
use crate::base::{KeyspaceId, Result, Sibling};
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
    files: Shared<ValueFiles>,
    open: Arc<OpenValues>,
    operator: Arc<KeyspaceOperator>,
    keyspace: KeyspaceId,
}

impl<C: Sibling> EntryCursor<C> {
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
            files: Shared::clone(state.version.values()),
            open,
            operator: Arc::clone(&state.operator),
            keyspace,
        }
    }

    /// The underlying cursor, for a move to any entry.
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
        self.leave();
        self.visible.next()
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
        }
    }

    /// The value; empty while invalid.
    ///
    /// # Errors
    /// As [`ValueReader::read`]; `Merge`.
    #[inline]
    pub(crate) fn value(&self) -> Result<&[u8]> {
        let value = self.visible.value();
        if self.visible.shows_indirect() {
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
                return Ok(self.fetched.get_or_init(|| value));
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
            self.fetched.get_or_init(|| value);
        }
        Ok(self.fetched.get().map_or(&[], Vec::as_slice))
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
