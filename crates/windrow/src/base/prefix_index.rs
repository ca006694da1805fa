//! A sorted list of keys laid out for searching: fence keys of levels and block indexes.
//!
//! The prefix that all keys share is stored once. A flat array holds the next eight bytes of each key as
//! a big-endian word, so a search touches consecutive words and compares whole keys only if words
//! tie. Most keys of a block index are no longer than that and take only their word.
//!
//! Immutable once built; shared freely between threads.

use std::cmp::Ordering;

use super::key::shared_bytes;

/// The first eight bytes of `key` from `start` on as a big-endian word, padded with zeroes; `start`
/// is at most the key's length.
#[inline]
pub(crate) fn head_after(key: &[u8], start: usize) -> u64 {
    let rest = &key[start..];
    if let Some(bytes) = rest.first_chunk::<8>() {
        return u64::from_be_bytes(*bytes);
    }
    match key.last_chunk::<8>() {
        // Shorter than a word: shift away the bytes before it.
        Some(bytes) if !rest.is_empty() => u64::from_be_bytes(*bytes) << (8 * (8 - rest.len())),
        _ => rest
            .iter()
            .rfold(0, |head, byte| head >> 8 | u64::from(*byte) << 56),
    }
}

/// The first eight bytes of `key` as a big-endian word, padded with zeroes.
#[inline]
pub(crate) fn head(key: &[u8]) -> u64 {
    head_after(key, 0)
}

/// Searches a sorted list of byte strings whose common prefix is stored elsewhere: `rest` is a key without it.
#[derive(Debug, Clone, Default)]
pub(crate) struct RestIndex {
    /// The head of each rest.
    heads: Box<[u64]>,
    /// The positions of the keys whose head is not the whole rest.
    long: Box<[usize]>,
    /// The start of the rest of each of these in `rests`; one more entry than `long`.
    starts: Box<[usize]>,
    /// The rests of these keys, one after the other.
    rests: Box<[u8]>,
}

/// The bytes of `head` without the zeroes at its end, and their number.
fn bytes_of(head: u64) -> ([u8; 8], usize) {
    (head.to_be_bytes(), 8 - head.trailing_zeros() as usize / 8)
}

impl RestIndex {
    /// Builds the index over `rests`, which ascend.
    pub(crate) fn new<'a>(rests: impl Iterator<Item = &'a [u8]>) -> Self {
        let (mut heads, mut long) = (Vec::new(), Vec::new());
        let (mut starts, mut long_rests) = (vec![0], Vec::new());
        for (position, rest) in rests.enumerate() {
            let head = head(rest);
            heads.push(head);
            let (bytes, length) = bytes_of(head);
            if *rest != bytes[..length] {
                long.push(position);
                long_rests.extend_from_slice(rest);
                starts.push(long_rests.len());
            }
        }
        Self {
            heads: heads.into(),
            long: long.into(),
            starts: starts.into(),
            rests: long_rests.into(),
        }
    }

    /// The number of keys.
    pub(crate) fn len(&self) -> usize {
        self.heads.len()
    }

    /// The bytes that the index holds in memory, itself not counted.
    pub(crate) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.heads)
            + size_of_val(&*self.long)
            + size_of_val(&*self.starts)
            + self.rests.len()
    }

    /// How the key at `position` compares to `rest`.
    pub(crate) fn compare(&self, position: usize, rest: &[u8]) -> Ordering {
        if let Ok(at) = self.long.binary_search(&position) {
            self.rests[self.starts[at]..self.starts[at + 1]].cmp(rest)
        } else {
            let (bytes, length) = bytes_of(self.heads[position]);
            bytes[..length].cmp(rest)
        }
    }

    /// The position of the first key whose rest is `rest` or greater; `len()` if there is none. `target` is the head
    /// of `rest`.
    #[inline]
    pub(crate) fn lower_bound(&self, rest: &[u8], target: u64) -> usize {
        let position = self.heads.partition_point(|&head| head < target);
        // Equal heads are rare; whole keys decide between them.
        if position < self.heads.len() && self.heads[position] == target {
            return self.lower_bound_of_ties(position, rest, target);
        }
        position
    }

    fn lower_bound_of_ties(&self, position: usize, rest: &[u8], target: u64) -> usize {
        let ties = self.heads[position..].partition_point(|&head| head == target);
        let (mut low, mut high) = (position, position + ties);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.compare(middle, rest).is_lt() {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// Where `key` lies among keys that begin with `common`: before or after all of them, or `Equal` if it begins with
/// `common` itself.
#[inline]
pub(crate) fn compare_to_prefix(key: &[u8], common: &[u8]) -> Ordering {
    let shared = common.len().min(key.len());
    match key[..shared].cmp(&common[..shared]) {
        Ordering::Equal if shared < common.len() => Ordering::Less,
        order => order,
    }
}

/// Searches a sorted list of byte strings.
#[derive(Debug, Clone, Default)]
pub(crate) struct PrefixIndex {
    /// The prefix of all keys.
    common: Box<[u8]>,
    /// The keys after it.
    rests: RestIndex,
}

impl PrefixIndex {
    /// Builds the index over `keys`, which ascend.
    pub(crate) fn new<'a>(keys: impl Iterator<Item = &'a [u8]> + Clone) -> Self {
        let mut ends = keys.clone();
        let Some(first) = ends.next() else {
            return Self::default();
        };
        let last = ends.last().unwrap_or(first);
        let common = shared_bytes(first, last);
        Self {
            common: first[..common].into(),
            rests: RestIndex::new(keys.map(|key| &key[common..])),
        }
    }

    /// The number of keys.
    pub(crate) fn len(&self) -> usize {
        self.rests.len()
    }

    /// The position of the first key that is `key` or greater; `len()` if there is none.
    #[inline]
    pub(crate) fn lower_bound(&self, key: &[u8]) -> usize {
        match compare_to_prefix(key, &self.common) {
            Ordering::Less => 0,
            Ordering::Greater => self.len(),
            Ordering::Equal => {
                let start = self.common.len();
                self.rests
                    .lower_bound(&key[start..], head_after(key, start))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::PrefixIndex;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// Keys that differ in their first bytes, in their number of zeroes, or after their head.
    fn a_key() -> impl Strategy<Value = Vec<u8>> {
        (proptest::collection::vec(0..3u8, 0..12), 0..11usize).prop_map(|(mut key, zeroes)| {
            key.splice(0..0, std::iter::repeat_n(0, zeroes));
            key
        })
    }

    proptest! {
        #[test]
        fn agrees_with_a_sorted_list(
            keys in proptest::collection::btree_set(a_key(), 0..60),
            common in proptest::collection::vec(any::<u8>(), 0..4),
            probes in proptest::collection::vec(a_key(), 1..40),
        ) {
            let keys: BTreeSet<Vec<u8>> =
                keys.into_iter().map(|key| [common.clone(), key].concat()).collect();
            let keys: Vec<Vec<u8>> = keys.into_iter().collect();
            let index = PrefixIndex::new(keys.iter().map(Vec::as_slice));
            prop_assert_eq!(index.len(), keys.len());
            for probe in probes.iter().cloned().chain(
                probes.iter().map(|probe| [common.clone(), probe.clone()].concat()))
            {
                let expected = keys.partition_point(|key| *key < probe);
                prop_assert_eq!(index.lower_bound(&probe), expected);
            }
        }
    }
}
