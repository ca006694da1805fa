//! What every source gives: entries, in one of several formats, read from lines of bounded length.
//!
//! Concurrency: none.

use clap::ValueEnum;
use windrow::{Expiry, LoadEntry, limits};

/// No line or row of any format can be longer: a value in JSON takes at most six bytes per byte.
pub(super) const LINE_BYTES_MAX: u64 = 8 * (limits::VALUE_BYTES_MAX + limits::KEY_BYTES_MAX) as u64;

/// One entry to load.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) key: Vec<u8>,
    pub(super) value: Vec<u8>,
    /// When it expires, if the source says so.
    pub(super) expiry: Option<Expiry>,
}

impl Entry {
    /// An entry of a source that says nothing of its expiry.
    pub(super) fn new(key: Vec<u8>, value: Vec<u8>) -> Self {
        Self {
            key,
            value,
            expiry: None,
        }
    }
}

impl LoadEntry for Entry {
    fn key(&self) -> &[u8] {
        &self.key
    }

    fn value(&self) -> &[u8] {
        &self.value
    }

    fn expiry(&self) -> Option<Expiry> {
        self.expiry
    }
}

/// Forms of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    Lines,
    Tsv,
    Csv,
    Jsonl,
    Folder,
}
