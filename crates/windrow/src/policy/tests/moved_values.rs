//! Estimates of what segments refer to through relocation tables, and the pointer rewrites that they lead to.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::Random;
use super::notation::{parse_tree, show, tree};
use crate::base::FileNumber;
use crate::options::KeyspaceOptions;
use crate::policy::{FileSummary, MovedValues, Plan, ReferredLog, TreeSummary, plan};
use crate::table::{LogReferences, LogSums, Referred};
use crate::value::LogSummary;

const MIB: u64 = 1 << 20;

fn options() -> KeyspaceOptions {
    KeyspaceOptions {
        max_space_amp: f64::INFINITY,
        file_bytes: MIB,
        ..KeyspaceOptions::default()
    }
}

fn log(number: u64, bytes: u64, gc_output: Option<u64>) -> ReferredLog {
    ReferredLog {
        number: FileNumber(number),
        bytes,
        gc_output: gc_output.map(FileNumber),
    }
}

fn references(bytes: u64, (smallest, largest): (u64, u64), generation: u64) -> LogReferences {
    LogReferences {
        sums: LogSums {
            referred: Referred {
                entries: bytes.div_ceil(100),
                bytes,
            },
            smallest: FileNumber(smallest),
            largest: FileNumber(largest),
        },
        generation: FileNumber(generation),
    }
}

fn summary(number: u64, live_bytes: u64) -> LogSummary {
    LogSummary {
        number: FileNumber(number),
        table_bytes: 0,
        live_bytes,
        garbage_bytes: 0,
        moves: 1000,
        is_ready: true,
        is_held: false,
        is_open: false,
        failures: 0,
        is_resting: false,
    }
}

/// The part of all references in the span that lead through tables of newer GC outputs.
#[test]
fn an_estimate_is_a_part_of_the_references_in_the_span() {
    // Of 1000 bytes, 300 are in origins: 200 lead to 20, and 100 to 30.
    let moved = MovedValues::new([
        log(30, 100, None),
        log(2, 200, Some(20)),
        log(20, 300, None),
        log(5, 100, Some(30)),
        log(4, 300, None),
    ]);
    assert_eq!(moved.bytes(), 300);
    for (bytes, span, generation, expected) in [
        (500, (2, 30), 0, 150),
        (500, (1, 99), 19, 150),
        (500, (2, 30), 20, 50),
        (500, (2, 30), 29, 50),
        (500, (2, 30), 30, 0),
        (600, (2, 4), 0, 240),
        (600, (2, 4), 20, 0),
        (100, (3, 4), 0, 0),
        (100, (20, 30), 0, 0),
        (100, (2, 2), 0, 100),
        (100, (5, 5), 20, 100),
        (1, (2, 30), 0, 1),
        (u64::MAX, (2, 2), 0, u64::MAX),
        (100, (6, 9), 0, 0),
    ] {
        let own = references(bytes, span, generation);
        assert_eq!(moved.of(&own), expected, "{own:?}");
    }
    assert_eq!(MovedValues::default().of(&references(9, (1, 9), 0)), 0);
    // Damage.
    let huge = MovedValues::new([log(1, u64::MAX, Some(9)), log(2, u64::MAX, Some(9))]);
    assert!(huge.of(&references(10, (1, 2), 0)) <= 10);
}

proptest! {
    /// With many origins, sums of blocks give the same as a look at each.
    #[test]
    fn sums_are_those_of_the_origins(seed: u64) {
        let mut random = Random(seed);
        let mut logs = Vec::new();
        for number in 1..=u64::from(random.below(4000)) {
            let gc_output = (random.below(3) > 0).then(|| 5000 + u64::from(random.below(300)));
            logs.push(log(number, u64::from(random.below(1000)), gc_output));
        }
        let moved = MovedValues::new(logs.iter().copied());
        for _ in 0..40 {
            let smallest = u64::from(random.below(4100));
            let span = (smallest, smallest + u64::from(random.below(4100)));
            let generation = 4990 + u64::from(random.below(320));
            let own = references(1_000_000, span, generation);
            let within: Vec<_> = logs
                .iter()
                .filter(|log| (span.0..=span.1).contains(&log.number.0))
                .collect();
            let all: u64 = within.iter().map(|log| log.bytes).sum();
            let is_newer = |log: &&&ReferredLog| log.gc_output > Some(FileNumber(generation));
            let newer: u64 = within.iter().filter(is_newer).map(|log| log.bytes).sum();
            let expected = (1_000_000 * newer).div_ceil(all.max(1));
            prop_assert_eq!(moved.of(&own), expected);
        }
    }
}

/// The file with the most moved values for its bytes is rewritten, once too many values are found through tables.
#[test]
fn pointers_to_moved_values_are_rewritten() {
    for (moved, busy, expected) in [
        ([20, 30], false, "idle"),
        ([20, 31], false, "rewrite pointers of L1 2 over 101-200"),
        ([31, 20], false, "rewrite pointers of L1 1 over 0-100"),
        // The rest is not too much.
        ([20, 31], true, "idle"),
        // Nothing else can be rewritten.
        ([0, 99], true, "idle"),
        ([60, 70], true, "rewrite pointers of L1 1 over 0-100"),
    ] {
        let mut tree = parse_tree("| 1:0-100/64 2:101-200/64");
        tree.logs = vec![summary(3, 200 * MIB)];
        // The first file refers to logs 3 and 4, the second to 5 and 6. Logs 4 and 6 have moved to 7.
        let logs = [3, 5].into_iter().zip(moved).flat_map(|(first, moved)| {
            let stay = log(first, (100 - moved) * MIB, None);
            [stay, log(first + 1, moved * MIB, Some(7))]
        });
        tree.moved = MovedValues::new(logs);
        for (first, file) in [3, 5].into_iter().zip(&mut tree.levels[1]) {
            file.log_bytes = 100 * MIB;
            file.segments[0].logs = Some(references(100 * MIB, (first, first + 1), 0));
        }
        tree.levels[1][1].busy = busy;
        assert_eq!(show(&plan(&tree, &options(), &[])), expected);
    }
}

/// Level 0 goes down soon, so what it refers to does not count.
#[test]
fn moved_values_of_level_0_lead_to_no_rewrite() {
    let mut tree = parse_tree("1:0-100/64 | 2:0-200/64");
    tree.logs = vec![summary(7, 200 * MIB)];
    tree.moved = MovedValues::new([log(3, 90 * MIB, Some(7)), log(7, 110 * MIB, None)]);
    tree.levels[0][0].segments[0].logs = Some(references(90 * MIB, (3, 3), 0));
    tree.levels[1][0].segments[0].logs = Some(references(110 * MIB, (7, 7), 0));
    assert_eq!(show(&plan(&tree, &options(), &[])), "idle");
}

/// A table of the model: the bytes that it really refers to, by log or origin.
#[derive(Debug, Clone)]
struct Table {
    bytes: BTreeMap<u64, u64>,
    generation: u64,
}

/// Tables and value logs with their true references.
#[derive(Debug)]
struct Model {
    random: Random,
    tables: Vec<Table>,
    /// The GC output of each origin.
    outputs: BTreeMap<u64, u64>,
    next: u64,
}

impl Model {
    fn below(&mut self, end: usize) -> usize {
        self.random.below(u32::try_from(end).unwrap()) as usize
    }

    fn generation(&self) -> u64 {
        self.outputs.values().copied().max().unwrap_or(0)
    }

    fn flush(&mut self) {
        let logs = 1 + self.below(3);
        let first = self.next;
        self.next += logs as u64;
        let mut bytes = BTreeMap::new();
        for number in first..self.next {
            bytes.insert(number, 100 * (1 + self.below(50)) as u64);
        }
        let generation = self.generation();
        self.tables.push(Table { bytes, generation });
    }

    /// A table with the references of `table` as a compaction writes them, in `parts` of itself.
    fn rewritten(&self, table: &Table) -> Table {
        let mut bytes: BTreeMap<u64, u64> = BTreeMap::new();
        for (number, own) in &table.bytes {
            let number = self.outputs.get(number).unwrap_or(number);
            *bytes.entry(*number).or_default() += own;
        }
        let generation = self.generation();
        Table { bytes, generation }
    }

    /// Two tables become two, each with a part of the references of both.
    fn merge(&mut self) {
        if self.tables.len() < 2 {
            return;
        }
        for _ in 0..2 {
            let last = self.below(self.tables.len());
            let end = self.tables.len() - 1;
            self.tables.swap(last, end);
            self.tables.rotate_right(1);
        }
        let (mut left, mut right) = (self.tables.remove(0), self.tables.remove(0));
        for (number, bytes) in std::mem::take(&mut right.bytes) {
            let part = bytes / 200 * 100;
            right.bytes.insert(number, bytes - part);
            *left.bytes.entry(number).or_default() += part;
        }
        let overwritten = self.below(4);
        left.bytes
            .retain(|number, bytes| *bytes > 0 && number % 4 != overwritten as u64);
        for table in [left, right] {
            let table = self.rewritten(&table);
            self.tables
                .extend((!table.bytes.is_empty()).then_some(table));
        }
    }

    /// Collects some logs.
    fn collect(&mut self) {
        let referred = self.tables.iter().flat_map(|table| table.bytes.keys());
        let logs = referred.map(|number| self.outputs.get(number).unwrap_or(number));
        let logs: BTreeSet<u64> = logs.copied().collect();
        let logs: Vec<u64> = logs.into_iter().collect();
        if logs.is_empty() {
            return;
        }
        let output = self.next;
        self.next += 1;
        let count = 1 + self.below(4);
        let mut victims = BTreeSet::new();
        for _ in 0..count {
            victims.insert(logs[self.below(logs.len())]);
        }
        for led in self.outputs.values_mut() {
            if victims.contains(led) {
                *led = output;
            }
        }
        self.outputs
            .extend(victims.into_iter().map(|victim| (victim, output)));
        let tables = &self.tables;
        let is_referred = |origin: &u64| tables.iter().any(|it| it.bytes.contains_key(origin));
        self.outputs.retain(|origin, _| is_referred(origin));
    }

    /// The bytes that `table` really refers to through relocation tables.
    fn moved(&self, table: &Table) -> u64 {
        let bytes = table.bytes.iter();
        let moved = bytes.filter(|(number, _)| self.outputs.contains_key(number));
        moved.map(|(_, bytes)| *bytes).sum()
    }

    fn summary(&self) -> TreeSummary<u32> {
        let mut direct: BTreeMap<u64, u64> = BTreeMap::new();
        let mut live: BTreeMap<u64, u64> = BTreeMap::new();
        let files = (0_u32..).zip(&self.tables).map(|(position, table)| {
            for (number, bytes) in &table.bytes {
                *direct.entry(*number).or_default() += bytes;
                let held = self.outputs.get(number).unwrap_or(number);
                *live.entry(*held).or_default() += bytes;
            }
            let span = (
                *table.bytes.keys().min().unwrap(),
                *table.bytes.keys().max().unwrap(),
            );
            let bytes = table.bytes.values().sum();
            let keys = (position * 10, position * 10 + 5);
            let number = FileNumber(u64::from(position) + 1);
            let mut file = FileSummary::new(number, keys, MIB, 1000);
            file.log_bytes = bytes;
            file.segments[0].logs = Some(references(bytes, span, table.generation));
            file
        });
        let files = files.collect();
        let logs = direct
            .iter()
            .map(|(number, bytes)| log(*number, *bytes, self.outputs.get(number).copied()));
        TreeSummary {
            moved: MovedValues::new(logs),
            logs: live
                .iter()
                .map(|(number, bytes)| summary(*number, *bytes))
                .collect(),
            ..tree(1, vec![vec![], files])
        }
    }

    /// Rewrites pointers as long as the policy plans it. Returns the number of rewrites.
    fn rewrite(&mut self) -> usize {
        let mut rewritten = BTreeSet::new();
        loop {
            let tree = self.summary();
            let all: u64 = self.tables.iter().map(|table| self.moved(table)).sum();
            assert_eq!(tree.moved.bytes(), all, "the total is exact");
            let live: u64 = tree.logs.iter().map(|log| log.live_bytes).sum();
            for (table, file) in self.tables.iter().zip(&tree.levels[1]) {
                let estimate = tree.moved.of(file.segments[0].logs.as_ref().unwrap());
                assert!(estimate > 0 || self.moved(table) == 0, "I1: {table:?}");
                assert!(
                    estimate == 0 || table.generation < self.generation(),
                    "I2: {table:?}"
                );
                assert!(estimate <= file.log_bytes);
            }
            let Plan::Compact(compaction) = plan(&tree, &options(), &[]) else {
                assert!(
                    all as f64 <= 0.25 * live as f64,
                    "{all} of {live} are moved"
                );
                return rewritten.len();
            };
            assert_eq!(compaction.upper.len(), 1);
            let position = usize::try_from(compaction.upper[0].0).unwrap() - 1;
            assert!(
                rewritten.insert(position),
                "table {position} is rewritten twice"
            );
            self.tables[position] = self.rewritten(&self.tables[position]);
        }
    }
}

proptest! {
    // I1 and I2 of moved values; I1 and I2 of pointer rewrites
    #[test]
    fn rewrites_end_with_few_moved_values(seed: u64) {
        let random = Random(seed);
        let (tables, outputs) = (Vec::new(), BTreeMap::new());
        let mut model = Model { random, tables, outputs, next: 1 };
        for _ in 0..60 {
            match model.below(6) {
                0 | 1 if model.tables.len() < 40 => model.flush(),
                2 | 3 => model.merge(),
                _ => model.collect(),
            }
            model.rewrite();
            prop_assert_eq!(model.rewrite(), 0, "nothing is left to do");
        }
    }
}
