//! The options of keyspaces after a crash: those before a change or those after it.

#![expect(
    clippy::disallowed_types,
    reason = "the observer of the disk is told of what the test does"
)]

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use windrow::{Db, Error, KeyspaceOptions, Options};
use windrow_sim::disk::Event;
use windrow_sim::{CrashPolicy, SimDisk, SteppedRuntime};

const FOLDER: &str = "/data/db";

fn open(disk: &SimDisk) -> Result<Db, Error> {
    let options = Options::default()
        .with_vfs(Arc::new(disk.clone()))
        .with_runtime(Arc::new(SteppedRuntime::new(1)));
    Db::open(FOLDER, options)
}

fn with_runs(level0_runs: usize) -> KeyspaceOptions {
    let mut options = KeyspaceOptions::default();
    options.level0_runs = level0_runs;
    options
}

#[test]
fn a_crash_leaves_the_options_before_a_change_or_after_it() {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    db.keyspace_with("main", with_runs(1)).unwrap();
    // The options that were acknowledged last, and those that may be there.
    let range = Arc::new(Mutex::new((1, 1)));
    let (sender, points) = channel();
    let shown = Arc::clone(&range);
    disk.on_change(move |_: &Event, image| {
        sender
            .send((*shown.lock().unwrap(), image.clone()))
            .unwrap();
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
            let db = open(&SimDisk::from_image(image.crash(policy))).unwrap();
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
