//! Sequence numbers, entry kinds, and the order of versions.
//!
//! Every stored entry is (user key, sequence number, kind). Entries are ordered by user key,
//! bytewise ascending, then by sequence number *descending*: the newest version comes first.

use std::cmp::Ordering;

use super::limits::KEY_BYTES_MAX;

/// The position of a write in the one commit order of a database. 56 bits are used.
pub type SequenceNumber = u64;

/// The largest sequence number; a read at it sees everything.
pub(crate) const SEQUENCE_MAX: SequenceNumber = (1 << 56) - 1;

/// The largest number of an entry in a database that is opened for writing, or repaired. No real one comes near, and new writes
/// need numbers above all that are in use.
pub(crate) const NUMBER_MAX: SequenceNumber = SEQUENCE_MAX - (1 << 40);

/// The sequence number in a table of an entry that an ingestion adds. All entries of its segment have the number that
/// the manifest records. No other entry has this number: the first one of a database is 1.
pub(crate) const UNNUMBERED: SequenceNumber = 0;

/// What an entry is. The values are the codes on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// The key was deleted.
    Tombstone = 0,
    /// The value is beside the key.
    Value = 1,
    /// The value is in a transient log, and a pointer to it beside the key.
    TransientPointer = 2,
    /// The value is in a value log, and a pointer to it beside the key.
    ValueLogPointer = 3,
    /// An operand, which the merge operator of the keyspace folds into the older versions of the key.
    Operand = 4,
    /// All keys from this one to before the end, which stands where the value would be, were deleted.
    RangeTombstone = 5,
    /// A [value](Self::Value) that expires. What the entry stores begins with its expiry, as with the
    /// other kinds that expire.
    ExpiringValue = 9,
    /// A [pointer into a transient log](Self::TransientPointer) that expires.
    ExpiringTransientPointer = 10,
    /// A [pointer into a value log](Self::ValueLogPointer) that expires.
    ExpiringValueLogPointer = 11,
}

/// Added to the code of a kind that does not expire.
const EXPIRES: u8 = 8;

/// The codes of kinds are below this one: a table has four bits for them.
const KIND_CODES: u8 = 16;

impl Kind {
    /// The kind with this code on disk; `None` if the code is unknown.
    pub fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::Tombstone),
            1 => Some(Self::Value),
            2 => Some(Self::TransientPointer),
            3 => Some(Self::ValueLogPointer),
            4 => Some(Self::Operand),
            5 => Some(Self::RangeTombstone),
            9 => Some(Self::ExpiringValue),
            10 => Some(Self::ExpiringTransientPointer),
            11 => Some(Self::ExpiringValueLogPointer),
            _ => None,
        }
    }

    /// Whether a later version of the format may give this code a meaning. What passed a checksum and has such a code is
    /// newer, not damaged.
    pub(crate) fn is_reserved(code: u8) -> bool {
        code < KIND_CODES && Self::from_code(code).is_none()
    }

    /// Whether entries of this kind expire.
    pub(crate) fn is_expiring(self) -> bool {
        self.code() & EXPIRES != 0
    }

    /// The same kind, of an entry that never expires.
    pub(crate) fn lasting(self) -> Self {
        match self {
            Self::ExpiringValue => Self::Value,
            Self::ExpiringTransientPointer => Self::TransientPointer,
            Self::ExpiringValueLogPointer => Self::ValueLogPointer,
            lasting => lasting,
        }
    }

    /// The same kind, of an entry that expires. Only values and pointers do.
    pub(crate) fn expiring(self) -> Self {
        match self {
            Self::Value | Self::ExpiringValue => Self::ExpiringValue,
            Self::TransientPointer | Self::ExpiringTransientPointer => {
                Self::ExpiringTransientPointer
            }
            Self::ValueLogPointer | Self::ExpiringValueLogPointer => Self::ExpiringValueLogPointer,
            Self::Tombstone | Self::Operand | Self::RangeTombstone => {
                unreachable!("only values and pointers expire")
            }
        }
    }

    /// The code on disk.
    pub fn code(self) -> u8 {
        self as u8
    }
}

/// A sequence number and a kind in one word: `sequence << 8 | kind`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Trailer(u64);

impl Trailer {
    /// Packs `sequence` (at most [`SEQUENCE_MAX`]) and `kind`.
    #[inline]
    pub(crate) fn new(sequence: SequenceNumber, kind: Kind) -> Self {
        debug_assert!(sequence <= SEQUENCE_MAX);
        Self(sequence << 8 | u64::from(kind.code()))
    }

    /// Both as one word.
    #[inline]
    pub(crate) fn word(self) -> u64 {
        self.0
    }

    /// The inverse of [`word`](Self::word).
    #[inline]
    pub(crate) fn from_word(word: u64) -> Self {
        Self(word)
    }

    /// The sequence number.
    #[inline]
    pub(crate) fn sequence(self) -> SequenceNumber {
        self.0 >> 8
    }

    /// The sequence number before; `None` of [`UNNUMBERED`]. A forged file may have that number where the engine writes
    /// none.
    #[inline]
    pub(crate) fn sequence_before(self) -> Option<SequenceNumber> {
        self.sequence().checked_sub(1)
    }

    /// The kind.
    #[inline]
    pub(crate) fn kind(self) -> Kind {
        match self.code() {
            0 => Kind::Tombstone,
            2 => Kind::TransientPointer,
            3 => Kind::ValueLogPointer,
            4 => Kind::Operand,
            5 => Kind::RangeTombstone,
            9 => Kind::ExpiringValue,
            10 => Kind::ExpiringTransientPointer,
            11 => Kind::ExpiringValueLogPointer,
            _ => Kind::Value,
        }
    }

    #[inline]
    fn code(self) -> u8 {
        self.0.to_le_bytes()[0]
    }

    /// The same trailer, of an entry that never expires.
    pub(crate) fn lasting(self) -> Self {
        self.with_kind(self.kind().lasting())
    }

    /// The same sequence number with another kind.
    #[inline]
    pub(crate) fn with_kind(self, kind: Kind) -> Self {
        Self::new(self.sequence(), kind)
    }

    /// Whether this entry deletes its key, alone or in a range.
    #[inline]
    pub(crate) fn is_tombstone(self) -> bool {
        self.code() == 0 || self.is_range_tombstone()
    }

    /// Whether this entry deletes a range of keys.
    #[inline]
    pub(crate) fn is_range_tombstone(self) -> bool {
        self.code() == Kind::RangeTombstone as u8
    }

    /// Whether this entry expires.
    #[inline]
    pub(crate) fn is_expiring(self) -> bool {
        self.code() & EXPIRES != 0
    }

    /// Whether a pointer stands where the value would be, and the entry does not expire.
    #[inline]
    pub(crate) fn is_pointer(self) -> bool {
        self.code() >> 1 == 1
    }

    /// Whether this entry is an operand.
    #[inline]
    pub(crate) fn is_operand(self) -> bool {
        self.code() == Kind::Operand as u8
    }

    /// Whether the value stands beside the key, and the entry does not expire.
    #[inline]
    pub(crate) fn is_value(self) -> bool {
        self.code() == Kind::Value as u8
    }
}

/// Orders two user keys bytewise, eight bytes at a time: keys are short, and a call to compare them
/// costs more than the comparison.
#[inline]
pub(crate) fn compare_keys(mut left: &[u8], mut right: &[u8]) -> Ordering {
    while let (Some((left_head, left_rest)), Some((right_head, right_rest))) = (
        left.split_first_chunk::<8>(),
        right.split_first_chunk::<8>(),
    ) {
        if left_head != right_head {
            return u64::from_be_bytes(*left_head).cmp(&u64::from_be_bytes(*right_head));
        }
        (left, right) = (left_rest, right_rest);
    }
    if left.is_empty() || right.is_empty() {
        return left.len().cmp(&right.len());
    }
    left.cmp(right)
}

/// How many bytes at the front two keys share.
pub(crate) fn shared_bytes(left: &[u8], right: &[u8]) -> usize {
    left.iter()
        .zip(right)
        .take_while(|(left, right)| left == right)
        .count()
}

/// The first key after `key`; `None` if there is none.
pub(crate) fn next_key(key: &[u8]) -> Option<Vec<u8>> {
    let mut next = Vec::with_capacity(key.len() + 1);
    put_next_key(key, &mut next).then_some(next)
}

/// Replaces `next` by the [next key](next_key); returns whether there is one.
pub(crate) fn put_next_key(key: &[u8], next: &mut Vec<u8>) -> bool {
    next.clear();
    next.extend_from_slice(key);
    if key.len() < KEY_BYTES_MAX {
        next.push(0);
        return true;
    }
    let Some(last) = key.iter().rposition(|&byte| byte < u8::MAX) else {
        return false;
    };
    next.truncate(last + 1);
    next[last] += 1;
    true
}

/// Orders two entries: user key ascending, then sequence number descending.
#[inline]
pub(crate) fn compare_entries(
    left_key: &[u8],
    left_sequence: SequenceNumber,
    right_key: &[u8],
    right_sequence: SequenceNumber,
) -> Ordering {
    compare_keys(left_key, right_key).then_with(|| right_sequence.cmp(&left_sequence))
}

#[cfg(test)]
mod tests {
    use super::{KEY_BYTES_MAX, Kind, Trailer, compare_keys, next_key};
    use proptest::prelude::*;

    #[test]
    fn a_kind_that_expires_is_eight_more() {
        for code in 0..=u8::MAX {
            let Some(kind) = Kind::from_code(code) else {
                continue;
            };
            assert_eq!(kind.code(), code);
            let trailer = Trailer::new(7, kind);
            assert_eq!((trailer.kind(), trailer.sequence()), (kind, 7));
            assert_eq!(trailer.is_expiring(), code >= 8);
            let is_plain = matches!(
                kind,
                Kind::Value | Kind::TransientPointer | Kind::ValueLogPointer
            );
            if is_plain {
                assert_eq!(kind.expiring().code(), code + 8);
                assert_eq!(kind.expiring().lasting(), kind);
            }
            assert_eq!(trailer.is_value() || trailer.is_pointer(), is_plain);
        }
    }

    #[test]
    fn no_key_is_between_a_key_and_the_next_one() {
        assert_eq!(next_key(b"ab"), Some(b"ab\0".to_vec()));
        let mut longest = vec![u8::MAX; KEY_BYTES_MAX];
        assert_eq!(next_key(&longest), None);
        longest[1] = 7;
        assert_eq!(next_key(&longest), Some(vec![u8::MAX, 8]));
        *longest.last_mut().unwrap() = 3;
        let next = next_key(&longest).unwrap();
        assert_eq!((next.len(), next.last()), (KEY_BYTES_MAX, Some(&4)));
    }

    proptest! {
        #[test]
        fn keys_are_ordered_bytewise(
            common in proptest::collection::vec(any::<u8>(), 0..20),
            left in proptest::collection::vec(any::<u8>(), 0..12),
            right in proptest::collection::vec(any::<u8>(), 0..12),
        ) {
            let (left, right) = ([common.clone(), left].concat(), [common, right].concat());
            prop_assert_eq!(compare_keys(&left, &right), left.cmp(&right));
        }
    }
}
