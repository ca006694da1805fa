//! A map by file number. Its copies share what has not changed.
//!
//! Neighbouring entries are in one chunk. A change makes a chunk anew if a copy has it, too. So of two copies whoever
//! holds both finds what differs by a look at each chunk.
//!
//! I1. Each chunk has 1 to [`CHUNK_ENTRIES_MAX`] entries, and the numbers ascend in chunks and from chunk to chunk.
//!
//! With n entries, a copy costs a step for each chunk. A chunk that entries leave is joined with a neighbour if it has become
//! short and both fit into one: so of two neighbours at least one is not short. There are at most about `n / 32` chunks, and
//! `n / 256` of entries that were added in their order.
//!
//! Concurrency: copies may be in other threads.

#![expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "keys are borrowed as those of other maps"
)]

use std::ops::Index;
use std::sync::Arc;

use crate::base::FileNumber;

/// The most entries of a chunk. Debug builds have short chunks, so that small trees of tests have several.
pub(super) const CHUNK_ENTRIES_MAX: usize = if cfg!(debug_assertions) { 8 } else { 256 };

/// A chunk that a removal leaves with fewer entries joins a neighbour.
const CHUNK_ENTRIES_MIN: usize = CHUNK_ENTRIES_MAX / 4;

/// A map by file number.
#[derive(Debug, Clone)]
pub(crate) struct NumberMap<V> {
    chunks: Vec<Arc<NumberChunk<V>>>,
}

/// Neighbouring entries.
#[derive(Debug, Clone)]
pub(crate) struct NumberChunk<V> {
    /// A search of this array has fewer cache misses than a search of entries.
    numbers: Vec<FileNumber>,
    values: Vec<V>,
}

impl<V> NumberChunk<V> {
    pub(in crate::manifest) fn first(&self) -> FileNumber {
        self.numbers[0] // I1
    }

    pub(in crate::manifest) fn last(&self) -> FileNumber {
        self.numbers[self.numbers.len() - 1] // I1
    }

    /// The place of `number` among the entries.
    #[inline]
    pub(in crate::manifest) fn position(&self, number: FileNumber) -> Option<usize> {
        self.numbers.binary_search(&number).ok()
    }

    /// The values, by number.
    pub(in crate::manifest) fn values(&self) -> &[V] {
        &self.values
    }
}

impl<V> Default for NumberMap<V> {
    fn default() -> Self {
        Self { chunks: Vec::new() }
    }
}

impl<V: PartialEq> PartialEq for NumberMap<V> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<V: Eq> Eq for NumberMap<V> {}

impl<V> Index<&FileNumber> for NumberMap<V> {
    type Output = V;

    fn index(&self, number: &FileNumber) -> &V {
        match self.get(number) {
            Some(value) => value,
            None => unreachable!("there is no file {number}"),
        }
    }
}

impl<V> NumberMap<V> {
    /// The chunks, by number.
    pub(in crate::manifest) fn chunks(&self) -> &[Arc<NumberChunk<V>>] {
        &self.chunks
    }

    /// The first chunk that ends with `number` or behind it.
    fn chunk_of(&self, number: FileNumber) -> usize {
        self.chunks.partition_point(|chunk| chunk.last() < number)
    }

    pub(crate) fn get(&self, number: &FileNumber) -> Option<&V> {
        let chunk = self.chunks.get(self.chunk_of(*number))?;
        chunk.values.get(chunk.position(*number)?)
    }

    pub(crate) fn contains_key(&self, number: &FileNumber) -> bool {
        self.get(number).is_some()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&FileNumber, &V)> + Clone {
        let chunks = self.chunks.iter();
        chunks.flat_map(|chunk| chunk.numbers.iter().zip(&chunk.values))
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &V> + Clone {
        self.iter().map(|(_, value)| value)
    }
}

impl<V: Clone> NumberMap<V> {
    pub(crate) fn get_mut(&mut self, number: &FileNumber) -> Option<&mut V> {
        let chunk = self.chunk_of(*number);
        let chunk = self.chunks.get_mut(chunk)?;
        let position = chunk.position(*number)?;
        Arc::make_mut(chunk).values.get_mut(position)
    }

    /// Returns the value that `number` had before.
    pub(crate) fn insert(&mut self, number: FileNumber, value: V) -> Option<V> {
        let mut at = self.chunk_of(number);
        if at == self.chunks.len() {
            // Entries that come in their order fill each chunk.
            let has_space = |chunk: &Arc<NumberChunk<V>>| chunk.numbers.len() < CHUNK_ENTRIES_MAX;
            if !self.chunks.last().is_some_and(has_space) {
                self.chunks.push(Arc::new(NumberChunk {
                    numbers: vec![number],
                    values: vec![value],
                }));
                return None;
            }
            at -= 1;
        }
        let chunk = Arc::make_mut(&mut self.chunks[at]);
        let position = match chunk.numbers.binary_search(&number) {
            Ok(position) => return Some(std::mem::replace(&mut chunk.values[position], value)),
            Err(position) => position,
        };
        chunk.numbers.insert(position, number);
        chunk.values.insert(position, value);
        if chunk.numbers.len() > CHUNK_ENTRIES_MAX {
            let half = CHUNK_ENTRIES_MAX / 2;
            let behind = NumberChunk {
                numbers: chunk.numbers.split_off(half),
                values: chunk.values.split_off(half),
            };
            chunk.numbers.shrink_to(CHUNK_ENTRIES_MAX);
            chunk.values.shrink_to(CHUNK_ENTRIES_MAX);
            self.chunks.insert(at + 1, Arc::new(behind));
        }
        None
    }

    /// Returns the value that `number` had.
    pub(crate) fn remove(&mut self, number: &FileNumber) -> Option<V> {
        let at = self.chunk_of(*number);
        let chunk = self.chunks.get_mut(at)?;
        let position = chunk.position(*number)?;
        let chunk = Arc::make_mut(chunk);
        chunk.numbers.remove(position);
        let removed = chunk.values.remove(position);
        let left = chunk.numbers.len();
        if left == 0 {
            self.chunks.remove(at);
        } else if left < CHUNK_ENTRIES_MIN {
            self.join(at);
        }
        Some(removed)
    }

    /// Joins the chunk `at` with the next one, or else with the one before, if both fit into one.
    fn join(&mut self, at: usize) {
        let len = |chunk: usize| self.chunks.get(chunk).map(|it| it.numbers.len());
        let fits = |before: &usize| {
            let both = len(*before).zip(len(before + 1));
            both.is_some_and(|(one, other)| one + other <= CHUNK_ENTRIES_MAX)
        };
        let mut candidates = [Some(at), at.checked_sub(1)].into_iter().flatten();
        if let Some(before) = candidates.find(fits) {
            let next = Arc::unwrap_or_clone(self.chunks.remove(before + 1));
            let joined = Arc::make_mut(&mut self.chunks[before]);
            joined.numbers.extend(next.numbers);
            joined.values.extend(next.values);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::{CHUNK_ENTRIES_MAX, NumberMap};
    use crate::base::FileNumber;

    /// Checks I1, and that `map` has the entries of `model`.
    fn check(map: &NumberMap<u64>, model: &BTreeMap<FileNumber, u64>) {
        assert!(map.iter().eq(model.iter()));
        for chunk in map.chunks() {
            assert!((1..=CHUNK_ENTRIES_MAX).contains(&chunk.numbers.len()));
            assert_eq!(chunk.numbers.len(), chunk.values.len());
        }
        assert!(map.iter().is_sorted_by(|left, right| left.0 < right.0));
    }

    proptest! {
        /// A map does what a tree does, its copies stay as they were, and they share the chunks that no change has met.
        #[test]
        fn copies_stay_and_share_what_has_not_changed(
            changes in proptest::collection::vec((0..4_u8, 0..300_u64), 1..400),
        ) {
            let (mut map, mut model) = (NumberMap::default(), BTreeMap::new());
            let mut copy = (map.clone(), model.clone());
            for (value, (verb, number)) in (0..).zip(changes) {
                let number = FileNumber(number);
                let chunks = map.chunks().len();
                let known: Vec<_> = map.chunks().iter().map(Arc::as_ptr).collect();
                match verb {
                    0 => prop_assert_eq!(map.remove(&number), model.remove(&number)),
                    1 => {
                        let (own, other) = (map.get_mut(&number), model.get_mut(&number));
                        prop_assert_eq!(&own, &other);
                        if let (Some(own), Some(other)) = (own, other) {
                            (*own, *other) = (value, value);
                        }
                    }
                    _ => prop_assert_eq!(map.insert(number, value), model.insert(number, value)),
                }
                check(&map, &model);
                prop_assert_eq!(map.get(&number), model.get(&number));
                let new = map.chunks().iter().filter(|it| !known.contains(&Arc::as_ptr(it)));
                prop_assert!(new.count() <= 2 && map.chunks().len().abs_diff(chunks) <= 1);
                check(&copy.0, &copy.1);
                if value % 16 == 0 {
                    copy = (map.clone(), model.clone());
                }
            }
        }
    }

    #[test]
    fn entries_that_come_in_their_order_fill_the_chunks() {
        let mut map = NumberMap::default();
        let count = 10 * CHUNK_ENTRIES_MAX as u64;
        for number in 0..count {
            map.insert(FileNumber(number), number);
        }
        assert_eq!(map.chunks().len(), 10);
        // And those that stay after a removal of most of them do not lie in a chunk each.
        for number in (0..count).filter(|number| number % CHUNK_ENTRIES_MAX as u64 > 0) {
            map.remove(&FileNumber(number));
        }
        assert_eq!(map.iter().count(), 10);
        assert!(map.chunks().len() <= 3, "{}", map.chunks().len());
    }
}
