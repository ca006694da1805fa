//! The bounds of ranges of keys.

use std::ops::{Bound, RangeBounds};

use crate::read::visible::KeyRange;

/// The bounds of `range` as owned keys.
pub(super) fn key_range<K: AsRef<[u8]>>(range: &impl RangeBounds<K>) -> KeyRange {
    let own = |bound: Bound<&K>| match bound {
        Bound::Included(key) => Bound::Included(key.as_ref().into()),
        Bound::Excluded(key) => Bound::Excluded(key.as_ref().into()),
        Bound::Unbounded => Bound::Unbounded,
    };
    KeyRange {
        lower: own(range.start_bound()),
        upper: own(range.end_bound()),
    }
}
