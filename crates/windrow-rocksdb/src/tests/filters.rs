//! Compaction filters.

use std::time::Duration;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use windrow::{Decision, ErrorKind};

use super::{creating, get, open_with, put};
use crate::database::Database;
use crate::filter::Filter;
use crate::options::{FamilyOptions, OpenOptions};

/// A filter that removes what a manual compaction meets, and counts what others meet.
fn removing(others: &Arc<AtomicUsize>) -> Arc<Filter> {
    let others = Arc::clone(others);
    let decide = move |context: crate::filter::Context, _: &[u8], _: &[u8]| {
        if context.is_manual {
            return Decision::Remove;
        }
        others.fetch_add(1, Ordering::Relaxed);
        Decision::Keep
    };
    Arc::new(Filter::new("removing".to_owned(), Box::new(decide)))
}

#[test]
fn a_filter_knows_whether_the_program_wants_the_compaction() {
    let folder = tempfile::tempdir().unwrap();
    let others = Arc::new(AtomicUsize::new(0));
    let mut options = creating();
    options.filter_factory = Some(removing(&others));
    options.level0_runs = Some(1);
    let (database, families) = open_with(folder.path(), &options, &[]).unwrap();
    for _ in 0..4 {
        put(&database, &families[0], "k", "v");
        database.wait_idle(true, Duration::ZERO).unwrap();
    }
    assert!(others.load(Ordering::Relaxed) > 0);
    assert_eq!(get(&families[0], "k").as_deref(), Some("v"));
    let met = others.load(Ordering::Relaxed);
    Database::compact_range(&families[0], None, None).unwrap();
    assert_eq!(get(&families[0], "k"), None);
    assert_eq!(others.load(Ordering::Relaxed), met);
}

#[test]
fn a_filter_goes_before_a_factory_and_begins_with_an_open() {
    let folder = tempfile::tempdir().unwrap();
    let unused = Arc::new(AtomicUsize::new(0));
    let mut options = creating();
    let keeping = Filter::new("keeping".to_owned(), Box::new(|_, _, _| Decision::Keep));
    options.filter = Some(Arc::new(keeping));
    options.filter_factory = Some(removing(&unused));
    let (database, families) = open_with(folder.path(), &options, &["one"]).unwrap();
    put(&database, &families[1], "k", "v");
    Database::compact_range(&families[1], None, None).unwrap();
    assert_eq!(get(&families[1], "k").as_deref(), Some("v"));
    let new = |options: &OpenOptions| {
        let family = FamilyOptions {
            name: "two",
            options,
            ttl: None,
        };
        database.create_family(&family).map(drop)
    };
    let error = new(&options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    new(&creating()).unwrap();
}

/// The time is over while a filter waits. A later call waits for the end of what the earlier one has begun.
#[test]
#[expect(
    clippy::disallowed_types,
    reason = "no model replaces the locks of this crate"
)]
fn a_wait_with_a_timeout_goes_on_until_the_work_is_done() {
    let folder = tempfile::tempdir().unwrap();
    let gate = Arc::new(std::sync::Mutex::new(()));
    let passed = Arc::clone(&gate);
    let decide = move |_: crate::filter::Context, _: &[u8], _: &[u8]| {
        drop(passed.lock());
        Decision::Keep
    };
    let mut options = creating();
    options.filter = Some(Arc::new(Filter::new(
        "waiting".to_owned(),
        Box::new(decide),
    )));
    options.level0_runs = Some(1);
    let (database, families) = open_with(folder.path(), &options, &[]).unwrap();
    let closed = gate.lock();
    for _ in 0..4 {
        put(&database, &families[0], "k", "v");
        database.shared.db().flush().unwrap();
    }
    for _ in 0..3 {
        let error = database.wait_idle(false, Duration::from_millis(20));
        assert_eq!(error.unwrap_err().kind(), ErrorKind::TimedOut);
    }
    drop(closed);
    database.wait_idle(true, Duration::from_secs(600)).unwrap();
    assert_eq!(get(&families[0], "k").as_deref(), Some("v"));
}
