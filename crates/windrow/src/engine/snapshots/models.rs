//! Loom models of the register of snapshots, over the real types.
//! Run with `--cfg loom`.

use loom::thread;
use std::sync::Arc;

use super::Snapshots;
use crate::base::sync::atomic::{AtomicU64, Ordering};
use crate::base::{Kind, SequenceNumber, Trailer};
use crate::policy::{Met, ReadPoints, Verdict, keep};

/// The versions of the one key, newest first; a compaction reads all of them.
const VERSIONS: [SequenceNumber; 4] = [4, 3, 2, 1];

#[derive(Default)]
struct Model {
    snapshots: Snapshots,
    visible: AtomicU64,
}

impl Model {
    /// The first two versions are visible.
    fn new() -> Arc<Self> {
        let model = Self::default();
        model.visible.store(2, Ordering::Release);
        Arc::new(model)
    }

    fn acquire(&self) -> SequenceNumber {
        self.snapshots.acquire(&self.visible, || 0).sequence
    }

    /// Makes the versions up to `sequence` visible, as the leader of their group.
    fn publish(&self, sequence: SequenceNumber) {
        self.visible.store(sequence, Ordering::Release);
    }

    /// The versions that a compaction keeps, newest first.
    fn merge(&self) -> Vec<SequenceNumber> {
        let readers: ReadPoints = self.snapshots.read_points(&self.visible, || 0);
        let mut newer = None;
        let mut kept = Vec::new();
        for sequence in VERSIONS {
            let entry = Trailer::new(sequence, Kind::Value);
            let verdict = keep(entry, newer, false, &readers, || true);
            if verdict == Verdict::Keep {
                kept.push(sequence);
            }
            newer = Some(Met::new(entry, verdict));
        }
        kept
    }
}

/// The version that a reader at `snapshot` sees in `versions`, newest first.
fn seen(versions: &[SequenceNumber], snapshot: SequenceNumber) -> Option<SequenceNumber> {
    let mut versions = versions.iter().copied();
    versions.find(|version| *version <= snapshot)
}

/// Model 7: a compaction keeps what a snapshot sees, whatever becomes visible meanwhile, and whether
/// the snapshot is taken before, during or after the compaction lists the read points.
#[test]
fn a_compaction_keeps_what_a_snapshot_sees() {
    loom::model(|| {
        let model = Model::new();
        let writer = {
            let model = Arc::clone(&model);
            thread::spawn(move || {
                model.publish(3);
                model.publish(4);
            })
        };
        let reader = {
            let model = Arc::clone(&model);
            thread::spawn(move || model.acquire())
        };
        let kept = model.merge();
        writer.join().unwrap();
        let snapshot = reader.join().unwrap();
        assert_eq!(seen(&kept, snapshot), Some(snapshot));
    });
}

/// Model 7: a release ends one hold and no other. At the end nothing is held.
#[test]
fn a_release_leaves_the_holds_of_others() {
    loom::model(|| {
        let model = Model::new();
        let brief = {
            let model = Arc::clone(&model);
            thread::spawn(move || {
                let snapshot = model.acquire();
                model.publish(4);
                model.snapshots.release(snapshot);
            })
        };
        let reader = {
            let model = Arc::clone(&model);
            thread::spawn(move || model.acquire())
        };
        let kept = model.merge();
        brief.join().unwrap();
        let snapshot = reader.join().unwrap();
        assert_eq!(seen(&kept, snapshot), Some(snapshot));
        assert_eq!(seen(&model.merge(), snapshot), Some(snapshot));
        model.snapshots.release(snapshot);
        assert_eq!(model.merge(), [4]);
    });
}
