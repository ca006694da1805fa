//! The values of a flush in the order in which they were written, ahead of its entries (PX-E7).
//!
//! A run is sorted, since a flush is; what that saves can be measured only against runs that are not.
//! So the entries are met twice: here their values are written, and [`merge`](super::merge::merge) then
//! writes the entries, with pointers into runs.
//!
//! I1: A value is written ahead if and only if the flush keeps its entry.
//!
//! Concurrency: owned by one job.

use super::output::Output;
use crate::base::{Cursor, Kind, Result, SequenceNumber};
use crate::policy::{ReadPoints, Verdict, keep};

/// Writes what `input`, which stays as it is, holds of values to `output`, but for those that no reader
/// at `readers` can see.
pub(crate) fn write_ahead(
    mut input: impl Cursor,
    output: &mut Output<'_, '_>,
    readers: &ReadPoints,
) -> Result<()> {
    for (sequence, key) in kept(&mut input, readers)? {
        input.seek(&key, sequence)?;
        output.write_ahead(&key, sequence, input.value())?;
    }
    Ok(())
}

/// The entries with values that a flush keeps, oldest first.
fn kept(input: &mut impl Cursor, readers: &ReadPoints) -> Result<Vec<(SequenceNumber, Box<[u8]>)>> {
    let mut kept: Vec<(SequenceNumber, Box<[u8]>)> = Vec::new();
    let mut newest: Option<(Box<[u8]>, SequenceNumber)> = None;
    input.seek_to_first()?;
    while input.is_valid() {
        let trailer = input.trailer();
        let newer = newest.as_ref().filter(|(key, _)| **key == *input.key());
        // As the flush says: older versions may lie in any run below.
        let verdict = keep(
            trailer,
            newer.map(|(_, sequence)| *sequence),
            readers,
            || true,
        );
        let key: Box<[u8]> = input.key().into();
        if verdict == Verdict::Keep && trailer.kind() == Kind::Value {
            kept.push((trailer.sequence(), key.clone()));
        }
        newest = Some((key, trailer.sequence()));
        input.next()?;
    }
    kept.sort_unstable_by_key(|(sequence, _)| *sequence);
    Ok(kept)
}
