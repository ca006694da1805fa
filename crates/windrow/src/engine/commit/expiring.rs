//! The form in which a write stores its value: with an expiry, if the value has a time to live.
//!
//! Concurrency: any thread.

use std::borrow::Cow;
use std::time::Duration;

use crate::base::expiry::put_expiring;
use crate::base::{Kind, Moment, Result};
use crate::engine::{Engine, KeyspaceCore};

/// What a write stores.
#[derive(Debug)]
pub(crate) struct Stored<'v> {
    pub(crate) kind: Kind,
    pub(crate) bytes: Cow<'v, [u8]>,
}

impl Engine {
    /// The form of a `value` with the default time to live of `keyspace`, if that has one.
    ///
    /// # Errors
    /// As [`stored_for`](Self::stored_for).
    #[inline]
    pub(crate) fn stored<'v>(
        &self,
        keyspace: &KeyspaceCore,
        value: &'v [u8],
    ) -> Result<Stored<'v>> {
        if keyspace.has_default_ttl()
            && let Some(expiry) = self.default_expiry(keyspace)?
        {
            return Ok(expiring(expiry, value));
        }
        Ok(Stored {
            kind: Kind::Value,
            bytes: Cow::Borrowed(value),
        })
    }

    /// The form of a `value` that lives for `ttl`. A value that lives for no time is a removal.
    ///
    /// # Errors
    /// `InvalidArgument` if entries of `keyspace` cannot expire, or none so late.
    pub(crate) fn stored_for<'v>(
        &self,
        keyspace: &KeyspaceCore,
        value: &'v [u8],
        ttl: Duration,
    ) -> Result<Stored<'v>> {
        keyspace.check_expiring()?;
        let expiry = self.expiry_clock.expiry(ttl)?;
        if ttl.is_zero() {
            return Ok(Stored {
                kind: Kind::Tombstone,
                bytes: Cow::Borrowed(&[]),
            });
        }
        Ok(expiring(expiry, value))
    }

    /// When an entry expires that is written to `keyspace` now without a time to live of its own.
    ///
    /// # Errors
    /// As [`stored_for`](Self::stored_for).
    pub(in crate::engine) fn default_expiry(
        &self,
        keyspace: &KeyspaceCore,
    ) -> Result<Option<Moment>> {
        let ttl = keyspace.options().default_ttl;
        ttl.map(|ttl| self.expiry_clock.expiry(ttl)).transpose()
    }
}

fn expiring(expiry: Moment, value: &[u8]) -> Stored<'static> {
    let mut bytes = Vec::new();
    put_expiring(&mut bytes, expiry, value);
    Stored {
        kind: Kind::ExpiringValue,
        bytes: Cow::Owned(bytes),
    }
}
