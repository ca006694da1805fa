//! `scan`: entries in the order of their keys.

use std::ops::Bound;

use clap::Args;
use windrow::{Error, Result};

use crate::arguments::RangeArgs;
use crate::outcome::Outcome;
use crate::output::Output;
use crate::store::StoreArgs;
use crate::text::{Notation, entry_object, escape};

/// Arguments of `scan`.
#[derive(Debug, Args)]
#[command(after_help = "\
Prints a line per entry: key, tab, value. With --json, what it prints can be loaded again with
load --format jsonl.

Examples:
  windrow scan shop.db
  windrow scan shop.db --prefix user: --reverse --limit 10
  windrow scan shop.db --from a --to b --json")]
pub(crate) struct ScanArgs {
    #[command(flatten)]
    store: StoreArgs,

    #[command(flatten)]
    range: RangeArgs,

    /// Only keys that begin with this
    #[arg(long, value_name = "PREFIX")]
    prefix: Option<String>,

    /// From the last entry to the first
    #[arg(long)]
    reverse: bool,

    /// Stop after this many entries
    #[arg(long, value_name = "N")]
    limit: Option<usize>,

    /// Print keys without their values
    #[arg(long)]
    keys_only: bool,

    #[command(flatten)]
    notation: Notation,
}

/// Bounds of a range of keys.
pub(crate) type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

pub(crate) fn run(args: &ScanArgs, output: &mut Output) -> Result<Outcome> {
    let prefix = args.prefix.as_deref().unwrap_or_default();
    let prefix = args.notation.parse(prefix)?;
    let bounds = bounds(&args.range, args.notation)?;
    let (db, keyspace) = args.store.open_to_read()?;
    let Some(bounds) = within_prefix(bounds, prefix) else {
        db.close()?;
        return Ok(Outcome::Done);
    };
    let limit = args.limit.unwrap_or(usize::MAX);
    let mut show = |entry: Result<(Vec<u8>, Vec<u8>)>| {
        let (key, value) = entry?;
        if args.keys_only {
            output.line(escape(&key))?;
            output.object(&entry_object(&key, None))
        } else {
            output.line(format_args!("{}\t{}", escape(&key), escape(&value)))?;
            output.object(&entry_object(&key, Some(&value)))
        }
    };
    let mut range = keyspace.range(bounds)?;
    if args.reverse {
        range.rev().take(limit).try_for_each(&mut show)?;
    } else {
        range.by_ref().take(limit).try_for_each(&mut show)?;
    }
    db.close()?;
    Ok(Outcome::Done)
}

/// The bounds that `--from` and `--to` name.
///
/// # Errors
/// `InvalidArgument` where the second lies before the first.
pub(crate) fn bounds(range: &RangeArgs, notation: Notation) -> Result<Bounds> {
    let parse = |key: &Option<String>| key.as_deref().map(|key| notation.parse(key)).transpose();
    let (from, to) = (parse(&range.from)?, parse(&range.to)?);
    if let (Some(from), Some(to)) = (&from, &to)
        && to < from
    {
        return Err(Error::invalid_argument(format!(
            "no key lies between: --from \"{}\" sorts behind --to \"{}\"",
            escape(from),
            escape(to)
        )));
    }
    Ok((
        from.map_or(Bound::Unbounded, Bound::Included),
        to.map_or(Bound::Unbounded, Bound::Excluded),
    ))
}

/// Narrows `bounds` to keys that begin with `prefix`; `None` where nothing can be left.
fn within_prefix(bounds: Bounds, prefix: Vec<u8>) -> Option<Bounds> {
    let end = after_prefix(&prefix);
    let from = match bounds.0 {
        Bound::Included(from) => from.max(prefix),
        _ => prefix,
    };
    let to = match (bounds.1, end) {
        (Bound::Excluded(to), Some(end)) => Some(to.min(end)),
        (Bound::Excluded(to), None) => Some(to),
        (_, end) => end,
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

/// The smallest key behind all that begin with `prefix`; `None` where there is none.
fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&byte| byte != u8::MAX)?;
    let mut after_prefix = prefix[..=last].to_vec();
    after_prefix[last] += 1;
    Some(after_prefix)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn narrowed(from: Option<&str>, to: Option<&str>, prefix: &[u8]) -> Option<Bounds> {
        let range = RangeArgs {
            from: from.map(str::to_owned),
            to: to.map(str::to_owned),
        };
        let bounds = bounds(&range, Notation::default()).unwrap();
        within_prefix(bounds, prefix.to_vec())
    }

    #[test]
    fn a_prefix_narrows_the_bounds() {
        let included = |key: &[u8]| Bound::Included(key.to_vec());
        let excluded = |key: &[u8]| Bound::Excluded(key.to_vec());
        assert_eq!(
            narrowed(None, None, b""),
            Some((Bound::Unbounded, Bound::Unbounded))
        );
        assert_eq!(
            narrowed(None, None, b"a"),
            Some((included(b"a"), excluded(b"b")))
        );
        assert_eq!(
            narrowed(None, None, b"a\xff"),
            Some((included(b"a\xff"), excluded(b"b")))
        );
        assert_eq!(
            narrowed(None, None, b"\xff"),
            Some((included(b"\xff"), Bound::Unbounded))
        );
        assert_eq!(
            narrowed(Some("ab"), Some("az"), b"a"),
            Some((included(b"ab"), excluded(b"az")))
        );
        assert_eq!(
            narrowed(Some("a"), Some("z"), b"b"),
            Some((included(b"b"), excluded(b"c")))
        );
        assert_eq!(narrowed(Some("c"), None, b"b"), None);
        assert_eq!(narrowed(Some("b"), Some("b"), b""), None);
    }
}
