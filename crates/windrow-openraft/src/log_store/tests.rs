//! Appends in batches.

use openraft::{CommittedLeaderId, EntryPayload, declare_raft_types};
use windrow::Options;

use super::*;

declare_raft_types!(
    Types: D = Vec<u8>, R = u64, SnapshotData = tokio::fs::File,
);

// I1
#[test]
fn a_long_append_is_written_in_batches_and_the_last_one_is_synced() {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path(), Options::default()).unwrap();
    let log = db.keyspace("log").unwrap();
    let entry = |index| Entry::<Types> {
        log_id: LogId::new(CommittedLeaderId::new(1, 0), index),
        payload: EntryPayload::Normal(vec![1; 100]),
    };
    let mut written = Vec::new();
    let entries = (1..=7).map(entry).collect();
    append(&log, entries, 200, |batch, durability| {
        written.push((batch.len(), durability));
        db.write_with(batch, durability)
    })
    .unwrap();
    let buffered = Durability::Buffered;
    assert_eq!(
        written,
        [
            (2, buffered),
            (2, buffered),
            (2, buffered),
            (1, Durability::Sync)
        ]
    );
    assert_eq!(log.iter().unwrap().count(), 7);
}
