//! A sorted list of keys laid out for searching: what level fences and block indexes are.
//!
//! The prefix that all keys share is stored once. Of each remaining key the first eight bytes
//! stand as one big-endian word in a flat array, so a search touches consecutive words and
//! compares whole keys only where words tie.
//!
//! Immutable once built; shared freely between threads.

/// The first eight bytes of `key` from `start` on as a big-endian word, padded with zeroes; `start`
/// is at most the key's length.
#[inline]
pub(crate) fn head_behind(key: &[u8], start: usize) -> u64 {
    let rest = &key[start..];
    if let Some(bytes) = rest.first_chunk::<8>() {
        return u64::from_be_bytes(*bytes);
    }
    match key.last_chunk::<8>() {
        // Shorter than a word: shift away what stands before it.
        Some(bytes) if !rest.is_empty() => u64::from_be_bytes(*bytes) << (8 * (8 - rest.len())),
        _ => rest
            .iter()
            .rfold(0, |head, byte| head >> 8 | u64::from(*byte) << 56),
    }
}

/// The first eight bytes of `key` as a big-endian word, padded with zeroes.
#[inline]
pub(crate) fn head(key: &[u8]) -> u64 {
    head_behind(key, 0)
}

/// Searches a sorted list of distinct byte strings.
#[derive(Debug, Default)]
pub(crate) struct PrefixIndex {
    /// What all keys begin with.
    common: Box<[u8]>,
    /// The head of each key after `common`.
    heads: Box<[u64]>,
    /// Where each key's rest begins in `rests`; one more entry than keys.
    starts: Box<[usize]>,
    /// The keys after `common`, one behind the other.
    rests: Box<[u8]>,
}

impl PrefixIndex {
    /// Builds the index over `keys`, which ascend strictly.
    pub(crate) fn new<'a>(keys: impl Iterator<Item = &'a [u8]> + Clone) -> Self {
        let mut ends = keys.clone();
        let Some(first) = ends.next() else {
            return Self::default();
        };
        let last = ends.last().unwrap_or(first);
        let common = first
            .iter()
            .zip(last)
            .take_while(|(left, right)| left == right)
            .count();
        let mut heads = Vec::new();
        let mut starts = vec![0];
        let mut rests = Vec::new();
        for key in keys {
            let rest = &key[common..];
            heads.push(head_behind(key, common));
            rests.extend_from_slice(rest);
            starts.push(rests.len());
        }
        Self {
            common: first[..common].into(),
            heads: heads.into(),
            starts: starts.into(),
            rests: rests.into(),
        }
    }

    /// How many keys there are.
    pub(crate) fn len(&self) -> usize {
        self.heads.len()
    }

    /// The bytes that the index holds in memory, itself not counted.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.common.len()
            + size_of_val(&*self.heads)
            + size_of_val(&*self.starts)
            + self.rests.len()
    }

    /// The key at `position` after the common prefix.
    fn rest(&self, position: usize) -> &[u8] {
        &self.rests[self.starts[position]..self.starts[position + 1]]
    }

    /// The position of the first key that is `key` or greater; `len()` if there is none.
    #[inline]
    pub(crate) fn lower_bound(&self, key: &[u8]) -> usize {
        let shared = self.common.len().min(key.len());
        match key[..shared].cmp(&self.common[..shared]) {
            std::cmp::Ordering::Less => return 0,
            std::cmp::Ordering::Greater => return self.len(),
            std::cmp::Ordering::Equal if shared < self.common.len() => return 0,
            std::cmp::Ordering::Equal => {}
        }
        let rest = &key[shared..];
        let target = head_behind(key, shared);
        let mut position = self.heads.partition_point(|&head| head < target);
        // Equal heads are rare; where they occur, whole keys decide.
        if position < self.heads.len() && self.heads[position] == target {
            let ties = self.heads[position..].partition_point(|&head| head == target);
            let (mut low, mut high) = (position, position + ties);
            while low < high {
                let middle = low + (high - low) / 2;
                if self.rest(middle) < rest {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
            position = low;
        }
        position
    }
}

#[cfg(test)]
mod tests {
    use super::PrefixIndex;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn agrees_with_a_sorted_list(
            keys in proptest::collection::btree_set(
                proptest::collection::vec(0..3u8, 0..12), 0..60),
            common in proptest::collection::vec(any::<u8>(), 0..4),
            probes in proptest::collection::vec(proptest::collection::vec(0..3u8, 0..12), 1..40),
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
