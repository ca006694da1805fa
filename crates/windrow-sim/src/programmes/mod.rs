//! The stress tests: each tries one way of breaking the database, in a short form for every change
//! and in a long one.
//!
//! A failure is a panic. Before it, what is needed to repeat the run is printed: one line.

pub mod bank;
pub mod crash;
pub mod damage;
pub mod faults;
pub mod kill;
pub mod metamorphic;
pub mod quota;
mod steps;

use crate::disk::{CrashPolicy, Image, SimDisk};
use crate::history::{Generator, Profile};
use crate::model::{Bounds, Contents};
use crate::session::{FOLDER, SharedModel, check, contents};
use crate::settings::Setting;
use crate::{Model, SteppedRuntime};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use windrow::Db;

/// Runs `run` for the seeds from `first` on, on `threads` threads, while `wanted` says so and none
/// has failed.
pub fn for_seeds(
    first: u64,
    threads: usize,
    wanted: impl Fn(u64) -> bool + Sync,
    run: impl Fn(u64) + Sync,
) {
    let next = AtomicU64::new(first);
    let failed = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if failed.load(Ordering::Relaxed) || !wanted(seed) {
                        break;
                    }
                    let guard = OnPanic(&failed);
                    run(seed);
                    drop(guard);
                }
            });
        }
    });
}

/// Notes a panic.
#[derive(Debug)]
struct OnPanic<'a>(&'a AtomicBool);

impl Drop for OnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

/// Prints how to repeat a run if it panics.
#[derive(Debug)]
pub struct Replay {
    command: String,
    /// Where in the run.
    place: String,
}

impl Replay {
    /// The run of `stress test` with these arguments.
    pub fn new(programme: &str, arguments: &str) -> Self {
        Self {
            command: format!(
                "cargo run --release -p windrow-sim -- {programme} --only {arguments}"
            ),
            place: String::new(),
        }
    }

    /// Notes how far the run has come.
    pub fn at(&mut self, place: String) {
        self.place = place;
    }
}

impl Drop for Replay {
    fn drop(&mut self) {
        if thread::panicking() {
            let Self { command, place } = self;
            #[expect(clippy::print_stderr, reason = "how to repeat what just failed")]
            {
                eprintln!("failed at {place}\nreplay: {command}");
            }
        }
    }
}

/// The options that a seed uses.
fn setting_of(seed: u64) -> Setting {
    let settings = Setting::all();
    let index = usize::try_from(seed).unwrap_or(0) % settings.len();
    settings[index].clone()
}

/// A shared model of an empty database.
fn empty_model() -> SharedModel {
    Arc::new(Mutex::new(Model::new(Contents::new())))
}

/// A database that was opened from an image.
struct Recovered {
    disk: SimDisk,
    runtime: SteppedRuntime,
    db: Db,
    found: Contents,
}

/// Opens the database in `image`, which must succeed.
fn recover(
    image: Image,
    setting: &Setting,
    seed: u64,
    observe: impl FnOnce(&SimDisk),
) -> Recovered {
    let disk = SimDisk::from_image(image);
    observe(&disk);
    let runtime = SteppedRuntime::new(seed);
    let db = match Db::open(Path::new(FOLDER), setting.on(&disk, &runtime)) {
        Ok(db) => db,
        Err(error) => panic!("the database does not open after a crash: {error:?}"),
    };
    disk.stop_observing();
    let found = match contents(&db) {
        Ok(found) => found,
        Err(error) => panic!("the database cannot be read after a crash: {error:?}"),
    };
    Recovered {
        disk,
        runtime,
        db,
        found,
    }
}

/// Crashes `image` in each of the ways of `policies`; each must leave what `bounds` allow.
fn check_crashes(
    image: &Image,
    policies: &[CrashPolicy],
    setting: &Setting,
    model: &Model,
    bounds: Bounds,
) {
    for policy in policies {
        let recovered = recover(image.crash(*policy), setting, 1, |_| {});
        check(model, &recovered.found, bounds);
    }
}

/// The history that a seed fixes.
fn history(seed: u64, profile: Profile) -> Generator {
    Generator::new(seed, profile)
}
