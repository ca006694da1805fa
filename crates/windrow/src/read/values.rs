//! Values that stand apart from their keys, as readers fetch them.
//!
//! Concurrency: shared freely; what is held keeps the value files of a version from being removed.

use std::cell::{Cell, OnceCell};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use super::visible::VisibleCursor;
use crate::base::sync::Shared;
use crate::base::{Cursor, Error, Result};
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
        let read = self
            .open
            .get(place.file.slot(), &place.file.meta)
            .and_then(|open| open.read(key, &place.pointer_in(&open)?));
        read.map_err(|error| self.failure(place.file, error, key))
    }

    /// As [`read`](Self::read), into `value`, whose content is replaced.
    pub(super) fn read_into(self, key: &[u8], pointer: &[u8], value: &mut Vec<u8>) -> Result<()> {
        let place = self.files.resolve(pointer)?;
        let read = self
            .open
            .get(place.file.slot(), &place.file.meta)
            .and_then(|open| open.read_into(key, &place.pointer_in(&open)?, value));
        read.map_err(|error| self.failure(place.file, error, key))
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
    files: Shared<ValueFiles>,
    open: Arc<OpenValues>,
}

impl<C: Cursor> EntryCursor<C> {
    pub(crate) fn new(
        visible: VisibleCursor<C>,
        files: Shared<ValueFiles>,
        open: Arc<OpenValues>,
    ) -> Self {
        Self {
            visible,
            fetched: OnceCell::new(),
            spare: Cell::default(),
            files,
            open,
        }
    }

    /// The cursor underneath, to be moved.
    #[inline]
    pub(crate) fn moving(&mut self) -> &mut VisibleCursor<C> {
        if let Some(value) = self.fetched.take() {
            self.spare.set(value);
        }
        &mut self.visible
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
            reader.read_into(self.visible.key(), pointer, &mut value)?;
            self.fetched.get_or_init(|| value);
        }
        Ok(self.fetched.get().map_or(&[], Vec::as_slice))
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
