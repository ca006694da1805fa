//! The bounded number of open value files.

use std::sync::atomic::Ordering;

use super::super::{OpenValues, ValueSlot};
use super::*;
use crate::ErrorKind;

struct Fixture {
    vfs: Arc<MemoryVfs>,
    values: OpenValues,
    files: Vec<(Arc<ValueSlot>, ValueFileMeta, ValuePointer)>,
}

fn fixture(count: u64, open_max: usize) -> Fixture {
    let vfs = Arc::new(MemoryVfs::default());
    let files = (1..=count)
        .map(|number| {
            let (meta, pointers) = write(&vfs, FileNumber(number), Keys::InTables, &entries(&[50]));
            (Arc::new(ValueSlot::default()), meta, pointers[0])
        })
        .collect();
    let shared = Arc::clone(&vfs) as Arc<dyn crate::vfs::Vfs>;
    let source = BlockSource::Mapped;
    let values = OpenValues::new(shared, "".into(), source, open_max, Arc::default());
    Fixture { vfs, values, files }
}

impl Fixture {
    fn try_read(&self, index: usize) -> Result<()> {
        let (slot, meta, pointer) = &self.files[index];
        let file = self.values.get(slot, meta)?;
        let entry = &entries(&[50])[0];
        assert!(*file.read(&entry.key, pointer)? == *entry.value);
        Ok(())
    }

    fn read(&self, index: usize) {
        self.try_read(index).unwrap();
    }

    /// How often a file was opened.
    fn opened(&self) -> usize {
        self.vfs.opened.load(Ordering::Relaxed)
    }

    /// How many files are open.
    fn open(&self) -> usize {
        let slots = self.files.iter().map(|(slot, _, _)| slot);
        slots.filter(|slot| slot.is_open()).count()
    }
}

impl ValueSlot {
    fn is_open(&self) -> bool {
        self.file.load().is_some()
    }
}

#[test]
fn an_open_file_is_opened_once() {
    let fixture = fixture(4, 16);
    for _ in 0..3 {
        (0..4).for_each(|index| fixture.read(index));
    }
    assert_eq!(fixture.opened(), 4);
}

#[test]
fn files_beyond_the_bound_are_closed_and_opened_again() {
    let fixture = fixture(40, 8);
    for round in 0..3 {
        for index in 0..40 {
            fixture.read(index);
            // One that is used all the time stays open.
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
fn files_that_are_read_stay_open_and_others_go_in_their_place() {
    let fixture = fixture(40, 8);
    let read: Vec<Arc<ValueFile>> = fixture.files[..6]
        .iter()
        .map(|(slot, meta, _)| Arc::clone(&fixture.values.get(slot, meta).unwrap()))
        .collect();
    (6..40).for_each(|index| fixture.read(index));
    let before = fixture.opened();
    (0..6).for_each(|index| fixture.read(index));
    assert_eq!(fixture.opened(), before);
    assert!(fixture.open() <= 8);
    drop(read);
    (6..40).for_each(|index| fixture.read(index));
    assert!(!fixture.files[0].0.is_open());
}

// I2
#[test]
fn a_loan_and_a_value_outlive_the_closing() {
    let fixture = fixture(40, 1);
    let (slot, meta, pointer) = &fixture.files[0];
    let entry = &entries(&[50])[0];
    let loan = fixture.values.get(slot, meta).unwrap();
    let value = loan.read(&entry.key, pointer).unwrap();
    slot.close();
    (1..40).for_each(|index| fixture.read(index));
    fixture.values.close();
    assert!(!slot.is_open());
    assert!(*loan.read(&entry.key, pointer).unwrap() == *entry.value);
    drop(loan);
    assert!(*value == *entry.value);
}

#[test]
fn nothing_is_opened_after_the_end() {
    let fixture = fixture(4, 16);
    fixture.read(0);
    let (slot, meta, _) = &fixture.files[0];
    let loan = fixture.values.get(slot, meta).unwrap();
    fixture.values.close();
    assert_eq!(fixture.open(), 0);
    drop(loan);
    for index in 0..4 {
        let error = fixture.try_read(index).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Closed);
    }
    // Nor is a file that went meanwhile called missing.
    crate::vfs::Vfs::remove(&*fixture.vfs, Path::new("000003.values")).unwrap();
    let error = fixture.try_read(2).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed);
    assert_eq!(fixture.open(), 0);
}

#[test]
fn a_file_that_cannot_be_opened_leaves_its_slot_empty() {
    let fixture = fixture(2, 16);
    let whole = bytes(&fixture.vfs, FileNumber(1));
    set_bytes(&fixture.vfs, FileNumber(1), &whole[1..]);
    let error = fixture.try_read(0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    assert!(error.to_string().contains("000001.values"), "{error}");
    set_bytes(&fixture.vfs, FileNumber(1), &whole);
    fixture.read(0);
}

#[test]
fn slots_of_dropped_files_leave_the_clock() {
    let mut fixture = fixture(40, 8);
    (0..39).for_each(|index| fixture.read(index));
    fixture.files.drain(..39);
    fixture.read(0);
    assert_eq!(fixture.open(), 1);
}

#[test]
fn threads_that_read_and_a_bound_that_closes_go_together() {
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
    (0..12).for_each(|index| fixture.read(index));
    assert!(fixture.open() <= 3);
}
