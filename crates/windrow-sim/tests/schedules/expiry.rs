//! Entries that expire while flushes and compactions run: they stay away, and so do older values below them, except at a
//! snapshot of an earlier moment.

use std::sync::Arc;
use std::time::Duration;

use shuttle::sync::atomic::{AtomicBool, Ordering};
use shuttle::thread;
use windrow::{Db, Keyspace};
use windrow_sim::SimDisk;

use crate::runtime::ScheduledRuntime;
use crate::{amount_of, balance, explore, options};

/// Longer than all readings of the clock and all sleeps of a schedule.
const LIFE: Duration = Duration::from_secs(1_000_000);

fn amount(keyspace: &Keyspace, key: &str) -> Option<u64> {
    keyspace.get(key).unwrap().map(|value| amount_of(&value))
}

#[test]
fn what_has_expired_stays_away() {
    explore(|| {
        let disk = SimDisk::new();
        let runtime = Arc::new(ScheduledRuntime::default());
        let options = options(&disk).with_runtime(Arc::clone(&runtime) as Arc<_>);
        let db = Db::open("/sessions", options).unwrap();
        let sessions = db.keyspace("sessions").unwrap();
        sessions.insert("old", balance(1)).unwrap();
        sessions.compact_range::<&[u8]>(..).unwrap();
        sessions.insert_with_ttl("old", balance(2), LIFE).unwrap();
        let snapshot = db.snapshot();
        let is_late = Arc::new(AtomicBool::new(false));
        let mut threads = Vec::new();
        threads.push(thread::spawn({
            let is_late = Arc::clone(&is_late);
            move || {
                is_late.store(true, Ordering::SeqCst);
                runtime.turn(2 * LIFE);
            }
        }));
        threads.push(thread::spawn({
            let sessions = sessions.clone();
            move || {
                for number in 3..8 {
                    sessions
                        .insert_with_ttl("new", balance(number), LIFE)
                        .unwrap();
                    let found = amount(&sessions, "new");
                    let may_be_gone = found.is_none() && is_late.load(Ordering::SeqCst);
                    assert!(found == Some(number) || may_be_gone, "{found:?}");
                }
            }
        }));
        threads.push(thread::spawn({
            let sessions = sessions.clone();
            move || {
                let found = [(); 3].map(|()| amount(&sessions, "old"));
                assert!(
                    found.iter().all(|it| [Some(2), None].contains(it)),
                    "{found:?}"
                );
                assert!(found.is_sorted_by_key(Option::is_none), "{found:?}");
            }
        }));
        let view = sessions.at(&snapshot).unwrap();
        let held = || view.get("old").unwrap().map(|value| amount_of(&value));
        assert_eq!(held(), Some(2));
        sessions.compact_range::<&[u8]>(..).unwrap();
        assert_eq!(held(), Some(2));
        for thread in threads {
            thread.join().unwrap();
        }
        sessions.compact_range::<&[u8]>(..).unwrap();
        assert_eq!(held(), Some(2));
        drop((view, snapshot));
        assert_eq!(amount(&sessions, "old"), None);
        db.wait_idle().unwrap();
        sessions.compact_range::<&[u8]>(..).unwrap();
        assert_eq!(amount(&sessions, "old"), None);
        assert!(db.verify().unwrap().is_sound());
        db.close().unwrap();
    });
}
