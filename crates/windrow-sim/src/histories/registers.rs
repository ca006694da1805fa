//! Registers: a value shows nothing of those before it. The order of two values of a key follows from
//! - a transaction that has read the first one and writes the second one,
//! - the clock: whoever writes the second one began after the first one was acknowledged,
//! - the end: the last value comes after all others, as all come after the absence of one.
//!
//! So the order is partial, and what the check finds there is an anomaly in every order that the history allows.

use std::collections::{BTreeMap, BTreeSet};

use super::graph::{Dependency, Graph};
use super::{Anomaly, History, Step};

/// A value of a register; `None` before the first write.
type Version = Option<u64>;

/// The versions of one key that others may read.
#[derive(Debug, Default)]
struct Register {
    /// The last write of each transaction to the key: when it began, the transaction, and the value.
    writes: Vec<(u64, usize, u64)>,
    /// The transactions that have read each version.
    readers: BTreeMap<Version, Vec<usize>>,
}

/// Adds the dependencies of all registers to `graph`.
///
/// # Errors
/// `lost update`: two transactions replace one version that both have read; those of [`check_last`].
pub(super) fn check(history: &History<'_>, graph: &mut Graph<'_>) -> Result<(), Anomaly> {
    for (key, register) in registers(history) {
        let last = history.last.get(&key).and_then(|list| list.last()).copied();
        check_last(history, key, last)?;
        let values = register.writes.iter().map(|(_, _, value)| Some(*value));
        for version in values.chain([None]) {
            register.check_updates(history, key, version)?;
            let writer = version.and_then(|value| history.writer(value));
            let readers = register.readers(version);
            for follower in register.followers(history, version, last) {
                if let Some(writer) = writer {
                    graph.add(writer, follower, Dependency::WriteWrite);
                }
                for reader in readers {
                    graph.add(*reader, follower, Dependency::ReadWrite);
                }
            }
            if let Some(writer) = writer {
                for reader in readers {
                    graph.add(writer, *reader, Dependency::WriteRead);
                }
            }
        }
    }
    Ok(())
}

/// # Errors
/// `lost`; `G1b` if a transaction that has written another value later has left this one.
fn check_last(history: &History<'_>, key: u64, last: Version) -> Result<(), Anomaly> {
    let name = match last.and_then(|value| history.writers.get(&value)) {
        None => "lost",
        Some((_, false)) => "G1b",
        Some((_, true)) => return Ok(()),
    };
    let what = format!("key {key} has the value {last:?} at the end");
    Err(Anomaly { name, what })
}

/// All registers that were written, by their keys.
fn registers(history: &History<'_>) -> BTreeMap<u64, Register> {
    let mut registers: BTreeMap<u64, Register> = BTreeMap::new();
    for (index, transaction) in history.transactions.iter().enumerate() {
        for (key, value) in transaction.steps.iter().filter_map(Step::written) {
            let is_last = history.writers.get(&value) == Some(&(index, true));
            if is_last && history.registers.contains(&key) {
                let register = registers.entry(key).or_default();
                register.writes.push((transaction.begun, index, value));
            }
        }
    }
    for (index, key, list) in history.all_reads() {
        if let Some(register) = registers.get_mut(&key) {
            let readers = register.readers.entry(list.last().copied());
            readers.or_default().push(index);
        }
    }
    for register in registers.values_mut() {
        register.writes.sort_unstable();
    }
    registers
}

impl Register {
    /// The transactions that have read `version`.
    fn readers(&self, version: Version) -> &[usize] {
        self.readers.get(&version).map_or(&[], Vec::as_slice)
    }

    /// The transactions that have read `version` and replace it.
    fn updates(&self, version: Version) -> impl Iterator<Item = usize> {
        let writers: BTreeSet<usize> = self.writes.iter().map(|(_, index, _)| *index).collect();
        let readers = self.readers(version).iter().copied();
        readers.filter(move |reader| writers.contains(reader))
    }

    /// # Errors
    /// `lost update`.
    fn check_updates(
        &self,
        history: &History<'_>,
        key: u64,
        version: Version,
    ) -> Result<(), Anomaly> {
        let updates: Vec<_> = self.updates(version).collect();
        if let [one, other, ..] = updates[..] {
            let steps = |index: usize| &history.transactions[index].steps;
            return Err(Anomaly {
                name: "lost update",
                what: format!(
                    "{one} {:?} and {other} {:?} both replace {version:?} of key {key}",
                    steps(one),
                    steps(other)
                ),
            });
        }
        Ok(())
    }

    /// The transactions that write a later version than `version`, without those of which the clock says that they follow
    /// another one of these.
    fn followers(&self, history: &History<'_>, version: Version, last: Version) -> BTreeSet<usize> {
        let transaction = |index: usize| &history.transactions[index];
        let mut followers: BTreeSet<usize> = self.updates(version).collect();
        let writer = version.and_then(|value| history.writer(value));
        let acknowledged = writer.map(|writer| transaction(writer).ended);
        let mut first_end = u64::MAX;
        for (begun, index, _) in &self.writes {
            if *begun > first_end {
                break;
            }
            if acknowledged.is_none_or(|acknowledged| *begun > acknowledged) {
                first_end = first_end.min(transaction(*index).ended);
                followers.insert(*index);
            }
        }
        if version != last {
            followers.extend(last.and_then(|value| history.writer(value)));
        }
        followers
    }
}
