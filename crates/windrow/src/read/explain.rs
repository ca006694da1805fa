//! How a read comes to its answer: the sources that it asks, what each answers, and how long that takes.
//!
//! The sources are asked one by one in the order of a get or a seek, by what these use themselves. So blocks that the first
//! one has loaded are in memory for the next. A get stops at the first answer. If that is an operand, the get goes on for its
//! base, in the same source and in older ones: these steps are not shown.
//!
//! Concurrency: as reads.

use std::sync::Arc;
use std::time::Duration;

use super::get::{Sources, candidates};
use super::run::RunCursor;
use super::source::SourceCursor;
use super::state::ReadState;
use super::visible::KeyRange;
use crate::base::expiry::split_expiring;
use crate::base::{
    Cursor as _, FileNumber, KeyspaceId, Kind, Moment, Result, SequenceNumber, Trailer,
};
use crate::codec::checksum::key_hash;
use crate::table::{OpenTables, PointRead, TableCursor};
use crate::value::ValuePointer;

/// How a read comes to its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Explanation {
    /// Whether the read has found an entry.
    pub is_found: bool,
    /// The key of the entry.
    pub key: Vec<u8>,
    /// The length of its value; 0 without one.
    pub value_bytes: u64,
    /// The sources, in the order in which they were asked.
    pub steps: Vec<ExplainedStep>,
    /// The time of the same read, done as usual after these steps, in nanoseconds. It finds in memory what they have loaded.
    pub again_nanos: u64,
}

/// What one source has answered to a read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ExplainedStep {
    /// The source.
    pub source: ExplainedSource,
    /// Its answer.
    pub answer: ExplainedAnswer,
    /// Filters that were probed.
    pub filter_probes: u64,
    /// Probes that excluded the key.
    pub filter_rejects: u64,
    /// Probes that passed the key although the segment does not hold it.
    pub filter_false_positives: u64,
    /// Blocks that were searched.
    pub block_reads: u64,
    /// Those of them that had to be loaded or verified.
    pub block_loads: u64,
    /// Bytes of these.
    pub block_load_bytes: u64,
    /// The time of this step, in nanoseconds, with the open of the table.
    pub nanos: u64,
}

/// A source of a read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize),
    serde(rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum ExplainedSource {
    /// A memtable.
    #[non_exhaustive]
    Memtable {
        /// Whether it is frozen.
        is_frozen: bool,
        /// The entries in it.
        entries: u64,
    },
    /// A table.
    #[non_exhaustive]
    Table {
        /// Its level.
        level: usize,
        /// Its number.
        file: FileNumber,
        /// The segments in it.
        segments: usize,
    },
    /// Tables of a level whose fence keys exclude the key: the read does not ask them.
    #[non_exhaustive]
    Excluded {
        /// The level.
        level: usize,
        /// The number of tables.
        files: usize,
    },
}

/// What a source answers.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize),
    serde(rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum ExplainedAnswer {
    /// It has no version of the key that the read sees; to a seek: no key from there on.
    Nothing,
    /// A value of so many bytes.
    Value(u64),
    /// A tombstone, or a range tombstone: the key does not exist.
    Tombstone,
    /// An entry that has expired: the key does not exist.
    Expired,
    /// A pointer into the value file of this number.
    Pointer(FileNumber),
    /// An operand. The read asks on for its base, in the same source and in older ones; the steps do not show that.
    Operand,
    /// To a seek: its next entry has this key.
    Key(Vec<u8>),
}

impl ExplainedAnswer {
    /// The answer of an entry with this trailer that stores `stored`.
    fn of(trailer: Trailer, stored: &[u8], lives: impl Fn(Moment) -> bool) -> Self {
        if trailer.is_tombstone() {
            return Self::Tombstone;
        }
        let mut stored = stored;
        if trailer.is_expiring() {
            let (expiry, lasting) = split_expiring(stored);
            if !lives(expiry) {
                return Self::Expired;
            }
            stored = lasting;
        }
        match trailer.kind().lasting() {
            Kind::Value => Self::Value(stored.len() as u64),
            Kind::Operand => Self::Operand,
            _ => ValuePointer::decode(stored)
                .map_or(Self::Nothing, |pointer| Self::Pointer(pointer.file)),
        }
    }
}

/// Asks the sources of a read and notes what they answer.
struct Explainer<'a> {
    now: &'a dyn Fn() -> Duration,
    steps: Vec<ExplainedStep>,
}

impl Explainer<'_> {
    /// Adds a step that `ask` does. It counts in the counters that it gets.
    fn ask(
        &mut self,
        source: ExplainedSource,
        ask: impl FnOnce(&mut PointRead) -> Result<ExplainedAnswer>,
    ) -> Result<&ExplainedAnswer> {
        let mut read = PointRead::default();
        let start = (self.now)();
        let answer = ask(&mut read)?;
        let counters = read.counters;
        let time = (self.now)().saturating_sub(start);
        let step = ExplainedStep {
            source,
            answer,
            filter_probes: counters.filter_probes,
            filter_rejects: counters.filter_rejects,
            filter_false_positives: counters.filter_false_positives,
            block_reads: counters.block_reads,
            block_loads: counters.block_loads,
            block_load_bytes: counters.block_load_bytes,
            nanos: u64::try_from(time.as_nanos()).unwrap_or(u64::MAX),
        };
        self.steps.push(step);
        Ok(self
            .steps
            .last()
            .map_or(&ExplainedAnswer::Nothing, |it| &it.answer))
    }

    /// Notes `files` tables of `level` that were not asked.
    fn exclude(&mut self, level: usize, files: usize) -> Result<()> {
        if files > 0 {
            let source = ExplainedSource::Excluded { level, files };
            self.ask(source, |_| Ok(ExplainedAnswer::Nothing))?;
        }
        Ok(())
    }
}

/// The steps of a get of `key` at `sequence`. `lives` says of an expiry whether it is still to come.
///
/// # Errors
/// Those of reading a table.
pub(crate) fn explain_get(
    sources: Sources<'_>,
    key: &[u8],
    sequence: SequenceNumber,
    lives: impl Fn(Moment) -> bool,
    now: &dyn Fn() -> Duration,
) -> Result<Vec<ExplainedStep>> {
    let Sources { state, tables, .. } = sources;
    let steps = Vec::new();
    let mut explainer = Explainer { now, steps };
    for (age, memtable) in state.memtables().enumerate() {
        let source = memtable_source(age, memtable.entries());
        let answer = explainer.ask(source, |_| {
            let hit = memtable.get(key, sequence);
            Ok(hit.map_or(ExplainedAnswer::Nothing, |(trailer, stored)| {
                ExplainedAnswer::of(trailer, stored, &lives)
            }))
        })?;
        if *answer != ExplainedAnswer::Nothing {
            return Ok(explainer.steps);
        }
    }
    let hash = key_hash(key);
    for (index, level) in state.version.levels().iter().enumerate() {
        let asked = candidates(index, level, key);
        let asked = || asked.iter().filter(|file| index > 0 || file.covers(key));
        explainer.exclude(index, level.len() - asked().count())?;
        for file in asked() {
            let source = ExplainedSource::Table {
                level: index,
                file: file.meta.number,
                segments: file.meta.segments.len(),
            };
            let answer = explainer.ask(source, |read| {
                let table = tables.get(file.slot(), &file.meta)?;
                let hit = table.get(key, hash, sequence, read)?;
                Ok(hit.map_or(ExplainedAnswer::Nothing, |hit| {
                    ExplainedAnswer::of(hit.trailer(), hit.value(), &lives)
                }))
            })?;
            if *answer != ExplainedAnswer::Nothing {
                return Ok(explainer.steps);
            }
        }
    }
    Ok(explainer.steps)
}

/// The steps of a seek to `key` at `sequence`: where each source stands then. The first of them in the order of keys is what
/// the seek shows, if it is no tombstone.
///
/// # Errors
/// Those of reading a table.
pub(crate) fn explain_seek(
    state: &ReadState,
    keyspace: KeyspaceId,
    tables: &Arc<OpenTables>,
    (key, sequence): (&[u8], SequenceNumber),
    now: &dyn Fn() -> Duration,
) -> Result<Vec<ExplainedStep>> {
    let steps = Vec::new();
    let mut explainer = Explainer { now, steps };
    let memtables = state.memtables().enumerate();
    let mut memtables = memtables.filter(|(_, memtable)| !memtable.is_empty());
    let (sources, _) = SourceCursor::all(state, keyspace, tables, &KeyRange::ALL);
    for mut cursor in sources {
        let source = match &cursor {
            SourceCursor::Memtable(_) => {
                let (age, memtable) = memtables.next().unwrap_or((0, &state.active));
                memtable_source(age, memtable.entries())
            }
            SourceCursor::Run(run) => table_source(run, key),
        };
        explainer.ask(source, |read| {
            cursor.seek(key, sequence)?;
            read.counters.add(&cursor.take_counters());
            if !cursor.is_valid() {
                return Ok(ExplainedAnswer::Nothing);
            }
            Ok(ExplainedAnswer::Key(cursor.key().to_vec()))
        })?;
    }
    Ok(explainer.steps)
}

fn memtable_source(age: usize, entries: u64) -> ExplainedSource {
    let is_frozen = age > 0;
    ExplainedSource::Memtable { is_frozen, entries }
}

/// The table of `run` that a seek to `key` asks first.
fn table_source(run: &RunCursor<TableCursor>, key: &[u8]) -> ExplainedSource {
    let level = run.common().scans.as_ref().map_or(0, |scans| scans.level);
    match run.table_for(key) {
        Some(file) => ExplainedSource::Table {
            level,
            file: file.meta.number,
            segments: file.meta.segments.len(),
        },
        // The key is behind all tables of the run.
        None => ExplainedSource::Excluded {
            level,
            files: run.tables(),
        },
    }
}
