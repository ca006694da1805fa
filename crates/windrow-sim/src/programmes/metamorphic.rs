//! Random histories of everything that the public interface offers, under each option set, against
//! a sorted map. After every operation some answers are compared; after every change of the tree
//! the full structural check runs.

use super::{Replay, empty_model, for_seeds, history};
use crate::Random;
use crate::combine;
use crate::disk::{OperationKind, SimDisk};
use crate::history::{Generator, Profile};
use crate::model::Entries;
use crate::session::Session;
use crate::settings::Setting;
use std::fmt;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use windrow::{Keyspace, Result};

/// How much is done.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Histories, each under every option set.
    pub seeds: u64,
    /// Operations in each history.
    pub operations: usize,
    /// Threads.
    pub threads: usize,
    /// The first seed.
    pub first_seed: u64,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            seeds: 20,
            operations: 500,
            threads: 2,
            first_seed: 1,
        }
    }
}

/// What was done.
#[derive(Debug, Default)]
pub struct Tally {
    /// Histories, counted once for each option set.
    pub histories: u64,
    /// Operations carried out.
    pub operations: u64,
    /// Answers compared.
    pub answers: u64,
    /// Full structural checks.
    pub checks: u64,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "histories         {:>10}", self.histories)?;
        writeln!(f, "operations        {:>10}", self.operations)?;
        writeln!(f, "answers compared  {:>10}", self.answers)?;
        writeln!(f, "structural checks {:>10}", self.checks)
    }
}

/// Runs the stress test.
pub fn run(plan: &Plan) -> Tally {
    let tally = Mutex::new(Tally::default());
    for_seeds(
        plan.first_seed,
        plan.threads,
        |seed| seed < plan.first_seed + plan.seeds,
        |seed| {
            let of_seed = run_seed(plan, seed);
            let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
            tally.histories += of_seed.histories;
            tally.operations += of_seed.operations;
            tally.answers += of_seed.answers;
            tally.checks += of_seed.checks;
        },
    );
    tally.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Runs the history of one seed under every option set.
pub fn run_seed(plan: &Plan, seed: u64) -> Tally {
    let arguments = format!("--first-seed {seed} --operations {}", plan.operations);
    let mut replay = Replay::new("metamorphic", &arguments);
    let mut tally = Tally::default();
    for setting in Setting::all() {
        tally.histories += 1;
        let name = setting.name;
        replay.at(format!("{name}, the first opening"));
        let mut run = Run::new(seed, setting);
        must(run.session.open());
        for index in 0..plan.operations {
            let operation = run.generator.operation();
            replay.at(format!("{name}, operation {index}, {operation:?}"));
            must(run.session.apply(&operation));
            must(run.compare());
            must(run.check_changes());
            tally.operations += 1;
        }
        must(run.session.check());
        must(run.session.verify());
        tally.answers += run.answers;
        tally.checks += run.checks;
    }
    tally
}

fn must(result: Result<()>) {
    if let Err(error) = result {
        panic!("an operation failed on a sound disk: {error:?}");
    }
}

struct Run {
    session: Session,
    generator: Generator,
    random: Random,
    /// How many edits were made durable.
    installs: Arc<AtomicU64>,
    installs_checked: u64,
    answers: u64,
    checks: u64,
}

impl Run {
    fn new(seed: u64, setting: Setting) -> Self {
        let disk = SimDisk::new();
        disk.forbid_removal_in_use(".table");
        disk.forbid_removal_in_use(".values");
        let installs = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&installs);
        disk.on_change(move |event, _| {
            let is_manifest = event.path.extension().is_some_and(|end| end == "manifest");
            if is_manifest && event.kind == OperationKind::Sync {
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
            session: Session::new(disk, seed, setting, empty_model()),
            generator: history(seed, profile),
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
        let name = self.generator.keyspace();
        let keyspace = self.session.keyspace(&name)?;
        let expected = self
            .session
            .lock_model()
            .current()
            .get(&name)
            .cloned()
            .unwrap_or_default();
        match self.random.below(6) {
            0 => self.compare_gets(&keyspace, &expected),
            1 => self.compare_range(&keyspace, &expected),
            2 => self.compare_prefix(&keyspace, &expected),
            3 => compare_ends(&keyspace, &expected),
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
            // A sorted map refuses what is an empty range here.
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
        assert_eq!(found, wanted, "range {bounds:?} from behind");
        // From both ends in turn until they meet.
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

    /// Moves a cursor about at random.
    fn compare_walk(&mut self, keyspace: &Keyspace, expected: &Entries) -> Result<()> {
        let entries: Vec<_> = expected.iter().collect();
        let mut cursor = keyspace.cursor()?;
        let mut position = None;
        for _ in 0..=self.random.index(20) {
            let (stands, wanted) = match (self.random.below(10), position) {
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
            assert_eq!(stands, position.is_some(), "a cursor stands or not");
            assert_eq!(cursor.is_valid(), stands);
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
