//! Queues pass few of the tombstones that they leave, however their pops, pushes and readers are mixed. The tests
//! count the entries that cursors pass; they measure no time.

#![expect(clippy::unwrap_used, reason = "a step that fails ends the test")]

use windrow::{Db, Keyspace, Options, Range, Result, Transaction};

/// The pops of a pattern. Without spans they would pass more than a million entries.
const POPS: u64 = 4_000;

/// The most entries that a pop may pass, on average.
const PASSED_PER_POP: u64 = 24;

struct Queues {
    db: Db,
    jobs: Keyspace,
    folder: tempfile::TempDir,
    /// What cursors passed before the last open.
    passed_before: u64,
}

fn key(queue: u64, number: u64) -> Vec<u8> {
    format!("{queue:02}/{number:06}").into_bytes()
}

fn prefix(queue: u64) -> Vec<u8> {
    format!("{queue:02}/").into_bytes()
}

impl Queues {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let db = Db::open(folder.path(), Options::default()).unwrap();
        let jobs = db.keyspace("jobs").unwrap();
        Self {
            db,
            jobs,
            folder,
            passed_before: 0,
        }
    }

    /// `count` queues with all their jobs.
    fn full(count: u64) -> Self {
        let queues = Self::new();
        for number in 0..POPS {
            queues.push(number % count, 1 + number / count);
        }
        queues
    }

    fn push(&self, queue: u64, number: u64) {
        self.jobs.insert(key(queue, number), b"job").unwrap();
    }

    fn range(&self, queue: u64) -> Range {
        self.jobs.prefix(prefix(queue)).unwrap()
    }

    /// Takes the first job of `range`.
    fn pop(&self, mut range: Range) -> Vec<u8> {
        let (job, _) = range.next().unwrap().unwrap();
        self.jobs.remove(&job).unwrap();
        job
    }

    fn passed(&self) -> u64 {
        self.passed_before + self.db.stats().entries_passed
    }

    #[track_caller]
    fn check_passed(&self) {
        let passed = self.passed();
        assert!(
            passed <= POPS * PASSED_PER_POP,
            "{passed} entries in {POPS} pops"
        );
    }

    fn reopen(self) -> Self {
        let passed_before = self.passed();
        drop(self.jobs);
        self.db.close().unwrap();
        let db = Db::open(self.folder.path(), Options::default()).unwrap();
        let jobs = db.keyspace("jobs").unwrap();
        Self {
            db,
            jobs,
            folder: self.folder,
            passed_before,
        }
    }
}

#[test]
fn queues_in_turn() {
    for count in [1, 2, 4, 50] {
        let queues = Queues::full(count);
        for number in 0..POPS {
            let job = queues.pop(queues.range(number % count));
            assert_eq!(job, key(number % count, 1 + number / count));
        }
        queues.check_passed();
    }
}

#[test]
fn readers_with_other_starts() {
    let queues = Queues::full(1);
    for number in 0..POPS {
        let range = match number % 3 {
            0 => queues.range(0),
            1 => queues.jobs.iter().unwrap(),
            _ => queues.jobs.range(key(0, number / 2)..).unwrap(),
        };
        assert_eq!(queues.pop(range), key(0, 1 + number));
    }
    queues.check_passed();
}

#[test]
fn pops_by_transactions() {
    let queues = Queues::full(2);
    for number in 0..POPS {
        let pop = |it: &Transaction| -> Result<Vec<u8>> {
            let (job, _) = it
                .prefix(&queues.jobs, prefix(number % 2))?
                .next()
                .unwrap()?;
            it.remove(&queues.jobs, &job)?;
            Ok(job)
        };
        let job = queues.db.transact(pop).unwrap();
        assert_eq!(job, key(number % 2, 1 + number / 2));
    }
    queues.check_passed();
}

#[test]
fn urgent_jobs_before_the_others() {
    let queues = Queues::full(1);
    let (mut urgent, mut next) = (0, 0);
    for number in 0..POPS {
        if number % 5 == 0 {
            // Within what was popped before, each at another place.
            urgent = number * 7_919 % (next + 1);
            queues.push(0, urgent);
        }
        let job = queues.pop(queues.range(0));
        if number % 5 == 0 {
            assert_eq!(job, key(0, urgent));
        } else {
            next += 1;
            assert_eq!(job, key(0, next));
        }
    }
    queues.check_passed();
}

#[test]
fn an_open_in_the_middle_passes_all_once() {
    let mut queues = Queues::full(1);
    for number in 0..POPS {
        if number == POPS / 2 {
            queues = queues.reopen();
        }
        assert_eq!(queues.pop(queues.range(0)), key(0, 1 + number));
    }
    queues.check_passed();
}

#[test]
fn pops_from_the_back() {
    let queues = Queues::full(1);
    for number in (0..POPS).rev() {
        let mut range = match number % 2 {
            0 => queues.range(0),
            _ => queues.jobs.iter().unwrap(),
        };
        let (job, _) = range.next_back().unwrap().unwrap();
        assert_eq!(job, key(0, 1 + number));
        queues.jobs.remove(&job).unwrap();
    }
    queues.check_passed();
}

#[test]
fn pops_from_both_ends_with_pushes() {
    let queues = Queues::new();
    let (mut first, mut end) = (1, 1);
    let mut random = 3_u64;
    for _ in 0..POPS {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        match random >> 62 {
            0 | 1 => {
                queues.push(0, end);
                end += 1;
            }
            2 if first < end => {
                assert_eq!(queues.pop(queues.range(0)), key(0, first));
                first += 1;
            }
            3 if first < end => {
                let (job, _) = queues.range(0).next_back().unwrap().unwrap();
                end -= 1;
                assert_eq!(job, key(0, end));
                queues.jobs.remove(&job).unwrap();
            }
            _ => assert!(queues.range(0).next().is_none()),
        }
    }
    queues.check_passed();
}

#[test]
fn scans_across_a_hole_pass_it_once() {
    // The first scan remembers the hole for scans in both directions.
    for first in 0..2 {
        let queues = Queues::full(1);
        for number in POPS / 4..POPS / 4 * 3 {
            queues.jobs.remove(key(0, number)).unwrap();
        }
        for scan in first..40 {
            let range = queues.range(0);
            let left = if scan % 2 == 0 {
                range.count()
            } else {
                range.rev().count()
            };
            assert_eq!(left as u64, POPS / 2);
        }
        queues.check_passed();
    }
}

#[test]
fn an_older_snapshot_sees_what_was_popped() {
    let queues = Queues::full(1);
    let snapshot = queues.db.snapshot();
    for _ in 0..100 {
        queues.pop(queues.range(0));
    }
    let first = |range: Range| range.map(|entry| entry.unwrap().0).next();
    let view = queues.jobs.at(&snapshot).unwrap();
    assert_eq!(first(view.iter().unwrap()), Some(key(0, 1)));
    assert_eq!(first(queues.range(0)), Some(key(0, 101)));
    assert_eq!(view.iter().unwrap().count() as u64, POPS);
    assert_eq!(queues.range(0).count() as u64, POPS - 100);
}
