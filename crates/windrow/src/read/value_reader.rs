//! Reads of separated values.
//!
//! Concurrency: shared freely. The holder of the value files of a version keeps them from being deleted.

use crate::base::{Error, Result};
use crate::block::PinnedValue;
use crate::manifest::{ValueFiles, ValueHandle};
use crate::value::OpenValues;

/// Reads values from the value files of a version.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ValueReader<'a> {
    pub(crate) files: &'a ValueFiles,
    pub(crate) open: &'a OpenValues,
}

/// How a value was read.
#[derive(Debug, Clone, Copy)]
pub(super) struct ValueRead {
    /// The file belongs to a transient log.
    pub(super) is_transient: bool,
    /// The read is likely to have waited for a device.
    pub(super) is_cold: bool,
}

impl ValueReader<'_> {
    /// The value of `key` that `pointer` refers to, without a copy if possible.
    ///
    /// # Errors
    /// `Corruption` with key, file and offset if the value is damaged; `Io`.
    pub(crate) fn read(self, key: &[u8], pointer: &[u8]) -> Result<PinnedValue> {
        let place = self.files.resolve(pointer)?;
        self.open.count_reads(place.file.is_transient, 1);
        let read = self
            .open
            .get(place.file.slot(), &place.file.meta)
            .and_then(|open| open.read(key, &place.pointer_in(&open)?));
        read.map_err(|error| self.failure(place.file, error, key))
    }

    /// Asks the system for the value that `pointer` refers to, without a wait unless garbage collection has moved it: then
    /// this reads its relocation table. The read of the value reports errors.
    pub(super) fn announce(self, pointer: &[u8]) {
        let Ok(place) = self.files.resolve(pointer) else {
            return;
        };
        if let Ok(open) = self.open.get(place.file.slot(), &place.file.meta)
            && let Ok(pointer) = place.pointer_in(&open)
        {
            open.announce(&pointer);
        }
    }

    /// As [`read`](Self::read), into `value`, whose content is replaced.
    pub(crate) fn read_into(self, key: &[u8], pointer: &[u8], value: &mut Vec<u8>) -> Result<()> {
        let read = self.read_uncounted(key, pointer, value)?;
        self.open.count_reads(read.is_transient, 1);
        Ok(())
    }

    /// As [`read_into`](Self::read_into), but the caller counts the read.
    #[inline]
    pub(super) fn read_uncounted(
        self,
        key: &[u8],
        pointer: &[u8],
        value: &mut Vec<u8>,
    ) -> Result<ValueRead> {
        let place = self.files.resolve(pointer)?;
        let read = self
            .open
            .get(place.file.slot(), &place.file.meta)
            .and_then(|open| open.read_into(key, &place.pointer_in(&open)?, value));
        match read {
            Ok(is_cold) => Ok(ValueRead {
                is_transient: place.file.is_transient,
                is_cold,
            }),
            Err(error) => Err(self.failure(place.file, error, key)),
        }
    }

    /// `error` with the key, because file and offset do not show a user what is lost.
    #[cold]
    fn failure(self, file: &ValueHandle, error: Error, key: &[u8]) -> Error {
        let error = self.open.explain(&file.meta, error);
        error.context(format_args!("the value of key \"{}\"", key.escape_ascii()))
    }
}
