//! About how many values a segment refers to through relocation tables.
//!
//! Nobody keeps lists of which table refers to which value log: they would grow with the square of the data. Known are,
//! for each value log and each origin of a relocation table, what all tables together refer to there; and for each
//! segment the sum, the span of the numbers, and the *generation*: the newest GC output when its writer resolved its
//! pointers. So a pointer into an origin is in its segment's span, and the origin leads to a GC output newer than the
//! generation. All segments whose span has a log count as if they referred to it alike.
//!
//! I1. A segment with a pointer into an origin has an estimate above zero, unless its writer could not resolve the
//!     pointer: a compaction keeps a pointer whose relocation table is damaged. To rewrite it again would not help.
//! I2. A segment has an estimate of zero if its generation is at least that of every origin: once it was rewritten, and
//!     until the next garbage collection.

use std::ops::Range;

use crate::base::FileNumber;
use crate::table::LogReferences;

/// What all tables refer to in one value log, GC output or origin, directly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReferredLog {
    pub(crate) number: FileNumber,
    pub(crate) bytes: u64,
    /// Where the values of an origin are now; `None` if they have not moved.
    pub(crate) gc_output: Option<FileNumber>,
}

/// The origins of a block have their sums in order of their GC outputs.
const BLOCK_ORIGINS: usize = 512;

/// The references to all value logs, for [estimates](Self::of).
#[derive(Debug, Clone, Default)]
pub(crate) struct MovedValues {
    /// The logs and origins, ascending.
    numbers: Vec<FileNumber>,
    /// The bytes in all of them before each one, and in all.
    before: Vec<u64>,
    /// The origins, ascending: number, GC output, bytes.
    origins: Vec<(FileNumber, FileNumber, u64)>,
    /// For each [`BLOCK_ORIGINS`] of them, ascending by GC output: the bytes in it and the later ones.
    blocks: Vec<Vec<(FileNumber, u64)>>,
}

impl MovedValues {
    pub(crate) fn new(logs: impl IntoIterator<Item = ReferredLog>) -> Self {
        let mut logs: Vec<ReferredLog> = logs.into_iter().collect();
        logs.sort_unstable_by_key(|log| log.number);
        let mut sum = 0_u64;
        let mut before = vec![0];
        for log in &logs {
            sum = sum.saturating_add(log.bytes);
            before.push(sum);
        }
        let origin = |log: &ReferredLog| Some((log.number, log.gc_output?, log.bytes));
        let origins: Vec<_> = logs.iter().filter_map(origin).collect();
        let block = |origins: &[(FileNumber, FileNumber, u64)]| {
            let outputs = origins
                .iter()
                .map(|(_, gc_output, bytes)| (*gc_output, *bytes));
            let mut block: Vec<(FileNumber, u64)> = outputs.collect();
            block.sort_unstable();
            let mut sum = 0_u64;
            for (_, bytes) in block.iter_mut().rev() {
                sum = sum.saturating_add(*bytes);
                *bytes = sum;
            }
            block
        };
        Self {
            numbers: logs.iter().map(|log| log.number).collect(),
            before,
            blocks: origins.chunks(BLOCK_ORIGINS).map(block).collect(),
            origins,
        }
    }

    /// The bytes that all tables refer to through relocation tables.
    pub(crate) fn bytes(&self) -> u64 {
        let bytes = self.origins.iter().map(|(.., bytes)| *bytes);
        bytes.fold(0, u64::saturating_add)
    }

    /// About how many bytes a segment with these references refers to through relocation tables.
    pub(crate) fn of(&self, references: &LogReferences) -> u64 {
        let sums = &references.sums;
        let is_before = |number: &FileNumber| *number < sums.smallest;
        let is_within = |number: &FileNumber| *number <= sums.largest;
        let first = self
            .origins
            .partition_point(|(number, ..)| is_before(number));
        let end = self
            .origins
            .partition_point(|(number, ..)| is_within(number));
        let moved = self.moved_since(references.generation, first..end);
        if moved == 0 {
            return 0; // I2
        }
        let first = self.numbers.partition_point(is_before);
        let end = self.numbers.partition_point(is_within);
        let all = self.before[end] - self.before[first];
        let product = u128::from(sums.referred.bytes) * u128::from(moved.min(all));
        let estimate = product.div_ceil(u128::from(all.max(1)));
        u64::try_from(estimate).unwrap_or(u64::MAX).max(1) // I1
    }

    /// The bytes in these origins that lead to a GC output newer than `generation`.
    fn moved_since(&self, generation: FileNumber, origins: Range<usize>) -> u64 {
        let mut moved = 0_u64;
        let mut position = origins.start;
        while position < origins.end {
            let (block, in_block) = (position / BLOCK_ORIGINS, position % BLOCK_ORIGINS);
            let block = &self.blocks[block];
            let next = position - in_block + block.len();
            if in_block == 0 && next <= origins.end {
                let newer = block.partition_point(|(gc_output, _)| *gc_output <= generation);
                let bytes = block.get(newer).map_or(0, |(_, bytes)| *bytes);
                moved = moved.saturating_add(bytes);
            } else {
                let part = &self.origins[position..next.min(origins.end)];
                let newer = part
                    .iter()
                    .filter(|(_, gc_output, _)| *gc_output > generation);
                let bytes = newer.map(|(.., bytes)| *bytes);
                moved = bytes.fold(moved, u64::saturating_add);
            }
            position = next;
        }
        moved
    }
}
