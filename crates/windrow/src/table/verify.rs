//! The full check of a table: every block, every key.
//!
//! Bypasses cache and mapping, so it reads what is on the disk (or in the page cache), not what
//! was verified before. Checks, beyond what opening the table checked:
//! - each block's checksum and form, through [`ReadAhead`], and each index partition's;
//! - entries ascend strictly, across blocks too, and each block stays within its separators;
//! - each key passes the filter;
//! - entries, tombstones, operands, bytes, references, range tombstones, first and last key and sequence bounds are as the
//!   properties and the lists of the segment say;
//! - each value in a value file is sound;
//! - later segments hold newer entries of each key.

use std::sync::Arc;

use crate::base::expiry::split_expiring;
use crate::base::key::{UNNUMBERED, compare_entries};
use crate::base::range_tombstones::Limit;
use crate::base::{Error, ErrorKind, RangeTombstone, Result, SequenceNumber, Trailer};
use crate::block::Layout;
use crate::codec::checksum::key_hash;

use super::format::{BlockPlace, Expiring, ExpiringTally, Properties, References};
use super::read::{Blocks, ReadAhead, Segment, Table};

/// Reads the value of a key whose pointer is in the table.
pub(crate) type CheckValue<'a> = dyn FnMut(&[u8], &[u8]) -> Result<()> + 'a;

/// What the check of one table covered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TableReport {
    pub(crate) segments: u64,
    pub(crate) blocks: u64,
    pub(crate) entries: u64,
    /// Stored bytes of the data blocks.
    pub(crate) bytes: u64,
}

impl Table {
    /// The block at `offset` is damaged.
    pub(super) fn damaged_block(&self, offset: u64, what: &str) -> Error {
        Error::corruption(&self.name, offset, what)
    }

    /// Checks everything and appends an error to `damage` for each damaged block, and for each value
    /// in a value file that `check_value` finds damaged.
    ///
    /// # Errors
    /// `Io` if a file cannot be read; those of `check_value`, except `Corruption`.
    pub(crate) fn verify(
        self: &Arc<Self>,
        damage: &mut Vec<Error>,
        check_value: &mut CheckValue<'_>,
    ) -> Result<TableReport> {
        let mut report = TableReport::default();
        let damage_before = damage.len();
        for (index, segment) in self.segments.iter().enumerate() {
            report.segments += 1;
            let mut check = SegmentCheck {
                table: self,
                segment,
                tally: Properties::default(),
                references: References::default(),
                ranges: Vec::new(),
                expiring: ExpiringTally::default(),
                last: None,
                damage,
                check_value,
                failed: None,
                sound: true,
            };
            let mut blocks = ReadAhead::new(self, index);
            for partition in 0..segment.index.partitions() {
                if !check.partition(partition)? {
                    continue;
                }
                for block in segment.index.blocks_of(partition) {
                    let place = self.block_place(segment, block)?;
                    check.block(&mut blocks, place)?;
                    report.blocks += 1;
                    report.bytes += place.length as u64;
                }
            }
            report.entries += check.tally.entries;
            check.finish()?;
        }
        // Damaged blocks cannot be compared.
        if damage.len() == damage_before {
            match self.check_order() {
                Err(error) if error.kind() == ErrorKind::Corruption => damage.push(error),
                outcome => outcome?,
            }
        }
        Ok(report)
    }
}

/// Gives the key, the trailer and the value of each entry of the present block of `segment` to `take`. An error says what
/// is wrong with one.
pub(super) fn each_entry(
    blocks: &ReadAhead,
    segment: &Segment,
    mut take: impl FnMut(&[u8], Trailer, &[u8]) -> std::result::Result<(), &'static str>,
) -> std::result::Result<(), &'static str> {
    const MALFORMED: &str = "a block entry is malformed";
    let bytes = blocks.bytes();
    let layout = Layout::read(bytes, blocks.origin()).ok_or(MALFORMED)?;
    let layout = layout.raised(segment.raise());
    let mut key = layout.prefix(bytes).ok_or(MALFORMED)?.to_vec();
    let mut offset = layout.entries_start();
    for _ in 0..layout.count() {
        let entry = layout.entry(bytes, offset).ok_or(MALFORMED)?;
        let suffix = bytes.get(entry.suffix..entry.value);
        key.truncate(layout.prefix_length());
        key.extend_from_slice(suffix.ok_or(MALFORMED)?);
        let value = bytes.get(entry.value..entry.end).ok_or(MALFORMED)?;
        take(&key, entry.step.trailer(), value)?;
        offset = entry.end;
    }
    Ok(())
}

/// The state of the check of one segment.
struct SegmentCheck<'a> {
    table: &'a Table,
    segment: &'a Segment,
    /// The sums over the entries so far.
    tally: Properties,
    references: References,
    ranges: Vec<RangeTombstone>,
    expiring: ExpiringTally,
    last: Option<(Vec<u8>, SequenceNumber)>,
    damage: &'a mut Vec<Error>,
    check_value: &'a mut CheckValue<'a>,
    /// A value file that could not be read.
    failed: Option<Error>,
    sound: bool,
}

impl SegmentCheck<'_> {
    fn report(&mut self, error: Error) {
        self.damage.push(error);
        self.sound = false;
    }

    /// Loads a partition of the index. Returns whether it is sound.
    fn partition(&mut self, number: usize) -> Result<bool> {
        match self.table.partition(self.segment, number) {
            Err(error) if error.kind() == ErrorKind::Io => Err(error),
            Err(error) => {
                self.report(error);
                Ok(false)
            }
            Ok(_) => Ok(true),
        }
    }

    fn block(&mut self, blocks: &mut ReadAhead, place: BlockPlace) -> Result<()> {
        let result = blocks.load(place).and_then(|()| {
            self.entries(blocks, place.number)
                .map_err(|what| self.table.damaged_block(place.offset, what))
        });
        match result {
            Err(error) if error.kind() == ErrorKind::Io => return Err(error),
            Err(error) => self.report(error),
            Ok(()) => {}
        }
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Checks the value of `key` that `pointer` leads to.
    fn value(&mut self, key: &[u8], pointer: &[u8]) {
        match (self.check_value)(key, pointer) {
            Err(error) if error.kind() == ErrorKind::Corruption => self.damage.push(error),
            Err(error) => self.failed = Some(error),
            Ok(()) => {}
        }
    }

    /// Checks the entries of a block; an error says what is wrong with one.
    fn entries(
        &mut self,
        blocks: &ReadAhead,
        index: usize,
    ) -> std::result::Result<(), &'static str> {
        let segment = self.segment;
        each_entry(blocks, segment, |key, trailer, value| {
            self.entry(key, trailer, value, index)
        })
    }

    fn entry(
        &mut self,
        key: &[u8],
        trailer: Trailer,
        value: &[u8],
        block: usize,
    ) -> std::result::Result<(), &'static str> {
        let sequence = trailer.sequence();
        let new_key = if let Some((last, last_sequence)) = &mut self.last {
            if !compare_entries(last, *last_sequence, key, sequence).is_lt() {
                return Err("the entries are out of order");
            }
            let new_key = last != key;
            last.clear();
            last.extend_from_slice(key);
            *last_sequence = sequence;
            new_key
        } else {
            self.tally.smallest = key.into();
            self.tally.sequence_min = sequence;
            self.last = Some((key.to_vec(), sequence));
            true
        };
        // The versions of one key may continue in blocks after the one that the index names.
        let indexed = self.table.find_block(self.segment, key);
        let indexed = indexed.map_err(|_| "the index cannot be read again")?;
        let indexed = indexed.map_or(usize::MAX, |block| block.number);
        if indexed > block || (new_key && indexed != block) {
            return Err("the index leads past an entry");
        }
        if new_key && !self.segment.filter.may_contain(key_hash(key)) {
            return Err("the filter rejects a key of the segment");
        }
        let tally = &mut self.tally;
        tally.entries += 1;
        tally.tombstones += u64::from(trailer.is_tombstone());
        tally.operands += u64::from(trailer.is_operand());
        let noted = self.references.note(trailer, value);
        tally.logical_bytes += key.len() as u64 + noted.map_err(|error| error.what)?;
        tally.sequence_min = tally.sequence_min.min(sequence);
        tally.sequence_max = tally.sequence_max.max(sequence);
        if trailer.is_expiring() {
            if self.segment.properties.expiring.is_none() {
                return Err("an entry expires, and the properties say that none does");
            }
            let added = self.expiring.add(key, trailer, value);
            added.map_err(|error| error.what)?;
            let (_, value) = split_expiring(value);
            if trailer.lasting().is_pointer() {
                self.value(key, value);
            }
        } else if trailer.is_pointer() {
            self.value(key, value);
        }
        if trailer.is_range_tombstone() {
            self.ranges.push(RangeTombstone {
                start: key.into(),
                end: value.into(),
                sequence,
            });
        }
        Ok(())
    }

    /// Whether the segment lists the range tombstones that it has.
    fn lists_its_ranges(&self) -> bool {
        let largest = Limit::new(&self.segment.properties.largest);
        let within = |range: &RangeTombstone| range.up_to(&largest);
        let is_listed = |range: RangeTombstone| {
            let listed = self.segment.ranges.as_deref();
            listed.is_some_and(|it| it.find(&range.start, range.sequence) == Some(&range))
        };
        let listed = self.segment.ranges.as_ref().map_or(0, |it| it.all().len());
        listed == self.ranges.len()
            && self
                .ranges
                .iter()
                .all(|it| within(it).is_some_and(is_listed))
    }

    /// The largest key of the properties, if it agrees with the entries: the last key, or how far range tombstones reach.
    fn largest(&self) -> Box<[u8]> {
        let last = self.last.as_ref().map_or(&[][..], |(key, _)| key);
        let ends = self.ranges.iter().map(RangeTombstone::largest);
        let recorded = &self.segment.properties.largest;
        match ends.max() {
            Some(end) if *end == **recorded && end > last => end.into(),
            _ => last.into(),
        }
    }

    /// What is known of the entries that expire: the record of the properties, if it agrees with the entries.
    fn expiring(&self) -> Option<Box<Expiring>> {
        let found = self.expiring.finish();
        let recorded = &self.segment.properties.expiring;
        match (&found, recorded) {
            (Some(found), Some(recorded)) if recorded.agrees_with(found) => Some(recorded.clone()),
            _ => found,
        }
    }

    /// Compares the totals, if every block was sound.
    fn finish(mut self) -> Result<()> {
        let recorded = match self.table.log_references_of(self.segment) {
            Err(error) if error.kind() == ErrorKind::Corruption => {
                self.report(error);
                return Ok(());
            }
            recorded => recorded?,
        };
        let properties = &self.segment.properties;
        let logs = self.references.logs();
        if properties.sequence_min == UNNUMBERED
            && self.tally.sequence_min == properties.sequence_max
        {
            // All its entries have this one number.
            self.tally.sequence_min = UNNUMBERED;
        }
        let tally = Properties {
            largest: self.largest(),
            ranges: properties.ranges,
            keyspace: properties.keyspace,
            expiring: self.expiring(),
            filter_bytes: properties.filter_bytes,
            blocks: properties.blocks,
            transient: self.references.transient(),
            logs: logs.log_sums(),
            ..std::mem::take(&mut self.tally)
        };
        if self.sound && (tally != *properties || logs != recorded || !self.lists_its_ranges()) {
            let offset = self.segment.index.data(0).offset;
            let what = "the entries do not add up to the properties";
            self.report(Error::corruption(&self.table.name, offset, what));
        }
        Ok(())
    }
}
