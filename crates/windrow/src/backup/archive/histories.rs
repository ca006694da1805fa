//! The histories of a store: their backups, their stretches, and the states that these reach.
//!
//! Concurrency: a look at one moment; the caller keeps others from changing the store.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::{Duration, SystemTime};

use super::stretch::{self, Note, Stretch};
use crate::backup::damage::damage;
use crate::backup::manifest::{BackupManifest, Binding, time_of};
use crate::backup::names::StretchName;
use crate::backup::objects::{Objects, read_manifest};
use crate::backup::store::BackupStore;
use crate::base::{Error, ErrorKind, KeyspaceId, Result, SequenceNumber};

/// The states that a restore reaches from one backup, by the changes behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReachableStates {
    /// The number of the backup.
    pub backup: u64,
    /// The sequence numbers of the states, ascending. A number within a batch stands for the state before the batch. Between
    /// two ranges are states that lack writes to a keyspace that was dropped before they were archived.
    pub sequences: Vec<RangeInclusive<SequenceNumber>>,
    /// When the archiving of the last of them began, by the clock of the system. Without changes, when the backup was made.
    pub until: SystemTime,
}

/// What the archive of a store reaches.
#[derive(Debug)]
#[non_exhaustive]
pub struct Reachable {
    /// For each backup of an archived database, oldest first.
    pub states: Vec<ReachableStates>,
    /// What of the archive is damaged or missing. Changes behind that are not among the states, except from later backups.
    pub damage: Vec<Error>,
    /// Why other backups cannot be used. Their states are missing.
    pub unusable: Vec<Error>,
}

/// A backup that is bound to a history, or to none.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Base {
    pub(crate) number: u64,
    pub(crate) sequence: SequenceNumber,
    pub(crate) created: Duration,
    pub(crate) binding: Option<Binding>,
}

impl Base {
    pub(crate) fn new(number: u64, manifest: &BackupManifest) -> Self {
        Self {
            number,
            sequence: manifest.sequence,
            created: manifest.created,
            binding: manifest.binding,
        }
    }
}

/// What a history has in a store.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Archived {
    /// The newest backup.
    pub(crate) backup: Option<SequenceNumber>,
    /// The last change of the newest stretch.
    pub(crate) end: Option<SequenceNumber>,
    /// Whether stretches are missing between both, or overlap.
    pub(crate) has_gap: bool,
}

/// The stretches of a store by history, ascending.
#[derive(Debug)]
pub(crate) struct Histories(BTreeMap<u128, Vec<StretchName>>);

impl Histories {
    pub(crate) fn new(objects: &Objects) -> Self {
        let mut histories: BTreeMap<u128, Vec<StretchName>> = BTreeMap::new();
        for &name in &objects.stretches {
            histories.entry(name.history).or_default().push(name);
        }
        Self(histories)
    }

    /// The stretches of `history`.
    pub(crate) fn of(&self, history: u128) -> &[StretchName] {
        self.0.get(&history).map_or(&[], Vec::as_slice)
    }

    /// The stretches of `history` from the one with the change `from` on, up to a gap.
    ///
    /// # Errors
    /// `Corruption` if two of them overlap.
    pub(crate) fn chain(&self, history: u128, from: SequenceNumber) -> Result<&[StretchName]> {
        let all = self.of(history);
        check_overlaps(all)?;
        let start = all.partition_point(|name| name.last < from);
        let behind = &all[start..];
        if behind.first().is_none_or(|name| name.first > from) {
            return Ok(&[]);
        }
        let follows = |pair: &[StretchName]| pair[0].last + 1 == pair[1].first;
        let gap = behind.windows(2).position(|pair| !follows(pair));
        Ok(&behind[..gap.map_or(behind.len(), |at| at + 1)])
    }

    /// What is wrong with the order of the stretches that `bases` need, without a look into them (I2 of the archive). An
    /// interrupted purge may have left some of the others.
    pub(crate) fn faults(&self, bases: &[Base]) -> Vec<Error> {
        let mut places: BTreeMap<u128, SequenceNumber> = BTreeMap::new();
        for binding in bases.iter().filter_map(|base| base.binding) {
            let place = places.entry(binding.history).or_insert(binding.place);
            *place = binding.place.min(*place);
        }
        let mut faults = Vec::new();
        for (history, place) in places {
            let all = self.of(history);
            if let Err(overlap) = check_overlaps(all) {
                faults.push(overlap);
                continue;
            }
            for pair in all.windows(2) {
                if pair[0].last + 1 < pair[1].first && place + 1 < pair[1].first {
                    let what = format!(
                        "the archived changes {} to {} are missing before it",
                        pair[0].last + 1,
                        pair[1].first - 1
                    );
                    faults.push(damage(&pair[1].to_string(), 0, what));
                }
            }
        }
        faults
    }
}

fn check_overlaps(all: &[StretchName]) -> Result<()> {
    let overlap = all.windows(2).find(|pair| pair[0].last >= pair[1].first);
    overlap.map_or(Ok(()), |pair| {
        let what = format!("it begins before the end of {}", pair[0]);
        Err(damage(&pair[1].to_string(), 0, what))
    })
}

/// The backups of `store` that can be used, oldest first, and why others cannot.
pub(crate) fn bases(store: &dyn BackupStore, objects: &Objects) -> (Vec<Base>, Vec<Error>) {
    let (mut bases, mut unusable) = (Vec::new(), Vec::new());
    for &number in &objects.backups {
        match objects.whole_backup(store, number) {
            Ok(manifest) => bases.push(Base::new(number, &manifest)),
            Err(error) => unusable.push(error),
        }
    }
    (bases, unusable)
}

/// The first error that says nothing about its backup: another attempt may read it.
///
/// # Errors
/// That one.
pub(crate) fn check_read(unusable: &mut Vec<Error>) -> Result<()> {
    let says_nothing =
        |error: &Error| !matches!(error.kind(), ErrorKind::Corruption | ErrorKind::Unsupported);
    let index = unusable.iter().position(says_nothing);
    index.map_or(Ok(()), |index| Err(unusable.swap_remove(index)))
}

impl Archived {
    /// What `store` has of `history`.
    pub(crate) fn find(store: &dyn BackupStore, objects: &Objects, history: u128) -> Self {
        let mut backups = objects.backups.iter().rev();
        let backup = backups.find_map(|number| {
            let manifest = read_manifest(store, *number).ok()?;
            let binding = manifest.binding.filter(|it| it.history == history)?;
            Some((manifest.sequence, binding.place))
        });
        let histories = Histories::new(objects);
        let end = histories.of(history).last().map(|name| name.last);
        let has_gap = match (backup, end) {
            (Some((_, place)), Some(end)) if end > place => {
                let chain = histories.chain(history, place + 1).unwrap_or_default();
                chain.last().is_none_or(|name| name.last < end)
            }
            _ => false,
        };
        Self {
            backup: backup.map(|(sequence, _)| sequence),
            end,
            has_gap,
        }
    }
}

/// States that cannot be reached, and what is missing for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unreachable {
    pub(super) first: SequenceNumber,
    /// `None` if no later state of these stretches can be reached.
    pub(super) last: Option<SequenceNumber>,
    pub(super) keyspace: Option<KeyspaceId>,
}

impl Unreachable {
    pub(super) fn has(&self, sequence: SequenceNumber) -> bool {
        sequence >= self.first && self.last.is_none_or(|last| sequence <= last)
    }
}

/// The states that cannot be reached from a backup at `base` by changes with these notes.
pub(super) fn unreachable(base: SequenceNumber, notes: &[Note]) -> Vec<Unreachable> {
    let mut unreachable = Vec::new();
    for note in notes {
        match *note {
            Note::TablesAdded(sequence) if sequence > base => unreachable.push(Unreachable {
                first: sequence,
                last: None,
                keyspace: None,
            }),
            Note::LeftOut {
                keyspace,
                first,
                last,
            } if last > base => {
                let drop = notes.iter().filter_map(|note| match *note {
                    Note::Dropped {
                        keyspace: dropped,
                        sequence,
                    } if dropped == keyspace && sequence > last => Some(sequence - 1),
                    _ => None,
                });
                unreachable.push(Unreachable {
                    first: first.max(base + 1),
                    last: drop.min(),
                    keyspace: Some(keyspace),
                });
            }
            Note::TablesAdded(_) | Note::LeftOut { .. } | Note::Dropped { .. } => {}
        }
    }
    unreachable
}

/// The parts of `base` to `end` that can be reached.
fn reachable(
    base: SequenceNumber,
    end: SequenceNumber,
    notes: &[Note],
) -> Vec<RangeInclusive<SequenceNumber>> {
    let mut missing = unreachable(base, notes);
    missing.sort_by_key(|it| it.first);
    let (mut ranges, mut from) = (Vec::new(), base);
    for missing in missing {
        if missing.first > from && from <= end {
            ranges.push(from..=(missing.first - 1).min(end));
        }
        from = from.max(missing.last.map_or(SequenceNumber::MAX, |last| last + 1));
    }
    if from <= end {
        ranges.push(from..=end);
    }
    ranges
}

/// The states that the backups of `store` reach.
pub(crate) fn list(store: &dyn BackupStore) -> Result<Reachable> {
    let objects = Objects::list(store)?;
    let histories = Histories::new(&objects);
    let (bases, unusable) = bases(store, &objects);
    let mut damage = histories.faults(&bases);
    let mut stretches: BTreeMap<StretchName, Stretch> = BTreeMap::new();
    for &name in &objects.stretches {
        let read = stretch::read(store, name).and_then(|stretch| {
            stretch.check_whole(&objects)?;
            Ok(stretch)
        });
        match read {
            Ok(stretch) => drop(stretches.insert(name, stretch)),
            Err(error) => damage.push(error),
        }
    }
    let mut states = Vec::new();
    for base in bases {
        let Some(binding) = base.binding else {
            continue;
        };
        // A fault of the order is in the list already.
        let chain = histories.chain(binding.history, binding.place + 1);
        let chain = chain.unwrap_or_default().iter();
        let chain = chain.map_while(|name| stretches.get(name));
        let (mut end, mut until, mut notes) = (base.sequence, base.created, Vec::new());
        for stretch in chain {
            end = end.max(stretch.name.last);
            until = until.max(stretch.moment);
            notes.extend(&stretch.notes);
        }
        states.push(ReachableStates {
            backup: base.number,
            sequences: reachable(base.sequence, end, &notes),
            until: time_of(until),
        });
    }
    Ok(Reachable {
        states,
        damage,
        unusable,
    })
}
