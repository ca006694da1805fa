//! The operands of one key that stand between two entries of other kinds.
//!
//! Concurrency: owned by one thread.

/// Copies of operands, in the order in which they were met.
#[derive(Debug, Default)]
pub(crate) struct Chain {
    bytes: Vec<u8>,
    /// The end of each operand in `bytes`.
    ends: Vec<usize>,
    /// Whether the newest operand is met first.
    is_newest_first: bool,
}

impl Clone for Chain {
    fn clone(&self) -> Self {
        let mut copy = Self::default();
        copy.clone_from(self);
        copy
    }

    /// Keeps the memory of the chain.
    fn clone_from(&mut self, other: &Self) {
        self.bytes.clone_from(&other.bytes);
        self.ends.clone_from(&other.ends);
        self.is_newest_first = other.is_newest_first;
    }
}

impl Chain {
    /// An empty chain, for operands that are met newest first or oldest first.
    pub(crate) fn new(is_newest_first: bool) -> Self {
        Self {
            is_newest_first,
            ..Self::default()
        }
    }

    /// Empties the chain, and keeps its memory unless that is large.
    pub(crate) fn restart(&mut self, is_newest_first: bool) {
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_BYTES);
        self.ends.clear();
        self.ends.shrink_to(KEPT_BYTES / size_of::<usize>());
        self.is_newest_first = is_newest_first;
    }

    /// The bytes of memory.
    #[inline]
    pub(crate) fn capacity(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * size_of::<usize>()
    }

    pub(crate) fn push(&mut self, operand: &[u8]) {
        self.bytes.extend_from_slice(operand);
        self.ends.push(self.bytes.len());
    }

    /// Removes the operand that was met last. Returns its bytes.
    pub(crate) fn pop(&mut self) -> usize {
        let before = self.bytes.len();
        self.ends.pop();
        self.bytes.truncate(self.ends.last().copied().unwrap_or(0));
        before - self.bytes.len()
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The bytes of all operands.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The operand that was met after `position` others.
    pub(crate) fn get(&self, position: usize) -> &[u8] {
        let start = match position {
            0 => 0,
            _ => self.ends[position - 1],
        };
        &self.bytes[start..self.ends[position]]
    }

    /// Calls `with` with all operands, oldest first.
    pub(super) fn with_operands<R>(&self, with: impl FnOnce(&[&[u8]]) -> R) -> R {
        let count = self.len();
        let place = |index: usize| {
            if self.is_newest_first {
                count - 1 - index
            } else {
                index
            }
        };
        let mut few: [&[u8]; FEW] = [&[]; FEW];
        if let Some(few) = few.get_mut(..count) {
            for (index, operand) in few.iter_mut().enumerate() {
                *operand = self.get(place(index));
            }
            return with(few);
        }
        let all: Vec<&[u8]> = (0..count).map(|index| self.get(place(index))).collect();
        with(&all)
    }
}

/// A chain of this many operands is folded without an allocation.
const FEW: usize = 32;

/// The memory that a chain, or the result of a fold, keeps for the next key.
pub(crate) const KEPT_BYTES: usize = 64 << 10;
