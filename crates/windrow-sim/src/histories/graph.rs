//! The dependencies between transactions, and the cycles that they may not have.

use std::collections::{BTreeSet, VecDeque};

use super::{Anomaly, Level, Transaction};

/// How one transaction depends on another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Dependency {
    WriteWrite,
    WriteRead,
    Clock,
    ReadWrite,
}

/// The dependencies of a history. The nodes are its transactions, and after them the moments of its clock.
pub(super) struct Graph<'a> {
    transactions: &'a [Transaction],
    /// From each node to those that come after it.
    nodes: Vec<BTreeSet<(usize, Dependency)>>,
}

impl<'a> Graph<'a> {
    /// The dependencies by the clock: a transaction leads to the moment of its end, each moment to the next one, and the
    /// moment of its beginning to the transaction.
    pub(super) fn new(transactions: &'a [Transaction]) -> Self {
        let mut moments: Vec<(u64, usize, bool)> = Vec::new();
        for (index, transaction) in transactions.iter().enumerate() {
            moments.push((transaction.begun, index, true));
            moments.push((transaction.ended, index, false));
        }
        moments.sort_unstable();
        let count = transactions.len() + moments.len() + 1;
        let mut graph = Self {
            transactions,
            nodes: vec![BTreeSet::new(); count],
        };
        for (position, (_, index, is_begin)) in moments.into_iter().enumerate() {
            let moment = transactions.len() + position;
            graph.add(moment, moment + 1, Dependency::Clock);
            if is_begin {
                graph.add(moment, index, Dependency::Clock);
            } else {
                graph.add(index, moment, Dependency::Clock);
            }
        }
        graph
    }

    /// Adds that `to` depends on `from`.
    pub(super) fn add(&mut self, from: usize, to: usize, dependency: Dependency) {
        if from != to {
            self.nodes[from].insert((to, dependency));
        }
    }

    /// # Errors
    /// A cycle that `level` forbids.
    pub(super) fn check(&self, level: Level) -> Result<(), Anomaly> {
        match level {
            Level::Serializable => match self.find_cycle(|_| true) {
                Some(cycle) => Err(self.describe(self.name_of(&cycle), &cycle)),
                None => Ok(()),
            },
            Level::Snapshot => self.check_snapshots(),
        }
    }

    /// A shortest path from `from` to `to` along dependencies that `takes`.
    fn path(
        &self,
        from: usize,
        to: usize,
        takes: impl Fn(Dependency) -> bool,
    ) -> Option<Vec<usize>> {
        let mut before = vec![None; self.nodes.len()];
        let mut queue = VecDeque::from([from]);
        while let Some(node) = queue.pop_front() {
            for (next, _) in self.nodes[node].iter().filter(|(_, it)| takes(*it)) {
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

    /// The nodes in an order that follows the dependencies that `takes`, without those on a cycle and those behind one.
    fn ordered(&self, takes: impl Fn(Dependency) -> bool) -> Vec<usize> {
        let mut ways_in = vec![0_usize; self.nodes.len()];
        for (to, _) in self.nodes.iter().flatten().filter(|(_, it)| takes(*it)) {
            ways_in[*to] += 1;
        }
        let mut ordered: Vec<_> = (0..self.nodes.len())
            .filter(|node| ways_in[*node] == 0)
            .collect();
        let mut next = 0;
        while let Some(node) = ordered.get(next) {
            next += 1;
            for (to, _) in self.nodes[*node].iter().filter(|(_, it)| takes(*it)) {
                ways_in[*to] -= 1;
                if ways_in[*to] == 0 {
                    ordered.push(*to);
                }
            }
        }
        ordered
    }

    /// A cycle along dependencies that `takes`: its nodes, the first one again at the end.
    fn find_cycle(&self, takes: impl Fn(Dependency) -> bool) -> Option<Vec<usize>> {
        let mut is_left = vec![true; self.nodes.len()];
        for node in self.ordered(&takes) {
            is_left[node] = false;
        }
        let mut left = (0..self.nodes.len()).filter(|node| is_left[*node]);
        left.find_map(|node| self.path(node, node, &takes))
    }

    /// For each node a bit for each one that is reached from it along dependencies that `takes`, which have no cycle.
    fn reached(&self, takes: impl Fn(Dependency) -> bool) -> Vec<Vec<u64>> {
        let mut reached = vec![vec![0_u64; self.nodes.len().div_ceil(64)]; self.nodes.len()];
        for node in self.ordered(&takes).into_iter().rev() {
            let mut own = std::mem::take(&mut reached[node]);
            for (to, _) in self.nodes[node].iter().filter(|(_, it)| takes(*it)) {
                for (own, theirs) in own.iter_mut().zip(&reached[*to]) {
                    *own |= theirs;
                }
                own[to / 64] |= 1 << (to % 64);
            }
            reached[node] = own;
        }
        reached
    }

    /// Under snapshot isolation no cycle has fewer than two read-write dependencies in a row.
    fn check_snapshots(&self) -> Result<(), Anomaly> {
        let is_forward = |dependency| dependency != Dependency::ReadWrite;
        if let Some(cycle) = self.find_cycle(is_forward) {
            return Err(self.describe(self.name_of(&cycle), &cycle));
        }
        let reached = self.reached(is_forward);
        for (from, dependencies) in self.nodes.iter().enumerate() {
            for (to, _) in dependencies.iter().filter(|(_, it)| !is_forward(*it)) {
                if reached[*to][from / 64] & 1 << (from % 64) == 0 {
                    continue;
                }
                if let Some(mut back) = self.path(*to, from, is_forward) {
                    back.push(*to);
                    return Err(self.describe("G-single", &back));
                }
            }
        }
        Ok(())
    }

    /// The name of a cycle, by the dependencies that it needs.
    fn name_of(&self, cycle: &[usize]) -> &'static str {
        let weakest = |pair: &[usize]| {
            let found = self.nodes[pair[0]].iter().filter(|(to, _)| *to == pair[1]);
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

    fn describe(&self, name: &'static str, cycle: &[usize]) -> Anomaly {
        let nodes = cycle.iter().filter_map(|node| {
            let transaction = self.transactions.get(*node)?;
            Some(format!("{node} {:?}", transaction.steps))
        });
        let what = nodes.collect::<Vec<_>>().join(" -> ");
        Anomaly { name, what }
    }
}
