//! The changes of the references to value logs, as an edit records them.
//!
//! The manifest has no lists of which table refers to which value log. It has the sums by value log, and each edit says
//! how they change: the lists of the segments that it adds, less those of the segments that it removes. See
//! "Manifest" in `docs/format.md`.
//!
//! I1. The changes of a record ascend strictly by file, and each changes something.

use std::collections::BTreeMap;

use crate::base::FileNumber;
use crate::codec::Reader;
use crate::codec::reader::DecodeError;
use crate::codec::varint::put_varint;
use crate::table::{ReferenceList, Referred};

use super::field_codec::Field;

/// The change of the references to one value log, GC output or origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReferenceChange {
    pub(crate) file: FileNumber,
    pub(crate) entries: i64,
    pub(crate) bytes: i64,
}

/// Changes up to the end of the body.
impl Field for Vec<ReferenceChange> {
    fn put(&self, body: &mut Vec<u8>) {
        let mut before = 0;
        for change in self {
            put_varint(body, change.file.0 - before);
            put_varint(body, zigzag(change.entries));
            put_varint(body, zigzag(change.bytes));
            before = change.file.0;
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut changes = Self::new();
        let mut before = 0_u64;
        while !reader.is_empty() {
            let start = reader.clone();
            let step = reader.varint("value log of a change of references")?;
            let change = ReferenceChange {
                file: FileNumber(before.wrapping_add(step)),
                entries: unzigzag(reader.varint("change of the entries that refer to it")?),
                bytes: unzigzag(reader.varint("change of the bytes that are referred to")?),
            };
            let changes_nothing = (change.entries, change.bytes) == (0, 0);
            if change.file.0 <= before || changes_nothing {
                return Err(start.error("changes of references are out of order or none"));
            }
            changes.push(change);
            before = change.file.0;
        }
        Ok(changes)
    }
}

/// Small numbers of either sign as small numbers: 0, -1, 1, -2 and so on.
fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)).cast_unsigned()
}

fn unzigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}

/// Adds up the lists of segments that come and go.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ReferenceChanges(BTreeMap<FileNumber, (i64, i64)>);

impl ReferenceChanges {
    /// Adds the references of a segment that comes.
    pub(crate) fn add(&mut self, list: &ReferenceList) {
        for (file, referred) in list.iter() {
            self.count(file, referred);
        }
    }

    /// Adds references to `file`.
    pub(crate) fn count(&mut self, file: FileNumber, Referred { entries, bytes }: Referred) {
        self.change(file, (signed(entries), signed(bytes)));
    }

    /// Subtracts the references of a segment that goes.
    pub(crate) fn subtract(&mut self, list: &ReferenceList) {
        for (file, referred) in list.iter() {
            self.uncount(file, referred);
        }
    }

    /// Subtracts references to `file`.
    pub(crate) fn uncount(&mut self, file: FileNumber, Referred { entries, bytes }: Referred) {
        self.change(file, (-signed(entries), -signed(bytes)));
    }

    /// Adds the changes of another part of the job.
    pub(crate) fn append(&mut self, other: &Self) {
        for (file, change) in &other.0 {
            self.change(*file, *change);
        }
    }

    fn change(&mut self, file: FileNumber, (entries, bytes): (i64, i64)) {
        // Sums that are too large come from damage, and no manifest takes them.
        let sum = self.0.entry(file).or_default();
        *sum = (sum.0.saturating_add(entries), sum.1.saturating_add(bytes));
    }

    /// The files whose references change.
    pub(crate) fn changes(&self) -> Vec<ReferenceChange> {
        let change = |(file, sum): (&FileNumber, &(i64, i64))| ReferenceChange {
            file: *file,
            entries: sum.0,
            bytes: sum.1,
        };
        let changed = self.0.iter().filter(|(_, sum)| **sum != (0, 0));
        changed.map(change).collect()
    }
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
