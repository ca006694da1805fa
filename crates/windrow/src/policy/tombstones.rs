//! When a memtable is flushed for its tombstones.
//!
//! A tombstone in a memtable frees nothing: it meets what it hides when both are in tables. While a keyspace is written
//! to, its memtable is full soon enough. When it is idle, tombstones would stay in memory for as long as nothing is
//! written, and what they hide would stay on disk.

use std::time::Duration;

/// The fewest tombstones that a flush is worthwhile for.
const TOMBSTONES_MIN: u64 = 4096;

/// A keyspace is idle if nothing was written to it for so long.
const IDLE: Duration = Duration::from_secs(1);

/// Whether a memtable of an idle keyspace with so many entries is to be flushed: for many tombstones, or for range
/// tombstones that hide the `hidden` entries of whole files. These must be at least half as many as it has entries.
pub(crate) fn is_flush_worthwhile(entries: u64, tombstones: u64, hidden: u64) -> bool {
    (tombstones >= TOMBSTONES_MIN || hidden > 0)
        && tombstones.saturating_add(hidden).saturating_mul(2) >= entries
}

/// Whether a keyspace is idle to which nothing was written for this time.
pub(crate) fn is_idle(time: Duration) -> bool {
    time >= IDLE
}

#[cfg(test)]
mod tests {
    use super::{IDLE, TOMBSTONES_MIN, is_flush_worthwhile, is_idle};

    #[test]
    fn many_tombstones_of_an_idle_keyspace_are_flushed() {
        assert!(is_flush_worthwhile(2 * TOMBSTONES_MIN, TOMBSTONES_MIN, 0));
        let few = TOMBSTONES_MIN - 1;
        assert!(
            !is_flush_worthwhile(2 * TOMBSTONES_MIN + 1, TOMBSTONES_MIN, 0),
            "few of many"
        );
        assert!(!is_flush_worthwhile(few, few, 0), "few");
        assert!(is_flush_worthwhile(1, 1, 1), "one that hides a file");
        assert!(is_flush_worthwhile(20, 1, 9) && !is_flush_worthwhile(21, 1, 9));
        assert!(is_idle(IDLE) && !is_idle(IDLE / 2));
    }
}
