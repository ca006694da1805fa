//! An entry about which a compaction filter decides.
//!
//! I1. A value apart from its key is read at most once, and only if the filter asks for it or replaces it by one of the
//!     same length.
//!
//! Concurrency: owned by one thread.

use std::cell::OnceCell;
use std::fmt;

use crate::base::{Expiry, Moment, Result};

/// A key with its value, which may be in another file.
pub struct Candidate<'a> {
    key: &'a [u8],
    content: Content<'a>,
    expiry: Option<Moment>,
    read: OnceCell<Result<Vec<u8>>>,
}

/// Where the value is.
#[derive(Clone, Copy)]
pub(crate) enum Content<'a> {
    InPlace(&'a [u8]),
    /// In another file: its length, and what reads it.
    Apart(u64, &'a dyn Fn() -> Result<Vec<u8>>),
}

impl<'a> Candidate<'a> {
    /// The entry of `key` that expires at `expiry`.
    pub(crate) fn new(key: &'a [u8], content: Content<'a>, expiry: Option<Moment>) -> Self {
        Self {
            key,
            content,
            expiry,
            read: OnceCell::new(),
        }
    }

    /// The key.
    pub fn key(&self) -> &[u8] {
        self.key
    }

    /// The bytes of the value, which are known without a read.
    pub fn value_bytes(&self) -> u64 {
        match self.content {
            Content::InPlace(value) => value.len() as u64,
            Content::Apart(bytes, _) => bytes,
        }
    }

    /// The value. A medium or large one may be in another file. Then this reads it, which the compaction would not do
    /// without the filter.
    ///
    /// # Errors
    /// If the value cannot be read. The entry stays as it is, whatever the filter returns then.
    pub fn value(&self) -> std::result::Result<&[u8], FilterError> {
        match self.content {
            Content::InPlace(value) => Ok(value),
            Content::Apart(_, read) => match self.read.get_or_init(read) {
                Ok(value) => Ok(value),
                Err(error) => Err(FilterError::new(error.to_string())),
            },
        }
    }

    /// When the entry expires. A replacement expires at the same time.
    pub fn expiry(&self) -> Expiry {
        self.expiry.into()
    }

    /// Whether a read of the value has failed.
    pub(super) fn is_unreadable(&self) -> bool {
        self.read.get().is_some_and(Result::is_err)
    }

    /// Whether the value is this one. It is read only if it has this length.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(super) fn has_value(&self, value: &[u8]) -> std::result::Result<bool, FilterError> {
        Ok(self.value_bytes() == value.len() as u64 && self.value()? == value)
    }
}

impl fmt::Debug for Candidate<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Candidate")
            .field("key", &self.key.escape_ascii().to_string())
            .field("value_bytes", &self.value_bytes())
            .finish_non_exhaustive()
    }
}

/// Why a filter could not decide.
#[derive(Debug)]
pub struct FilterError(String);

impl FilterError {
    /// An error that says `message`.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for FilterError {}
