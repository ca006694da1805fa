//! The newest visible versions of a key that begin with an operand: a chain of operands, and the entry below it.
//!
//! Concurrency: owned by one thread.

use super::value_reader::ValueReader;
use crate::base::{Error, ErrorKind, Kind, Result, Trailer};
use crate::merge_operator::{Chain, KeyspaceOperator};

/// The entry below the operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Base {
    /// A tombstone, or no entry.
    #[default]
    None,
    /// A value, in `base_bytes`.
    Value,
    /// A pointer, in `base_bytes`.
    Pointer,
    /// What an entry that expires stores, in `base_bytes`. A keyspace has such entries and operands only after the commit
    /// of a transaction that was prepared without its merge operator. They are not folded, not even once the entry has
    /// expired, until a compaction has dropped it.
    Expiring,
}

/// Operands and their base, not folded yet. A reader passes the versions of one key to it, in either order.
#[derive(Debug, Default)]
pub(crate) struct Unfolded {
    chain: Chain,
    base: Base,
    base_bytes: Vec<u8>,
}

impl Unfolded {
    /// Without operands, for versions that come newest first or oldest first.
    pub(crate) fn new(is_newest_first: bool) -> Self {
        Self {
            chain: Chain::new(is_newest_first),
            ..Self::default()
        }
    }

    /// Forgets all versions.
    pub(crate) fn restart(&mut self, is_newest_first: bool) {
        self.chain.restart(is_newest_first);
        self.set_base(Kind::Tombstone, &[]);
    }

    /// The operands.
    pub(crate) fn chain(&self) -> &Chain {
        &self.chain
    }

    /// The bytes of memory.
    #[inline]
    pub(crate) fn capacity(&self) -> usize {
        self.chain.capacity() + self.base_bytes.capacity()
    }

    /// What the entry below the operands stores; empty without one.
    pub(crate) fn base_bytes(&self) -> &[u8] {
        &self.base_bytes
    }

    /// Adds an operand.
    pub(crate) fn push(&mut self, operand: &[u8]) {
        self.chain.push(operand);
    }

    /// Sets the entry below the operands.
    pub(crate) fn set_base(&mut self, kind: Kind, value: &[u8]) {
        self.base = match kind {
            Kind::Tombstone | Kind::RangeTombstone => Base::None,
            Kind::Value => Base::Value,
            Kind::TransientPointer | Kind::ValueLogPointer => Base::Pointer,
            Kind::ExpiringValue
            | Kind::ExpiringTransientPointer
            | Kind::ExpiringValueLogPointer => Base::Expiring,
            Kind::Operand => unreachable!("operands belong to the chain"),
        };
        self.base_bytes.clear();
        if self.base != Base::None {
            self.base_bytes.extend_from_slice(value);
        }
    }

    /// Adds the next version of a reader that meets the newest first. Returns whether older ones count, too.
    pub(crate) fn add_older(&mut self, trailer: Trailer, value: &[u8]) -> bool {
        if trailer.is_operand() {
            self.push(value);
        } else {
            self.set_base(trailer.kind(), value);
        }
        trailer.is_operand()
    }

    /// Replaces the content of `value` by that of `key`.
    ///
    /// # Errors
    /// `Merge`, and those of reading a separated base.
    pub(crate) fn fold_into(
        &self,
        key: &[u8],
        operator: &KeyspaceOperator,
        values: ValueReader<'_>,
        value: &mut Vec<u8>,
    ) -> Result<()> {
        operator.check_there()?;
        let read;
        let base = match self.base {
            Base::None => None,
            Base::Value => Some(&self.base_bytes[..]),
            Base::Pointer => {
                read = values.read(key, &self.base_bytes)?;
                Some(&read[..])
            }
            Base::Expiring => {
                let what = "an operand follows an entry that expires, and cannot be folded";
                return Err(Error::new(ErrorKind::Merge, what));
            }
        };
        operator.full_merge(key, base, &self.chain, value)
    }
}
