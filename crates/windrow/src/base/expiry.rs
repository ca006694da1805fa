//! Moments, and the form in which an entry that expires is stored.
//!
//! A moment is a time of the system's clock in milliseconds since the start of 1970. What an expiring entry stores begins
//! with the moment from which on no reader sees it; its value or pointer follows. See "Entries that expire" in
//! `docs/format.md`.

use std::time::{Duration, SystemTime};

use super::error::{Error, Result};

/// Milliseconds since the start of 1970, at most [`MOMENT_MAX`].
pub(crate) type Moment = u64;

/// The last moment that can be stored, in the year 10889.
pub(crate) const MOMENT_MAX: Moment = (1 << 48) - 1;

/// The bytes of a stored moment.
pub(crate) const EXPIRY_BYTES: usize = 6;

/// When an entry expires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub enum Expiry {
    /// No read from this time of the system's clock on sees it. The clock counts in milliseconds.
    At(SystemTime),
    /// It stays until it is removed or replaced.
    Never,
}

impl From<Option<Moment>> for Expiry {
    fn from(expiry: Option<Moment>) -> Self {
        match expiry {
            Some(moment) => Self::At(time_of(moment)),
            None => Self::Never,
        }
    }
}

/// The time of `moment`.
pub(crate) fn time_of(moment: Moment) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(moment)
}

/// The last moment that has come at the time `since_1970`.
pub(crate) fn moment_reached(since_1970: Duration) -> Moment {
    u64::try_from(since_1970.as_millis()).unwrap_or(u64::MAX)
}

/// The moment at which an entry expires that lives for `ttl` from the time `now` on. Parts of a millisecond count as a whole
/// one, so nothing expires early.
///
/// # Errors
/// `InvalidArgument` if that is later than any moment.
pub(crate) fn expiry(now: Duration, ttl: Duration) -> Result<Moment> {
    let at = now.checked_add(ttl);
    let at = at.map(|at| at.as_nanos().div_ceil(1_000_000));
    let moment = at.and_then(|at| Moment::try_from(at).ok());
    moment.filter(|at| *at <= MOMENT_MAX).ok_or_else(|| {
        let message = format!("a time to live of {ttl:?} ends beyond the year 10889");
        Error::invalid_argument(message)
    })
}

/// Appends what an entry stores that expires at `expiry`, with this value or pointer.
pub(crate) fn put_expiring(buffer: &mut Vec<u8>, expiry: Moment, value: &[u8]) {
    buffer.extend_from_slice(&expiry.to_le_bytes()[..EXPIRY_BYTES]);
    buffer.extend_from_slice(value);
}

/// The expiry, and the value or pointer, of what an expiring entry stores. Decoders refuse what is too short for that.
#[inline]
pub(crate) fn split_expiring(stored: &[u8]) -> (Moment, &[u8]) {
    let Some((expiry, value)) = stored.split_first_chunk::<EXPIRY_BYTES>() else {
        return (0, &[]);
    };
    let mut bytes = [0; 8];
    bytes[..EXPIRY_BYTES].copy_from_slice(expiry);
    (Moment::from_le_bytes(bytes), value)
}

/// Whether an entry with this expiry is expired at `now`.
#[inline]
pub(crate) fn is_expired(expiry: Moment, now: Moment) -> bool {
    expiry <= now
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ErrorKind;

    #[test]
    fn a_stored_expiry_is_read_back() {
        for expiry in [0, 1, 255, 1 << 40, MOMENT_MAX] {
            let mut stored = Vec::new();
            put_expiring(&mut stored, expiry, b"value");
            assert_eq!(split_expiring(&stored), (expiry, &b"value"[..]));
        }
        assert_eq!(split_expiring(b"short"), (0, &[][..]));
    }

    #[test]
    fn nothing_expires_early_or_beyond_the_last_moment() {
        let (milliseconds, last) = (Duration::from_millis, Duration::from_millis(MOMENT_MAX));
        assert_eq!(moment_reached(Duration::from_micros(7999)), 7);
        assert_eq!(expiry(milliseconds(5), milliseconds(2)).unwrap(), 7);
        assert_eq!(expiry(milliseconds(5), Duration::from_nanos(1)).unwrap(), 6);
        assert_eq!(expiry(last, Duration::ZERO).unwrap(), MOMENT_MAX);
        for ttl in [Duration::from_nanos(1), Duration::MAX] {
            let error = expiry(last, ttl).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        }
        assert!(is_expired(5, 5) && !is_expired(6, 5));
    }
}
