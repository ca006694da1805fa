//! The bounds of ranges of keys.

use std::ops::{Bound, RangeBounds};

use crate::base::key::next_key;
use crate::base::limits::KEY_BYTES_MAX;
use crate::base::range_tombstones::is_below;
use crate::base::{Error, Result};
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

/// The first key of `range`, and the first bytes behind it, or none if it has no end; `None` if it has no key.
///
/// # Errors
/// `InvalidArgument` if a bound is longer than a key can be.
pub(super) fn start_and_end<K: AsRef<[u8]>>(
    range: &impl RangeBounds<K>,
) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
    let KeyRange { lower, upper } = key_range(range);
    let is_too_long = |bound: &Bound<Box<[u8]>>| match bound {
        Bound::Unbounded => false,
        Bound::Included(key) | Bound::Excluded(key) => key.len() > KEY_BYTES_MAX,
    };
    if is_too_long(&lower) || is_too_long(&upper) {
        let what = "a bound of a range cannot be longer than 65536 bytes";
        return Err(Error::invalid_argument(what));
    }
    let start = match lower {
        Bound::Included(key) if !key.is_empty() => Some(key.into_vec()),
        Bound::Excluded(key) => next_key(&key),
        // The smallest key.
        Bound::Included(_) | Bound::Unbounded => Some(vec![0]),
    };
    let end = match upper {
        Bound::Unbounded => Some(Vec::new()),
        // No key is that small.
        Bound::Included(key) | Bound::Excluded(key) if key.is_empty() => None,
        Bound::Included(key) => Some([&key[..], &[0]].concat()),
        Bound::Excluded(key) => Some(key.into_vec()),
    };
    Ok(start.zip(end).filter(|(start, end)| is_below(start, end)))
}

#[cfg(test)]
#[cfg(not(any(loom, shuttle)))]
mod tests {
    use super::{KEY_BYTES_MAX, start_and_end};
    use std::ops::{Bound, RangeBounds};

    fn ends(range: impl RangeBounds<&'static str>) -> Option<(Vec<u8>, Vec<u8>)> {
        start_and_end(&range).unwrap()
    }

    fn keys(start: &str, end: &str) -> (Vec<u8>, Vec<u8>) {
        (start.into(), end.into())
    }

    #[test]
    fn all_kinds_of_ranges_have_a_start_and_an_end() {
        assert_eq!(ends("b".."d"), Some(keys("b", "d")));
        assert_eq!(ends("b"..="d"), Some(keys("b", "d\0")));
        assert_eq!(ends("b"..), Some(keys("b", "")));
        assert_eq!(ends(.."d"), Some(keys("\0", "d")));
        assert_eq!(ends(..), Some(keys("\0", "")));
        assert_eq!(ends(""..="a"), Some(keys("\0", "a\0")));
        let above = (Bound::Excluded("b"), Bound::Unbounded);
        assert_eq!(ends(above), Some(keys("b\0", "")));
        for empty in ["d".."b", "b".."b", "a".."", "".."\0"] {
            assert_eq!(ends(empty), None);
        }
        assert_eq!(ends(..=""), None);
    }

    #[test]
    fn bounds_are_at_most_as_long_as_keys() {
        let long = vec![u8::MAX; KEY_BYTES_MAX + 1];
        let short = &long[1..];
        assert!(start_and_end(&(&long[..]..)).is_err());
        assert!(start_and_end(&(..&long[..])).is_err());
        let (_, end) = start_and_end(&(..=short)).unwrap().unwrap();
        assert_eq!(end.len(), KEY_BYTES_MAX + 1);
        let above: (Bound<&[u8]>, _) = (Bound::Excluded(short), Bound::Unbounded);
        assert_eq!(start_and_end::<&[u8]>(&above).unwrap(), None);
    }
}
