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
    /// When a byte of them expires on average.
    pub(crate) mean: Moment,
}

/// Adds entries up that expire.
#[derive(Debug, Default)]
pub(crate) struct ExpiringTally {
    entries: u64,
    bytes: u64,
    earliest: Moment,
    latest: Moment,
    /// The sum over all bytes of their expiry. A mean would be rounded with each entry.
    moments: u128,
}

impl ExpiringTally {
    /// Adds an entry.
    ///
    /// # Errors
    /// If its pointer is malformed.
    pub(crate) fn add(
        &mut self,
        key: &[u8],
        trailer: Trailer,
        stored: &[u8],
    ) -> Result<(), DecodeError> {
        let (expiry, value) = split_expiring(stored);
        let mut bytes = (key.len() + stored.len()) as u64;
        if trailer.kind() != Kind::ExpiringValue {
            bytes = bytes.saturating_add(ValuePointer::decode(value)?.record_bytes);
        }
        self.earliest = match self.entries {
            0 => expiry,
            _ => self.earliest.min(expiry),
        };
        self.latest = self.latest.max(expiry);
        self.entries += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        let moments = u128::from(bytes) * u128::from(expiry);
        self.moments = self.moments.saturating_add(moments);
        Ok(())
    }

    /// What is known of them, if there are any.
    pub(crate) fn finish(&self) -> Option<Box<Expiring>> {
        let mean = self.moments / u128::from(self.bytes.max(1));
        let mean = Moment::try_from(mean).unwrap_or(MOMENT_MAX);
        (self.entries > 0).then(|| {
            Box::new(Expiring {
                entries: self.entries,
                bytes: self.bytes,
                earliest: self.earliest,
                latest: self.latest,
                mean: mean.clamp(self.earliest, self.latest),
            })
        })
    }
}

/// `bytes * part / whole`, for a part of a whole; all for a whole of nothing.
fn share(bytes: u64, part: u64, whole: u64) -> u64 {
    let share = u128::from(bytes) * u128::from(part) / u128::from(whole.max(1));
    u64::try_from(share).map_or(bytes, |share| share.min(bytes))
}

impl Expiring {
    /// Both together.
    pub(crate) fn and(self, other: Self) -> Self {
        let moments = |it: &Self| u128::from(it.bytes) * u128::from(it.mean);
        let bytes = u128::from(self.bytes) + u128::from(other.bytes);
        let mean = (moments(&self) + moments(&other)) / bytes.max(1);
        let (earliest, latest) = (
            self.earliest.min(other.earliest),
            self.latest.max(other.latest),
        );
        let mean = Moment::try_from(mean).unwrap_or(latest);
        Self {
            entries: self.entries.saturating_add(other.entries),
            bytes: self.bytes.saturating_add(other.bytes),
            earliest,
            latest,
            mean: mean.clamp(earliest, latest),
        }
    }

    /// The same entries, if they take `bytes`.
    pub(crate) fn of_bytes(self, bytes: u64) -> Self {
        Self { bytes, ..self }
    }

    /// How many bytes are estimated to have expired at the mean. With so many, and a constant rate before and after it, the
    /// mean is what it is.
    pub(crate) fn bytes_at_mean(&self) -> u64 {
        let whole = self.latest - self.earliest;
        share(self.bytes, self.latest - self.mean, whole)
    }

    /// Whether all of them are expired at `now`.
    pub(crate) fn are_expired(&self, now: Moment) -> bool {
        is_expired(self.latest, now)
    }

    /// About how many of their bytes belong to entries that are expired at `now`: none before the first one, all after the
    /// last one, and in between as if they expired at one rate up to the mean, and at another one after it.
    pub(crate) fn expired_bytes(&self, now: Moment) -> u64 {
        if self.are_expired(now) {
            return self.bytes;
        }
        let at_mean = self.bytes_at_mean();
        if now < self.mean {
            let passed = now.saturating_sub(self.earliest);
            return share(at_mean, passed, self.mean - self.earliest);
        }
        let rest = self.bytes - at_mean;
        at_mean + share(rest, now - self.mean, self.latest - self.mean)
    }

    pub(crate) fn encode(&self, output: &mut Vec<u8>) {
        put_varint(output, self.entries);
        put_varint(output, self.bytes);
        put_varint(output, self.earliest);
        put_varint(output, self.latest - self.earliest);
        put_varint(output, self.mean - self.earliest);
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let start = reader.clone();
        let entries = reader.varint("count of entries that expire")?;
        let bytes = reader.varint("bytes of entries that expire")?;
        let earliest = reader.varint_at_most(MOMENT_MAX, "first expiry")?;
        let between = reader.varint_at_most(MOMENT_MAX - earliest, "last expiry")?;
        let to_mean = reader.varint_at_most(between, "mean expiry")?;
        if entries == 0 {
            return Err(start.error("a description of entries that expire without any"));
        }
        Ok(Self {
            entries,
            bytes,
            earliest,
            latest: earliest + between,
            mean: earliest + to_mean,
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
            mean: earliest + (latest - earliest) / 2,
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
        // Few entries before the end, or after the begin.
        for (mean, now, expired) in [
            (190, 150, 55),
            (190, 190, 100),
            (190, 195, 550),
            (110, 105, 450),
            (110, 110, 900),
            (200, 199, 0),
            (100, 101, 1000),
        ] {
            let entries = Expiring { mean, ..entries };
            assert_eq!(entries.expired_bytes(now), expired, "{mean} {now}");
        }
        let at_once = sample(7, 5, 5);
        assert_eq!((at_once.expired_bytes(4), at_once.expired_bytes(5)), (0, 7));
    }

    #[test]
    fn entries_add_up() {
        let tally = |entries: &[(&[u8], Moment)]| {
            let mut tally = ExpiringTally::default();
            for (key, expiry) in entries {
                let mut stored = Vec::new();
                put_expiring(&mut stored, *expiry, b"value");
                let trailer = Trailer::new(1, Kind::ExpiringValue);
                tally.add(key, trailer, &stored).unwrap();
            }
            *tally.finish().unwrap()
        };
        let all = tally(&[(b"a", 30), (b"bc", 10), (b"d", 20)]);
        let mean = (12 * 30 + 13 * 10 + 12 * 20) / 37;
        let expected = Expiring {
            mean,
            ..sample(4 + 3 * 11, 10, 30)
        };
        assert_eq!(all, expected);
        let parts = tally(&[(b"a", 30)]).and(tally(&[(b"bc", 10), (b"d", 20)]));
        assert_eq!((parts.earliest, parts.latest), (10, 30));
        assert!(parts.mean.abs_diff(mean) <= 1, "{}", parts.mean);
        assert!(ExpiringTally::default().finish().is_none());
    }

    proptest! {
        #[test]
        fn a_description_round_trips(
            (entries, bytes) in (1..u64::MAX, any::<u64>()),
            (earliest, between, to_mean) in (0..=MOMENT_MAX, any::<u64>(), any::<u64>()),
        ) {
            let latest = earliest + between % (MOMENT_MAX - earliest + 1);
            let mean = earliest + to_mean % (latest - earliest + 1);
            let described = Expiring { entries, bytes, earliest, latest, mean };
            let mut encoded = Vec::new();
            described.encode(&mut encoded);
            let mut reader = Reader::new(&encoded);
            prop_assert_eq!(Expiring::read(&mut reader).unwrap(), described);
            prop_assert!(reader.is_empty());
        }

        #[test]
        fn expired_bytes_never_fall(
            (bytes, earliest, between) in (any::<u64>(), 0..1_u64 << 40, 0..1_u64 << 40),
            (to_mean, now, later) in (any::<u64>(), 0..1_u64 << 41, 0..1_u64 << 41),
        ) {
            let mean = earliest + to_mean % (between + 1);
            let described = Expiring { mean, ..sample(bytes, earliest, earliest + between) };
            let (now, later) = (now.min(later), now.max(later));
            prop_assert!(described.expired_bytes(now) <= described.expired_bytes(later));
            prop_assert!(described.expired_bytes(later) <= bytes);
        }
    }
}
