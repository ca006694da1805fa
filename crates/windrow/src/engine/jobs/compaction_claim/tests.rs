//! Claims of compactions of a range.

use super::{Claimed, CompactionJob};
use crate::base::sync::atomic::Ordering;
use crate::base::{FileNumber, Kind};
use crate::engine::Write;
use crate::engine::{Access, Handle};
use crate::options::{Durability, Options};
use crate::policy::Claim;
use crate::read::visible::KeyRange;

/// `compact_range` ends when no job is left, not when a running job blocks one.
#[test]
fn a_blocked_job_is_not_reported_as_no_job() {
    let directory = tempfile::tempdir().unwrap();
    let handle = Handle::open(directory.path(), Options::default(), Access::ReadWrite).unwrap();
    let engine = handle.engine();
    let keyspace = engine.open_keyspace("k", None).unwrap();
    let claim = || {
        let all = (FileNumber(u64::MAX), u64::MAX);
        let readers = engine.read_points();
        CompactionJob::claim_range(&keyspace, &KeyRange::ALL, all.0, all.1, &readers)
    };
    assert!(matches!(claim(), Claimed::Nothing));

    keyspace.work.lock().is_resizing = true;
    assert!(matches!(claim(), Claimed::Later));
    for key in [b"a", b"z"] {
        let write = Write::One {
            keyspace: &keyspace,
            kind: Kind::Value,
            key,
            value: &[],
        };
        engine.commit(&write, Durability::Buffered).unwrap();
    }
    engine.flush_all().unwrap();
    assert!(matches!(claim(), Claimed::Later));

    let other = Claim {
        level: 1,
        smallest: Box::from(*b"b"),
        largest: Box::from(*b"c"),
    };
    let mut work = keyspace.work.lock();
    work.is_resizing = false;
    work.claims.push(other.clone());
    drop(work);
    assert!(matches!(claim(), Claimed::Later));
    keyspace.work.lock().drop_claim(&other);
    // By this call, or by a worker before.
    engine.compact_range(&keyspace, &KeyRange::ALL).unwrap();
    assert!(matches!(claim(), Claimed::Nothing));
    assert!(keyspace.state().version.levels()[0].is_empty());

    // Jobs on deeper or newer files do not count.
    keyspace.work.lock().claims.push(other);
    assert!(matches!(claim(), Claimed::Nothing));
    let through = engine.visible.load(Ordering::Acquire);
    let write = Write::One {
        keyspace: &keyspace,
        kind: Kind::Value,
        key: b"m",
        value: &[],
    };
    engine.commit(&write, Durability::Buffered).unwrap();
    engine.flush_all().unwrap();
    let since = |through| {
        let before = FileNumber(u64::MAX);
        let readers = engine.read_points();
        CompactionJob::claim_range(&keyspace, &KeyRange::ALL, before, through, &readers)
    };
    assert!(matches!(since(through), Claimed::Nothing));
    assert!(!matches!(since(through + 1), Claimed::Nothing));
}
