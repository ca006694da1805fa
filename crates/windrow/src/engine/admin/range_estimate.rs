//! About how much of a keyspace lies in a range of keys, from metadata and indexes alone.
//!
//! Whole files count by the sums of their levels. The one or two files of a level that reach over an end of the range
//! count by the blocks within, which their indexes know. So an estimate looks at each level, whatever the range.
//!
//! Concurrency: it reads one state of the keyspace and takes locks only to open tables.

use crate::base::Result;
use crate::base::sync::Shared;
use crate::engine::{Engine, KeyspaceCore};
use crate::manifest::{FileHandle, Level};
use crate::memtable::Memtable;
use crate::table::Measure;

/// An estimate for a range.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct RangeEstimate {
    /// Entries, every version counted, in tables and memtables.
    entries: f64,
    /// The tombstones among them.
    tombstones: f64,
    /// Bytes of tables and of the values apart from them.
    bytes: f64,
}

impl RangeEstimate {
    /// About how many keys there are: each tombstone stands for itself and for the entry that it hides.
    pub(crate) fn keys(self) -> u64 {
        whole(self.entries - 2.0 * self.tombstones)
    }

    /// About how many bytes of files there are.
    pub(crate) fn bytes(self) -> u64 {
        whole(self.bytes)
    }

    fn add_part(&mut self, part: f64, measure: impl Fn(Measure) -> u64) {
        let of = |measures: &[Measure]| {
            let sum = measures.iter().map(|it| measure(*it) as f64).sum::<f64>();
            part * sum
        };
        self.entries += of(&[Measure::Entries]);
        self.tombstones += of(&[Measure::Tombstones]);
        self.bytes += of(&[Measure::Bytes, Measure::TransientBytes, Measure::LogBytes]);
    }
}

/// A count that was estimated.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates"
)]
fn whole(count: f64) -> u64 {
    count.round() as u64
}

/// Keys from `from` to before `to`; `None` is no bound.
#[derive(Debug, Clone, Copy)]
struct Span<'k> {
    from: Option<&'k [u8]>,
    to: Option<&'k [u8]>,
}

impl Span<'_> {
    fn overlaps(&self, file: &FileHandle) -> bool {
        self.from.is_none_or(|from| from <= file.largest())
            && self.to.is_none_or(|to| file.smallest() < to)
    }

    fn holds(&self, file: &FileHandle) -> bool {
        self.from.is_none_or(|from| from <= file.smallest())
            && self.to.is_none_or(|to| file.largest() < to)
    }
}

impl Engine {
    /// For the keys from `start` to before `end`, which is above it, or empty for no end.
    ///
    /// # Errors
    /// Of an open of a table at an end of the range; `NotFound` after the keyspace is dropped; `Closed`.
    pub(crate) fn estimate_range(
        &self,
        keyspace: &KeyspaceCore,
        (start, end): (&[u8], &[u8]),
    ) -> Result<RangeEstimate> {
        self.check_open()?;
        keyspace.check_exists()?;
        let span = Span {
            from: Some(start),
            to: (!end.is_empty()).then_some(end),
        };
        let mut estimate = RangeEstimate::default();
        let state = keyspace.state_full();
        for memtable in state.memtables() {
            add_memtable(&mut estimate, memtable, span);
        }
        for (number, level) in state.version.levels().iter().enumerate() {
            if number == 0 {
                let files = level.newest_first().iter();
                for file in files.filter(|file| span.overlaps(file)) {
                    self.add_file(&mut estimate, file, span)?;
                }
            } else {
                self.add_level(&mut estimate, level, span)?;
            }
        }
        Ok(estimate)
    }

    /// Adds the files of a level below level 0.
    fn add_level(&self, estimate: &mut RangeEstimate, level: &Level, span: Span<'_>) -> Result<()> {
        let mut within = level.between(span.from, span.to);
        for end in [within.start, within.end.saturating_sub(1)] {
            let reaches_over = |file: &&Shared<FileHandle>| !span.holds(file);
            let file = within.contains(&end).then(|| level.file(end)).flatten();
            if let Some(file) = file.filter(reaches_over) {
                self.add_file(estimate, file, span)?;
                if end == within.start {
                    within.start += 1;
                } else {
                    within.end -= 1;
                }
            }
        }
        estimate.add_part(1.0, |measure| level.sum_within(within.clone(), measure));
        Ok(())
    }

    fn add_file(
        &self,
        estimate: &mut RangeEstimate,
        file: &Shared<FileHandle>,
        span: Span<'_>,
    ) -> Result<()> {
        let part = if span.holds(file) {
            1.0
        } else {
            let table = self.tables.get(file.slot(), &file.meta)?;
            let all = table.bytes_between(None, None).max(1) as f64;
            let blocks: usize = table.segments.iter().map(|it| it.index.blocks()).sum();
            let half = all / blocks.max(1) as f64 / 2.0;
            // A bound is as likely in either half of its block, and the sum ends where its block begins.
            let end_is_within = span.to.is_some_and(|to| to <= file.largest());
            let start_is_within = span.from.is_some_and(|from| from > file.smallest());
            let ends = f64::from(u8::from(end_is_within)) - f64::from(u8::from(start_is_within));
            let bytes = table.bytes_between(span.from, span.to) as f64 + ends * half;
            (bytes / all).clamp(0.0, 1.0)
        };
        estimate.add_part(part, |measure| file.meta.measure(measure));
        Ok(())
    }
}

/// Tombstones count as spread like all entries.
fn add_memtable(estimate: &mut RangeEstimate, memtable: &Memtable, span: Span<'_>) {
    let entries = memtable.entries_between(span.from, span.to) as f64;
    let part = entries / memtable.entries().max(1) as f64;
    estimate.entries += entries;
    estimate.tombstones += part * memtable.tombstones() as f64;
}
