//! What is known of the entries of a table file that expire: the sum over its segments.
//!
//! Estimates of expired bytes are a part of the bytes on disk that the file holds, values in value files included: the
//! part that their entries have of its logical bytes.

use crate::base::Moment;
use crate::base::expiry::is_expired;

use super::expiring::Expiring;
use super::meta::FileMeta;

impl FileMeta {
    fn expiring(&self) -> impl Iterator<Item = &Expiring> {
        self.segments.iter().filter_map(|it| it.expiring.as_deref())
    }

    /// The entries that expire, every version counted.
    pub(crate) fn expiring_entries(&self) -> u64 {
        let entries = self.expiring().map(|it| it.entries);
        entries.fold(0, u64::saturating_add)
    }

    /// Their logical bytes, and those of the records that they refer to.
    pub(crate) fn expiring_bytes(&self) -> u64 {
        let bytes = self.expiring().map(|it| it.bytes);
        bytes.fold(0, u64::saturating_add)
    }

    /// When the first one expires.
    pub(crate) fn first_expiry(&self) -> Option<Moment> {
        self.expiring().map(Expiring::earliest).min()
    }

    /// When the last one does.
    pub(crate) fn last_expiry(&self) -> Option<Moment> {
        self.expiring().map(Expiring::latest).max()
    }

    /// From which moment on each entry of the file is expired or a tombstone of one key. `None` if others stay for ever.
    pub(crate) fn expired_from(&self) -> Option<Moment> {
        let gone = self.expiring_entries().saturating_add(self.tombstones());
        (gone == self.entries() && self.range_tombstones() == 0)
            .then(|| self.last_expiry().unwrap_or(0))
    }

    /// The bytes that the file holds, and those of them that are of entries which expire.
    fn held_and_expiring(&self) -> (u64, u64) {
        let apart = self.log_bytes();
        let logical = self.logical_bytes().saturating_add(apart).max(1);
        let held = self.bytes().saturating_add(self.transient_bytes());
        let held = held.saturating_add(apart);
        let bytes = u128::from(self.expiring_bytes().min(logical));
        let expiring = u128::from(held) * bytes / u128::from(logical);
        (held, u64::try_from(expiring).unwrap_or(held))
    }

    /// About how many of the bytes that the file holds belong to entries that are expired at `now`; at least 1 if there is
    /// such an entry.
    pub(crate) fn expired_bytes(&self, now: Moment) -> u64 {
        let first = self.first_expiry();
        if !first.is_some_and(|first| is_expired(first, now)) {
            return 0;
        }
        let expired = self.expiring().map(|it| it.expired_bytes(now));
        let expired = u128::from(expired.fold(0, u64::saturating_add));
        let (_, expiring) = self.held_and_expiring();
        let expired = u128::from(expiring) * expired / u128::from(self.expiring_bytes().max(1));
        u64::try_from(expired).map_or(expiring, |expired| expired.max(1))
    }

    /// The parts of the bytes that the file holds which expire at one rate between two moments.
    pub(crate) fn expiring_parts(&self) -> impl Iterator<Item = (Moment, Moment, f64)> {
        let (_, expiring) = self.held_and_expiring();
        let held_per_byte = expiring as f64 / self.expiring_bytes().max(1) as f64;
        self.expiring().flat_map(move |it| {
            let bytes = it.bytes as f64 * held_per_byte / Expiring::PARTS as f64;
            it.parts().map(move |(from, to)| (from, to, bytes))
        })
    }

    /// From when on more than 0, 1, 2, ... eighths of what the file holds may have expired by the estimate; the largest
    /// number if that never happens. No earlier than the estimate, and less than an eighth before it.
    pub(crate) fn expired_eighths_from(&self) -> [Moment; Expiring::PARTS] {
        let mut from = [Moment::MAX; Expiring::PARTS];
        if self.first_expiry().is_none() {
            return from;
        }
        let (held, _) = self.held_and_expiring();
        let mut parts: Vec<_> = self.expiring_parts().collect();
        parts.sort_unstable_by_key(|(start, ..)| *start);
        let mut bytes = 0.0;
        for (start, _, more) in parts {
            // Before the next part begins, not more than all of this one expires.
            bytes += more;
            let eighths = bytes * Expiring::PARTS as f64 / held.max(1) as f64;
            let may_be = (0_u32..).map(f64::from).zip(&mut from);
            for (less, from) in may_be {
                if less < eighths.max(f64::MIN_POSITIVE) {
                    *from = (*from).min(start);
                }
            }
        }
        from
    }
}
