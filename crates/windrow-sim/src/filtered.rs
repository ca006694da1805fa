//! A keyspace with a compaction filter, and its contents whenever the filter comes to them.
//!
//! The first byte of a value says what the filter does. It may do so at any compaction, or never. So models hold what it
//! leaves, and what a database shows is compared as if the filter had seen all of it.

use crate::model::{Change, Contents, Effect, Entries};
use windrow::{Candidate, CompactionFilter, Decision, FilterError};

/// The keyspace. It has no merge operator.
pub const FILTERED: &str = "filtered";

/// The filter removes a value that begins with this byte.
pub const REMOVED: u8 = b'-';

/// The filter replaces a value that begins with this byte by the rest of it.
pub const REPLACED: u8 = b'*';

/// The filter.
#[derive(Debug)]
pub(crate) struct MarkFilter;

impl CompactionFilter for MarkFilter {
    fn name(&self) -> &'static str {
        "windrow-sim.marks"
    }

    fn decide(&self, candidate: &Candidate<'_>) -> Result<Decision, FilterError> {
        let value = candidate.value()?;
        Ok(match left_of(value) {
            None => Decision::Remove,
            Some(left) if left.len() < value.len() => Decision::Replace(left.to_vec()),
            Some(_) => Decision::Keep,
        })
    }
}

/// What the filter leaves of `value`, if anything.
fn left_of(value: &[u8]) -> Option<&[u8]> {
    match value {
        [REMOVED, ..] => None,
        [REPLACED, rest @ ..] => Some(rest),
        value => Some(value),
    }
}

/// A value of `keyspace` as if its filter had seen it.
pub(crate) fn seen_value(keyspace: &str, value: Vec<u8>) -> Option<Vec<u8>> {
    if keyspace == FILTERED {
        left_of(&value).map(<[u8]>::to_vec)
    } else {
        Some(value)
    }
}

/// `change` as if the filter had seen its value.
pub(crate) fn seen_change((keyspace, key, effect): Change) -> Change {
    let effect = match effect {
        Effect::Insert(value) => {
            seen_value(&keyspace, value).map_or(Effect::Remove, Effect::Insert)
        }
        effect => effect,
    };
    (keyspace, key, effect)
}

/// `contents` as if the filter had seen all values, without empty keyspaces.
pub(crate) fn seen(contents: Contents) -> Contents {
    let seen = contents.into_iter().map(|(name, entries)| {
        let left = |(key, value)| Some((key, seen_value(&name, value)?));
        let entries: Entries = entries.into_iter().filter_map(left).collect();
        (name, entries)
    });
    seen.filter(|(_, entries)| !entries.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::{FILTERED, REMOVED, REPLACED};
    use crate::history::Operation;
    use crate::model::Effect;
    use crate::session::Session;
    use crate::settings::Setting;
    use windrow::Durability;

    #[test]
    fn the_filter_changes_the_database_and_not_the_model() {
        let mut session = Session::new(1, Setting::named("tiny").unwrap());
        session.open().unwrap();
        let written = [vec![REMOVED, b'a'], vec![REPLACED, b'b'], vec![b'c']];
        for (key, value) in (0..).zip(written) {
            let change = (FILTERED.to_owned(), vec![key], Effect::Insert(value));
            let write = Operation::Write(vec![change], Durability::Buffered);
            session.apply(&write).unwrap();
        }
        let values = |session: &Session| -> Vec<Vec<u8>> {
            let keyspace = session.db().keyspace(FILTERED).unwrap();
            keyspace.iter().unwrap().map(|it| it.unwrap().1).collect()
        };
        assert_eq!(values(&session), [&b"-a"[..], b"*b", b"c"]);
        session.check().unwrap();
        let all = Operation::Compact(FILTERED.to_owned(), vec![0], vec![0xff]);
        session.apply(&all).unwrap();
        assert_eq!(values(&session), [b"b", b"c"]);
        session.check().unwrap();
    }
}
