//! What has expired of a file. The clock of a simulated tree counts writes.

use crate::policy::{FileSummary, whole};
use crate::simulation::key_space::Segment;
use crate::simulation::lifetimes::Lifetimes;

/// Fewer entries are none.
const ENTRIES_MIN: f64 = 0.5;

/// Notes in the summary of a file what has expired at `now`.
pub(super) fn note_expired(file: &mut FileSummary<u64>, segments: &[Segment], now: f64) {
    let masses = segments.iter().flat_map(|segment| &segment.masses);
    let lifetimes = masses.fold(Lifetimes::default(), |all, mass| all.and(mass.lifetimes));
    if lifetimes.entries <= 0.0 {
        return;
    }
    let sum = |of: fn(&Segment) -> f64| segments.iter().map(of).sum::<f64>();
    let values = sum(|segment| segment.count.values());
    let held = file.bytes.saturating_add(file.transient_bytes);
    let held = held.saturating_add(file.log_bytes) as f64;
    let expired = lifetimes.expired(now) / values.max(lifetimes.entries);
    file.expired_bytes = whole(held * expired);
    let lasting = values - lifetimes.entries + sum(|segment| segment.count.operands);
    file.is_expired = lifetimes.are_expired(now)
        && lasting < ENTRIES_MIN
        && sum(|segment| segment.count.range_tombstones) < ENTRIES_MIN;
}
