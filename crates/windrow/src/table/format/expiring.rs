//! What is known of the entries of a segment, or of several, that expire.
//!
//! See "Properties block" in `docs/format.md`. Manifest and properties have the same bytes.

use crate::base::Moment;
use crate::base::expiry::{MOMENT_MAX, is_expired, split_expiring};
use crate::base::{Kind, Trailer};
use crate::codec::Reader;
use crate::codec::reader::DecodeError;
use crate::codec::varint::put_varint;
use crate::value::ValuePointer;

/// The entries that expire; at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Expiring {
    pub(crate) entries: u64,
    /// Bytes of their keys, of what they store, and of the records that they refer to.
    pub(crate) bytes: u64,
    /// When the first one expires, and when the last one does.
    pub(crate) earliest: Moment,
    pub(crate) latest: Moment,
}

impl Expiring {
    /// One entry.
    pub(crate) fn one(key: &[u8], trailer: Trailer, stored: &[u8]) -> Result<Self, DecodeError> {
        let (expiry, value) = split_expiring(stored);
        let mut bytes = (key.len() + stored.len()) as u64;
        if trailer.kind() != Kind::ExpiringValue {
            bytes = bytes.saturating_add(ValuePointer::decode(value)?.record_bytes);
        }
        Ok(Self {
            entries: 1,
            bytes,
            earliest: expiry,
            latest: expiry,
        })
    }

    /// Both together.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            entries: self.entries.saturating_add(other.entries),
            bytes: self.bytes.saturating_add(other.bytes),
            earliest: self.earliest.min(other.earliest),
            latest: self.latest.max(other.latest),
        }
    }

    /// Whether all of them are expired at `now`.
    pub(crate) fn are_expired(&self, now: Moment) -> bool {
        is_expired(self.latest, now)
    }

    /// About how many of their bytes belong to entries that are expired at `now`: none before the first one, all after the
    /// last one, and in between as if they expired at a constant rate.
    pub(crate) fn expired_bytes(&self, now: Moment) -> u64 {
        if self.are_expired(now) {
            return self.bytes;
        }
        let passed = u128::from(now.saturating_sub(self.earliest));
        let whole = u128::from(self.latest.saturating_sub(self.earliest)).max(1);
        let expired = u128::from(self.bytes) * passed / whole;
        u64::try_from(expired).unwrap_or(u64::MAX)
    }

    pub(crate) fn encode(&self, output: &mut Vec<u8>) {
        put_varint(output, self.entries);
        put_varint(output, self.bytes);
        put_varint(output, self.earliest);
        put_varint(output, self.latest - self.earliest);
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let start = reader.clone();
        let entries = reader.varint("count of entries that expire")?;
        let bytes = reader.varint("bytes of entries that expire")?;
        let earliest = reader.varint_at_most(MOMENT_MAX, "first expiry")?;
        let between = reader.varint_at_most(MOMENT_MAX - earliest, "last expiry")?;
        if entries == 0 {
            return Err(start.error("a description of entries that expire without any"));
        }
        Ok(Self {
            entries,
            bytes,
            earliest,
            latest: earliest + between,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::expiry::put_expiring;
    use proptest::prelude::*;

    fn sample(bytes: u64, earliest: Moment, latest: Moment) -> Expiring {
        Expiring {
            entries: 3,
            bytes,
            earliest,
            latest,
        }
    }

    #[test]
    fn expired_bytes_grow_from_the_first_expiry_to_the_last() {
        let entries = sample(1000, 100, 200);
        for (now, expired) in [
            (0, 0),
            (99, 0),
            (100, 0),
            (150, 500),
            (199, 990),
            (200, 1000),
            (u64::MAX, 1000),
        ] {
            assert_eq!(entries.expired_bytes(now), expired, "{now}");
            assert_eq!(entries.are_expired(now), now >= 200);
        }
        let at_once = sample(7, 5, 5);
        assert_eq!((at_once.expired_bytes(4), at_once.expired_bytes(5)), (0, 7));
    }

    #[test]
    fn entries_add_up() {
        let one = |key: &[u8], expiry| {
            let mut stored = Vec::new();
            put_expiring(&mut stored, expiry, b"value");
            Expiring::one(key, Trailer::new(1, Kind::ExpiringValue), &stored).unwrap()
        };
        let all = one(b"a", 30).and(one(b"bc", 10)).and(one(b"d", 20));
        assert_eq!(all, sample(4 + 3 * 11, 10, 30));
    }

    proptest! {
        #[test]
        fn a_description_round_trips(
            (entries, bytes) in (1..u64::MAX, any::<u64>()),
            (earliest, between) in (0..=MOMENT_MAX, any::<u64>()),
        ) {
            let latest = earliest + between % (MOMENT_MAX - earliest + 1);
            let described = Expiring { entries, bytes, earliest, latest };
            let mut encoded = Vec::new();
            described.encode(&mut encoded);
            let mut reader = Reader::new(&encoded);
            prop_assert_eq!(Expiring::read(&mut reader).unwrap(), described);
            prop_assert!(reader.is_empty());
        }

        #[test]
        fn expired_bytes_never_fall(
            (bytes, earliest, between) in (any::<u64>(), 0..1_u64 << 40, 0..1_u64 << 40),
            (now, later) in (0..1_u64 << 41, 0..1_u64 << 41),
        ) {
            let described = sample(bytes, earliest, earliest + between);
            let (now, later) = (now.min(later), now.max(later));
            prop_assert!(described.expired_bytes(now) <= described.expired_bytes(later));
            prop_assert!(described.expired_bytes(later) <= bytes);
        }
    }
}
