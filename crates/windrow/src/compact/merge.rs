//! The job that rewrites sorted entries into tables, dropping what no reader can see.
//!
//! Invariants:
//! - I1: Entries in = entries out + entries dropped, by reason; and entries in is what the manifest
//!   says the inputs hold. A mismatch fails the job, in release builds too.
//! - I2: Memory is bounded by the read windows of the inputs and the write buffer of one output.
//!
//! Concurrency: owned by one thread; it decides nothing but what [`policy`](crate::policy) decides
//! for each entry.

use super::output::{Created, Output};
use crate::base::{Cursor, Error, ErrorKind, Result, SequenceNumber};
use crate::policy::{ReadPoints, Verdict, keep};
use crate::table::FileMeta;

/// What a merge has written.
#[derive(Debug)]
pub(crate) struct Merged<'a> {
    pub(crate) files: Vec<FileMeta>,
    /// Removes the files unless they come to be named by the manifest.
    pub(crate) created: Created<'a>,
}

/// What became of the entries of a merge.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    /// Entries read.
    entries: u64,
    /// Entries dropped because a newer version hides them from every reader.
    superseded: u64,
    /// Tombstones dropped because nothing is left for them to hide.
    spent: u64,
}

/// Writes what `input` holds to `output`, without what no reader at `readers` can see.
///
/// `deeper` tells whether data outside this merge and older than it may hold a key; it is asked for
/// ascending keys. `expected` is how many entries the input must have.
///
/// # Errors
/// Those of reading and writing; `Corruption` where the input holds more or fewer entries than
/// `expected`.
pub(crate) fn merge<'a>(
    mut input: impl Cursor,
    mut output: Output<'a, '_>,
    readers: &ReadPoints,
    mut deeper: impl FnMut(&[u8]) -> bool,
    expected: u64,
) -> Result<Merged<'a>> {
    let mut counts = Counts::default();
    let mut key = Vec::new();
    let mut newer: Option<SequenceNumber> = None;
    input.seek_to_first()?;
    while input.is_valid() {
        counts.entries += 1;
        if newer.is_none() || input.key() != key {
            newer = None;
            key.clear();
            key.extend_from_slice(input.key());
            output.begin_key(&key)?;
        }
        let trailer = input.trailer();
        match keep(trailer, newer, readers, || deeper(&key)) {
            Verdict::Keep => output.add(&key, trailer, input.value())?,
            Verdict::Superseded => counts.superseded += 1,
            Verdict::Spent => counts.spent += 1,
        }
        newer = Some(trailer.sequence());
        input.next()?;
    }
    let written = output.entries();
    if counts.entries != expected || counts.entries != written + counts.superseded + counts.spent {
        return Err(Error::new(
            ErrorKind::Corruption,
            format!(
                "a merge read {} of {expected} entries and wrote {written}, dropping {} that were \
                 superseded and {} tombstones: the counts do not add up, and its result is discarded",
                counts.entries, counts.superseded, counts.spent
            ),
        ));
    }
    let (files, created) = output.finish()?;
    Ok(Merged { files, created })
}
