//! The bounded set of open value files; `cache/open_files/tests.rs` has the tests of the bounds.

use super::super::{OpenValues, ValueSlot};
use super::*;
use crate::ErrorKind;

struct Fixture {
    vfs: Arc<MemoryVfs>,
    values: OpenValues,
    slot: Arc<ValueSlot>,
    meta: ValueFileMeta,
    pointer: ValuePointer,
}

fn fixture() -> Fixture {
    let vfs = Arc::new(MemoryVfs::default());
    let (meta, pointers) = write(&vfs, NUMBER, Keys::InTables, &entries(&[50]));
    let shared = Arc::clone(&vfs) as Arc<dyn crate::vfs::Vfs>;
    Fixture {
        vfs,
        values: OpenValues::new(shared, "".into(), BlockSource::Mapped.into(), 8),
        slot: Arc::default(),
        meta,
        pointer: pointers[0],
    }
}

impl Fixture {
    fn read(&self) -> Result<()> {
        let file = self.values.get(&self.slot, &self.meta)?;
        let entry = &entries(&[50])[0];
        assert!(*file.read(&entry.key, &self.pointer)? == *entry.value);
        Ok(())
    }
}

#[test]
fn a_value_outlives_its_file() {
    let fixture = fixture();
    let entry = &entries(&[50])[0];
    let file = fixture.values.get(&fixture.slot, &fixture.meta).unwrap();
    fixture.values.close();
    assert!(fixture.slot.peek().is_none());
    let value = file.read(&entry.key, &fixture.pointer).unwrap();
    drop(file);
    assert!(*value == *entry.value);
}

#[test]
fn a_file_that_another_process_removed_is_not_missing() {
    let fixture = fixture();
    fixture.values.close();
    crate::vfs::Vfs::remove(&*fixture.vfs, Path::new(&file_name(NUMBER))).unwrap();
    assert_eq!(fixture.read().unwrap_err().kind(), ErrorKind::Closed);
}

#[test]
fn a_file_that_cannot_be_opened_leaves_its_slot_empty() {
    let fixture = fixture();
    let whole = bytes(&fixture.vfs, NUMBER);
    set_bytes(&fixture.vfs, NUMBER, &whole[1..]);
    let error = fixture.read().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    assert!(error.to_string().contains("000015.values"), "{error}");
    set_bytes(&fixture.vfs, NUMBER, &whole);
    fixture.read().unwrap();
}
