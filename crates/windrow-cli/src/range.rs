//! A range of keys on the command line: bounds, a prefix, and how keys are typed.
//!
//! Concurrency: none; no state.

use std::ops::Bound;

use clap::Args;
use windrow::{Error, Result};

use crate::text::{Notation, escape};

/// A range of keys.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct RangeArgs {
    /// First key of the range
    #[arg(long, value_name = "KEY")]
    from: Option<String>,

    /// The range ends before this key
    #[arg(long, value_name = "KEY")]
    to: Option<String>,

    /// Only keys that begin with this prefix
    #[arg(long, value_name = "PREFIX")]
    prefix: Option<String>,

    #[command(flatten)]
    notation: Notation,
}

/// Bounds of a range of keys.
pub(crate) type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

impl RangeArgs {
    /// The bounds of the range; `None` if no key can lie in it.
    ///
    /// # Errors
    /// `InvalidArgument` if `--to` lies before `--from`, or a key is not hexadecimal.
    pub(crate) fn bounds(&self) -> Result<Option<Bounds>> {
        let parse = |key: &Option<String>| {
            let key = key.as_deref();
            key.map(|key| self.notation.parse(key)).transpose()
        };
        let (from, to, prefix) = (parse(&self.from)?, parse(&self.to)?, parse(&self.prefix)?);
        if let (Some(from), Some(to)) = (&from, &to)
            && to < from
        {
            return Err(Error::invalid_argument(format!(
                "the range is empty: --from \"{}\" sorts behind --to \"{}\"",
                escape(from),
                escape(to)
            )));
        }
        Ok(within_prefix(from, to, prefix.unwrap_or_default()))
    }
}

/// Narrows a range to keys that begin with `prefix`; `None` if no key can be left.
fn within_prefix(from: Option<Vec<u8>>, to: Option<Vec<u8>>, prefix: Vec<u8>) -> Option<Bounds> {
    let end = after_prefix(&prefix);
    let from = from.unwrap_or_default().max(prefix);
    let to = match (to, end) {
        (Some(to), Some(end)) => Some(to.min(end)),
        (to, end) => to.or(end),
    };
    if to.as_ref().is_some_and(|to| *to <= from) {
        return None;
    }
    let from = if from.is_empty() {
        Bound::Unbounded
    } else {
        Bound::Included(from)
    };
    Some((from, to.map_or(Bound::Unbounded, Bound::Excluded)))
}

/// The smallest key behind all that begin with `prefix`; `None` if there is none.
fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&byte| byte != u8::MAX)?;
    let mut after_prefix = prefix[..=last].to_vec();
    after_prefix[last] += 1;
    Some(after_prefix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_narrows_the_bounds() {
        let key = |key: &[u8]| Some(key.to_vec());
        let bounds = |from: &[u8], to: &[u8]| {
            let from = match from {
                [] => Bound::Unbounded,
                from => Bound::Included(from.to_vec()),
            };
            let to = match to {
                [] => Bound::Unbounded,
                to => Bound::Excluded(to.to_vec()),
            };
            Some((from, to))
        };
        for (from, to, prefix, expected) in [
            (None, None, &b""[..], bounds(b"", b"")),
            (None, None, b"a", bounds(b"a", b"b")),
            (None, None, b"a\xff", bounds(b"a\xff", b"b")),
            (None, None, b"\xff", bounds(b"\xff", b"")),
            (key(b"ab"), key(b"az"), b"a", bounds(b"ab", b"az")),
            (key(b"a"), key(b"z"), b"b", bounds(b"b", b"c")),
            (key(b"c"), None, b"b", None),
            (key(b"b"), key(b"b"), b"", None),
        ] {
            assert_eq!(within_prefix(from, to, prefix.to_vec()), expected);
        }
    }
}
