//! Layer 4: the work of flushes, compactions and garbage collections. They read inputs and write
//! outputs; the policy decides.
//!
//! [`merge`] reads sorted entries, [folds](fold) operands, and writes the rest to an [`output`], which places their
//! [`values`]. [`ranges`] are the range tombstones that they meet. A [`judge`] asks the compaction filter about entries.
//! [`unsorted_values`] is a variant for measurements. [`garbage_collection`] copies live values of value
//! logs. A [`job`] gets the engine's services; its files are [`pending_files`] until an edit names them. Its
//! [`residence`] says what of them stays in the page cache.

pub(crate) mod fold;
mod folded_value_log;
pub(crate) mod garbage_collection;
pub(crate) mod job;
pub(crate) mod judge;
pub(crate) mod merge;
pub(crate) mod output;
pub(crate) mod pending_files;
pub(crate) mod ranges;
mod residence;
pub(crate) mod unsorted_values;
pub(crate) mod values;

#[cfg(test)]
mod tests;
