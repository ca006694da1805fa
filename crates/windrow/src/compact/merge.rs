//! The job that rewrites sorted entries into tables, dropping what no reader can see.
//!
//! Invariants:
//! - I1: Entries in = entries out + entries dropped, by reason; and entries in is what the manifest
//!   says the inputs hold. A mismatch fails the job, in release builds too.
//! - I2: Memory is bounded by the read windows of the inputs and the write buffer of one output.
//!
//! Concurrency: owned by one thread; it decides nothing but what [`policy`](crate::policy) decides
//! for each entry.

use super::output::Output;
use crate::base::{Cursor, Error, ErrorKind, Result, SequenceNumber};
use crate::policy::{ReadPoints, Verdict, keep};
use crate::table::FileMeta;

/// What a merge did.
#[derive(Debug, Default)]
pub(crate) struct Merged {
    pub(crate) files: Vec<FileMeta>,
    /// Entries read.
    pub(crate) entries: u64,
    /// Entries dropped because a newer version hides them from every reader.
    pub(crate) superseded: u64,
    /// Tombstones dropped because nothing is left for them to hide.
    pub(crate) spent: u64,
}

/// Writes what `input` holds to `output`, without what no reader at `readers` can see.
///
/// `deeper` tells whether data outside this merge and older than it may hold a key; it is asked for
/// ascending keys. `expected` is how many entries the input must have.
///
/// # Errors
/// Those of reading and writing; `Corruption` where the input holds more or fewer entries than
/// `expected`.
pub(crate) fn merge(
    mut input: impl Cursor,
    mut output: Output<'_>,
    readers: &ReadPoints,
    mut deeper: impl FnMut(&[u8]) -> bool,
    expected: u64,
) -> Result<Merged> {
    let mut merged = Merged::default();
    let mut key = Vec::new();
    let mut newer: Option<SequenceNumber> = None;
    input.seek_to_first()?;
    while input.is_valid() {
        merged.entries += 1;
        if newer.is_none() || input.key() != key {
            newer = None;
            key.clear();
            key.extend_from_slice(input.key());
            output.begin_key(&key)?;
        }
        let trailer = input.trailer();
        match keep(trailer, newer, readers, || deeper(&key)) {
            Verdict::Keep => output.add(&key, trailer, input.value())?,
            Verdict::Superseded => merged.superseded += 1,
            Verdict::Spent => merged.spent += 1,
        }
        newer = Some(trailer.sequence());
        input.next()?;
    }
    let written = output.entries();
    if merged.entries != expected || merged.entries != written + merged.superseded + merged.spent {
        return Err(Error::new(
            ErrorKind::Corruption,
            format!(
                "a merge read {} of {expected} entries and wrote {written}, dropping {} that were \
                 superseded and {} tombstones: the counts do not add up, and its result is discarded",
                merged.entries, merged.superseded, merged.spent
            ),
        ));
    }
    merged.files = output.finish()?;
    Ok(merged)
}
