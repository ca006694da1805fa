//! Whether a repair has kept all that the damage did not touch.
//!
//! One file is damaged, so all others are whole. What may differ depends on the file:
//! - A table or a value file: keys between the ends of a reported loss.
//! - A log: what the lost records have written. A flipped bit hits one record, which is one commit, unless the report says that
//!   the numbers of the records behind it are not known; then these may be lost too. Other damage may take a row of commits.
//!   A keyspace whose entries are in tables already loses nothing.
//! - `CURRENT` and the manifest: names, which keyspaces pair up again, and a key that the report names. Bulk-loaded entries count
//!   as older than others, and operands may count twice: only keys that were written more than once differ by these.

use super::super::Victim;
use super::Repaired;
use crate::filtered::seen_value;
use crate::model::{Contents, Effect, Entries, differing_keys};
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;
use windrow::{Loss, ManifestUse, RepairReport};

/// A repair to judge.
#[derive(Clone, Copy)]
pub(super) struct Case<'a> {
    pub(super) victim: &'a Victim,
    pub(super) report: &'a RepairReport,
    /// The damaged file.
    pub(super) hit: &'a Path,
    /// Whether one bit of it is flipped.
    pub(super) is_flip: bool,
}

impl Case<'_> {
    /// Judges the contents of the new database.
    pub(super) fn judge(self, found: &Contents) -> Repaired {
        let is_named = self.report.manifest == ManifestUse::Whole;
        let states = std::iter::once(&self.victim.contents).chain(&self.victim.torn);
        let is_same = |expected: &Contents| {
            let all = expected.keys().chain(found.keys());
            let mut all =
                all.filter(|name| expected.contains_key(*name) || !found[*name].is_empty());
            all.all(|name| of(expected, name) == seen(name, found.get(name)))
        };
        if is_named && states.clone().any(is_same) {
            return Repaired::Everything;
        }
        if self.report.is_whole() {
            return self.wrong("a repair loses something silently", found);
        }
        let is_explained = match self
            .hit
            .extension()
            .and_then(|extension| extension.to_str())
        {
            Some("wal") if is_named => self.is_without_commits(found),
            Some("table" | "values" | "transient") if is_named => self.is_between_keys(found),
            Some("wal" | "table" | "values" | "transient") => true,
            _ => states.clone().any(|expected| {
                let names: Vec<&String> = expected.keys().collect();
                self.pairs_up(expected, found, &names, &mut Vec::new())
            }),
        };
        if is_explained {
            Repaired::TheRest
        } else {
            self.wrong("a repair loses what the damage did not touch", found)
        }
    }

    /// Whether all that differs lies between the keys of a loss.
    fn is_between_keys(self, found: &Contents) -> bool {
        let expected = &self.victim.contents;
        let mut names = expected.keys().chain(found.keys());
        names.all(|name| {
            let is_in = |loss: &Loss, key: &Vec<u8>| {
                loss.keyspace.as_ref() == Some(name)
                    && loss.from.as_ref().is_none_or(|from| from <= key)
                    && loss.to.as_ref().is_none_or(|to| key <= to)
            };
            let (left, right) = (of(expected, name), seen(name, found.get(name)));
            differing_keys(&left, &right)
                .all(|key| self.report.losses.iter().any(|loss| is_in(loss, key)))
        })
    }

    /// Whether all that differs is that commits are missing.
    fn is_without_commits(self, found: &Contents) -> bool {
        let model = &self.victim.model;
        let count = model.begun();
        let expected = &self.victim.contents;
        let names = expected.keys().chain(found.keys());
        let is_right = |name: &String, lost: &Range<usize>| {
            let entries = seen(name, found.get(name));
            entries == of(expected, name) || entries == model.entries_without(name, lost)
        };
        let is_unplaced = |loss: &Loss| loss.what.starts_with("the place of ");
        if self.is_flip && !self.report.losses.iter().any(is_unplaced) {
            return (0..count)
                .any(|lost| names.clone().all(|name| is_right(name, &(lost..lost + 1))));
        }
        let mut names = names;
        names.all(|name| {
            let mut rows = (0..count).flat_map(|from| (from + 1..=count).map(move |to| from..to));
            rows.any(|lost| is_right(name, &lost))
        })
    }

    /// Whether each keyspace of `names` has another one in `found`, beside those that are `taken`, that differs only in keys
    /// that may differ.
    fn pairs_up<'f>(
        self,
        expected: &Contents,
        found: &'f Contents,
        names: &[&String],
        taken: &mut Vec<&'f String>,
    ) -> bool {
        let Some((name, others)) = names.split_first() else {
            return true;
        };
        for (as_named, entries) in found {
            let entries = seen(name, Some(entries));
            let is_pair = !taken.contains(&as_named)
                && differing_keys(&expected[*name], &entries)
                    .all(|key| self.may_differ(as_named, key));
            if is_pair {
                taken.push(as_named);
                if self.pairs_up(expected, found, others, taken) {
                    return true;
                }
                taken.pop();
            }
        }
        false
    }

    /// Whether `key` of the keyspace that the report calls `name` may differ if edits of the manifest are lost.
    fn may_differ(self, name: &String, key: &[u8]) -> bool {
        let mut losses = self.report.losses.iter();
        let mut of_keyspace = losses
            .clone()
            .filter(|loss| loss.keyspace.as_ref() == Some(name));
        let is_named = losses.any(|loss| {
            loss.keyspace.as_ref() == Some(name)
                && loss.from.as_deref() == Some(key)
                && loss.to.as_deref() == Some(key)
        });
        let is_unplaced = of_keyspace.any(|loss| loss.what.contains("bulk-loaded"));
        let effects = || self.victim.model.effects_on(key);
        let has_operands = effects().any(|effect| matches!(effect, Effect::Append(_)));
        is_named || effects().count() > 1 && (is_unplaced || has_operands)
    }

    fn wrong(self, what: &str, found: &Contents) -> Repaired {
        let mut shown = Vec::new();
        let names: BTreeSet<&String> = self.victim.contents.keys().chain(found.keys()).collect();
        for name in names {
            let (left, right) = (of(&self.victim.contents, name), seen(name, found.get(name)));
            let keys = differing_keys(&left, &right);
            shown.extend(keys.map(|key| format!("{name}/{}", key.escape_ascii())));
        }
        let losses: Vec<String> = self.report.losses.iter().map(ToString::to_string).collect();
        Repaired::Wrong(format!(
            "{what}: {} keys differ, as {:?}; the manifest is {}; reported: {losses:?}",
            shown.len(),
            &shown[..shown.len().min(3)],
            self.report.manifest.name(),
        ))
    }
}

fn of(contents: &Contents, name: &String) -> Entries {
    contents.get(name).cloned().unwrap_or_default()
}

/// The entries as if the compaction filter of keyspace `name` had seen them.
fn seen(name: &str, entries: Option<&Entries>) -> Entries {
    let entries = entries.into_iter().flatten();
    let left =
        |(key, value): (&Vec<u8>, &Vec<u8>)| Some((key.clone(), seen_value(name, value.clone())?));
    entries.filter_map(left).collect()
}
