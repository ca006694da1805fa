//! The operands of a key that is written and read often stay few, in memtables and in tables.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use windrow::operators::AddU64;
use windrow::{Db, KeyspaceOptions, MergeError, MergeOperator, Operands, Options};

use crate::open;

/// Adds numbers, and counts the operands that it gets.
struct Counting {
    operands: Arc<AtomicU64>,
    is_partial: bool,
}

impl MergeOperator for Counting {
    fn name(&self) -> &'static str {
        "test.counting"
    }

    fn full_merge(
        &self,
        key: &[u8],
        base: Option<&[u8]>,
        operands: Operands<'_>,
        result: &mut Vec<u8>,
    ) -> Result<(), MergeError> {
        self.operands
            .fetch_add(operands.len() as u64, Ordering::Relaxed);
        AddU64::Wrapping.full_merge(key, base, operands, result)
    }

    fn partial_merge(
        &self,
        key: &[u8],
        operands: Operands<'_>,
        result: &mut Vec<u8>,
    ) -> Result<bool, MergeError> {
        self.operands
            .fetch_add(operands.len() as u64, Ordering::Relaxed);
        Ok(self.is_partial && AddU64::Wrapping.partial_merge(key, operands, result)?)
    }
}

fn counting(is_partial: bool) -> (Counting, Arc<AtomicU64>) {
    let operands = Arc::new(AtomicU64::new(0));
    let operator = Counting {
        operands: Arc::clone(&operands),
        is_partial,
    };
    (operator, operands)
}

fn number(value: Option<Vec<u8>>) -> u64 {
    u64::from_le_bytes(value.unwrap().try_into().unwrap())
}

#[test]
fn reads_of_a_hot_key_fold_few_operands() {
    const WRITES: u64 = 300;
    let folder = tempfile::tempdir().unwrap();
    let (operator, operands) = counting(true);
    let (db, map) = open(folder.path(), operator);
    // Neighbours, so that the hot key begins and ends leaves of the memtable.
    for neighbour in 0..30 {
        map.insert(format!("h{neighbour}"), "x").unwrap();
    }
    for write in 1..=WRITES {
        map.merge("hot", 1_u64.to_le_bytes()).unwrap();
        assert_eq!(number(map.get("hot").unwrap()), write);
    }
    let folded = operands.load(Ordering::Relaxed);
    assert!(folded <= 9 * WRITES, "{folded} operands for {WRITES} reads");
    // A long chain is paid once.
    for _ in 0..WRITES {
        map.merge("hot", 1_u64.to_le_bytes()).unwrap();
    }
    // Flushes and compactions fold, too.
    db.wait_idle().unwrap();
    operands.store(0, Ordering::Relaxed);
    for _ in 0..WRITES {
        assert_eq!(number(map.get("hot").unwrap()), 2 * WRITES);
    }
    let folded = operands.load(Ordering::Relaxed);
    assert!(folded <= WRITES + 9, "{folded} operands for {WRITES} reads");
    // What reads have folded in the memtable is not in the log, and is not needed there.
    db.close().unwrap();
    let (db, map) = open(folder.path(), counting(true).0);
    assert_eq!(number(map.get("hot").unwrap()), 2 * WRITES);
    db.flush().unwrap();
    assert_eq!(number(map.get("hot").unwrap()), 2 * WRITES);
}

#[test]
fn reads_at_a_snapshot_fold_what_they_see() {
    let folder = tempfile::tempdir().unwrap();
    let (db, map) = open(folder.path(), AddU64::Wrapping);
    let mut snapshots = Vec::new();
    for write in 1..=200_u64 {
        map.merge("hot", 1_u64.to_le_bytes()).unwrap();
        if write % 13 == 0 {
            snapshots.push((write, db.snapshot()));
        }
    }
    for round in 0..3 {
        assert_eq!(number(map.get("hot").unwrap()), 200);
        for (expected, snapshot) in snapshots.iter().rev() {
            assert_eq!(
                number(map.at(snapshot).unwrap().get("hot").unwrap()),
                *expected
            );
        }
        match round {
            0 => db.flush().unwrap(),
            _ => map.compact_range::<&[u8]>(..).unwrap(),
        }
    }
}

/// Adds numbers; fails without operands, as it may.
struct NeedsOperands;

impl MergeOperator for NeedsOperands {
    fn name(&self) -> &'static str {
        "test.needs_operands"
    }

    fn full_merge(
        &self,
        key: &[u8],
        base: Option<&[u8]>,
        operands: Operands<'_>,
        result: &mut Vec<u8>,
    ) -> Result<(), MergeError> {
        if operands.len() == 0 {
            return Err(MergeError::new("no operands"));
        }
        AddU64::Wrapping.full_merge(key, base, operands, result)
    }
}

/// Two readers fold the same operands at once, and one of them replaces the newest before the other has copied it.
#[test]
fn readers_of_one_chain_do_not_disturb_each_other() {
    const KEYS: u32 = 20_000;
    const OPERANDS: u64 = 9;
    let folder = tempfile::tempdir().unwrap();
    let mut options = Options::default().with_merge_operator("map", Arc::new(NeedsOperands));
    options.keyspace = KeyspaceOptions::default();
    let db = Db::open(folder.path(), options).unwrap();
    let map = db.keyspace("map").unwrap();
    for key in 0..KEYS {
        for _ in 0..OPERANDS {
            map.merge(key.to_be_bytes(), 1_u64.to_le_bytes()).unwrap();
        }
    }
    // Readers that begin a stretch of keys together are at the same key again and again.
    let start = Barrier::new(2);
    let wrong = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for key in 0..KEYS {
                    if key % 100 == 0 {
                        start.wait();
                    }
                    let is_right = matches!(map.get(key.to_be_bytes()).map(number), Ok(OPERANDS));
                    wrong.fetch_add(u64::from(!is_right), Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(wrong.load(Ordering::Relaxed), 0);
}

/// Between two snapshots there is one operand, whatever the key's value is.
#[test]
fn operands_between_snapshots_are_folded_to_one() {
    for is_partial in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let (db, map) = open(folder.path(), counting(is_partial).0);
        map.insert("hot", 0_u64.to_le_bytes()).unwrap();
        let first = db.snapshot();
        for _ in 0..50 {
            map.merge("hot", 1_u64.to_le_bytes()).unwrap();
        }
        let second = db.snapshot();
        for _ in 0..50 {
            map.merge("hot", 1_u64.to_le_bytes()).unwrap();
        }
        db.flush().unwrap();
        let entries = || -> u64 {
            let stats = db.stats();
            stats.keyspaces[0]
                .levels
                .iter()
                .map(|level| level.entries)
                .sum()
        };
        // The value, and one operand or all for each of the two ranges.
        assert_eq!(entries(), if is_partial { 3 } else { 101 });
        // A get without a snapshot may leave what it folds to a job.
        let third = db.snapshot();
        for (expected, snapshot) in [(0, &first), (50, &second), (100, &third)] {
            assert_eq!(
                number(map.at(snapshot).unwrap().get("hot").unwrap()),
                expected
            );
        }
        drop((first, second, third));
        map.compact_range::<&[u8]>(..).unwrap();
        assert_eq!(entries(), 1);
        assert_eq!(number(map.get("hot").unwrap()), 100);
        assert_eq!(db.stats().operands, 100);
        assert_eq!(db.stats().entries_folded, 100);
    }
}
