//! Histories of transactions over lists, and a check for the anomalies of Adya's thesis, in the way of Elle (Kingsbury
//! and Alvaro, 2020).
//!
//! Each key holds a list. A transaction reads lists and appends elements, each of which occurs once in a history. So a
//! list shows the order of all writes to its key, and a read shows which of them it has seen. From that follow three
//! kinds of dependencies between committed transactions:
//! - write-write: one appends the element after that of the other;
//! - write-read: one reads the last element that the other has appended;
//! - read-write: one reads a list to which the other appends the next element.
//!
//! A fourth one comes from the clock: one has begun after the other had ended. The check knows nothing of the database:
//! it sees what callers see.
//!
//! An absent key is an empty list. So a scan is a read of every key of its range, and the read-write dependency of an
//! empty list finds phantoms.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The elements that were appended to a key, in order.
pub type List = Vec<u64>;

/// One operation of a transaction, with its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// The list of a key was read.
    Read(u64, List),
    /// An element was appended to the list of a key.
    Append(u64, u64),
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

/// How one transaction depends on another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Dependency {
    WriteWrite,
    WriteRead,
    Clock,
    ReadWrite,
}

/// The dependencies of a history: from each transaction to those that come after it.
type Graph = Vec<BTreeSet<(usize, Dependency)>>;

/// Checks the history of the committed `transactions`; `last` has the lists after all of them.
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
    let writers = writers(transactions)?;
    check_lists(transactions, last, &writers)?;
    let graph = graph(transactions, last, &writers);
    match level {
        Level::Serializable => find_cycle(&graph, |_| true).map_or(Ok(()), |cycle| {
            let name = name_of(&graph, &cycle);
            Err(describe(name, transactions, &cycle))
        }),
        Level::Snapshot => check_snapshots(transactions, &graph),
    }
}

/// A transaction sees one list for each key, with its own appends at its end.
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

/// The transaction that has appended each element, and whether the element is its last one for the key.
type Writers = BTreeMap<u64, (usize, bool)>;

fn writers(transactions: &[Transaction]) -> Result<Writers, Anomaly> {
    let mut writers = Writers::new();
    for (index, transaction) in transactions.iter().enumerate() {
        let mut newest: BTreeMap<u64, u64> = BTreeMap::new();
        for step in &transaction.steps {
            let Step::Append(key, element) = step else {
                continue;
            };
            if let Some(before) = newest.insert(*key, *element) {
                writers.insert(before, (index, false));
            }
            if writers.insert(*element, (index, true)).is_some() {
                return Err(Anomaly {
                    name: "history",
                    what: format!("element {element} is appended twice"),
                });
            }
        }
    }
    Ok(writers)
}

/// The external reads of a transaction: of each key the list that it found, without its own appends.
fn external_reads(transaction: &Transaction) -> BTreeMap<u64, &[u64]> {
    let mut own: BTreeMap<u64, usize> = BTreeMap::new();
    let mut reads = BTreeMap::new();
    for step in &transaction.steps {
        match step {
            Step::Append(key, _) => *own.entry(*key).or_default() += 1,
            Step::Read(key, list) => {
                let found = list.len() - own.get(key).copied().unwrap_or(0).min(list.len());
                reads.entry(*key).or_insert(&list[..found]);
            }
        }
    }
    reads
}

/// Each list that was read is a beginning of the last one, and ends with the last append of a committed transaction.
fn check_lists(
    transactions: &[Transaction],
    last: &BTreeMap<u64, List>,
    writers: &Writers,
) -> Result<(), Anomaly> {
    for (key, list) in last {
        for element in list {
            if !writers.contains_key(element) {
                return Err(Anomaly {
                    name: "G1a",
                    what: format!("element {element} of key {key} was never committed"),
                });
            }
        }
    }
    for (element, (index, _)) in writers {
        let is_there = |step: &Step| match step {
            Step::Append(key, it) if it == element => {
                last.get(key).is_some_and(|list| list.contains(element))
            }
            _ => true,
        };
        if !transactions[*index].steps.iter().all(is_there) {
            return Err(Anomaly {
                name: "lost",
                what: format!("element {element} of transaction {index} is gone"),
            });
        }
    }
    for (index, transaction) in transactions.iter().enumerate() {
        for (key, list) in external_reads(transaction) {
            let whole = last.get(&key).map_or(&[][..], Vec::as_slice);
            let problem = match list.last().map(|element| writers.get(element)) {
                _ if !whole.starts_with(list) => Some("incompatible order"),
                Some(None) => Some("G1a"),
                Some(Some((_, false))) => Some("G1b"),
                Some(Some((_, true))) | None => None,
            };
            if let Some(name) = problem {
                return Err(Anomaly {
                    name,
                    what: format!("transaction {index} reads {list:?} of key {key}: {whole:?}"),
                });
            }
        }
    }
    Ok(())
}

/// The dependencies between transactions, and after them the moments of the clock as further nodes.
fn graph(transactions: &[Transaction], last: &BTreeMap<u64, List>, writers: &Writers) -> Graph {
    let mut graph = Graph::new();
    let mut add = |from: usize, to: usize, dependency| {
        let length = graph.len().max(from.max(to) + 1);
        graph.resize_with(length, BTreeSet::new);
        if from != to {
            graph[from].insert((to, dependency));
        }
    };
    let writer = |element: &u64| writers.get(element).map(|(index, _)| *index);
    for list in last.values() {
        for pair in list.windows(2) {
            if let (Some(from), Some(to)) = (writer(&pair[0]), writer(&pair[1])) {
                add(from, to, Dependency::WriteWrite);
            }
        }
    }
    for (index, transaction) in transactions.iter().enumerate() {
        for (key, list) in external_reads(transaction) {
            if let Some(from) = list.last().and_then(writer) {
                add(from, index, Dependency::WriteRead);
            }
            let next = last.get(&key).and_then(|whole| whole.get(list.len()));
            if let Some(to) = next.and_then(writer) {
                add(index, to, Dependency::ReadWrite);
            }
        }
    }
    // A chain of moments: a transaction leads to the moment of its end, and the moment of its beginning leads to it.
    let mut moments: Vec<(u64, usize, bool)> = Vec::new();
    for (index, transaction) in transactions.iter().enumerate() {
        moments.push((transaction.begun, index, true));
        moments.push((transaction.ended, index, false));
    }
    moments.sort_unstable();
    for (position, (_, index, is_begin)) in moments.into_iter().enumerate() {
        let moment = transactions.len() + position;
        add(moment, moment + 1, Dependency::Clock);
        if is_begin {
            add(moment, index, Dependency::Clock);
        } else {
            add(index, moment, Dependency::Clock);
        }
    }
    graph
}

/// A shortest path from `from` to `to` along dependencies that `takes`.
fn path(
    graph: &Graph,
    from: usize,
    to: usize,
    takes: impl Fn(Dependency) -> bool,
) -> Option<Vec<usize>> {
    let mut before = vec![None; graph.len()];
    let mut queue = std::collections::VecDeque::from([from]);
    while let Some(node) = queue.pop_front() {
        for (next, _) in graph[node].iter().filter(|(_, it)| takes(*it)) {
            if before[*next].is_some() {
                continue;
            }
            before[*next] = Some(node);
            if *next == to {
                let mut path = vec![to];
                let mut node = node;
                while node != from {
                    path.push(node);
                    node = before[node]?;
                }
                path.push(from);
                path.reverse();
                return Some(path);
            }
            queue.push_back(*next);
        }
    }
    None
}

/// A cycle along dependencies that `takes`: its nodes, the first one again at the end.
fn find_cycle(graph: &Graph, takes: impl Fn(Dependency) -> bool) -> Option<Vec<usize>> {
    // Nodes without a way in are in no cycle; what is left after their removal has one.
    let mut ways_in = vec![0_usize; graph.len()];
    for (to, _) in graph.iter().flatten().filter(|(_, it)| takes(*it)) {
        ways_in[*to] += 1;
    }
    let mut free: Vec<_> = (0..graph.len())
        .filter(|node| ways_in[*node] == 0)
        .collect();
    while let Some(node) = free.pop() {
        for (to, _) in graph[node].iter().filter(|(_, it)| takes(*it)) {
            ways_in[*to] -= 1;
            if ways_in[*to] == 0 {
                free.push(*to);
            }
        }
    }
    let mut left = (0..graph.len()).filter(|node| ways_in[*node] > 0);
    left.find_map(|node| path(graph, node, node, &takes))
}

/// Under snapshot isolation no cycle has fewer than two read-write dependencies in a row.
fn check_snapshots(transactions: &[Transaction], graph: &Graph) -> Result<(), Anomaly> {
    let is_forward = |dependency| dependency != Dependency::ReadWrite;
    if let Some(cycle) = find_cycle(graph, is_forward) {
        return Err(describe(name_of(graph, &cycle), transactions, &cycle));
    }
    for (from, dependencies) in graph.iter().enumerate() {
        for (to, _) in dependencies.iter().filter(|(_, it)| !is_forward(*it)) {
            if let Some(mut back) = path(graph, *to, from, is_forward) {
                back.push(*to);
                return Err(describe("G-single", transactions, &back));
            }
        }
    }
    Ok(())
}

/// The name of a cycle, by the dependencies that it needs.
fn name_of(graph: &Graph, cycle: &[usize]) -> &'static str {
    let weakest = |pair: &[usize]| {
        let found = graph[pair[0]].iter().filter(|(to, _)| *to == pair[1]);
        found.map(|(_, dependency)| *dependency).min()
    };
    let needed: Vec<_> = cycle.windows(2).filter_map(weakest).collect();
    let count = |dependency| needed.iter().filter(|it| **it == dependency).count();
    match count(Dependency::ReadWrite) {
        0 if count(Dependency::WriteRead) + count(Dependency::Clock) == 0 => "G0",
        0 => "G1c",
        1 => "G-single",
        _ => "G2",
    }
}

fn describe(name: &'static str, transactions: &[Transaction], cycle: &[usize]) -> Anomaly {
    let nodes = cycle.iter().filter_map(|node| {
        let transaction = transactions.get(*node)?;
        Some(format!("{node} {:?}", transaction.steps))
    });
    let what = nodes.collect::<Vec<_>>().join(" -> ");
    Anomaly { name, what }
}

#[cfg(test)]
mod tests;
