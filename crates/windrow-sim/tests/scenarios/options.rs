//! The options of a keyspace after a crash: those before a change or those after it.

use std::sync::{Arc, Mutex};

use windrow::{Db, KeyspaceOptions, Options};
use windrow_sim::{CrashPolicy, SimDisk, SteppedRuntime};

use crate::common::{FOLDER, observe, on};

fn open(disk: &SimDisk) -> Db {
    let options = on(Options::default(), disk, &SteppedRuntime::new(1));
    Db::open(FOLDER, options).unwrap()
}

fn with_runs(level0_runs: usize) -> KeyspaceOptions {
    let mut options = KeyspaceOptions::default();
    options.level0_runs = level0_runs;
    options
}

#[test]
fn a_crash_leaves_the_options_before_a_change_or_after_it() {
    let disk = SimDisk::new();
    let db = open(&disk);
    db.keyspace_with("main", with_runs(1)).unwrap();
    // The options that were acknowledged last, and the newest that may be recovered.
    let range = Arc::new(Mutex::new((1, 1)));
    let shown = Arc::clone(&range);
    let points = observe(&disk, move |_, image| {
        (*shown.lock().unwrap(), image.clone())
    });
    for runs in 2..12 {
        range.lock().unwrap().1 = runs;
        db.keyspace_with("main", with_runs(runs)).unwrap();
        range.lock().unwrap().0 = runs;
        db.keyspace("main")
            .unwrap()
            .insert(format!("{runs}"), "x")
            .unwrap();
    }
    disk.stop_observing();
    let mut crashes = 0;
    for ((least, most), image) in points.try_iter() {
        for policy in [
            CrashPolicy::DropUnsynced,
            CrashPolicy::KeepAll,
            CrashPolicy::Random(crashes),
        ] {
            let db = open(&SimDisk::from_image(image.crash(policy)));
            let found = db.keyspace("main").unwrap().options().level0_runs;
            assert!(
                (least..=most).contains(&found),
                "{found}, not {least} to {most}"
            );
            crashes += 1;
        }
    }
    assert!(crashes > 60, "{crashes} crashes");
}
