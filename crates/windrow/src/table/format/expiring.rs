//! What is known of the entries of a segment that expire.
//!
//! See "Properties block" in `docs/format.md`. Manifest and properties have the same bytes.

use crate::base::Moment;
use crate::base::expiry::{MOMENT_MAX, is_expired, split_expiring};
use crate::base::{Kind, Trailer};
use crate::codec::Reader;
use crate::codec::reader::DecodeError;
use crate::codec::varint::put_varint;
use crate::value::ValuePointer;

use super::expiry_sketch::ExpirySketch;

/// The entries that expire; at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Expiring {
    pub(crate) entries: u64,
    /// Bytes of their keys, of what they store, and of the records that they refer to.
    pub(crate) bytes: u64,
    /// Ascending: the first expiry, and by when each further eighth of the bytes has expired. All but the first one and
    /// the last one are estimates.
    pub(crate) moments: [Moment; Expiring::PARTS + 1],
}

/// Adds entries up that expire.
#[derive(Debug, Default)]
pub(crate) struct ExpiringTally {
    entries: u64,
    bytes: u64,
    earliest: Moment,
    latest: Moment,
    sketch: ExpirySketch,
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
        self.sketch.add(expiry, bytes);
        Ok(())
    }

    /// What is known of them, if there are any.
    pub(crate) fn finish(&self) -> Option<Box<Expiring>> {
        (self.entries > 0).then(|| {
            let mut moments = [self.earliest; Expiring::PARTS + 1];
            let between = self.sketch.quantiles::<{ Expiring::PARTS - 1 }>();
            moments[1..Expiring::PARTS].copy_from_slice(&between);
            moments[Expiring::PARTS] = self.latest;
            Box::new(Expiring {
                entries: self.entries,
                bytes: self.bytes,
                moments,
            })
        })
    }
}

impl Expiring {
    /// The parts of equal bytes by which the moments divide them.
    pub(crate) const PARTS: usize = 8;

    /// When the first one expires.
    pub(crate) fn earliest(&self) -> Moment {
        self.moments[0]
    }

    /// When the last one does.
    pub(crate) fn latest(&self) -> Moment {
        self.moments[Self::PARTS]
    }

    /// Whether both describe the same entries. Their estimates may differ.
    pub(crate) fn agrees_with(&self, other: &Self) -> bool {
        let exact = |it: &Self| (it.entries, it.bytes, it.earliest(), it.latest());
        exact(self) == exact(other)
    }

    /// About how many of their bytes belong to entries that are expired at `now`: as if each eighth expired at one rate. If
    /// the moments are right, less than an eighth of the bytes is wrong.
    pub(crate) fn expired_bytes(&self, now: Moment) -> u64 {
        let reached = self.moments.partition_point(|it| is_expired(*it, now));
        let Some((from, to)) = self.ends_of_part(reached) else {
            return if reached == 0 { 0 } else { self.bytes };
        };
        // Below 2^64 * 8 * 2^48.
        let whole = u128::from(to - from);
        let passed = (reached as u128 - 1) * whole + u128::from(now - from);
        let expired = u128::from(self.bytes) * passed / (whole * Self::PARTS as u128);
        u64::try_from(expired).unwrap_or(self.bytes)
    }

    /// The ends of the part in which a moment is that comes with `reached` of the moments or after.
    fn ends_of_part(&self, reached: usize) -> Option<(Moment, Moment)> {
        let from = self.moments.get(reached.checked_sub(1)?)?;
        Some((*from, *self.moments.get(reached)?))
    }

    /// The first moment and the last one of each part.
    pub(super) fn parts(&self) -> impl Iterator<Item = (Moment, Moment)> {
        let ends = self.moments.windows(2);
        ends.map(|ends| (ends[0], ends[1]))
    }

    pub(crate) fn encode(&self, output: &mut Vec<u8>) {
        put_varint(output, self.entries);
        put_varint(output, self.bytes);
        put_varint(output, self.earliest());
        for (from, to) in self.parts() {
            put_varint(output, to - from);
        }
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let start = reader.clone();
        let entries = reader.varint("count of entries that expire")?;
        let bytes = reader.varint("bytes of entries that expire")?;
        let earliest = reader.varint_at_most(MOMENT_MAX, "first expiry")?;
        let mut moments = [earliest; Self::PARTS + 1];
        let mut last = earliest;
        for moment in &mut moments[1..] {
            last += reader.varint_at_most(MOMENT_MAX - last, "expiry of a part")?;
            *moment = last;
        }
        if entries == 0 {
            return Err(start.error("a description of entries that expire without any"));
        }
        Ok(Self {
            entries,
            bytes,
            moments,
        })
    }
}

#[cfg(test)]
mod tests;
