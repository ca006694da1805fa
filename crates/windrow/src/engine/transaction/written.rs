//! What a transaction has written to one key: a value, a removal, or operands upon either or upon what the key has
//! otherwise.
//!
//! Operands are kept as they are. Whoever reads the key folds them; the commit writes them.
//!
//! Concurrency: owned by one thread.

use crate::base::expiry::split_expiring;
use crate::base::{Kind, Moment};
use crate::engine::Stored;
use crate::merge_operator::Chain;

/// The most bytes of an encoded entry beside its key and value.
pub(super) const ENTRY_BYTES_MAX: usize = 32;

/// What stands below the operands.
#[derive(Debug, Default)]
pub(super) enum Base {
    /// What the key has without the transaction.
    #[default]
    Unwritten,
    Removed,
    Value(WrittenValue),
}

/// A value that the transaction has written. The transaction sees it until its end, whenever it expires.
#[derive(Debug)]
pub(super) struct WrittenValue {
    pub(super) value: Vec<u8>,
    /// When it expires, if ever.
    pub(super) expiry: Option<Moment>,
}

/// The writes to a key: the last value or removal, and the operands that came after it.
#[derive(Debug, Default)]
pub(super) struct Written {
    pub(super) base: Base,
    pub(super) operands: Chain,
}

/// What the own writes say of a key.
#[derive(Debug, Clone, Copy)]
pub(super) enum Own<'a> {
    /// It has this value, or none.
    Decided(Option<&'a WrittenValue>),
    /// These operands are folded on a base that the transaction has written, or on what the key has otherwise.
    Operands(Below<'a>, &'a Chain),
}

impl Own<'_> {
    /// Whether nothing that the key has otherwise matters.
    pub(super) fn is_whole(self) -> bool {
        !matches!(self, Self::Operands(Below::Unwritten, _))
    }
}

/// What own operands are folded on.
#[derive(Debug, Clone, Copy)]
pub(super) enum Below<'a> {
    Written(Option<&'a [u8]>),
    /// What the key has without the transaction.
    Unwritten,
}

impl Base {
    /// What a write makes of its key that stores this.
    pub(super) fn of(stored: Stored<'_>) -> Self {
        let (expiry, value) = match stored.kind {
            Kind::Tombstone => return Self::Removed,
            Kind::ExpiringValue => {
                let (expiry, value) = split_expiring(&stored.bytes);
                (Some(expiry), value.to_vec())
            }
            _ => (None, stored.bytes.into_owned()),
        };
        Self::Value(WrittenValue { value, expiry })
    }
}

impl Written {
    pub(super) fn new(base: Base) -> Self {
        let operands = Chain::new(false);
        Self { base, operands }
    }

    /// What it says of its key, which is in a range that the transaction deleted before, or not.
    pub(super) fn own(&self, is_deleted: bool) -> Own<'_> {
        let written = match &self.base {
            Base::Unwritten if !is_deleted => {
                return Own::Operands(Below::Unwritten, &self.operands);
            }
            Base::Unwritten | Base::Removed => None,
            Base::Value(written) => Some(written),
        };
        if self.operands.len() == 0 {
            return Own::Decided(written);
        }
        let value = written.map(|it| &it.value[..]);
        Own::Operands(Below::Written(value), &self.operands)
    }

    /// Whether it replaces what the key has otherwise.
    pub(super) fn replaces(&self) -> bool {
        !matches!(self.base, Base::Unwritten)
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.replaces() && self.operands.len() == 0
    }

    /// The bytes of its values.
    fn value_bytes(&self) -> usize {
        let base = match &self.base {
            Base::Value(written) => written.value.len(),
            Base::Unwritten | Base::Removed => 0,
        };
        base + self.operands.bytes()
    }

    /// About the bytes of its values in memory.
    pub(super) fn memory_bytes(&self) -> usize {
        self.value_bytes() + self.operands.len() * size_of::<usize>()
    }

    /// The most bytes of its encoded entries, of a key of this length.
    pub(super) fn entries_bytes(&self, key_bytes: usize) -> usize {
        let count = usize::from(self.replaces()) + self.operands.len();
        count * (ENTRY_BYTES_MAX + key_bytes) + self.value_bytes()
    }
}
