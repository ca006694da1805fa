//! The tables of the damaged database: sound segments as they are, and what is sound of the others.
//!
//! Every entry of a segment is read once before it counts as sound. So the merge meets no damage, and what it reads is in
//! order.
//!
//! Concurrency: one thread.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::names::Names;
use super::report::{Loss, RepairReport};
use super::sort::{Sorter, is_valid};
use super::survey::{KEYSPACE_MAX, Survey};
use crate::base::key::compare_entries;
use crate::base::sync::Shared;
use crate::base::{
    Cursor as _, Error, ErrorKind, FileNumber, KeyspaceId, RangeTombstone, Result, SequenceNumber,
};
use crate::cache::{BlockCache, MarkClock};
use crate::engine::Engine;
use crate::manifest::names::FileName;
use crate::manifest::{FileHandle, Obsolete};
use crate::options::BlockSource;
use crate::table::{
    FileMeta, OpenTables, SEGMENT_ALIGNMENT, SegmentMeta, SegmentPlace, TableContext, TableFiles,
    find_segments,
};
use crate::vfs::{File, OpenMode, Vfs};

/// The tables of a folder.
pub(super) struct OldTables {
    vfs: Arc<dyn Vfs>,
    folder: PathBuf,
    pub(super) open: Arc<OpenTables>,
    obsolete: Arc<Obsolete>,
    /// The sound segments of each keyspace.
    pub(super) segments: BTreeMap<KeyspaceId, Vec<Shared<FileHandle>>>,
}

/// A segment that no manifest describes.
#[derive(Debug)]
pub(super) struct UnnamedSegment {
    table: FileNumber,
    /// `None` until it is named, if its table does not say it.
    pub(super) keyspace: Option<KeyspaceId>,
    place: SegmentPlace,
}

/// The segments that no manifest describes, in tables of which it may have lost the description; those of a table follow each
/// other. Bytes of tables that belong to no segment are `losses`.
///
/// # Errors
/// `Io`.
pub(super) fn unnamed_segments(
    vfs: &dyn Vfs,
    folder: &std::path::Path,
    survey: &Survey,
    losses: &mut Vec<Loss>,
) -> Result<Vec<UnnamedSegment>> {
    let mut found = Vec::new();
    if survey.is_whole() {
        return Ok(found);
    }
    let mut known = BTreeMap::new();
    for (&id, keyspace) in &survey.state.keyspaces {
        for table in keyspace.levels.iter().flat_map(BTreeMap::values) {
            known.insert(table.number, (id, Arc::clone(table)));
        }
    }
    for file in &survey.files {
        let FileName::Table(number) = *file else {
            continue;
        };
        let source = open(vfs, folder, number)?;
        let named = known.get(&number);
        let (places, are_all) = find_segments(&*source, &file.to_string(), number)?;
        if !are_all {
            losses.push(Loss {
                what: "the table has more footers than appends can leave, and some segments are left out"
                    .to_owned(),
                file: Some(file.to_string()),
                ..Loss::default()
            });
        }
        let length = source.length();
        let length = length.map_err(|error| Error::read(&file.to_string(), 0, error))?;
        let segments = named
            .into_iter()
            .flat_map(|(_, table)| table.segments.iter());
        let covered = segments.map(|segment| (segment.offset, segment.end()));
        let covered = covered.chain(places.iter().map(|place| (place.offset, place.end)));
        let uncovered = uncovered(covered.collect(), length);
        losses.extend(uncovered.into_iter().map(|offset| Loss {
            what: "no sound footer describes this part of the table, and its entries are not known".to_owned(),
            file: Some(file.to_string()),
            offset: Some(offset),
            ..Loss::default()
        }));
        for place in places {
            let is_known = |(_, table): &&(KeyspaceId, Arc<FileMeta>)| {
                table.segments.iter().any(|it| it.id == place.id)
            };
            if named.as_ref().is_some_and(is_known) {
                continue;
            }
            let own = place.keyspace(&*source, &file.to_string())?;
            // As if it did not say of which keyspace it is.
            let own = own.filter(|&id| id <= KEYSPACE_MAX);
            let keyspace = match (named, own) {
                (Some((id, _)), _) => Some(*id),
                (None, Some(id)) if !survey.has_keyspace(id) => continue,
                (None, own) => own,
            };
            found.push(UnnamedSegment {
                table: number,
                keyspace,
                place,
            });
        }
    }
    Ok(found)
}

/// Gives each table that does not say of which keyspace it is one of its own, above all others and `last`.
pub(super) fn name_untagged(segments: &mut [UnnamedSegment], last: KeyspaceId, names: &mut Names) {
    let mut last = last.max(names.last());
    for of_table in segments.chunk_by_mut(|left, right| left.table == right.table) {
        let mut untagged = of_table
            .iter_mut()
            .filter(|it| it.keyspace.is_none())
            .peekable();
        let Some(first) = untagged.peek() else {
            continue;
        };
        last = KeyspaceId(last.0.saturating_add(1));
        names.add(last, &format!("table-{}", first.table));
        untagged.for_each(|segment| segment.keyspace = Some(last));
    }
}

/// Where each part of a file of `length` begins that is in none of the segments from `covered`.
fn uncovered(mut covered: Vec<(u64, u64)>, length: u64) -> Vec<u64> {
    covered.sort_unstable();
    let mut parts = Vec::new();
    let mut end = 0_u64;
    for (from, to) in covered {
        // Segments begin at pages.
        if from > end.next_multiple_of(SEGMENT_ALIGNMENT) {
            parts.push(end);
        }
        end = end.max(to);
    }
    if end < length || end == 0 {
        parts.push(end);
    }
    parts
}

impl UnnamedSegment {
    /// The loss of entries with numbers up to `largest`, which no database reaches.
    pub(super) fn loss_beyond(&self, largest: SequenceNumber) -> Loss {
        Loss {
            what: format!(
                "entries have sequence numbers up to {largest}, which no database reaches: they are left out"
            ),
            file: Some(FileName::Table(self.table).to_string()),
            offset: Some(self.place.offset),
            ..Loss::default()
        }
    }

    /// The largest number of its entries.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn sequence_max(
        &self,
        vfs: &dyn Vfs,
        folder: &std::path::Path,
    ) -> Result<SequenceNumber> {
        let source = open(vfs, folder, self.table)?;
        let name = FileName::Table(self.table).to_string();
        if let Some(known) = self.place.sequence_max(&*source, &name)? {
            return Ok(known);
        }
        let mut max = 0;
        self.place.salvage(&*source, &name, &mut |_, trailer, _| {
            max = max.max(trailer.sequence());
            Ok(())
        })?;
        Ok(max)
    }
}

fn open(vfs: &dyn Vfs, folder: &std::path::Path, number: FileNumber) -> Result<Arc<dyn File>> {
    let name = FileName::Table(number).to_string();
    let path = folder.join(&name);
    vfs.open(&path, OpenMode::Read)
        .map_err(|error| Error::open(&name, &path, error))
}

impl OldTables {
    pub(super) fn new(engine: &Engine, folder: PathBuf) -> Self {
        let options = engine.options();
        let files = TableFiles::new(
            Arc::clone(&options.vfs),
            folder.clone(),
            BlockSource::Buffered,
            options.open_files_max,
        );
        let context = TableContext {
            files: Arc::new(files),
            cache: Arc::new(BlockCache::new(0)),
            clock: Arc::new(MarkClock::new(&options.runtime)),
            memory: Arc::clone(&engine.memory.tables),
            piece_reads: Arc::default(),
            scans: Arc::default(),
        };
        Self {
            vfs: Arc::clone(&options.vfs),
            folder,
            open: Arc::new(OpenTables::new(context)),
            obsolete: Arc::default(),
            segments: BTreeMap::new(),
        }
    }

    /// Reads the tables that the manifest names.
    ///
    /// # Errors
    /// `Io`; those of the sorter.
    pub(super) fn read_named(
        &mut self,
        survey: &Survey,
        sorter: &mut Sorter<'_>,
        report: &mut RepairReport,
    ) -> Result<()> {
        for (&keyspace, state) in &survey.state.keyspaces {
            for table in state.levels.iter().flat_map(BTreeMap::values) {
                let file = FileName::Table(table.number);
                report.tables += 1;
                for segment in &table.segments {
                    let loss = Loss {
                        file: Some(file.to_string()),
                        keyspace: Some(state.name.clone()),
                        from: Some(segment.smallest().to_vec()),
                        to: Some(segment.largest().to_vec()),
                        sequences: Some((segment.sequence_min, segment.sequence_max)),
                        ..Loss::default()
                    };
                    if survey.files.contains(&file) {
                        self.read_segment(keyspace, table, segment, sorter, (report, &loss))?;
                    } else {
                        let what = if survey.is_whole() {
                            "the table is missing"
                        } else {
                            "the table is missing, unless a lost edit of the manifest has removed it"
                        };
                        let what = what.to_owned();
                        report.lose(Loss { what, ..loss });
                    }
                }
            }
        }
        Ok(())
    }

    /// Takes a segment as it is, if it is sound, or else what is sound of it. `loss` describes the loss of all of it.
    fn read_segment(
        &mut self,
        keyspace: KeyspaceId,
        table: &FileMeta,
        segment: &SegmentMeta,
        sorter: &mut Sorter<'_>,
        (report, loss): (&mut RepairReport, &Loss),
    ) -> Result<()> {
        let meta = FileMeta {
            segments: vec![segment.clone()].into(),
            ..*table
        };
        let handle = FileHandle::new(meta, &self.obsolete);
        match self.check(&handle, segment) {
            Ok(ranges) => {
                sorter.ranges.entry(keyspace).or_default().extend(ranges);
                self.segments.entry(keyspace).or_default().push(handle);
                return Ok(());
            }
            Err(error) if error.kind() == ErrorKind::Io => return Err(error),
            Err(_) => {}
        }
        let place = SegmentPlace::of(table.checksum_file(), segment);
        self.salvage(keyspace, table.number, &place, sorter, (report, loss))
    }

    /// Reads all entries of a segment. Returns its range tombstones.
    ///
    /// # Errors
    /// `Corruption` if it is damaged anywhere; `Io`.
    fn check(
        &self,
        handle: &Shared<FileHandle>,
        segment: &SegmentMeta,
    ) -> Result<Vec<RangeTombstone>> {
        let table = self.open.get(handle.slot(), &handle.meta)?;
        let table = Arc::clone(&table);
        let mut cursor = table.sequential_cursor(0);
        cursor.seek_to_first()?;
        let mut ranges = Vec::new();
        let (mut entries, mut last) = (0, (Vec::new(), 0));
        while cursor.is_valid() {
            let (key, trailer) = (cursor.key(), cursor.trailer());
            let is_later =
                entries == 0 || compare_entries(&last.0, last.1, key, trailer.sequence()).is_lt();
            let is_known = trailer.sequence() <= segment.sequence_max
                && (segment.smallest()..=segment.largest()).contains(&key);
            if !is_later || !is_known || !is_valid(key, trailer.kind(), cursor.value()) {
                let what = "an entry contradicts the others";
                return Err(Error::corruption(&table.name, segment.offset, what));
            }
            if trailer.is_range_tombstone() {
                ranges.push(RangeTombstone {
                    start: key.into(),
                    end: cursor.value().into(),
                    sequence: trailer.sequence(),
                });
            }
            last.0.clear();
            last.0.extend_from_slice(key);
            last.1 = trailer.sequence();
            entries += 1;
            cursor.next()?;
        }
        if entries == segment.entries {
            return Ok(ranges);
        }
        let what = "the table has lost entries";
        Err(Error::corruption(&table.name, segment.offset, what))
    }

    /// Reads a segment of `keyspace` that no manifest describes. Its entries above `newest` are of no database that is known.
    ///
    /// # Errors
    /// As [`read_named`](Self::read_named).
    pub(super) fn read_unnamed(
        &mut self,
        segment: &UnnamedSegment,
        (keyspace, name): (KeyspaceId, &str),
        sorter: &mut Sorter<'_>,
        report: &mut RepairReport,
    ) -> Result<()> {
        report.tables += 1;
        let loss = Loss {
            file: Some(FileName::Table(segment.table).to_string()),
            keyspace: Some(name.to_owned()),
            ..Loss::default()
        };
        let place = &segment.place;
        self.salvage(keyspace, segment.table, place, sorter, (report, &loss))
    }

    /// Takes what is sound of a segment.
    fn salvage(
        &self,
        keyspace: KeyspaceId,
        table: FileNumber,
        place: &SegmentPlace,
        sorter: &mut Sorter<'_>,
        (report, loss): (&mut RepairReport, &Loss),
    ) -> Result<()> {
        let name = FileName::Table(table).to_string();
        let source = open(&*self.vfs, &self.folder, table)?;
        let mut unnumbered = 0_u64;
        let mut take = |key: &[u8], trailer: crate::base::Trailer, stored: &[u8]| {
            if !is_valid(key, trailer.kind(), stored) {
                return Ok(());
            }
            unnumbered += u64::from(trailer.sequence() == 0);
            sorter.add(keyspace, key, trailer, stored)
        };
        for part in place.salvage(&*source, &name, &mut take)? {
            report.lose(Loss {
                what: "a part of the table is damaged".to_owned(),
                offset: Some(part.offset),
                from: part.from.or_else(|| loss.from.clone()),
                to: part.to.or_else(|| loss.to.clone()),
                ..loss.clone()
            });
        }
        if unnumbered > 0 {
            report.lose(Loss {
                what: format!(
                    "the place of {unnumbered} bulk-loaded entries in the commit order is unknown: they count as older than \
                     all others"
                ),
                ..loss.clone()
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{SEGMENT_ALIGNMENT, uncovered};

    #[test]
    fn parts_of_a_table_without_a_segment_are_found() {
        const PAGE: u64 = SEGMENT_ALIGNMENT;
        let two = vec![(0, 500), (PAGE, PAGE + 700)];
        assert_eq!(uncovered(Vec::new(), 900), [0]);
        assert_eq!(uncovered(Vec::new(), 0), [0]);
        assert!(uncovered(two.clone(), PAGE + 700).is_empty());
        assert_eq!(uncovered(two.clone(), PAGE + 701), [PAGE + 700]);
        assert_eq!(uncovered(vec![two[1]], PAGE + 700), [0]);
        assert_eq!(
            uncovered(vec![two[0], (2 * PAGE, 3 * PAGE)], 3 * PAGE),
            [500]
        );
    }
}
