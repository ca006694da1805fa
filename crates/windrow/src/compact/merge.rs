//! The merge of sorted entries into tables, which drops the entries that no reader can see.
//!
//! Invariants:
//! - I1: Entries in = entries out + entries dropped, by reason. Entries in is the count of the inputs in
//!   the manifest. A mismatch fails the job, in release builds too.
//! - I2: Memory is bounded by the read buffers of the inputs, the write buffer of one output, and the operands of one
//!   key.
//!
//! Concurrency: owned by one thread. [`policy`](crate::policy) decides for each entry.

use super::fold::{FoldCounts, Folder};
use super::output::{Output, OutputFiles};
use crate::base::key::SEQUENCE_MAX;
use crate::base::{Cursor, Error, ErrorKind, Kind, Result};
use crate::policy::{Met, ReadPoints, Verdict, keep};

/// The result of a flush, a compaction or a subcompaction.
#[derive(Debug)]
pub(crate) struct MergeResult<'a> {
    pub(crate) written: OutputFiles<'a>,
    /// The entries that were read.
    pub(crate) entries: u64,
    /// The bytes of transient logs and of relocation tables that were read.
    pub(crate) transient_log_bytes_read: u64,
    pub(crate) folds: FoldCounts,
}

/// The keys of a subcompaction: from `from`, to before `to`. `None` is no bound.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SubcompactionRange<'k> {
    pub(crate) from: Option<&'k [u8]>,
    pub(crate) to: Option<&'k [u8]>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    /// Entries read.
    entries: u64,
    /// Entries dropped because a newer version hides them from every reader.
    superseded: u64,
    /// Tombstones dropped because they hide no older entry.
    spent: u64,
}

/// Writes the entries of `input` in `range` that a reader at `readers` can see to `output`, with operands folded by
/// `folder`.
///
/// `deeper` returns whether older data outside the inputs may hold a key; its calls have ascending keys.
/// After all subcompactions, [`check_entries`] checks that all entries were read.
pub(crate) fn merge<'a>(
    mut input: impl Cursor,
    range: SubcompactionRange<'_>,
    mut output: Output<'a, '_>,
    readers: &ReadPoints,
    mut folder: Folder<'_>,
    mut deeper: impl FnMut(&[u8]) -> bool,
) -> Result<MergeResult<'a>> {
    let mut counts = Counts::default();
    let mut key = Vec::new();
    let mut newer: Option<Met> = None;
    match range.from {
        Some(from) => input.seek(from, SEQUENCE_MAX)?,
        None => input.seek_to_first()?,
    }
    while input.is_valid() {
        if newer.is_none() || input.key() != key {
            if range.to.is_some_and(|to| to <= input.key()) {
                break;
            }
            folder.finish(&key, &mut output, || !deeper(&key))?;
            newer = None;
            key.clear();
            key.extend_from_slice(input.key());
            output.begin_key(&key)?;
        }
        counts.entries += 1;
        let trailer = input.trailer();
        let verdict = keep(trailer, newer, readers, || deeper(&key));
        if folder.is_open() && verdict != Verdict::Joins {
            // An older version is left, whether it is kept or not.
            folder.finish(&key, &mut output, || false)?;
        }
        match verdict {
            Verdict::Keep if !trailer.is_operand() => output.add(&key, trailer, input.value())?,
            Verdict::Keep | Verdict::Joins => folder.add(trailer, input.value()),
            Verdict::Superseded => {
                counts.superseded += 1;
                if trailer.kind() == Kind::ValueLogPointer {
                    output.discard(input.value())?;
                }
            }
            Verdict::Spent => counts.spent += 1,
        }
        newer = Some(Met::new(trailer, verdict));
        input.next()?;
    }
    folder.finish(&key, &mut output, || !deeper(&key))?;
    let (written, folds) = (output.entries(), folder.counts());
    if counts.entries != written + counts.superseded + counts.spent + folds.folded {
        return Err(Error::new(
            ErrorKind::Corruption,
            format!(
                "a job read {} entries, wrote {written}, folded {}, and dropped {} superseded entries and {} \
                 tombstones: the counts do not add up, and its output is removed",
                counts.entries, folds.folded, counts.superseded, counts.spent
            ),
        ));
    }
    Ok(MergeResult {
        transient_log_bytes_read: output.transient_log_bytes_read(),
        written: output.finish()?,
        entries: counts.entries,
        folds,
    })
}

/// Checks I1 for all subcompactions together.
///
/// # Errors
/// `Corruption` if they have read more or fewer entries than `expected`.
pub(crate) fn check_entries(read: u64, expected: u64) -> Result<()> {
    if read == expected {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Corruption,
        format!("a job read {read} of {expected} entries, and its output is removed"),
    ))
}
