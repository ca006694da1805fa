//! The fold of operands by a job.
//!
//! The job passes the versions of a key that [join](crate::policy::Verdict::Joins) a newer operand, newest first. Then
//! there is one entry for all of them: a value if the entry below the operands has joined them, or if nothing can be
//! below them; else one operand, if the merge operator can combine operands.
//!
//! Invariants:
//! - I1: What is not folded is written as it was, for example without the operator or if that fails. So an operator
//!   loses nothing and stops no job.
//!
//! Concurrency: owned by one job.

use std::sync::Arc;

use super::output::Output;
use crate::base::{ErrorKind, Held, Kind, MemoryTracker, Result, Trailer};
use crate::merge_operator::{KEPT_BYTES, KeyspaceOperator};
use crate::read::unfolded::Unfolded;
use crate::read::value_reader::ValueReader;

/// What a job has folded.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FoldCounts {
    /// The entries that folds have taken away: all operands and bases less the results.
    pub(crate) folded: u64,
    /// The folds that the operator failed, or whose base is damaged.
    pub(crate) failed: u64,
}

impl FoldCounts {
    pub(crate) fn add(&mut self, other: Self) {
        self.folded += other.folded;
        self.failed += other.failed;
    }
}

/// Folds the operands of one key after the other.
pub(crate) struct Folder<'a> {
    operator: &'a KeyspaceOperator,
    /// Reads separated bases.
    values: ValueReader<'a>,
    unfolded: Unfolded,
    /// The trailers of the operands, newest first.
    trailers: Vec<Trailer>,
    /// The trailer of the entry below the operands, if it has joined them.
    base: Option<Trailer>,
    result: Vec<u8>,
    counts: FoldCounts,
    /// Counts the memory of the operands, the base and the result.
    held: Held,
}

impl<'a> Folder<'a> {
    pub(crate) fn new(
        operator: &'a KeyspaceOperator,
        values: ValueReader<'a>,
        memory: &Arc<MemoryTracker>,
    ) -> Self {
        Self {
            operator,
            values,
            unfolded: Unfolded::new(true),
            trailers: Vec::new(),
            base: None,
            result: Vec::new(),
            counts: FoldCounts::default(),
            held: Held::new(memory, 0),
        }
    }

    /// The bytes of memory.
    fn capacity(&self) -> u64 {
        (self.unfolded.capacity() + self.result.capacity()) as u64
    }

    pub(crate) fn counts(&self) -> FoldCounts {
        self.counts
    }

    /// Whether there are operands that [`finish`](Self::finish) has not written.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        !self.trailers.is_empty()
    }

    /// Adds an operand, or the base of the operands so far.
    pub(crate) fn add(&mut self, trailer: Trailer, value: &[u8]) {
        if self.unfolded.add_older(trailer, value) {
            self.trailers.push(trailer);
        } else {
            self.base = Some(trailer);
        }
        self.held.grow_to(self.capacity());
    }

    /// Writes the entries so far, folded if possible. `is_all` says whether no other version of the key is below them;
    /// it is called only without a base.
    pub(crate) fn finish(
        &mut self,
        key: &[u8],
        output: &mut Output<'_, '_>,
        is_all: impl FnOnce() -> bool,
    ) -> Result<()> {
        let Some(&newest) = self.trailers.first() else {
            return Ok(());
        };
        let folded = self.fold(key, is_all);
        self.held.grow_to(self.capacity());
        match folded {
            Ok(Some(kind)) => {
                output.add_folded(key, newest.with_kind(kind), &self.result)?;
                let entries = self.trailers.len() + usize::from(self.base.is_some());
                self.counts.folded += entries as u64 - 1;
                if self
                    .base
                    .is_some_and(|it| it.kind() == Kind::ValueLogPointer)
                {
                    output.discard(self.unfolded.base_bytes())?;
                }
            }
            Ok(None) => self.write_all(key, output)?,
            Err(error) if matches!(error.kind(), ErrorKind::Merge | ErrorKind::Corruption) => {
                self.counts.failed += 1;
                self.write_all(key, output)?;
            }
            Err(error) => return Err(error),
        }
        self.unfolded.restart(true);
        self.trailers.clear();
        self.base = None;
        self.result.clear();
        self.result.shrink_to(KEPT_BYTES);
        self.held.set(self.capacity());
        Ok(())
    }

    /// Folds what there is into `result`. Returns the kind of the result; `None` if there is none.
    fn fold(&mut self, key: &[u8], is_all: impl FnOnce() -> bool) -> Result<Option<Kind>> {
        let (operator, result) = (self.operator, &mut self.result);
        if !operator.is_there() {
            return Ok(None);
        }
        if self.base.is_some() || is_all() {
            self.unfolded
                .fold_into(key, operator, self.values, result)?;
            return Ok(Some(Kind::Value));
        }
        let chain = self.unfolded.chain();
        let is_one = chain.len() > 1 && operator.partial_merge(key, chain, result)?;
        Ok(is_one.then_some(Kind::Operand))
    }

    /// Writes the entries as they are (I1).
    fn write_all(&self, key: &[u8], output: &mut Output<'_, '_>) -> Result<()> {
        for (position, trailer) in self.trailers.iter().enumerate() {
            output.add(key, *trailer, self.unfolded.chain().get(position))?;
        }
        match self.base {
            Some(trailer) => output.add(key, trailer, self.unfolded.base_bytes()),
            None => Ok(()),
        }
    }
}
