//! Layer 4: point reads, merging cursors, visibility.
//!
//! A reader holds a [`state`]. [`get`] searches its sources from the newest to the oldest. For a scan,
//! [`source`], [`run`] and [`merge`] merge the sources into one sorted stream, and [`visible`] selects
//! the entries that the reader sees. An [`entry_cursor`] also reads their separated values with a
//! [`value_reader`], and [`ahead`] prefetches them.
//! [`explain`](self::explain) says how a read comes to its answer. [`newer`] says what has changed since a sequence number. [`coverage`] has the range
//! tombstones of a cursor's sources. [`tombstone_spans`] lets cursors skip keys that earlier cursors found deleted. `jumps` keeps
//! them from going back.

mod ahead;
pub(crate) mod coverage;
pub(crate) mod entry_cursor;
pub(crate) mod explain;
pub(crate) mod get;
mod jumps;
mod key_range;
pub(crate) mod merge;
pub(crate) mod newer;
pub(crate) mod operands;
mod passing;
pub(crate) mod run;
pub(crate) mod source;
mod span_set;
pub(crate) mod state;
pub(crate) mod tombstone_spans;
pub(crate) mod unfolded;
pub(crate) mod value_reader;
mod value_sequence;
pub(crate) mod visible;

#[cfg(test)]
mod tests;
