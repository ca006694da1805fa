//! Loom models of the locks, over the real table. Run with `--cfg loom`.

use std::sync::Arc;
use std::time::Duration;

use loom::thread;

use super::{LockName, LockTable, Mode, Owner, Refusal};
use crate::base::KeyspaceId;
use crate::base::sync::Handover;

/// A table, and what each of two locks protects.
struct Model {
    table: LockTable,
    protected: [Handover; 2],
}

impl Model {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            table: LockTable::new(&Arc::default(), 0),
            protected: [Handover::new(), Handover::new()],
        })
    }

    /// Returns whether `owner` has the lock. It waits without end.
    fn lock(&self, owner: Owner, number: u8) -> bool {
        let forever = || Ok(Duration::MAX);
        let taken = self
            .table
            .acquire(owner, &name(number), Mode::Exclusive, forever);
        match taken {
            Ok(before) => {
                assert_eq!(before, None);
                self.protected[usize::from(number)].give();
                true
            }
            Err(Refusal::Deadlock(cycle)) => {
                assert_eq!(cycle.len(), 2);
                false
            }
            Err(refusal) => panic!("{refusal:?}"),
        }
    }

    /// Takes two locks in this order. Returns whether it had both.
    fn lock_both(&self, first: u8, second: u8) -> bool {
        let owner = self.table.new_owner();
        assert!(self.lock(owner, first));
        let has_both = self.lock(owner, second);
        if has_both {
            self.table.release(owner, &name(second));
        }
        self.table.release(owner, &name(first));
        has_both
    }
}

fn name(number: u8) -> LockName {
    LockName::new(KeyspaceId(1), &[number])
}

/// Each owner of three gets the lock, alone: no wake-up is lost.
#[test]
fn a_lock_is_passed_on() {
    loom::model(|| {
        let model = Model::new();
        let others: Vec<_> = (0..2)
            .map(|_| {
                let model = Arc::clone(&model);
                thread::spawn(move || {
                    let owner = model.table.new_owner();
                    assert!(model.lock(owner, 0));
                    model.table.release(owner, &name(0));
                })
            })
            .collect();
        let owner = model.table.new_owner();
        assert!(model.lock(owner, 0));
        model.table.release(owner, &name(0));
        for other in others {
            other.join().unwrap();
        }
        assert_eq!(model.table.memory.bytes(), 0);
    });
}

/// Of two owners that take two locks in opposite orders, one at most is refused, and none waits for ever.
#[test]
fn a_deadlock_is_found_by_one_of_two() {
    loom::model(|| {
        let model = Model::new();
        let other = {
            let model = Arc::clone(&model);
            thread::spawn(move || model.lock_both(1, 0))
        };
        let has_both = model.lock_both(0, 1);
        assert!(other.join().unwrap() || has_both);
        assert_eq!(model.table.memory.bytes(), 0);
        assert!(model.table.waits.lock().is_empty());
    });
}
