//! The sound records of the write-ahead logs, and the numbers of their entries.
//!
//! A log is a row of *stretches* of sound records with holes between them. The decision table of `log/tail.rs` says whether
//! damage is a hole or the end of history, as in a recovery; nothing behind the end of history counts. Records do not store
//! their sequence numbers, so those behind a hole are known only if one of these is:
//! - the base of the next log, if the stretch reaches up to that log: the numbers count back from it;
//! - the number of entries in the hole, if its bytes still read as one whole batch although their checksum fails.
//!
//! Without either, the entries keep their order among each other, also over several holes. They count only for keyspaces of
//! which no table holds an entry that is newer than the last one before the hole: for these they are the newest ones
//! whatever their numbers are.
//!
//! Concurrency: one thread.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use super::report::{Loss, RepairReport};
use super::survey::Survey;
use crate::base::key::SEQUENCE_MAX;
use crate::base::{ErrorKind, FileNumber, KeyspaceId, Result, SequenceNumber};
use crate::engine::recovery::replay::{
    RecordedLogs, has_sync, is_recorded_beyond, read_header, wal_name,
};
use crate::log::batch::{BatchReader, Entry};
use crate::log::{HEADER_BYTES, LogReader, TailAction, WalHeader, may_be_marker};
use crate::vfs::{OpenMode, Vfs, read_exact_at};

/// The most holes that are noted one by one. What follows the last one counts as lost, so the memory for holes is bounded; a
/// device that fails leaves far fewer.
pub(super) const HOLES_MAX: usize = 10_000;

/// The longest hole whose entries are counted, in bytes.
const COUNTED_HOLE_BYTES_MAX: u64 = 64 << 20;

/// The bytes of a chunk before its payload: of a short one for each length of the varint, and of a long one.
const HEADS: [usize; 3] = [5, 6, HEADER_BYTES];

/// Sound records that follow each other.
#[derive(Debug, Clone)]
struct Stretch {
    log: FileNumber,
    start: u64,
    end: u64,
    entries: u64,
    /// The base of the log, in its first stretch.
    base: Option<SequenceNumber>,
    /// Whether the log ends with it, at its recorded end.
    is_last: bool,
    /// How many entries were in the hole before it, if that is known.
    lost: Option<u64>,
    /// The loss of the hole before it, in the report of the pass.
    hole: Option<usize>,
    /// The number of its first entry; only a number in the right order, unless it `is_sure`.
    first: SequenceNumber,
    is_sure: bool,
    /// A number that all of its entries are known to be above.
    after: SequenceNumber,
}

/// The sound records of the logs.
#[derive(Debug, Default)]
pub(super) struct Logs {
    stretches: Vec<Stretch>,
    holes: Vec<Loss>,
}

/// Where logs are.
#[derive(Clone, Copy)]
pub(super) struct Folder<'a> {
    pub(super) vfs: &'a dyn Vfs,
    pub(super) path: &'a Path,
}

impl Logs {
    /// Finds the sound records of the logs `recorded`. `has_value` says whether the value of an entry is sound or not needed.
    ///
    /// # Errors
    /// `Io`; those of `has_value`.
    pub(super) fn find(
        folder: Folder<'_>,
        survey: &Survey,
        recorded: &RecordedLogs,
        has_value: &mut dyn FnMut(&Entry<'_>) -> Result<bool>,
    ) -> Result<Self> {
        let mut headers = Vec::new();
        for &number in &recorded.live {
            headers.push(match read_header(folder.vfs, folder.path, number) {
                Err(error) if error.kind() == ErrorKind::Corruption => None,
                header => header?,
            });
        }
        let mut logs = Self::default();
        let first_begun = survey.first_log;
        for index in 0..recorded.live.len() {
            let log = Log {
                folder,
                recorded,
                headers: &headers,
                index,
                is_whole: survey.is_whole(),
                first_begun,
                has_later_sync: Cell::new(None),
                is_missing_behind: survey.is_missing_behind(recorded.live[index]),
            };
            if !log.read(&mut logs, has_value)? {
                break;
            }
        }
        logs.number();
        Ok(logs)
    }

    /// The largest number of an entry.
    pub(super) fn last_sequence(&self) -> SequenceNumber {
        let last = |stretch: &Stretch| stretch.first.saturating_add(stretch.entries) - 1;
        let last = self.stretches.iter().map(last).max();
        last.unwrap_or(0).min(SEQUENCE_MAX)
    }

    /// The bytes of the sound records.
    pub(super) fn bytes(&self) -> u64 {
        let lengths = self
            .stretches
            .iter()
            .map(|it| it.end.saturating_sub(it.start));
        lengths.fold(0, u64::saturating_add)
    }

    /// Numbers the entries of all stretches.
    fn number(&mut self) {
        // The number of the next entry, if it is known, and one that no later entry can have: the last known number. Behind
        // entries whose numbers are not known it is the smallest that their last one can have.
        let (mut next, mut known) = (None, 0);
        for index in 0..self.stretches.len() {
            let following = self.stretches.get(index + 1).and_then(|it| it.base);
            let stretch = &mut self.stretches[index];
            stretch.after = known;
            let backward = following
                .filter(|_| stretch.is_last)
                .and_then(|base| base.checked_sub(stretch.entries))
                .filter(|first| *first > known);
            let forward = stretch
                .lost
                .zip(next)
                .map(|(lost, next): (u64, u64)| next.saturating_add(lost));
            let first = stretch.base.or(backward).or(forward);
            stretch.is_sure = first.is_some();
            stretch.first = first.unwrap_or(known + 1);
            if let (Some(hole), Some(first)) = (stretch.hole, first)
                && let Some(hole) = self.holes.get_mut(hole)
                && first > known + 1
            {
                hole.sequences = Some((known + 1, first - 1));
            }
            next = first.map(|first| first.saturating_add(stretch.entries));
            known = known.max(stretch.first.saturating_add(stretch.entries) - 1);
        }
    }

    /// Passes the entries to `take`, in commit order.
    ///
    /// # Errors
    /// `Io`; those of `take`.
    pub(super) fn each_entry(
        &self,
        folder: Folder<'_>,
        survey: &Survey,
        report: &mut RepairReport,
        take: &mut dyn FnMut(&Entry<'_>) -> Result<()>,
    ) -> Result<()> {
        for hole in &self.holes {
            report.lose(hole.clone());
        }
        let mut unpacked = Vec::new();
        let newest = survey.newest_in_all_tables();
        for stretch in &self.stretches {
            let name = wal_name(stretch.log);
            let end = Some(stretch.end);
            let mut reader = LogReader::open(folder.vfs, folder.path, &name, stretch.log, end)?;
            reader.move_to(stretch.start);
            let (mut next, mut misplaced) = (stretch.first, 0_u64);
            while let Some(record) = reader.next()? {
                let Ok(mut batch) = BatchReader::new(record.payload, next, &mut unpacked) else {
                    continue; // The header, or a batch that was counted as a hole.
                };
                if record.offset == 0 {
                    continue;
                }
                next += u64::from(batch.remaining());
                loop {
                    match batch.next() {
                        Ok(Some(entry)) if stretch.is_placed(survey, &newest, &entry) => {
                            take(&entry)?;
                        }
                        Ok(Some(_)) => misplaced += 1,
                        Ok(None) => break,
                        Err(error) => {
                            report.lose(Loss {
                                what: format!("a record cannot be read: {}", error.what),
                                file: Some(name.clone()),
                                offset: Some(record.offset),
                                ..Loss::default()
                            });
                            break;
                        }
                    }
                }
            }
            if misplaced > 0 {
                report.lose(Loss {
                    what: format!(
                        "the place of {misplaced} entries behind the damage in the commit order is unknown, and tables \
                         hold entries that may be newer"
                    ),
                    file: Some(name),
                    offset: Some(stretch.start),
                    ..Loss::default()
                });
            }
        }
        Ok(())
    }
}

impl Stretch {
    /// Whether it is known which entries are older than this one. `newest` are the largest numbers in tables.
    fn is_placed(
        &self,
        survey: &Survey,
        newest: &BTreeMap<KeyspaceId, SequenceNumber>,
        entry: &Entry<'_>,
    ) -> bool {
        let newest = newest.get(&entry.keyspace).copied().unwrap_or(0);
        self.is_sure || survey.is_whole() && newest <= self.after
    }
}

/// A log while it is read.
struct Log<'a> {
    folder: Folder<'a>,
    recorded: &'a RecordedLogs,
    headers: &'a [Option<WalHeader>],
    index: usize,
    /// Whether the manifest is: then history may end before the last sound record.
    is_whole: bool,
    /// Whether the log behind it is missing. That one may have had records, so history does not end here.
    is_missing_behind: bool,
    /// The number and the base of the log that an open has begun with the manifest.
    first_begun: Option<(FileNumber, SequenceNumber)>,
    /// Whether a later log has the mark of a sync, once that is known.
    has_later_sync: Cell<Option<bool>>,
}

impl Log<'_> {
    fn number(&self) -> FileNumber {
        self.recorded.live[self.index]
    }

    /// The recorded end, and whether the log is known to have been durable up to there.
    fn recorded_end(&self) -> (Option<u64>, bool) {
        let recorded = self.recorded.ends.get(&self.number()).copied();
        let next = self.headers.get(self.index + 1).copied().flatten();
        let next = next.and_then(|header| header.predecessor);
        let next = next.filter(|predecessor| predecessor.number == self.number());
        let is_durable = recorded.is_some() || next.is_some_and(|predecessor| predecessor.synced);
        (
            recorded.or(next.map(|predecessor| predecessor.end)),
            is_durable,
        )
    }

    /// Whether all that is damaged at the front of the next log is its header, which recorded the end of this one.
    fn is_next_header_hit(&self) -> Result<bool> {
        let next = self.recorded.live.get(self.index + 1);
        let is_lost = self
            .headers
            .get(self.index + 1)
            .is_some_and(Option::is_none);
        let Some(&next) = next.filter(|_| is_lost) else {
            return Ok(false);
        };
        let Folder { vfs, path } = self.folder;
        let mut reader = LogReader::open(vfs, path, &wal_name(next), next, None)?;
        let is_hit = reader.next()?.is_none() && reader.skip_damage()?;
        Ok(is_hit && reader.position() == WalHeader::CHUNK_BYTES as u64)
    }

    /// Whether something in another file proves that the logs were durable beyond `offset`. The later logs are read once,
    /// however many holes ask.
    fn is_proved(&self, offset: u64) -> Result<bool> {
        if is_recorded_beyond(self.recorded, self.headers, self.index, offset) {
            return Ok(true);
        }
        if let Some(known) = self.has_later_sync.get() {
            return Ok(known);
        }
        let Folder { vfs, path } = self.folder;
        let found = has_sync(vfs, path, &self.recorded.live[self.index + 1..])?;
        self.has_later_sync.set(Some(found));
        Ok(found)
    }

    /// Appends the stretches of the log. Returns whether history goes on behind it.
    fn read(
        &self,
        logs: &mut Logs,
        has_value: &mut dyn FnMut(&Entry<'_>) -> Result<bool>,
    ) -> Result<bool> {
        let (recorded_end, is_durable) = self.recorded_end();
        let name = wal_name(self.number());
        let Folder { vfs, path } = self.folder;
        let mut reader = LogReader::open(vfs, path, &name, self.number(), recorded_end)?;
        let base = self.headers[self.index].map(|header| header.base);
        // Where the first record begins whose value is missing, in a log without holes, and the entries before it.
        let mut missing = None;
        let first_begun = self
            .first_begun
            .filter(|(number, _)| *number == self.number());
        let base_or_known = base.or(first_begun.map(|(_, base)| base));
        // Nothing is between two logs.
        let follows = logs.stretches.last().is_some_and(|before| before.is_last);
        let (mut lost, mut hole) = (follows.then_some(0), None);
        let first = logs.stretches.len();
        let mut ends_whole = false;
        let goes_on = loop {
            let start = reader.position();
            let mut entries = 0;
            let mut unreadable = None;
            let mut unpacked = Vec::new();
            while let Some(record) = reader.next()? {
                if record.offset == 0 && base.is_some() {
                    continue;
                }
                let number = base_or_known
                    .unwrap_or(1)
                    .saturating_add(entries)
                    .min(SEQUENCE_MAX);
                let Ok(batch) = BatchReader::new(record.payload, number, &mut unpacked) else {
                    unreadable = Some((record.offset, record.end));
                    break;
                };
                let count = u64::from(batch.remaining());
                let is_in_doubt = !is_durable && missing.is_none() && start == 0 && self.is_whole;
                if is_in_doubt && !has_values(batch, has_value)? {
                    missing = Some((record.offset, entries));
                }
                entries += count;
            }
            let end = unreadable.map_or(reader.position(), |(offset, _)| offset);
            logs.stretches.push(Stretch {
                base: base_or_known.filter(|_| start == 0),
                ..self.stretch(start..end, entries, (lost, hole))
            });
            let is_last_hole = logs.holes.len() >= HOLES_MAX;
            if let Some((offset, _)) = unreadable.filter(|_| is_last_hole) {
                logs.holes.push(self.hole(offset));
                let end = reader.end()?;
                let behind = end.recorded_length.unwrap_or(end.file_length);
                logs.stretches
                    .push(self.stretch(behind..behind, 0, (None, None)));
                return Ok(true);
            }
            if let Some((offset, behind)) = unreadable {
                (lost, hole) = (None, Some(logs.holes.len()));
                logs.holes.push(self.hole(offset));
                reader.move_to(behind);
                continue;
            }
            let found = reader.end()?;
            if found.recorded_length == Some(end) {
                break true;
            }
            if self.is_missing_behind && found.recorded_length.is_none() && end == found.file_length
            {
                break true;
            }
            if self.is_whole && !self.is_missing_behind {
                let proof = self.is_proved(end)?;
                if !proof && found.action(proof) == TailAction::EndOfHistory {
                    break false;
                }
            }
            if end == found.file_length && self.is_next_header_hit()? {
                ends_whole = true;
                break true;
            }
            let is_more = !is_last_hole && reader.skip_damage()?;
            let may_be_torn =
                !is_last_hole && found.evidence <= end && found.recorded_length.is_none();
            if !is_more && !self.is_whole && may_be_torn {
                break true; // Nothing says that it is more than a torn end.
            }
            hole = Some(logs.holes.len());
            logs.holes.push(self.hole(end));
            let behind = match (is_more, found.recorded_length) {
                (true, _) => reader.position(),
                (false, Some(recorded)) => recorded.min(found.file_length),
                (false, None) => found.file_length,
            };
            lost = self.count_hole(end, behind)?;
            if !is_more {
                let nothing = self.stretch(behind..behind, 0, (lost, hole));
                logs.stretches.push(Stretch {
                    is_last: found.recorded_length.is_some() && !self.is_missing_behind,
                    ..nothing
                });
                return Ok(true);
            }
        };
        if let Some((offset, entries)) = missing
            && logs.stretches.len() == first + 1
            && reader.end()?.evidence <= offset
            && !self.is_missing_behind
            && !self.is_proved(offset)?
        {
            let stretch = &mut logs.stretches[first];
            (stretch.end, stretch.entries) = (offset, entries);
            return Ok(false);
        }
        let is_whole_end = reader.end()?.recorded_length == Some(reader.position());
        if let Some(last) = logs.stretches.last_mut() {
            last.is_last = (is_whole_end || ends_whole) && !self.is_missing_behind;
        }
        Ok(goes_on)
    }

    /// A stretch of the log that is not numbered yet, behind a hole or nothing.
    fn stretch(
        &self,
        range: Range<u64>,
        entries: u64,
        (lost, hole): (Option<u64>, Option<usize>),
    ) -> Stretch {
        Stretch {
            log: self.number(),
            start: range.start,
            end: range.end,
            entries,
            base: None,
            is_last: false,
            lost,
            hole,
            first: 0,
            is_sure: false,
            after: 0,
        }
    }

    fn hole(&self, offset: u64) -> Loss {
        Loss {
            what: "records are damaged or missing".to_owned(),
            file: Some(wal_name(self.number())),
            offset: Some(offset),
            ..Loss::default()
        }
    }

    /// The entries of the only batch between two offsets, if the bytes there read as one. Its checksum fails, so this says
    /// only how many numbers it has taken.
    fn count_hole(&self, start: u64, end: u64) -> Result<Option<u64>> {
        if end.saturating_sub(start) > COUNTED_HOLE_BYTES_MAX {
            return Ok(None);
        }
        let name = wal_name(self.number());
        let path = self.folder.path.join(&name);
        let failed = |error| crate::base::Error::read(&name, start, error);
        let file = self
            .folder
            .vfs
            .open(&path, OpenMode::Read)
            .map_err(failed)?;
        let mut bytes = vec![0; usize::try_from(end.saturating_sub(start)).unwrap_or(usize::MAX)];
        read_exact_at(&*file, &mut bytes, start).map_err(failed)?;
        let is_header = start == 0 && bytes.len() == WalHeader::CHUNK_BYTES;
        if is_header || may_be_marker(&bytes, self.number(), start) {
            return Ok(Some(0));
        }
        let mut payloads = HEADS.into_iter().filter_map(|head| bytes.get(head..));
        Ok(payloads.find_map(count_batch))
    }
}

/// The number of entries of `payload`, if it is one whole batch.
fn count_batch(payload: &[u8]) -> Option<u64> {
    let mut unpacked = Vec::new();
    let mut batch = BatchReader::new(payload, 1, &mut unpacked).ok()?;
    let count = u64::from(batch.remaining());
    while batch.next().ok()?.is_some() {}
    Some(count)
}

fn has_values(
    mut batch: BatchReader<'_>,
    has_value: &mut dyn FnMut(&Entry<'_>) -> Result<bool>,
) -> Result<bool> {
    while let Ok(Some(entry)) = batch.next() {
        if !has_value(&entry)? {
            return Ok(false);
        }
    }
    Ok(true)
}
