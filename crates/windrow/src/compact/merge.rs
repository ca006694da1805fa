//! The job that rewrites sorted entries into tables, dropping what no reader can see.
//!
//! Invariants:
//! - I1: Entries in = entries out + entries dropped, by reason; and entries in is what the manifest
//!   says the inputs hold. A mismatch fails the job, in release builds too.
//! - I2: Memory is bounded by the read windows of the inputs and the write buffer of one output.
//!
//! Concurrency: owned by one thread; it decides nothing but what [`policy`](crate::policy) decides
//! for each entry.

use super::output::{Output, Written};
use crate::base::key::SEQUENCE_MAX;
use crate::base::{Cursor, Error, ErrorKind, Kind, Result, SequenceNumber};
use crate::policy::{ReadPoints, Verdict, keep};

/// What a merge, or a part of one, has written.
#[derive(Debug)]
pub(crate) struct Merged<'a> {
    pub(crate) written: Written<'a>,
    /// Entries that were read.
    pub(crate) entries: u64,
    /// Bytes of transient logs, and of tables that lead pointers on, that were read.
    pub(crate) transient_log_bytes_read: u64,
}

/// The keys that a part of a merge takes: from `from`, to before `to`; all where there is no end.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Part<'k> {
    pub(crate) from: Option<&'k [u8]>,
    pub(crate) to: Option<&'k [u8]>,
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

/// Writes what `input` holds of `part` to `output`, without what no reader at `readers` can see.
///
/// `deeper` tells whether data outside this merge and older than it may hold a key; it is asked for
/// ascending keys. Whether all entries were read, [`check_entries`] says when all parts are done.
///
/// # Errors
/// Those of reading and writing.
pub(crate) fn merge<'a>(
    mut input: impl Cursor,
    part: Part<'_>,
    mut output: Output<'a, '_>,
    readers: &ReadPoints,
    mut deeper: impl FnMut(&[u8]) -> bool,
) -> Result<Merged<'a>> {
    let mut counts = Counts::default();
    let mut key = Vec::new();
    let mut newer: Option<SequenceNumber> = None;
    match part.from {
        Some(from) => input.seek(from, SEQUENCE_MAX)?,
        None => input.seek_to_first()?,
    }
    while input.is_valid() {
        if newer.is_none() || input.key() != key {
            if part.to.is_some_and(|to| to <= input.key()) {
                break;
            }
            newer = None;
            key.clear();
            key.extend_from_slice(input.key());
            output.begin_key(&key)?;
        }
        counts.entries += 1;
        let trailer = input.trailer();
        match keep(trailer, newer, readers, || deeper(&key)) {
            Verdict::Keep => output.add(&key, trailer, input.value())?,
            Verdict::Superseded => {
                counts.superseded += 1;
                if trailer.kind() == Kind::ValueLogPointer {
                    output.note_discarded(input.value())?;
                }
            }
            Verdict::Spent => counts.spent += 1,
        }
        newer = Some(trailer.sequence());
        input.next()?;
    }
    let written = output.entries();
    if counts.entries != written + counts.superseded + counts.spent {
        return Err(Error::new(
            ErrorKind::Corruption,
            format!(
                "a merge read {} entries and wrote {written}, dropping {} that were superseded and \
                 {} tombstones: the counts do not add up, and its result is discarded",
                counts.entries, counts.superseded, counts.spent
            ),
        ));
    }
    Ok(Merged {
        transient_log_bytes_read: output.transient_log_bytes_read(),
        written: output.finish()?,
        entries: counts.entries,
    })
}

/// I1, for all parts of a merge together.
///
/// # Errors
/// `Corruption` where they have read more or fewer entries than the `expected` ones.
pub(crate) fn check_entries(read: u64, expected: u64) -> Result<()> {
    if read == expected {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Corruption,
        format!("a merge read {read} of {expected} entries, and its result is discarded"),
    ))
}
