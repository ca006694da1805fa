//! Values that stand apart from their keys, as readers fetch them.
//!
//! Concurrency: shared freely; what is held keeps the value files of a version from being removed.

use std::cell::{Cell, OnceCell};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use super::ahead::ReadAhead;
use super::visible::VisibleCursor;
use crate::base::sync::Shared;
use crate::base::{Error, Result, Sibling};
use crate::block::PinnedValue;
use crate::manifest::{ValueFiles, ValueHandle};
use crate::value::OpenValues;

/// The value files of a version, and how to read them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ValueReader<'a> {
    pub(crate) files: &'a ValueFiles,
    pub(crate) open: &'a OpenValues,
}

impl ValueReader<'_> {
    /// The value of `key` that `pointer` leads to, in place where it can be.
    ///
    /// # Errors
    /// `Corruption` that names key, file and offset where the value is damaged; `Io`.
    pub(super) fn read(self, key: &[u8], pointer: &[u8]) -> Result<PinnedValue> {
        let place = self.files.resolve(pointer)?;
        self.open.count_reads(place.file.is_transient, 1);
        let read = self
            .open
            .get(place.file.slot(), &place.file.meta)
            .and_then(|open| open.read(key, &place.pointer_in(&open)?));
        read.map_err(|error| self.failure(place.file, error, key))
    }

    /// As [`read`](Self::read), into `value`, whose content is replaced.
    pub(super) fn read_into(self, key: &[u8], pointer: &[u8], value: &mut Vec<u8>) -> Result<()> {
        let is_transient = self.read_uncounted(key, pointer, value)?;
        self.open.count_reads(is_transient, 1);
        Ok(())
    }

    /// As [`read_into`](Self::read_into), but the caller counts. Returns whether it was a run.
    fn read_uncounted(self, key: &[u8], pointer: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let place = self.files.resolve(pointer)?;
        let read = self
            .open
            .get(place.file.slot(), &place.file.meta)
            .and_then(|open| open.read_into(key, &place.pointer_in(&open)?, value));
        match read {
            Ok(()) => Ok(place.file.is_transient),
            Err(error) => Err(self.failure(place.file, error, key)),
        }
    }

    /// `error`, which says whose value could not be read: file and offset tell nobody what is lost.
    #[cold]
    fn failure(self, file: &ValueHandle, error: Error, key: &[u8]) -> Error {
        let error = self.open.judge(&file.meta, error);
        error.context(format_args!("the value of key \"{}\"", key.escape_ascii()))
    }
}

/// Shows entries as [`VisibleCursor`] does, and fetches a value that stands apart when it is asked
/// for: who looks at keys alone does not pay for values.
pub(crate) struct EntryCursor<C> {
    visible: VisibleCursor<C>,
    /// The value of the present entry, once it was fetched.
    fetched: OnceCell<Vec<u8>>,
    /// Memory for the next.
    spare: Cell<Vec<u8>>,
    /// How many more values may be fetched before one looks ahead.
    until_look: Cell<usize>,
    /// Whether the cursor was moved otherwise than forward since one looked.
    has_jumped: Cell<bool>,
    ahead: Cell<Option<Box<ReadAhead<C>>>>,
    /// Reads that were not counted yet: an atomic per value costs a scan a twentieth; measured.
    transient_log_reads: Cell<u64>,
    value_log_reads: Cell<u64>,
    /// How often it was moved otherwise than by a step, and that was not counted yet.
    seeks: u64,
    files: Shared<ValueFiles>,
    open: Arc<OpenValues>,
}

impl<C: Sibling> EntryCursor<C> {
    pub(crate) fn new(
        visible: VisibleCursor<C>,
        files: Shared<ValueFiles>,
        open: Arc<OpenValues>,
    ) -> Self {
        Self {
            visible,
            fetched: OnceCell::new(),
            spare: Cell::default(),
            until_look: Cell::new(0),
            has_jumped: Cell::new(false),
            ahead: Cell::default(),
            transient_log_reads: Cell::default(),
            value_log_reads: Cell::default(),
            seeks: 0,
            files,
            open,
        }
    }

    /// The cursor underneath, to be moved anywhere.
    #[inline]
    pub(crate) fn moving(&mut self) -> &mut VisibleCursor<C> {
        self.leave();
        self.until_look.set(0);
        self.has_jumped.set(true);
        self.seeks += 1;
        &mut self.visible
    }

    /// Takes how often [`moving`](Self::moving) was called since the last time.
    pub(crate) fn take_seeks(&mut self) -> u64 {
        std::mem::take(&mut self.seeks)
    }

    /// Moves to the next entry; returns whether there is one.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<bool> {
        self.leave();
        self.visible.next()
    }

    /// Moves to the entry before; returns whether there is one.
    pub(crate) fn prev(&mut self) -> Result<bool> {
        self.leave();
        self.has_jumped.set(true);
        self.visible.prev()
    }

    /// Counts the reads since the last call.
    pub(crate) fn count_reads(&self) {
        self.open.count_reads(true, self.transient_log_reads.take());
        self.open.count_reads(false, self.value_log_reads.take());
    }

    /// Visits the cursor over all entries, and that of what goes ahead.
    pub(crate) fn visit_merged(&mut self, mut visit: impl FnMut(&mut C)) {
        visit(self.visible.merged_mut());
        if let Some(prefetcher) = self.ahead.get_mut().as_mut().and_then(|it| it.prefetcher()) {
            visit(prefetcher.merged_mut());
        }
    }

    /// Forgets the value of the present entry.
    #[inline]
    fn leave(&mut self) {
        if let Some(value) = self.fetched.take() {
            self.spare.set(value);
        }
    }

    /// The value; empty while invalid.
    ///
    /// # Errors
    /// As [`ValueReader::read`].
    #[inline]
    pub(crate) fn value(&self) -> Result<&[u8]> {
        let value = self.visible.value();
        if self.visible.shows_pointer() {
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
            match self.until_look.get() {
                0 => self.look(reader, pointer),
                values => self.until_look.set(values - 1),
            }
            let key = self.visible.key();
            let reads = if reader.read_uncounted(key, pointer, &mut value)? {
                &self.transient_log_reads
            } else {
                &self.value_log_reads
            };
            reads.set(reads.get() + 1);
            self.fetched.get_or_init(|| value);
        }
        Ok(self.fetched.get().map_or(&[], Vec::as_slice))
    }

    /// Looks ahead before a value is fetched.
    #[inline(never)]
    fn look(&self, reader: ValueReader<'_>, pointer: &[u8]) {
        let ahead = self.ahead.take();
        let mut ahead = ahead.unwrap_or_else(|| Box::new(ReadAhead::new(reader)));
        if self.has_jumped.take() {
            ahead.begin();
        }
        self.until_look
            .set(ahead.look(&self.visible, reader, pointer));
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
