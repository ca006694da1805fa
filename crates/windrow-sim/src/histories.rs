//! Histories of transactions over lists and registers, and a check for the anomalies of Adya's thesis, in the way of Elle
//! (Kingsbury and Alvaro, 2020).
//!
//! A key holds a list or a register. A transaction reads keys, appends elements to lists, and replaces the values of
//! registers. Each element and each value occurs once in a history. So a read shows whose write it has seen, a list shows
//! the order of all writes to its key (`lists`), and a transaction that replaces a value which it has read shows which
//! of both comes later (`registers`). From that follow three kinds of dependencies between committed transactions:
//! - write-write: one writes the version after that of the other;
//! - write-read: one reads the last version that the other has written;
//! - read-write: one reads a version that the other follows with its own.
//!
//! A fourth one comes from the clock: one has begun after the other had ended. The check knows nothing of the database:
//! it sees what callers see.
//!
//! An absent key is an empty list, or a register without a value. So a scan is a read of every key of its range, and the
//! read-write dependency of an absent key finds phantoms.

mod graph;
mod lists;
mod registers;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use graph::Graph;

/// The elements that were appended to a key, in order, or the value of a register as the only one.
pub type List = Vec<u64>;

/// One operation of a transaction, with its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// The list of a key was read, or its register.
    Read(u64, List),
    /// An element was appended to the list of a key.
    Append(u64, u64),
    /// The register of a key got a value.
    Write(u64, u64),
}

impl Step {
    /// The key and the element of a write.
    pub fn written(&self) -> Option<(u64, u64)> {
        match self {
            Self::Read(..) => None,
            Self::Append(key, element) | Self::Write(key, element) => Some((*key, *element)),
        }
    }
}

/// A transaction that has committed, or may have.
#[derive(Debug, Clone)]
pub struct Transaction {
    /// Its operations. Those that a savepoint has undone are left out, except reads.
    pub steps: Vec<Step>,
    /// The time just before its first operation.
    pub begun: u64,
    /// The time just after its commit was acknowledged.
    pub ended: u64,
}

/// What a history may contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// No cycle at all.
    Serializable,
    /// Cycles with two read-write dependencies in a row (write skew).
    Snapshot,
}

/// An anomaly, with the transactions that show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Anomaly {
    /// Its name.
    pub name: &'static str,
    /// What was found.
    pub what: String,
}

impl fmt::Display for Anomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.what)
    }
}

/// Checks the history of the committed `transactions`; `last` has the lists and registers after all of them.
///
/// # Errors
/// The first anomaly that it finds.
pub fn check(
    transactions: &[Transaction],
    last: &BTreeMap<u64, List>,
    level: Level,
) -> Result<(), Anomaly> {
    for (index, transaction) in transactions.iter().enumerate() {
        check_own_view(index, transaction)?;
    }
    let history = History::new(transactions, last)?;
    history.check_origins()?;
    let mut graph = Graph::new(transactions);
    lists::check(&history, &mut graph)?;
    registers::check(&history, &mut graph)?;
    graph.check(level)
}

/// A transaction sees one version of each key, with its own writes.
fn check_own_view(index: usize, transaction: &Transaction) -> Result<(), Anomaly> {
    let mut expected: BTreeMap<u64, List> = BTreeMap::new();
    let mut own: BTreeMap<u64, List> = BTreeMap::new();
    for step in &transaction.steps {
        match step {
            Step::Append(key, element) => {
                own.entry(*key).or_default().push(*element);
                if let Some(list) = expected.get_mut(key) {
                    list.push(*element);
                }
            }
            Step::Write(key, value) => drop(expected.insert(*key, vec![*value])),
            Step::Read(key, list) => {
                let appended = own.get(key).map_or(&[][..], Vec::as_slice);
                let is_expected = match expected.get(key) {
                    Some(expected) => expected == list,
                    None => list.ends_with(appended),
                };
                if !is_expected {
                    return Err(Anomaly {
                        name: "internal",
                        what: format!("transaction {index} reads {list:?} of key {key}"),
                    });
                }
                expected.insert(*key, list.clone());
            }
        }
    }
    Ok(())
}

/// What the checks of lists and of registers need to know.
struct History<'a> {
    transactions: &'a [Transaction],
    last: &'a BTreeMap<u64, List>,
    /// The transaction that has written each element, and whether that is its last one for the key.
    writers: BTreeMap<u64, (usize, bool)>,
    /// The external reads of each transaction.
    reads: Vec<BTreeMap<u64, &'a [u64]>>,
    /// The keys of registers. All others are lists.
    registers: BTreeSet<u64>,
}

impl<'a> History<'a> {
    fn new(
        transactions: &'a [Transaction],
        last: &'a BTreeMap<u64, List>,
    ) -> Result<Self, Anomaly> {
        let steps = transactions.iter().flat_map(|it| &it.steps);
        let register = |step: &Step| match step {
            Step::Write(key, _) => Some(*key),
            Step::Read(..) | Step::Append(..) => None,
        };
        Ok(Self {
            transactions,
            last,
            writers: writers(transactions)?,
            reads: transactions.iter().map(external_reads).collect(),
            registers: steps.filter_map(register).collect(),
        })
    }

    /// The transaction that has written `element`.
    fn writer(&self, element: u64) -> Option<usize> {
        self.writers.get(&element).map(|(index, _)| *index)
    }

    /// All external reads: the transaction, the key, and what it has found.
    fn all_reads(&self) -> impl Iterator<Item = (usize, u64, &'a [u64])> {
        let reads = self.reads.iter().enumerate();
        reads.flat_map(|(index, reads)| reads.iter().map(move |(key, list)| (index, *key, *list)))
    }

    /// Everything that is there, or was read, is the last write of a committed transaction, or follows one in its list.
    fn check_origins(&self) -> Result<(), Anomaly> {
        for (key, list) in self.last {
            for element in list {
                if !self.writers.contains_key(element) {
                    return Err(Anomaly {
                        name: "G1a",
                        what: format!("element {element} of key {key} was never committed"),
                    });
                }
            }
        }
        for (index, key, list) in self.all_reads() {
            let name = match list.last().map(|element| self.writers.get(element)) {
                Some(None) => "G1a",
                Some(Some((_, false))) => "G1b",
                Some(Some((_, true))) | None => continue,
            };
            let what = format!("transaction {index} reads {list:?} of key {key}");
            return Err(Anomaly { name, what });
        }
        Ok(())
    }
}

fn writers(transactions: &[Transaction]) -> Result<BTreeMap<u64, (usize, bool)>, Anomaly> {
    let mut writers = BTreeMap::new();
    for (index, transaction) in transactions.iter().enumerate() {
        let mut newest: BTreeMap<u64, u64> = BTreeMap::new();
        for (key, element) in transaction.steps.iter().filter_map(Step::written) {
            if let Some(before) = newest.insert(key, element) {
                writers.insert(before, (index, false));
            }
            if writers.insert(element, (index, true)).is_some() {
                return Err(Anomaly {
                    name: "history",
                    what: format!("element {element} is written twice"),
                });
            }
        }
    }
    Ok(writers)
}

/// The external reads of a transaction: of each key what it found there, without its own writes.
fn external_reads(transaction: &Transaction) -> BTreeMap<u64, &[u64]> {
    let mut own: BTreeMap<u64, usize> = BTreeMap::new();
    let mut replaced = BTreeSet::new();
    let mut reads = BTreeMap::new();
    for step in &transaction.steps {
        match step {
            Step::Append(key, _) => *own.entry(*key).or_default() += 1,
            Step::Write(key, _) => drop(replaced.insert(*key)),
            Step::Read(key, list) if !replaced.contains(key) => {
                let found = list.len() - own.get(key).copied().unwrap_or(0).min(list.len());
                reads.entry(*key).or_insert(&list[..found]);
            }
            Step::Read(..) => {}
        }
    }
    reads
}

#[cfg(test)]
mod tests;
