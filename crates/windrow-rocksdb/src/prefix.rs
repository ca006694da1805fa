//! Prefix extractors: what RocksDB calls slice transforms.
//!
//! Concurrency: any thread may use an extractor.

use std::borrow::Cow;

/// The prefix of a key by a function of the caller; `None` for a key outside of its domain.
pub(crate) type Extract = Box<dyn Fn(&[u8]) -> Option<Vec<u8>> + Send + Sync>;

/// A prefix extractor.
pub(crate) enum Prefix {
    /// The first bytes. Shorter keys have no prefix.
    Fixed(usize),
    /// The whole key.
    WholeKey,
    /// That of the caller.
    Custom(Extract),
}

impl Prefix {
    /// The prefix of `key`, if it has one.
    pub(crate) fn of<'a>(&self, key: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        match self {
            Self::Fixed(length) => key.get(..*length).map(Cow::Borrowed),
            Self::WholeKey => Some(Cow::Borrowed(key)),
            Self::Custom(extract) => extract(key).map(Cow::Owned),
        }
    }
}
