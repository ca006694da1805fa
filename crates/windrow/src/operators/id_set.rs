//! Sets of ids, such as the postings of an inverted index.
//!
//! Concurrency: no state.

use crate::merge_operator::{MergeError, MergeOperator, Operands};

/// Unites sets of ids of one length. An operand holds ids one after the other, in any order. The value has each id
/// once, in ascending bytewise order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdSet {
    id_bytes: usize,
    name: String,
}

const PREFIX: &str = "windrow.id_set.";

impl IdSet {
    /// For ids of `id_bytes`, which are part of the name.
    ///
    /// # Panics
    /// `id_bytes` is 0.
    pub fn new(id_bytes: usize) -> Self {
        assert!(id_bytes > 0, "an id has at least one byte");
        let name = format!("{PREFIX}{id_bytes}");
        Self { id_bytes, name }
    }

    pub(super) fn from_name(name: &str) -> Option<Self> {
        let id_bytes = name.strip_prefix(PREFIX)?.parse().ok()?;
        (id_bytes > 0)
            .then(|| Self::new(id_bytes))
            .filter(|it| it.name == name)
    }

    /// Appends the union of `sets` to `result`.
    fn unite<'a>(
        &self,
        sets: impl Iterator<Item = &'a [u8]>,
        result: &mut Vec<u8>,
    ) -> Result<(), MergeError> {
        let mut ids: Vec<&[u8]> = Vec::new();
        for set in sets {
            if set.len() % self.id_bytes != 0 {
                return Err(MergeError::new(format!(
                    "a set of {} bytes does not consist of ids of {} bytes",
                    set.len(),
                    self.id_bytes
                )));
            }
            ids.extend(set.chunks_exact(self.id_bytes));
        }
        // The stable sort finds the ascending parts, which are most of the ids.
        ids.sort();
        ids.dedup();
        result.reserve(ids.len() * self.id_bytes);
        for id in ids {
            result.extend_from_slice(id);
        }
        Ok(())
    }
}

impl MergeOperator for IdSet {
    fn name(&self) -> &str {
        &self.name
    }

    fn full_merge(
        &self,
        _key: &[u8],
        base: Option<&[u8]>,
        operands: Operands<'_>,
        result: &mut Vec<u8>,
    ) -> Result<(), MergeError> {
        self.unite(base.into_iter().chain(operands), result)
    }

    fn partial_merge(
        &self,
        _key: &[u8],
        operands: Operands<'_>,
        result: &mut Vec<u8>,
    ) -> Result<bool, MergeError> {
        self.unite(operands, result).map(|()| true)
    }
}
