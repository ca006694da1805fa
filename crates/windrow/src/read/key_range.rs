//! Ranges of keys.

use std::ops::Bound;

use crate::base::key::next_key;

/// The keys of a cursor.
#[derive(Debug, Clone)]
pub(crate) struct KeyRange {
    pub(crate) lower: Bound<Box<[u8]>>,
    pub(crate) upper: Bound<Box<[u8]>>,
}

impl KeyRange {
    /// Every key.
    pub(crate) const ALL: Self = Self {
        lower: Bound::Unbounded,
        upper: Bound::Unbounded,
    };

    /// The keys from `start` to before `end`, or all from `start` on if `end` is empty.
    pub(crate) fn from_start(start: &[u8], end: &[u8]) -> Self {
        Self {
            lower: Bound::Included(start.into()),
            upper: match end {
                [] => Bound::Unbounded,
                end => Bound::Excluded(end.into()),
            },
        }
    }

    /// Every key that begins with `prefix`.
    pub(crate) fn prefix(prefix: &[u8]) -> Self {
        // The first key after all keys with `prefix`: increment the last byte below 255.
        let end = prefix.iter().rposition(|&byte| byte < u8::MAX).map(|last| {
            let mut end = prefix[..=last].to_vec();
            end[last] += 1;
            end
        });
        Self {
            lower: Bound::Included(prefix.into()),
            upper: end.map_or(Bound::Unbounded, |end| Bound::Excluded(end.into())),
        }
    }

    /// The bounds, with borrowed keys.
    pub(crate) fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        let lower = self.lower.as_ref().map(AsRef::as_ref);
        (lower, self.upper.as_ref().map(AsRef::as_ref))
    }

    /// The lower and the upper bound, whether included or not; `None` without one.
    pub(crate) fn ends(&self) -> (Option<&[u8]>, Option<&[u8]>) {
        fn key(bound: &Bound<Box<[u8]>>) -> Option<&[u8]> {
            match bound {
                Bound::Unbounded => None,
                Bound::Included(key) | Bound::Excluded(key) => Some(key),
            }
        }
        (key(&self.lower), key(&self.upper))
    }

    /// The smallest key that it may have; `None` without a lower bound, or if it has no key.
    pub(crate) fn first_key(&self) -> Option<Vec<u8>> {
        let first = match &self.lower {
            Bound::Unbounded => None,
            Bound::Included(lower) => Some(lower.to_vec()),
            Bound::Excluded(lower) => next_key(lower),
        };
        first.filter(|first| self.is_below_upper(first))
    }

    /// Whether all keys of the range are smaller than those of `other`. Neither is empty.
    pub(crate) fn ends_before(&self, other: &Self) -> bool {
        match (&self.upper, &other.lower) {
            (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
            (Bound::Included(upper), Bound::Included(lower)) => upper < lower,
            (
                Bound::Included(upper) | Bound::Excluded(upper),
                Bound::Included(lower) | Bound::Excluded(lower),
            ) => upper <= lower,
        }
    }

    /// Whether a file with keys from `smallest` to `largest` may hold keys of the range.
    pub(super) fn may_overlap(&self, smallest: &[u8], largest: &[u8]) -> bool {
        self.is_below_upper(smallest) && self.is_above_lower(largest)
    }

    #[inline]
    pub(crate) fn is_below_upper(&self, key: &[u8]) -> bool {
        match &self.upper {
            Bound::Unbounded => true,
            Bound::Included(upper) => key <= &**upper,
            Bound::Excluded(upper) => key < &**upper,
        }
    }

    #[inline]
    pub(crate) fn is_above_lower(&self, key: &[u8]) -> bool {
        match &self.lower {
            Bound::Unbounded => true,
            Bound::Included(lower) => key >= &**lower,
            Bound::Excluded(lower) => key > &**lower,
        }
    }
}

/// Whether a key can be within `bounds`, or at least between them. The standard library's maps refuse other bounds.
pub(crate) fn is_ordered(bounds: (Bound<&[u8]>, Bound<&[u8]>)) -> bool {
    match bounds {
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => true,
        (Bound::Excluded(lower), Bound::Excluded(upper)) => lower < upper,
        (
            Bound::Included(lower) | Bound::Excluded(lower),
            Bound::Included(upper) | Bound::Excluded(upper),
        ) => lower <= upper,
    }
}
