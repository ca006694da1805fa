//! The form in which a write stores its value: with an expiry, if the value does not stay for ever.
//!
//! Concurrency: any thread.

use std::borrow::Cow;
use std::time::Duration;

use crate::base::expiry::{EXPIRY_BYTES, moment_of, put_expiring};
use crate::base::{Expiry, Kind, Moment, Result};
use crate::engine::{Engine, KeyspaceCore};

/// What a write stores.
#[derive(Debug)]
pub(crate) struct Stored<'v> {
    pub(crate) kind: Kind,
    pub(crate) bytes: Cow<'v, [u8]>,
}

/// How long a written value lives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Lifetime {
    /// The default time to live of the keyspace, or for ever if that has none.
    #[default]
    Default,
    /// This time from the write on.
    For(Duration),
    /// As this says.
    Until(Expiry),
}

impl Engine {
    /// The form of a `value` that lives for `lifetime`. A value that lives for no time is a removal.
    ///
    /// # Errors
    /// `InvalidArgument` if entries of `keyspace` cannot expire, or none so late.
    #[inline]
    pub(crate) fn stored<'v>(
        &self,
        keyspace: &KeyspaceCore,
        value: &'v [u8],
        lifetime: Lifetime,
    ) -> Result<Stored<'v>> {
        if lifetime == Lifetime::Default && !keyspace.has_default_ttl() {
            return Ok(lasting(value));
        }
        let expiry = self.expiry_of(keyspace, lifetime)?;
        if lifetime == Lifetime::For(Duration::ZERO) {
            return Ok(Stored {
                kind: Kind::Tombstone,
                bytes: Cow::Borrowed(&[]),
            });
        }
        Ok(expiry.map_or_else(|| lasting(value), |expiry| expiring(expiry, value)))
    }

    /// When an entry expires that is written to `keyspace` now and lives for `lifetime`. One that lives for no time has
    /// expired at the first moment of all, so it is not seen after an open with an earlier clock either.
    ///
    /// # Errors
    /// As [`stored`](Self::stored).
    pub(in crate::engine) fn expiry_of(
        &self,
        keyspace: &KeyspaceCore,
        lifetime: Lifetime,
    ) -> Result<Option<Moment>> {
        let ttl = match lifetime {
            Lifetime::Until(Expiry::Never) => return Ok(None),
            Lifetime::Until(Expiry::At(time)) => {
                keyspace.check_expiring()?;
                return moment_of(time).map(Some);
            }
            Lifetime::Default => keyspace.options().default_ttl,
            Lifetime::For(ttl) => Some(ttl),
        };
        let Some(ttl) = ttl else {
            return Ok(None);
        };
        keyspace.check_expiring()?;
        if ttl.is_zero() {
            return Ok(Some(0));
        }
        self.expiry_clock.expiry(ttl).map(Some)
    }
}

fn lasting(value: &[u8]) -> Stored<'_> {
    Stored {
        kind: Kind::Value,
        bytes: Cow::Borrowed(value),
    }
}

fn expiring(expiry: Moment, value: &[u8]) -> Stored<'static> {
    let mut bytes = Vec::with_capacity(EXPIRY_BYTES + value.len());
    put_expiring(&mut bytes, expiry, value);
    Stored {
        kind: Kind::ExpiringValue,
        bytes: Cow::Owned(bytes),
    }
}
