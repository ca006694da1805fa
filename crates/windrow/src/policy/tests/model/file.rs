//! A table file of the model.

use std::collections::BTreeMap;

use super::{Entry, Key};
use crate::base::limits::SEGMENTS_MAX;
use crate::base::{FileNumber, SequenceNumber, Trailer};
use crate::policy::SegmentSummary;

#[derive(Debug, Clone)]
pub(super) struct File {
    pub(super) number: FileNumber,
    /// Each sorted, oldest first.
    pub(super) segments: Vec<Vec<Entry>>,
    /// For each segment, the keys that older ones have, too.
    overwrites: Vec<u64>,
    /// How many values its entries have in each transient log file. Only a compaction changes that.
    pub(super) references: BTreeMap<u64, u64>,
    pub(super) tombstones: u64,
    pub(super) sequence_min: SequenceNumber,
    pub(super) visits: u64,
    pub(super) busy: bool,
}

impl File {
    pub(super) fn new(
        number: FileNumber,
        entries: Vec<Entry>,
        references: BTreeMap<u64, u64>,
    ) -> Self {
        let tombstones = entries.iter().filter(|entry| entry.1.is_tombstone());
        Self {
            number,
            references,
            tombstones: tombstones.count() as u64,
            sequence_min: sequence_min(&entries),
            segments: vec![entries],
            overwrites: vec![0],
            visits: 0,
            busy: false,
        }
    }

    pub(super) fn smallest(&self) -> Key {
        let first = |segment: &Vec<Entry>| segment.first().unwrap().0;
        self.segments.iter().map(first).min().unwrap()
    }

    pub(super) fn largest(&self) -> Key {
        let last = |segment: &Vec<Entry>| segment.last().unwrap().0;
        self.segments.iter().map(last).max().unwrap()
    }

    pub(super) fn sequence_max(&self) -> SequenceNumber {
        let entries = self.segments.iter().flatten();
        entries.map(|entry| entry.1.sequence()).max().unwrap()
    }

    pub(super) fn entries(&self) -> u64 {
        let entries = self.segments.iter().map(|segment| segment.len() as u64);
        entries.sum()
    }

    /// How many values are in transient logs.
    pub(super) fn separated(&self) -> u64 {
        self.references.values().sum()
    }

    /// Adds `piece`, a file of one segment.
    pub(super) fn append(&mut self, piece: Self) {
        assert!(self.busy, "a job appends to its targets");
        for (log, count) in piece.references {
            *self.references.entry(log).or_default() += count;
        }
        self.tombstones += piece.tombstones;
        self.sequence_min = self.sequence_min.min(piece.sequence_min);
        let has = |segment: &Vec<Entry>, key| segment.binary_search_by_key(&key, |it| it.0).is_ok();
        let is_older = |key: Key| self.segments.iter().any(|segment| has(segment, key));
        let keys = piece.segments[0].chunk_by(|left, right| left.0 == right.0);
        let overwrites = keys.filter(|versions| is_older(versions[0].0)).count();
        self.overwrites.push(overwrites as u64);
        self.segments.extend(piece.segments);
        self.visits = 0;
    }

    pub(super) fn summaries(&self, entry_bytes: u64) -> Vec<SegmentSummary> {
        let segments = self.segments.iter().zip(&self.overwrites);
        let summary = |(segment, overwrites): (&Vec<Entry>, &u64)| SegmentSummary {
            bytes: entry_bytes * segment.len() as u64,
            entries: segment.len() as u64,
            sequence_min: sequence_min(segment),
            overwrites: *overwrites,
            filter_units: [0; 4],
            logs: None,
        };
        segments.map(summary).collect()
    }

    /// The newest version of `key` up to `sequence`, met in probe order.
    pub(super) fn find(&self, key: Key, sequence: SequenceNumber) -> Option<Trailer> {
        self.segments.iter().rev().find_map(|segment| {
            let first = segment.partition_point(|entry| {
                entry.0 < key || entry.0 == key && entry.1.sequence() > sequence
            });
            let entry = segment.get(first).filter(|entry| entry.0 == key);
            entry.map(|entry| entry.1)
        })
    }

    /// Of each key, later segments hold newer entries.
    pub(super) fn check(&self) {
        assert!((1..=SEGMENTS_MAX).contains(&self.segments.len()));
        // The newest segment first, so that a stable sort, which merges sorted runs, leaves versions newest first.
        let segments = self.segments.iter().rev().flatten();
        let mut entries: Vec<&Entry> = segments.collect();
        entries.sort_by_key(|entry| entry.0);
        for pair in entries.windows(2) {
            let [newer, older] = [pair[0], pair[1]];
            let is_newer = newer.0 != older.0 || older.1.sequence() < newer.1.sequence();
            assert!(is_newer, "key {}", newer.0);
        }
    }
}

fn sequence_min(entries: &[Entry]) -> SequenceNumber {
    let sequences = entries.iter().map(|entry| entry.1.sequence());
    sequences.min().unwrap()
}
