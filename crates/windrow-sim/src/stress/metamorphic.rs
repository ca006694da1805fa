//! Metamorphic tests: random histories of all public operations, under each option set, against a sorted map.
//!
//! Each operation is followed by the comparison of some answers, each change of the tree by the full structural check.

use super::{Replay, Seeds, write_counts};
use crate::disk::OperationKind;
use crate::filtered::FILTERED;
use crate::history::{Generator, Profile};
use crate::model::Entries;
use crate::session::Session;
use crate::settings::Setting;
use crate::{Random, combine};
use clap::Args;
use std::fmt;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use windrow::{Keyspace, Result};

/// What is done.
#[derive(Debug, Clone, Copy, Args)]
pub struct Plan {
    /// The seeds of the histories. Each history runs under every option set.
    #[command(flatten)]
    pub seeds: Seeds,
    /// Operations in each history.
    #[arg(long, default_value_t = 500)]
    pub operations: usize,
}

/// What was done.
#[derive(Debug, Default)]
pub struct Tally {
    /// Histories, one for each seed and option set.
    pub histories: u64,
    /// Operations carried out.
    pub operations: u64,
    /// Answers compared.
    pub answers: u64,
    /// Full structural checks.
    pub checks: u64,
    /// Values that gets have folded and jobs have written.
    pub folds: u64,
}

impl super::Tally for Tally {
    fn add(&mut self, other: Self) {
        self.histories += other.histories;
        self.operations += other.operations;
        self.answers += other.answers;
        self.checks += other.checks;
        self.folds += other.folds;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_counts(
            f,
            &[
                ("histories", self.histories),
                ("operations", self.operations),
                ("answers compared", self.answers),
                ("structural checks", self.checks),
                ("folds of gets kept", self.folds),
            ],
        )
    }
}

/// Runs the stress test.
pub fn run(plan: &Plan) -> Tally {
    plan.seeds.sum(|seed| run_seed(plan, seed))
}

/// Runs the history of one seed under every option set with a log.
fn run_seed(plan: &Plan, seed: u64) -> Tally {
    let mut replay = Replay::new(
        "metamorphic",
        seed,
        &format!("--operations {}", plan.operations),
    );
    let mut tally = Tally::default();
    for setting in Setting::logged() {
        tally.histories += 1;
        let name = setting.name;
        replay.at(format!("{name}, the first open"));
        let mut run = Run::new(seed, setting);
        run.session.open().expect(SOUND);
        for index in 0..plan.operations {
            let operation = run.generator.operation();
            replay.at(format!("{name}, operation {index}, {operation:?}"));
            run.session.apply(&operation).expect(SOUND);
            run.compare().expect(SOUND);
            run.check_changes().expect(SOUND);
            tally.operations += 1;
        }
        run.session.check().expect(SOUND);
        run.session.verify().expect(SOUND);
        tally.answers += run.answers;
        tally.checks += run.checks;
        tally.folds += run.session.db().stats().lifetime.folds_kept;
    }
    tally
}

/// What an error contradicts.
const SOUND: &str = "operations succeed on a sound disk";

struct Run {
    session: Session,
    generator: Generator,
    random: Random,
    /// The number of edits that became durable.
    installs: Arc<AtomicU64>,
    installs_checked: u64,
    answers: u64,
    checks: u64,
}

impl Run {
    fn new(seed: u64, setting: Setting) -> Self {
        let installs = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&installs);
        let session = Session::new(seed, setting);
        session.disk.on_change(move |event, _| {
            if event.is(OperationKind::Sync, "manifest") {
                counter.fetch_add(1, Ordering::Relaxed);
            }
        });
        let keys = *Random::new(seed).pick(&[8, 60, 300]);
        let profile = Profile {
            keys,
            synced: 10,
            ..Profile::default()
        };
        Self {
            session,
            generator: Generator::new(seed, profile),
            random: Random::new(combine(seed, 4)),
            installs,
            installs_checked: 0,
            answers: 0,
            checks: 0,
        }
    }

    /// Runs the structural check if the tree has changed.
    fn check_changes(&mut self) -> Result<()> {
        let installs = self.installs.load(Ordering::Relaxed);
        if installs != self.installs_checked {
            self.installs_checked = installs;
            self.checks += 1;
            self.session.verify()?;
            self.session.check()?;
            self.session.check_snapshots()?;
        }
        Ok(())
    }

    /// Asks one question and compares the answer.
    fn compare(&mut self) -> Result<()> {
        self.answers += 1;
        let name = self.generator.compared_keyspace();
        let keyspace = self.session.keyspace(&name)?;
        let expected = self
            .session
            .lock_model()
            .current()
            .get(&name)
            .cloned()
            .unwrap_or_default();
        match self.random.below(8) {
            0 => self.compare_gets(&keyspace, &expected),
            1 => self.compare_range(&keyspace, &expected),
            2 => self.compare_prefix(&keyspace, &expected),
            3 => compare_ends(&keyspace, &expected),
            4 => self.compare_merged(),
            5 => self.compare_estimates(&keyspace),
            _ => self.compare_walk(&keyspace, &expected),
        }
    }

    fn compare_gets(&mut self, keyspace: &Keyspace, expected: &Entries) -> Result<()> {
        let keys: Vec<_> = (0..5).map(|_| self.generator.key()).collect();
        let mut buffer = Vec::new();
        for key in &keys {
            let wanted = expected.get(key);
            assert_eq!(keyspace.get(key)?.as_ref(), wanted, "get");
            let pinned = keyspace.get_pinned(key)?;
            assert_eq!(pinned.as_deref(), wanted.map(Vec::as_slice), "get_pinned");
            assert_eq!(keyspace.contains_key(key)?, wanted.is_some());
            assert_eq!(keyspace.get_into(key, &mut buffer)?, wanted.is_some());
            if let Some(wanted) = wanted {
                assert_eq!(buffer, *wanted, "get_into");
            }
        }
        let wanted: Vec<_> = keys.iter().map(|key| expected.get(key).cloned()).collect();
        assert_eq!(keyspace.multi_get(&keys)?, wanted, "multi_get");
        Ok(())
    }

    fn compare_range(&mut self, keyspace: &Keyspace, expected: &Entries) -> Result<()> {
        let (one, other) = (self.generator.key(), self.generator.key());
        let (low, high) = (one.clone().min(other.clone()), one.max(other));
        let bound = |choice, key| match choice {
            0 => Bound::Included(key),
            1 => Bound::Excluded(key),
            _ => Bound::Unbounded,
        };
        let lower = bound(self.random.below(3), low.clone());
        let upper = match bound(self.random.below(3), high.clone()) {
            // The sorted map refuses this empty range.
            Bound::Excluded(_) if low == high => Bound::Included(high),
            upper => upper,
        };
        let bounds = (lower, upper);
        let wanted: Vec<_> = expected
            .range(bounds.clone())
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        let found: Vec<_> = keyspace.range(bounds.clone())?.collect::<Result<_>>()?;
        assert_eq!(found, wanted, "range {bounds:?}");
        let mut found: Vec<_> = keyspace
            .range(bounds.clone())?
            .rev()
            .collect::<Result<_>>()?;
        found.reverse();
        assert_eq!(found, wanted, "range {bounds:?} backwards");
        // From both ends, until they meet.
        let mut range = keyspace.range(bounds)?;
        let (mut front, mut back) = (Vec::new(), Vec::new());
        loop {
            let from_front = self.random.chance(1, 2);
            let entry = if from_front {
                range.next()
            } else {
                range.next_back()
            };
            match entry {
                Some(entry) if from_front => front.push(entry?),
                Some(entry) => back.push(entry?),
                None => break,
            }
        }
        front.extend(back.into_iter().rev());
        assert_eq!(front, wanted, "range from both ends");
        Ok(())
    }

    fn compare_prefix(&mut self, keyspace: &Keyspace, expected: &Entries) -> Result<()> {
        let mut prefix = self.generator.key();
        prefix.truncate(1 + self.random.index(prefix.len()));
        let wanted: Vec<_> = expected
            .iter()
            .filter(|(key, _)| key.starts_with(&prefix))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        let found: Vec<_> = keyspace.prefix(&prefix)?.collect::<Result<_>>()?;
        assert_eq!(found, wanted, "prefix {prefix:?}");
        Ok(())
    }

    /// Reads all keyspaces without a filter by one cursor.
    fn compare_merged(&mut self) -> Result<()> {
        let mut names = self.session.db().keyspace_names();
        names.retain(|name| name != FILTERED);
        let current = self.session.lock_model().current();
        let mut wanted = Vec::new();
        let mut keyspaces = Vec::new();
        for (number, name) in names.iter().enumerate() {
            keyspaces.push(self.session.keyspace(name)?);
            let entries = current.get(name).into_iter().flatten();
            wanted.extend(entries.map(|(key, value)| (&key[..], number, &value[..])));
        }
        wanted.sort_unstable();
        let keyspaces: Vec<_> = keyspaces.iter().collect();
        let mut cursor = self.session.db().merged_cursor::<&[u8]>(&keyspaces, ..)?;
        let start = self.generator.key();
        let forward = wanted.iter().filter(|(key, ..)| *key >= &start[..]);
        let mut is_valid = cursor.seek(&start)?;
        for entry in forward {
            assert!(is_valid, "a merged cursor ends early");
            let number = cursor.keyspace().expect("it is valid");
            assert_eq!((cursor.key(), number, cursor.value()?), *entry);
            is_valid = cursor.next()?;
        }
        assert!(!is_valid, "a merged cursor finds more");
        is_valid = cursor.seek_to_last()?;
        for entry in wanted.iter().rev() {
            assert!(is_valid, "a merged cursor ends early");
            let number = cursor.keyspace().expect("it is valid");
            assert_eq!((cursor.key(), number, cursor.value()?), *entry);
            is_valid = cursor.prev()?;
        }
        assert!(!is_valid, "a merged cursor finds more");
        Ok(())
    }

    /// Estimates have no exact answer, except for an empty range; a part is at most the whole.
    fn compare_estimates(&mut self, keyspace: &Keyspace) -> Result<()> {
        let (one, other) = (self.generator.key(), self.generator.key());
        let (low, high) = ((&one).min(&other), (&one).max(&other));
        assert_eq!(keyspace.approximate_len::<&Vec<u8>>(high..low)?, 0);
        assert_eq!(keyspace.approximate_size::<&Vec<u8>>(high..low)?, 0);
        keyspace.approximate_len::<&Vec<u8>>(low..high)?;
        let whole = keyspace.approximate_size::<&[u8]>(..)?;
        assert!(keyspace.approximate_size::<&Vec<u8>>(low..high)? <= whole);
        Ok(())
    }

    /// Moves a cursor at random.
    fn compare_walk(&mut self, keyspace: &Keyspace, expected: &Entries) -> Result<()> {
        let entries: Vec<_> = expected.iter().collect();
        let mut cursor = keyspace.cursor()?;
        let mut position = None;
        for _ in 0..=self.random.index(20) {
            let (valid, wanted) = match (self.random.below(10), position) {
                (0, _) => (cursor.seek_to_first()?, (!entries.is_empty()).then_some(0)),
                (1, _) => (cursor.seek_to_last()?, entries.len().checked_sub(1)),
                (2..=5, Some(index)) => (cursor.next()?, Some(index + 1)),
                (6..=8, Some(index)) => (cursor.prev()?, usize::checked_sub(index, 1)),
                _ => {
                    let key = self.generator.key();
                    let index = entries.partition_point(|(other, _)| **other < key);
                    (cursor.seek(&key)?, Some(index))
                }
            };
            position = wanted.filter(|index| *index < entries.len());
            assert_eq!(valid, position.is_some(), "whether a cursor is valid");
            assert_eq!(cursor.is_valid(), valid);
            if let Some(index) = position {
                let (key, value) = entries[index];
                assert_eq!((cursor.key(), cursor.value()?), (&key[..], &value[..]));
            }
        }
        Ok(())
    }
}

fn compare_ends(keyspace: &Keyspace, expected: &Entries) -> Result<()> {
    let own = |entry: Option<(&Vec<u8>, &Vec<u8>)>| {
        entry.map(|(key, value)| (key.clone(), value.clone()))
    };
    let first = own(expected.first_key_value());
    assert_eq!(keyspace.first_key_value()?, first, "first_key_value");
    let last = own(expected.last_key_value());
    assert_eq!(keyspace.last_key_value()?, last, "last_key_value");
    assert_eq!(keyspace.is_empty()?, expected.is_empty(), "is_empty");
    let found: Vec<_> = keyspace.iter()?.collect::<Result<_>>()?;
    let wanted: Vec<_> = expected.clone().into_iter().collect();
    assert_eq!(found, wanted, "iter");
    Ok(())
}
