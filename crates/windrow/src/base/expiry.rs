//! Moments, and the form in which an entry that expires is stored.
//!
//! A moment is a time of the system's clock in milliseconds since the start of 1970. What an expiring entry stores begins
//! with the moment from which on no reader sees it; its value or pointer follows. See "Entries that expire" in
//! `docs/format.md`.

use std::time::{Duration, SystemTime};

use super::error::{Error, Result};
use super::limits::EXPIRY_MILLISECONDS_MAX;

/// Milliseconds since the start of 1970, at most [`MOMENT_MAX`].
pub(crate) type Moment = u64;

/// The last moment, in the year 10889. A clock that is beyond it shows it.
pub(crate) const MOMENT_MAX: Moment = EXPIRY_MILLISECONDS_MAX;

/// The longest default time to live in milliseconds, about 4460 years. Such an entry expires before the last moment if it
/// is written before the year 6429.
pub(crate) const DEFAULT_TTL_MAX: u64 = 1 << 47;

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
    let milliseconds = Moment::try_from(since_1970.as_millis());
    milliseconds.map_or(MOMENT_MAX, |moment| moment.min(MOMENT_MAX))
}

/// The first moment that has not come before `time`; the first one of all for a time before 1970.
///
/// # Errors
/// `InvalidArgument` if that is later than any moment.
pub(crate) fn moment_of(time: SystemTime) -> Result<Moment> {
    let since_1970 = time.duration_since(SystemTime::UNIX_EPOCH);
    let since_1970 = since_1970.unwrap_or_default();
    rounded_up(since_1970)
        .ok_or_else(|| Error::invalid_argument("an entry cannot expire after the year 10889"))
}

/// The first moment that has not come before the time `since_1970`; `None` if that is later than any.
fn rounded_up(since_1970: Duration) -> Option<Moment> {
    let moment = Moment::try_from(since_1970.as_nanos().div_ceil(1_000_000));
    moment.ok().filter(|moment| *moment <= MOMENT_MAX)
}

/// The moment at which an entry expires that lives for `ttl` from the time `now` on. Parts of a millisecond count as a whole
/// one, so nothing expires early.
///
/// # Errors
/// `InvalidArgument` if that is later than any moment.
pub(crate) fn expiry(now: Duration, ttl: Duration) -> Result<Moment> {
    let moment = now.checked_add(ttl).and_then(rounded_up);
    moment.ok_or_else(|| {
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
        assert_eq!(moment_reached(Duration::MAX), MOMENT_MAX);
        assert_eq!(expiry(milliseconds(5), milliseconds(2)).unwrap(), 7);
        assert_eq!(expiry(milliseconds(5), Duration::from_nanos(1)).unwrap(), 6);
        assert_eq!(expiry(last, Duration::ZERO).unwrap(), MOMENT_MAX);
        for ttl in [Duration::from_nanos(1), Duration::MAX] {
            let error = expiry(last, ttl).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        }
        assert!(is_expired(5, 5) && !is_expired(6, 5));
    }

    #[test]
    fn a_time_is_the_moment_that_comes_with_it_or_next() {
        let after = |since_1970| SystemTime::UNIX_EPOCH + since_1970;
        for (time, moment) in [
            (SystemTime::UNIX_EPOCH - Duration::from_secs(1), 0),
            (after(Duration::from_nanos(1)), 1),
            (after(Duration::from_millis(7)), 7),
            (time_of(MOMENT_MAX), MOMENT_MAX),
        ] {
            assert_eq!(moment_of(time).unwrap(), moment);
        }
        let error = moment_of(time_of(MOMENT_MAX + 1)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }
}
