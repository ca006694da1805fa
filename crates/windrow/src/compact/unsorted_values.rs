//! A transient log in the order of the writes, for measurements (PX-E7).
//!
//! A transient log is sorted by key, since a flush is. Only a comparison with unsorted logs measures
//! the gain. For these a flush reads its entries twice: [`write_ahead`] writes the values, then
//! [`merge`](super::merge::merge) writes the entries with pointers to the values.
//!
//! I1: The values that are written ahead are those of the entries that the flush keeps.
//!
//! Concurrency: owned by one job.

use super::merge::has_expired;
use super::output::Output;
use super::ranges::JobRanges;
use crate::base::expiry::split_expiring;
use crate::base::{Cursor, Kind, Result, SequenceNumber};
use crate::policy::{Met, ReadPoints, Verdict, keep};

/// Writes the values of `input` that a reader at `readers` can see to `output`. `input` must not change.
pub(crate) fn write_ahead(
    mut input: impl Cursor,
    output: &mut Output<'_, '_>,
    readers: &ReadPoints,
    ranges: &JobRanges,
) -> Result<()> {
    for (sequence, key) in kept(&mut input, readers, ranges)? {
        input.seek(&key, sequence)?;
        let stored = input.value();
        let value = if input.trailer().is_expiring() {
            split_expiring(stored).1
        } else {
            stored
        };
        output.write_ahead(&key, sequence, value)?;
    }
    Ok(())
}

/// The entries with values that a flush keeps, oldest first.
fn kept(
    input: &mut impl Cursor,
    readers: &ReadPoints,
    ranges: &JobRanges,
) -> Result<Vec<(SequenceNumber, Box<[u8]>)>> {
    let mut kept: Vec<(SequenceNumber, Box<[u8]>)> = Vec::new();
    let mut newest: Option<(Box<[u8]>, Met)> = None;
    input.seek_to_first()?;
    while input.is_valid() {
        let trailer = input.trailer();
        let newer = newest.as_ref().filter(|(key, _)| **key == *input.key());
        // Deeper runs may hold older versions.
        let deleted = ranges.all.next_newer(input.key(), trailer.sequence());
        let newer = Met::nearest(newer.map(|(_, met)| *met), deleted.map(|it| it.sequence));
        let has_expired = has_expired(trailer, input.value(), readers);
        let verdict = keep(trailer, newer, has_expired, readers, || true);
        let key: Box<[u8]> = input.key().into();
        let has_value = trailer.kind().lasting() == Kind::Value && !has_expired;
        if verdict == Verdict::Keep && has_value {
            kept.push((trailer.sequence(), key.clone()));
        }
        newest = Some((key, Met::new(trailer, verdict)));
        input.next()?;
    }
    kept.sort_unstable_by_key(|(sequence, _)| *sequence);
    Ok(kept)
}
