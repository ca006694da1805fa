//! What a job holds for a fold counts as memory of the database.

#![expect(
    clippy::disallowed_types,
    reason = "jobs call the operator beside the test"
)]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use windrow::{Db, MergeError, MergeOperator, Operands, Options};

/// Appends operands, and notes the most memory of jobs meanwhile.
#[derive(Clone, Default)]
struct Watch {
    db: Arc<Mutex<Option<Db>>>,
    most: Arc<AtomicU64>,
}

impl MergeOperator for Watch {
    fn name(&self) -> &'static str {
        "watch"
    }

    fn full_merge(
        &self,
        _: &[u8],
        base: Option<&[u8]>,
        operands: Operands<'_>,
        result: &mut Vec<u8>,
    ) -> Result<(), MergeError> {
        result.extend_from_slice(base.unwrap_or_default());
        operands.for_each(|operand| result.extend_from_slice(operand));
        if let Some(db) = &*self.db.lock().unwrap() {
            self.most.fetch_max(db.memory().jobs, Ordering::Relaxed);
        }
        Ok(())
    }
}

#[test]
fn the_operands_of_a_fold_count() {
    let (folder, watch) = (tempfile::tempdir().unwrap(), Watch::default());
    let options = Options::default().with_merge_operator("map", Arc::new(watch.clone()));
    let db = Db::open(folder.path(), options).unwrap();
    let map = db.keyspace("map").unwrap();
    let (operand, count) = (vec![7; 64 << 10], 32);
    map.insert("key", "").unwrap();
    for _ in 0..count {
        map.merge("key", &operand).unwrap();
    }
    *watch.db.lock().unwrap() = Some(db.clone());
    db.flush().unwrap();
    *watch.db.lock().unwrap() = None;
    let bytes = (count * operand.len()) as u64;
    let most = watch.most.load(Ordering::Relaxed);
    assert!(most >= bytes, "{most} of {bytes}");
    assert_eq!(db.memory().jobs, 0);
    db.close().unwrap();
}
