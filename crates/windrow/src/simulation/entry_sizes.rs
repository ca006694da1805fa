//! How large entries are, in tables and in value files.

use super::key_space::Count;
use super::load::{Load, ValueSize};
use super::mass::Written;
use crate::base::expiry::EXPIRY_BYTES;
use crate::policy::{self, TRANSIENT_PARTS};

/// Bytes of a pointer instead of a value.
const POINTER_BYTES: f64 = 10.0;

/// Bytes of a record in a value file besides its value, and its key in a value log.
const RECORD_BYTES: f64 = 8.0;

/// Bytes of an entry in a table besides key and value: word, slot, and its parts of block, index and filter.
const TABLE_ENTRY_BYTES: u64 = 7;

/// Values of one class of the policy.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ValuesOfClass {
    /// Their fraction of all values.
    pub(super) fraction: f64,
    /// Bytes of one on average.
    bytes: f64,
}

impl ValuesOfClass {
    fn add(&mut self, size: ValueSize, all: f64) {
        let fraction = size.fraction / all;
        let bytes = self.fraction * self.bytes + fraction * size.bytes as f64;
        self.fraction += fraction;
        if self.fraction > 0.0 {
            self.bytes = bytes / self.fraction;
        }
    }
}

/// The key and the values of each class of a load.
#[derive(Debug, Clone, Copy)]
pub(super) struct ValueClasses {
    key: f64,
    operand: f64,
    small: ValuesOfClass,
    pub(super) medium: ValuesOfClass,
    pub(super) large: ValuesOfClass,
}

impl ValueClasses {
    pub(super) fn of(load: &Load) -> Self {
        let all = load.values.iter().map(|size| size.fraction).sum();
        let (mut small, mut medium, mut large) = Default::default();
        for size in &load.values {
            let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
            let (key, value) = (bytes(load.key_bytes), bytes(size.bytes));
            let class: &mut ValuesOfClass = match policy::class(key, value, &load.options) {
                policy::Class::Small => &mut small,
                policy::Class::Medium => &mut medium,
                policy::Class::Large => &mut large,
            };
            class.add(*size, all);
        }
        Self {
            key: load.key_bytes as f64,
            operand: load.operand_bytes as f64,
            small,
            medium,
            large,
        }
    }

    /// Bytes of key and value of an entry on average, with a pointer instead of a large value.
    pub(super) fn in_table(&self) -> f64 {
        let (small, medium) = (self.small, self.medium);
        let values = small.fraction * small.bytes + medium.fraction * medium.bytes;
        self.key + values + self.large.fraction * POINTER_BYTES
    }

    /// Bytes of key and operand.
    pub(super) fn operand_in_table(&self) -> f64 {
        self.key + self.operand
    }

    /// Bytes of the two keys of a range delete.
    pub(super) fn range_delete(&self) -> f64 {
        2.0 * self.key
    }

    /// Bytes of these writes but range deletes as tables hold them, before a key supersedes itself.
    pub(super) fn in_tables(&self, written: &Written) -> f64 {
        let (values, operands) = (written.values(), written.operands());
        let tombstones = written.writes() - values - operands;
        let expiry = written.expiring * EXPIRY_BYTES as f64;
        values * (self.in_table() + expiry)
            + operands * self.operand_in_table()
            + tombstones * self.key
    }

    /// Bytes of value logs for a value, on average.
    pub(super) fn in_value_logs(&self) -> f64 {
        self.large.fraction * self.value_log_record()
    }

    /// Bytes of transient logs for a value, on average, if no value is in place.
    pub(super) fn medium_bytes(&self) -> f64 {
        self.medium.fraction * self.transient_log_record()
    }

    /// Bytes of a medium value in a transient log.
    pub(super) fn transient_log_record(&self) -> f64 {
        self.medium.bytes + RECORD_BYTES
    }

    /// Bytes of a large value in a value log.
    pub(super) fn value_log_record(&self) -> f64 {
        self.large.bytes + self.key + RECORD_BYTES
    }
}

/// Bytes of entries in tables.
#[derive(Debug, Clone, Copy)]
pub(super) struct EntrySizes {
    pub(super) value: f64,
    tombstone: f64,
    operand: f64,
    range_tombstone: f64,
    /// Bytes of a moment of expiry.
    expiry: f64,
    /// Bytes that a table saves for a value in a transient log.
    saved_by_transient_log: f64,
    /// Bytes of such a value in the transient log.
    in_transient_log: f64,
    /// The fraction of the values that can be in transient logs.
    medium_fraction: f64,
}

impl EntrySizes {
    /// On disk.
    pub(super) fn of(load: &Load, classes: &ValueClasses) -> Self {
        let filter = if load.filters {
            0.0
        } else {
            load.options.bits_per_key / 8.0
        };
        let overhead = TABLE_ENTRY_BYTES as f64 + filter - load.shared_key_bytes as f64;
        Self {
            value: classes.in_table() + overhead,
            tombstone: classes.key + overhead,
            operand: classes.operand_in_table() + overhead,
            // The list of a segment has its keys again.
            range_tombstone: 2.0 * classes.range_delete() + overhead,
            expiry: EXPIRY_BYTES as f64,
            saved_by_transient_log: classes.medium.bytes - POINTER_BYTES,
            in_transient_log: classes.transient_log_record(),
            medium_fraction: classes.medium.fraction,
        }
    }

    /// As capacities count them. A large value counts as its pointer, because no compaction reads it.
    pub(super) fn logical(classes: &ValueClasses) -> Self {
        Self {
            value: classes.in_table(),
            tombstone: classes.key,
            operand: classes.operand_in_table(),
            range_tombstone: classes.range_delete(),
            expiry: EXPIRY_BYTES as f64,
            saved_by_transient_log: 0.0,
            in_transient_log: 0.0,
            medium_fraction: 0.0,
        }
    }

    pub(super) fn bytes(self, count: Count) -> f64 {
        count.values() * self.value
            + count.tombstones * self.tombstone
            + count.operands * self.operand
            + count.range_tombstones * self.range_tombstone
            + count.expiring * self.expiry
            - self.in_transient_logs(count) * self.saved_by_transient_log
    }

    /// Their [cut bytes](policy::cut_bytes).
    pub(super) fn cut_bytes(self, count: Count) -> f64 {
        self.merged_cut_bytes(count, false)
    }

    /// The cut bytes that a compaction of them writes, which puts values in transient logs in place or leaves them
    /// there.
    pub(super) fn merged_cut_bytes(self, count: Count, is_in_place: bool) -> f64 {
        let parts = if is_in_place { 1 } else { TRANSIENT_PARTS };
        self.bytes(count) + self.in_transient_logs(count) * self.in_transient_log / parts as f64
    }

    /// The entries whose values are in transient logs. References count as lying evenly between the ends of their log,
    /// so in one place they can exceed the values there.
    fn in_transient_logs(self, count: Count) -> f64 {
        let medium = count.values() * self.medium_fraction;
        count.in_transient_logs.min(medium)
    }
}
