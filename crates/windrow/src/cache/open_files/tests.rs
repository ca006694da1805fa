//! The bounds on the number and the memory of open files, and what outlives a close.

use super::*;
use crate::ErrorKind;
use crate::base::sync::atomic::AtomicUsize;
use crate::base::{Held, MemoryTracker};

/// A file that takes one byte of memory.
#[derive(Debug)]
struct File {
    number: usize,
    held: Held,
}

#[derive(Debug)]
struct Budget {
    tracker: Arc<MemoryTracker>,
    bytes_max: u64,
}

impl CachedFile for File {
    type State = ();
    type Budget = Budget;

    fn memory_bytes(&self) -> u64 {
        self.held.bytes()
    }

    fn excess(budget: &Budget) -> Excess {
        Excess {
            files: budget.tracker.bytes().saturating_sub(budget.bytes_max),
            ..Excess::default()
        }
    }
}

struct Fixture {
    tracker: Arc<MemoryTracker>,
    cache: OpenFiles<File>,
    slots: Vec<Arc<FileSlot<File>>>,
    /// How often a file was opened.
    opened: AtomicUsize,
}

fn fixture_in(count: usize, open_max: usize, bytes_max: u64) -> Fixture {
    let tracker = Arc::new(MemoryTracker::default());
    let budget = Budget {
        tracker: Arc::clone(&tracker),
        bytes_max,
    };
    Fixture {
        tracker,
        cache: OpenFiles::new(open_max, budget),
        slots: (0..count).map(|_| Arc::default()).collect(),
        opened: AtomicUsize::new(0),
    }
}

fn fixture(count: usize, open_max: usize) -> Fixture {
    fixture_in(count, open_max, u64::MAX)
}

impl Fixture {
    fn try_get(&self, number: usize) -> Result<OpenFile<File>> {
        let slot = &self.slots[number];
        if let Some(file) = slot.get() {
            return Ok(file);
        }
        let held = Held::new(&self.tracker, 1);
        let file = || File { number, held };
        self.opened.fetch_add(1, Ordering::Relaxed);
        let open = || self.cache.unless_closed(file).map(Arc::new);
        self.cache.open(slot, open)
    }

    fn get(&self, number: usize) -> OpenFile<File> {
        let file = self.try_get(number).unwrap();
        assert_eq!(file.number, number);
        file
    }

    fn read(&self, number: usize) {
        drop(self.get(number));
    }

    fn opened(&self) -> usize {
        self.opened.load(Ordering::Relaxed)
    }

    fn is_open(&self, number: usize) -> bool {
        self.slots[number].peek().is_some()
    }

    /// How many files are open.
    fn open(&self) -> usize {
        let numbers = 0..self.slots.len();
        numbers.filter(|number| self.is_open(*number)).count()
    }
}

#[test]
fn an_open_file_is_opened_once() {
    let fixture = fixture(4, 16);
    for _ in 0..3 {
        (0..4).for_each(|number| fixture.read(number));
    }
    assert_eq!(fixture.opened(), 4);
}

#[test]
fn files_beyond_the_bound_are_closed_and_opened_again() {
    let fixture = fixture(40, 8);
    for round in 0..3 {
        for number in 0..40 {
            fixture.read(number);
            // A file that is used all the time stays open.
            fixture.read(0);
            assert!(fixture.open() <= 8);
        }
        assert!(fixture.opened() >= 39 * (round + 1) - 8);
    }
    let before = fixture.opened();
    fixture.read(0);
    assert_eq!(fixture.opened(), before);
}

#[test]
fn files_that_are_read_stay_open_and_others_are_closed_instead() {
    let fixture = fixture(40, 8);
    let read: Vec<Arc<File>> = (0..6)
        .map(|number| Arc::clone(&fixture.get(number)))
        .collect();
    (6..40).for_each(|number| fixture.read(number));
    let before = fixture.opened();
    (0..6).for_each(|number| fixture.read(number));
    assert_eq!(fixture.opened(), before);
    assert!(fixture.open() <= 8);
    drop(read);
    (6..40).for_each(|number| fixture.read(number));
    assert!(!fixture.is_open(0));
}

#[test]
fn open_files_stay_within_their_memory() {
    let fixture = fixture_in(40, 1000, 5);
    for number in 0..40 {
        fixture.read(number);
        assert!(fixture.tracker.bytes() <= 5);
    }
    assert_eq!(fixture.open(), 5);
    let _held = Held::new(&fixture.tracker, 2);
    fixture.cache.fit();
    assert_eq!(fixture.open(), 3);
}

// I2
#[test]
fn a_borrowed_file_outlives_its_close() {
    let fixture = fixture(40, 1);
    let file = fixture.get(0);
    fixture.slots[0].close();
    (1..40).for_each(|number| fixture.read(number));
    fixture.cache.close();
    assert!(!fixture.is_open(0));
    assert_eq!(file.number, 0);
}

#[test]
fn no_file_is_opened_after_the_close() {
    let fixture = fixture(4, 16);
    let file = fixture.get(0);
    fixture.cache.close();
    assert_eq!(fixture.open(), 0);
    drop(file);
    for number in 0..4 {
        let error = fixture.try_get(number).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Closed);
    }
    assert_eq!(fixture.open(), 0);
}

#[test]
fn a_replaced_file_stays_on_the_clock() {
    let fixture = fixture(2, 1);
    fixture.read(0);
    for number in [7, 8] {
        let held = Held::new(&fixture.tracker, 1);
        let file = Arc::new(File { number, held });
        let lock = fixture.slots[0].lock();
        fixture.cache.replace(&fixture.slots[0], file);
        drop(lock);
        let kept = fixture.slots[0].peek().map(|file| file.number);
        assert_eq!(
            kept,
            (number == 7).then_some(7),
            "a closed slot stays empty"
        );
        fixture.read(1);
        assert_eq!((fixture.open(), fixture.is_open(1)), (1, true));
    }
}

#[test]
fn slots_of_dropped_files_leave_the_clock() {
    let mut fixture = fixture(40, 8);
    (0..39).for_each(|number| fixture.read(number));
    let slot = fixture.slots.pop().unwrap();
    fixture.slots = vec![slot];
    fixture.opened = AtomicUsize::new(0);
    let held = Held::new(&fixture.tracker, 1);
    let open = || Ok(Arc::new(File { number: 0, held }));
    drop(fixture.cache.open(&fixture.slots[0], open).unwrap());
    assert!(fixture.is_open(0));
    assert_eq!(fixture.tracker.bytes(), 1);
}

#[test]
fn threads_that_read_tolerate_a_bound_that_closes() {
    let fixture = fixture(12, 3);
    std::thread::scope(|scope| {
        for thread in 0..4usize {
            let fixture = &fixture;
            scope.spawn(move || {
                for step in 0..2000usize {
                    fixture.read((step * (2 * thread + 1) + thread) % 12);
                }
            });
        }
    });
    (0..12).for_each(|number| fixture.read(number));
    assert!(fixture.open() <= 3);
}
