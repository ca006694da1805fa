//! The prepared transactions of a run: what they hold the database to, over all crashes.
//!
//! - I4: a prepared transaction survives every crash until its end, and its end is whole.
//! - I5: its commit is never refused by a conflict.

use std::collections::{BTreeMap, BTreeSet};

use super::Run;
use crate::histories::{List, Step};
use windrow::{Durability, ErrorKind, Result, Transaction};

/// At most this many are prepared at once: others cannot write what they hold.
const PREPARED_MAX: usize = 2;

/// A transaction that is prepared, or was.
pub(super) struct Prepared {
    steps: Vec<Step>,
    begun: u64,
    state: State,
}

#[derive(Clone, Copy)]
enum State {
    /// A device has failed the preparation or the end, so a crash shows which one it is.
    Unknown,
    Prepared,
    /// A power failure may undo the end if it is volatile.
    Ended {
        is_volatile: bool,
    },
}

impl Prepared {
    fn is_prepared(&self) -> bool {
        matches!(self.state, State::Prepared)
    }

    /// Every acknowledged end so far is durable.
    pub(super) fn note_sync(&mut self) {
        if let State::Ended { is_volatile } = &mut self.state {
            *is_volatile = false;
        }
    }
}

impl Run {
    fn prepared_names(&self) -> Vec<String> {
        let prepared = self.prepared.iter().filter(|it| it.1.is_prepared());
        prepared.map(|(name, _)| name.clone()).collect()
    }

    pub(super) fn has_prepared(&self) -> bool {
        !self.prepared_names().is_empty()
    }

    pub(super) fn may_prepare(&self) -> bool {
        self.prepared_names().len() < PREPARED_MAX
    }

    /// Prepares a transaction that has done `steps`.
    pub(super) fn prepare(
        &mut self,
        transaction: Transaction,
        steps: Vec<Step>,
        begun: u64,
    ) -> Result<()> {
        let name = self.element().to_string();
        let outcome = transaction.prepare(&name).map(drop);
        let state = match &outcome {
            Ok(()) => State::Prepared,
            Err(error) if [ErrorKind::Conflict, ErrorKind::TimedOut].contains(&error.kind()) => {
                return outcome;
            }
            Err(_) => State::Unknown,
        };
        let prepared = Prepared {
            steps,
            begun,
            state,
        };
        self.prepared.insert(name, prepared);
        if outcome.is_ok() {
            self.note_sync();
            self.tally.prepared += 1;
        }
        outcome
    }

    /// Commits a prepared transaction, or rolls it back.
    pub(super) fn end_prepared(&mut self) -> Result<()> {
        let names = self.prepared_names();
        let name = self.random.pick(&names).clone();
        let handle = self.store().db.prepared_transaction(&name);
        let handle = handle.expect("a prepared transaction stays until its end"); // I4
        let durability = self.durability();
        let commits = self.random.chance(3, 4);
        let outcome = if commits {
            handle.commit_with(durability)
        } else {
            handle.roll_back_with(durability)
        };
        let state = match &outcome {
            Ok(()) => State::Ended { is_volatile: true },
            Err(error) => {
                assert_ne!(error.kind(), ErrorKind::Conflict, "{error}"); // I5
                State::Unknown
            }
        };
        let prepared = self.prepared.get_mut(&name).expect("it was found");
        prepared.state = state;
        let (steps, begun) = (prepared.steps.clone(), prepared.begun);
        let is_synced = outcome.is_ok() && durability == Durability::Sync;
        let outcome = if commits {
            self.record(steps, begun, durability, outcome)
        } else {
            outcome
        };
        if is_synced {
            self.note_sync();
        }
        outcome
    }

    /// Compares what was prepared before a crash with what is prepared after it (I4).
    pub(super) fn recover_prepared(&mut self, lists: &BTreeMap<u64, List>, has_power_failed: bool) {
        let names = self.store().db.prepared_transactions();
        let names: BTreeSet<_> = names.into_iter().collect();
        for name in &names {
            let prepared = self.prepared.get_mut(name).expect("it was prepared");
            if let State::Ended { is_volatile } = prepared.state {
                assert!(
                    has_power_failed && is_volatile,
                    "an acknowledged end was lost: {name}"
                );
            }
            prepared.state = State::Prepared;
            for (key, element) in prepared.steps.iter().filter_map(Step::written) {
                let is_there = lists.get(&key).is_some_and(|list| list.contains(&element));
                assert!(!is_there, "{name} is prepared, but was committed");
            }
        }
        self.prepared.retain(|name, prepared| {
            let is_there = names.contains(name);
            assert!(
                is_there || !prepared.is_prepared(),
                "a prepared transaction was lost: {name}"
            );
            is_there
        });
    }
}
