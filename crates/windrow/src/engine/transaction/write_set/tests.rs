//! The bound of a write set, with values that nobody touches, so that they take no memory.

use super::super::written::WrittenValue;
use super::*;
use crate::base::KeyspaceId;
use crate::engine::locks::LockTable;
use crate::engine::throttling::memory::Memory;
use crate::manifest::Version;
use crate::merge_operator::KeyspaceOperator;
use crate::options::{KeyspaceOptions, Options};

const VALUE_BYTES: usize = 300 << 20;

fn keyspace() -> Arc<KeyspaceCore> {
    let memory = Arc::new(Memory::new(&Options::default()));
    Arc::new(KeyspaceCore::new(
        KeyspaceId(1),
        String::new(),
        KeyspaceOptions::default(),
        KeyspaceOperator::default(),
        Version::default(),
        1,
        &memory,
    ))
}

fn put(writes: &mut WriteSet, keyspace: &Arc<KeyspaceCore>) -> Result<()> {
    let value = vec![0; VALUE_BYTES];
    let expiry = None;
    writes.put(
        keyspace,
        b"key",
        Base::Value(WrittenValue { value, expiry }),
    )
}

#[test]
fn an_overwrite_keeps_nothing_without_a_savepoint() {
    let (keyspace, mut writes) = (keyspace(), WriteSet::default());
    for _ in 0..9 {
        put(&mut writes, &keyspace).unwrap();
    }
    assert_eq!(writes.changes_bytes, 0);
}

#[test]
fn operands_that_savepoints_keep_are_counted() {
    const COUNT: usize = 1000;
    let (keyspace, mut writes) = (keyspace(), WriteSet::default());
    for _ in 0..COUNT {
        writes.merge(&keyspace, b"key", b"").unwrap();
    }
    let savepoint = SavepointId(LockTable::new(&Arc::default(), 1).new_owner());
    writes.savepoint(savepoint, 0);
    writes.put(&keyspace, b"key", Base::Removed).unwrap();
    assert!(writes.changes_bytes >= COUNT * size_of::<usize>());
    writes.roll_back_to(savepoint).unwrap();
    assert_eq!(writes.changes_bytes, 0);
}

#[test]
fn what_savepoints_keep_is_bounded() {
    let (keyspace, mut writes) = (keyspace(), WriteSet::default());
    let savepoint = SavepointId(LockTable::new(&Arc::default(), 1).new_owner());
    writes.savepoint(savepoint, 7);
    put(&mut writes, &keyspace).unwrap();
    put(&mut writes, &keyspace).unwrap();
    let refused = put(&mut writes, &keyspace).unwrap_err();
    assert_eq!(refused.kind(), crate::base::ErrorKind::InvalidArgument);
    // The refused write has changed nothing, and a roll-back frees all.
    assert_eq!(writes.changes.len(), 2);
    assert_eq!(writes.roll_back_to(savepoint).unwrap(), 7);
    assert!(writes.is_empty());
    assert_eq!((writes.bytes, writes.changes_bytes), (0, 0));
    put(&mut writes, &keyspace).unwrap();
    put(&mut writes, &keyspace).unwrap();
}
