//! The part of a keyspace that a view shows: a range of keys, without a prefix that all of them have.
//!
//! Invariant: each key of the range begins with the prefix. So a key of a view is a key of the keyspace without it.
//!
//! Concurrency: never changes.

use std::borrow::Cow;
use std::ops::Bound;

/// Keys from `start` on and before `end` that begin with `prefix`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scope {
    prefix: Vec<u8>,
    start: Vec<u8>,
    /// `None` for no end.
    end: Option<Vec<u8>>,
}

impl Scope {
    /// The key of the keyspace for a key of the view.
    pub(crate) fn key<'k>(&self, key: &'k [u8]) -> Cow<'k, [u8]> {
        if self.prefix.is_empty() {
            Cow::Borrowed(key)
        } else {
            Cow::Owned([&self.prefix, key].concat())
        }
    }

    /// Whether the view shows a key of the keyspace.
    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        self.start.as_slice() <= key && self.end.as_ref().is_none_or(|end| key < end.as_slice())
    }

    /// Whether it has all keys, as they are.
    pub(crate) fn is_all(&self) -> bool {
        self.prefix.is_empty() && self.start.is_empty() && self.end.is_none()
    }

    /// The bytes that keys of the view lack.
    pub(crate) fn prefix_bytes(&self) -> usize {
        self.prefix.len()
    }

    pub(crate) fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        let start = match self.start.as_slice() {
            [] => Bound::Unbounded,
            start => Bound::Included(start),
        };
        let end = self.end.as_deref();
        (start, end.map_or(Bound::Unbounded, Bound::Excluded))
    }

    /// The keys of the view from `start` on and before `end`.
    pub(crate) fn range(&self, start: Option<&[u8]>, end: Option<&[u8]>) -> Self {
        let start = start.map(|start| self.key(start));
        let end = end.map(|end| self.key(end));
        self.intersection(self.prefix.clone(), start.as_deref(), end.as_deref())
    }

    /// The keys of the view that begin with `prefix`, without it.
    pub(crate) fn prefix(&self, prefix: &[u8]) -> Self {
        Self {
            prefix: self.key(prefix).into_owned(),
            ..self.under(prefix)
        }
    }

    /// The keys of the view that begin with `prefix`, as they are.
    pub(crate) fn under(&self, prefix: &[u8]) -> Self {
        let start = self.key(prefix);
        let end = after_prefix(&start);
        self.intersection(self.prefix.clone(), Some(&start), end.as_deref())
    }

    fn intersection(&self, prefix: Vec<u8>, start: Option<&[u8]>, end: Option<&[u8]>) -> Self {
        let own_end = self.end.as_deref();
        let ends = own_end.into_iter().chain(end);
        Self {
            prefix,
            start: self
                .start
                .as_slice()
                .max(start.unwrap_or_default())
                .to_vec(),
            end: ends.min().map(<[u8]>::to_vec),
        }
    }
}

/// The first key behind all that begin with `prefix`; `None` if there is none.
fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte < u8::MAX)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}
