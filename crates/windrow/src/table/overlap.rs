//! Estimates how many keys of an appended segment the older segments of its file have too.
//!
//! Overwritten entries take space, and an append does not read the older segments. So the writer probes
//! the filters of the open table with some hashes of the new keys, and subtracts the false positives, whose
//! rate follows from the size of the filters.
//!
//! Concurrency: none; tables are immutable.

use super::read::Table;
use crate::filter::keys_present;

/// The number of probes, which estimates the fraction to within two percent.
const PROBES: usize = 1024;

/// About how many of the keys with these hashes `older` has; all if its filters are too small or cannot be read.
pub(super) fn keys_in(older: &Table, hashes: &[u64]) -> u64 {
    // So many probes by pieces would read each piece many times.
    let whole = older.with_whole_filters().unwrap_or_default();
    let older = whole.as_ref().unwrap_or(older);
    let step = (hashes.len() / PROBES).max(1);
    let (mut probed, mut passed) = (0_u64, 0_u64);
    for &hash in hashes.iter().step_by(step) {
        probed += 1;
        passed += u64::from(older.may_contain(hash));
    }
    let present = keys_present(probed as f64, passed as f64, older.filter_rates());
    present.saturating_mul(hashes.len() as u64) / probed.max(1)
}
