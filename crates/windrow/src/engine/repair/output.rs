//! The new database: the newest state of each key, from all sources of its keyspace.
//!
//! For each key the sources are met from the newest version on. The first value, tombstone or range tombstone ends the
//! search. Operands before it are kept as they are. Nothing older is in the new database, so it needs no tombstones.
//!
//! I1. If the value that decides about a key is lost, the key is lost: no older version takes its place, and no operands
//!     without their base.
//! I2. An entry without a number is older than all others of its key, and gets the smallest number.
//! I3. Memory is bounded by the read buffers of the sources, and the value and the operands of one key.
//!
//! Concurrency: one thread.

use std::cmp::Reverse;
use std::sync::Arc;

use super::report::{Loss, RepairReport};
use super::sort::rank;
use super::values::OldValues;
use crate::base::expiry::{EXPIRY_BYTES, put_expiring, split_expiring};
use crate::base::key::{SEQUENCE_MAX, UNNUMBERED};
use crate::base::sync::Shared;
use crate::base::{
    Cursor, ErrorKind, KeyspaceId, Kind, RangeTombstones, Result, SequenceNumber, Trailer,
};
use crate::engine::ingestion::bulk_load::BulkWriter;
use crate::manifest::FileHandle;
use crate::read::run::{Run, RunCursor};
use crate::table::{OpenTables, SequentialCursor};

/// The number that an entry without one gets: no other number is older.
pub(super) const OLDEST: SequenceNumber = 1;

type Source = RunCursor<SequentialCursor>;

/// The runs of `segments`, each of which is a file of its own: as few as their keys allow.
pub(super) fn sources(
    tables: &Arc<OpenTables>,
    mut segments: Vec<Shared<FileHandle>>,
) -> Vec<Source> {
    segments.sort_by(|left, right| left.smallest().cmp(right.smallest()));
    let mut runs: Vec<Vec<Shared<FileHandle>>> = Vec::new();
    for segment in segments {
        let is_before = |run: &&mut Vec<Shared<FileHandle>>| {
            run.last()
                .is_some_and(|last| last.largest() < segment.smallest())
        };
        match runs.iter_mut().find(is_before) {
            Some(run) => run.push(segment),
            None => runs.push(vec![segment]),
        }
    }
    let runs = runs.iter().flat_map(|run| Run::of_files(run));
    runs.map(|run| Source::new(Arc::clone(tables), run))
        .collect()
}

/// A keyspace while it is written.
pub(super) struct Merge<'a> {
    pub(super) keyspace: KeyspaceId,
    pub(super) name: &'a str,
    pub(super) sources: Vec<Source>,
    pub(super) ranges: RangeTombstones,
    pub(super) values: &'a OldValues,
    /// Larger numbers are of no database that is known.
    pub(super) newest: SequenceNumber,
    pub(super) report: &'a mut RepairReport,
}

/// What is kept of a key: its operands, newest first, and the value under them.
#[derive(Debug, Default)]
struct Kept {
    versions: Vec<(Trailer, Vec<u8>)>,
    /// A value that is lost.
    lost: Option<(SequenceNumber, crate::base::Error)>,
}

impl Merge<'_> {
    /// Writes all keys.
    ///
    /// # Errors
    /// `Io`, `NoSpace`.
    pub(super) fn write(mut self, writer: &mut BulkWriter<'_, '_>) -> Result<()> {
        for source in &mut self.sources {
            source.seek_to_first()?;
            arrive(source)?;
        }
        let mut key = Vec::new();
        loop {
            let valid = self.sources.iter().filter(|source| source.is_valid());
            let Some(smallest) = valid.map(Cursor::key).min() else {
                return Ok(());
            };
            key.clear();
            key.extend_from_slice(smallest);
            let kept = self.pass_key(&key)?;
            if let Some((sequence, error)) = kept.lost {
                self.report.lose(Loss {
                    what: format!("the value is lost: {error}"),
                    file: error.file().map(|file| file.display().to_string()),
                    offset: error.offset(),
                    keyspace: Some(self.name.to_owned()),
                    from: Some(key.clone()),
                    to: Some(key.clone()),
                    sequences: Some((sequence, sequence)),
                });
                continue; // I1
            }
            for (trailer, stored) in &kept.versions {
                writer.add_version(&key, *trailer, stored)?;
            }
        }
    }

    /// Moves all sources behind `key`.
    fn pass_key(&mut self, key: &[u8]) -> Result<Kept> {
        let deleted = self.ranges.newest(key, SEQUENCE_MAX);
        let deleted = deleted.map_or(0, |range| range.sequence);
        let mut kept = Kept::default();
        let mut is_over = false;
        let mut last = None;
        while let Some(source) = self.newest_at(key) {
            let trailer = self.sources[source].trailer();
            let sequence = trailer.sequence().max(OLDEST); // I2
            let is_repeated = last == Some(sequence) && !trailer.is_range_tombstone();
            let counts = !is_over && !is_repeated && sequence <= self.newest;
            let is_unplaced = trailer.sequence() == UNNUMBERED && is_repeated;
            if is_unplaced && !is_over {
                self.lose_unplaced(key);
            } else if counts && trailer.sequence() < deleted {
                is_over = true;
            } else if counts {
                is_over = self.take(key, source, &mut kept)?;
            }
            if !trailer.is_range_tombstone() {
                last = Some(sequence);
            }
            let source = &mut self.sources[source];
            source.next()?;
            arrive(source)?;
        }
        Ok(kept)
    }

    /// Reports an entry without a number beside one that has the smallest.
    fn lose_unplaced(&mut self, key: &[u8]) {
        self.report.lose(Loss {
            what: "the place of a bulk-loaded entry in the commit order is unknown, and another entry has the oldest one"
                .to_owned(),
            keyspace: Some(self.name.to_owned()),
            from: Some(key.to_vec()),
            to: Some(key.to_vec()),
            ..Loss::default()
        });
    }

    /// The source with the newest version of `key`; of equals the one that decides most.
    fn newest_at(&self, key: &[u8]) -> Option<usize> {
        let at_key = self
            .sources
            .iter()
            .enumerate()
            .filter(|(_, source)| source.is_valid() && source.key() == key);
        let order = |source: &Source| {
            let trailer = source.trailer();
            (Reverse(trailer.sequence()), rank(trailer.kind()))
        };
        at_key
            .min_by_key(|(_, source)| order(source))
            .map(|(index, _)| index)
    }

    /// Keeps the present entry of a source. Returns whether it ends the search for older ones.
    fn take(&self, key: &[u8], source: usize, kept: &mut Kept) -> Result<bool> {
        let source = &self.sources[source];
        let (trailer, stored) = (source.trailer(), source.value());
        let sequence = trailer.sequence().max(OLDEST); // I2
        let trailer = Trailer::new(sequence, trailer.kind());
        let mut value = Vec::new();
        match trailer.kind() {
            Kind::RangeTombstone => return Ok(false),
            Kind::Tombstone => return Ok(true),
            Kind::Operand => {
                kept.versions.push((trailer, stored.to_vec()));
                return Ok(false);
            }
            Kind::Value | Kind::ExpiringValue => {
                kept.versions.push((trailer, stored.to_vec()));
                return Ok(true);
            }
            Kind::TransientPointer | Kind::ValueLogPointer => {
                match self.values.read(self.keyspace, key, stored, &mut value) {
                    Ok(()) => kept.versions.push((trailer.with_kind(Kind::Value), value)),
                    Err(error) => kept.lose(trailer, error)?,
                }
            }
            Kind::ExpiringTransientPointer | Kind::ExpiringValueLogPointer => {
                let (expiry, pointer) = split_expiring(stored);
                match self.values.read(self.keyspace, key, pointer, &mut value) {
                    Ok(()) => {
                        let mut expiring = Vec::with_capacity(EXPIRY_BYTES + value.len());
                        put_expiring(&mut expiring, expiry, &value);
                        let trailer = trailer.with_kind(Kind::ExpiringValue);
                        kept.versions.push((trailer, expiring));
                    }
                    Err(error) => kept.lose(trailer, error)?,
                }
            }
        }
        Ok(true)
    }
}

impl Kept {
    /// # Errors
    /// `error`, unless it is damage.
    fn lose(&mut self, trailer: Trailer, error: crate::base::Error) -> Result<()> {
        if error.kind() != ErrorKind::Corruption {
            return Err(error);
        }
        self.lost = Some((trailer.sequence(), error));
        Ok(())
    }
}

/// Reads the entry of `source` whose key it knows.
fn arrive(source: &mut Source) -> Result<()> {
    while source.is_valid() && source.is_ahead() {
        source.arrive()?;
    }
    Ok(())
}
