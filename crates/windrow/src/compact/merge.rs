//! The merge of sorted entries into tables, which drops the entries that no reader can see.
//!
//! Invariants:
//! - I1: Entries in = entries out + entries dropped, by reason, less those that range tombstones add where cuts divide
//!   them. Entries in is the count of the inputs in the manifest. A mismatch fails the job, in release builds too.
//! - I2: Memory is bounded by the read buffers of the inputs, the write buffer of one output, the operands of one key,
//!   and the range tombstones of the inputs.
//!
//! Concurrency: owned by one thread. [`policy`](crate::policy) decides for each entry.

use super::fold::{FoldCounts, Folder};
use super::judge::{Judge, JudgeCounts};
use super::output::{Output, OutputFiles};
use super::ranges::JobRanges;
use crate::base::expiry::split_expiring;
use crate::base::key::SEQUENCE_MAX;
use crate::base::{
    Cursor, Error, ErrorKind, Kind, Moment, RangeTombstone, RangeTombstones, Result,
    SequenceNumber, Trailer,
};
use crate::manifest::Record;
use crate::policy::{Met, ReadPoints, Verdict, is_offered, keep, keep_range};

/// The result of a flush, a compaction or a subcompaction.
#[derive(Debug)]
pub(crate) struct MergeResult<'a> {
    pub(crate) written: OutputFiles<'a>,
    /// The entries that were read.
    pub(crate) entries: u64,
    /// The bytes of transient logs and of relocation tables that were read.
    pub(crate) transient_log_bytes_read: u64,
    pub(crate) folds: FoldCounts,
    pub(crate) expired: Expired,
    pub(crate) judged: JudgeCounts,
}

/// Entries that had expired and that no newer version hides. They were dropped, or written as tombstones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Expired {
    pub(crate) entries: u64,
    /// The last moment at which one of them expired. From then on nobody finds one.
    pub(crate) by: Moment,
}

impl Expired {
    /// Both together.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            entries: self.entries.saturating_add(other.entries),
            by: self.by.max(other.by),
        }
    }

    /// The record without which a reader with an earlier clock would miss them.
    pub(crate) fn record(self) -> Option<Record> {
        (self.entries > 0).then_some(Record::ExpiredBy(self.by))
    }
}

/// What a job needs for the entries that it meets.
pub(crate) struct Treatment<'m, 'a> {
    /// Who reads them, now and from now on.
    pub(crate) readers: &'m ReadPoints,
    pub(crate) folder: Folder<'a>,
    /// `None` if the filter is not asked, or there is none.
    pub(crate) judge: Option<Judge<'a>>,
}

/// The keys of a subcompaction: from `from`, to before `to`. `None` is no bound.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SubcompactionRange<'k> {
    pub(crate) from: Option<&'k [u8]>,
    pub(crate) to: Option<&'k [u8]>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    /// Entries read.
    entries: u64,
    /// Entries dropped because a newer version hides them from every reader.
    superseded: u64,
    /// Tombstones and expired entries dropped because they hide no older entry.
    spent: u64,
    expired: Expired,
    /// Range tombstones that began before the range.
    continued: u64,
}

/// Writes the entries of `input` in `range` that a reader can see to `output`, with operands folded. `ranges` has all
/// range tombstones of the input.
///
/// `deeper` returns whether older data outside the inputs may hold a key, or any key from it to before an end; its calls
/// have ascending keys. After all subcompactions, [`check_entries`] checks that all entries were read.
pub(crate) fn merge<'a>(
    mut input: impl Cursor,
    range: SubcompactionRange<'_>,
    output: Output<'a, '_>,
    treatment: Treatment<'_, '_>,
    ranges: JobRanges,
    deeper: impl FnMut(&[u8], Option<&[u8]>) -> bool,
) -> Result<MergeResult<'a>> {
    let mut merge = Merge {
        output,
        treatment,
        ranges: &ranges.all,
        deeper,
        counts: Counts::default(),
        key: Vec::new(),
        newer: None,
    };
    let mut continued = ranges.continued;
    match range.from {
        Some(from) => input.seek(from, SEQUENCE_MAX)?,
        None => input.seek_to_first()?,
    }
    while input.is_valid() {
        if range.to.is_some_and(|to| to <= input.key()) {
            break;
        }
        // They stand at the first key of the range, each before older versions of that.
        while let Some(tombstone) = continued
            .pop_if(|it| *input.key() > *it.start || input.trailer().sequence() < it.sequence)
        {
            merge.continue_range(&tombstone)?;
        }
        merge.counts.entries += 1;
        merge.meet(input.key(), input.trailer(), input.value())?;
        input.next()?;
    }
    while let Some(tombstone) = continued.pop() {
        merge.continue_range(&tombstone)?;
    }
    merge.finish()
}

/// The error of a table whose checksums are right and whose entries do not ascend: nothing may be written in their order. The
/// writer of a table refuses such entries, too, but it does not see those that the merge drops. What is decided about an
/// entry (whether a newer version hides it, whether deeper levels hold its key) is right only in ascending order.
#[cold]
fn out_of_order() -> Error {
    let what =
        "the entries of an input of a compaction are out of order: windrow verify names the table";
    Error::new(ErrorKind::Corruption, what)
}

/// The state of a merge.
struct Merge<'m, 'a, 'k, D> {
    output: Output<'a, 'k>,
    treatment: Treatment<'m, 'm>,
    ranges: &'m RangeTombstones,
    deeper: D,
    counts: Counts,
    /// The key of the last entry.
    key: Vec<u8>,
    /// The last entry, if there was one.
    newer: Option<Met>,
}

impl<'m, 'a, D: FnMut(&[u8], Option<&[u8]>) -> bool> Merge<'m, 'a, '_, D> {
    /// Whether `key` is not that of the last entry.
    #[inline]
    fn is_new(&self, key: &[u8]) -> bool {
        self.newer.is_none() || key != self.key
    }

    /// Takes a range tombstone that began before the range.
    fn continue_range(&mut self, tombstone: &RangeTombstone) -> Result<()> {
        self.counts.continued += 1;
        let trailer = Trailer::new(tombstone.sequence, Kind::RangeTombstone);
        self.meet(&tombstone.start, trailer, &[])
    }

    /// Takes the next entry: keeps it, folds it or drops it.
    fn meet(&mut self, key: &[u8], trailer: Trailer, value: &[u8]) -> Result<()> {
        if self.is_new(key) {
            if self.newer.is_some() && *key < *self.key {
                return Err(out_of_order());
            }
            self.finish_key()?;
            self.newer = None;
            self.key.clear();
            self.key.extend_from_slice(key);
            self.output.begin_key(key)?;
        }
        let has_expired = has_expired(trailer, value, self.treatment.readers);
        let (verdict, value) = if trailer.is_range_tombstone() {
            let range = self.find(key, trailer)?;
            (self.judge_range(range), &*range.end)
        } else {
            (self.judge(trailer, has_expired), value)
        };
        if self.treatment.folder.is_open() && verdict != Verdict::Joins {
            // An older version is left, whether it is kept or not.
            let is_all = verdict == Verdict::Spent || self.is_deleted_from(trailer.sequence());
            let (folder, output) = (&mut self.treatment.folder, &mut self.output);
            folder.finish(&self.key, output, || is_all)?;
        }
        if has_expired && matches!(verdict, Verdict::Keep | Verdict::Spent) {
            self.expire(trailer, value, verdict)?;
            self.newer = Some(Met::new(trailer, verdict));
            return Ok(());
        }
        if let Some(judge) = &mut self.treatment.judge
            && is_offered(verdict, self.newer)
        {
            judge.offer(&self.key, trailer, value);
        }
        match verdict {
            Verdict::Keep if !trailer.is_operand() => self.output.add(&self.key, trailer, value)?,
            Verdict::Keep | Verdict::Joins => self.treatment.folder.add(trailer, value),
            Verdict::Superseded => {
                self.counts.superseded += 1;
                self.discard(trailer, value)?;
            }
            Verdict::Spent => self.counts.spent += 1,
        }
        self.newer = Some(Met::new(trailer, verdict));
        Ok(())
    }

    /// Drops an expired entry of the present key, or keeps a tombstone in its place.
    #[cold]
    fn expire(&mut self, trailer: Trailer, stored: &[u8], verdict: Verdict) -> Result<()> {
        self.counts.expired = self.counts.expired.and(Expired {
            entries: 1,
            by: split_expiring(stored).0,
        });
        self.discard(trailer, stored)?;
        if verdict == Verdict::Spent {
            self.counts.spent += 1;
            return Ok(());
        }
        let tombstone = trailer.with_kind(Kind::Tombstone);
        self.output.add(&self.key, tombstone, &[])
    }

    /// Lists the value of a dropped entry as garbage, if it is in a value log.
    fn discard(&mut self, trailer: Trailer, stored: &[u8]) -> Result<()> {
        match trailer.kind() {
            Kind::ValueLogPointer => self.output.discard(stored),
            Kind::ExpiringValueLogPointer => self.output.discard(split_expiring(stored).1),
            _ => Ok(()),
        }
    }

    /// Decides about an entry of the present key that is no range tombstone.
    fn judge(&mut self, trailer: Trailer, has_expired: bool) -> Verdict {
        let mut newer = self.newer;
        if !self.ranges.is_empty() {
            let deleted = self.ranges.next_newer(&self.key, trailer.sequence());
            newer = Met::nearest(newer, deleted.map(|range| range.sequence));
        }
        keep(trailer, newer, has_expired, self.treatment.readers, || {
            (self.deeper)(&self.key, None)
        })
    }

    /// Decides about a range tombstone.
    fn judge_range(&mut self, range: &RangeTombstone) -> Verdict {
        let around = self.ranges.next_around(range);
        let around = around.map(|around| around.sequence);
        keep_range(range.sequence, around, self.treatment.readers, || {
            (self.deeper)(&range.start, Some(&range.end))
        })
    }

    /// The range tombstone of the entry `trailer` of `key`.
    ///
    /// # Errors
    /// `Corruption` if the lists of the inputs do not have it.
    fn find(&self, key: &[u8], trailer: Trailer) -> Result<&'m RangeTombstone> {
        let unlisted = || {
            let found = format!(
                "a job met a range tombstone at key \"{}\" that its table does not list",
                key.escape_ascii()
            );
            Error::new(ErrorKind::Corruption, found)
        };
        let found = self.ranges.find(key, trailer.sequence());
        found.ok_or_else(unlisted)
    }

    /// Whether a range tombstone is older than the last entry, but not older than `sequence`.
    fn is_deleted_from(&self, sequence: SequenceNumber) -> bool {
        // A forged entry may have the number 0, and nothing is older.
        let before = self.newer.and_then(|newer| newer.sequence().checked_sub(1));
        let newest = before.and_then(|before| self.ranges.newest(&self.key, before));
        newest.is_some_and(|newest| newest.sequence >= sequence)
    }

    /// Ends the versions of the present key.
    fn finish_key(&mut self) -> Result<()> {
        if self.treatment.folder.is_open() {
            // Whatever is deeper is older than a range tombstone of the inputs.
            let is_deleted = self.is_deleted_from(0);
            let (key, deeper) = (&self.key, &mut self.deeper);
            let is_all = || is_deleted || !deeper(key, None);
            self.treatment
                .folder
                .finish(key, &mut self.output, is_all)?;
        }
        Ok(())
    }

    /// Completes the output and checks I1.
    fn finish(mut self) -> Result<MergeResult<'a>> {
        self.finish_key()?;
        let (counts, folds) = (self.counts, self.treatment.folder.counts());
        let written = self.output.entries();
        let continued = counts.continued + self.output.continued();
        let gone = counts.superseded + counts.spent + folds.folded;
        if counts.entries + continued != written + gone {
            return Err(Error::new(
                ErrorKind::Corruption,
                format!(
                    "a job read {} entries and divided range tombstones {continued} times, wrote {written}, folded {}, \
                     and dropped {} superseded entries and {} tombstones or expired entries: the counts do not add up, and its output is \
                     removed",
                    counts.entries, folds.folded, counts.superseded, counts.spent
                ),
            ));
        }
        let judged = self.treatment.judge.map(Judge::finish).unwrap_or_default();
        Ok(MergeResult {
            judged,
            transient_log_bytes_read: self.output.transient_log_bytes_read(),
            written: self.output.finish()?,
            entries: counts.entries,
            folds,
            expired: counts.expired,
        })
    }
}

/// Whether the entry `trailer`, which stores this, is expired for all `readers` that see it.
#[inline]
pub(super) fn has_expired(trailer: Trailer, stored: &[u8], readers: &ReadPoints) -> bool {
    trailer.is_expiring() && readers.finds_expired(trailer.sequence(), split_expiring(stored).0)
}

/// Checks I1 for all subcompactions together.
///
/// # Errors
/// `Corruption` if they have read more or fewer entries than `expected`.
pub(crate) fn check_entries(read: u64, expected: u64) -> Result<()> {
    if read == expected {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Corruption,
        format!("a job read {read} of {expected} entries, and its output is removed"),
    ))
}
