//! The stress tests: long randomized tests from a seed. Each tries to break the database in one way.
//!
//! `cargo test` runs each in a short form, `windrow-sim` in a long form. A failure is a panic; before it,
//! `Replay` prints the command that repeats the run.
//!
//! Concurrency: one thread runs a seed. [`Seeds`] run several seeds at once.

pub mod bank;
pub mod crash;
pub mod damage;
pub mod faults;
pub mod hostile;
pub mod kill;
mod lanes;
pub mod metamorphic;
pub mod quota;
mod seeds;
pub mod soak;
mod steps;
pub mod transactions;

pub use seeds::{Seeds, Tally, default_plan};

use seeds::Replay;

use crate::disk::{CrashPolicy, Image, SimDisk};
use crate::model::{Bounds, Contents};
use crate::session::{FOLDER, check, contents};
use crate::settings::Setting;
use crate::{Model, SteppedRuntime};
use std::fmt;
use std::path::Path;
use windrow::Db;

/// Writes one line for each count.
fn write_counts(f: &mut fmt::Formatter<'_>, counts: &[(&str, u64)]) -> fmt::Result {
    for (name, count) in counts {
        writeln!(f, "{name:<36} {count:>10}")?;
    }
    Ok(())
}

/// The options that a seed uses.
fn setting_of(seed: u64) -> Setting {
    one_of(&Setting::all(), seed)
}

/// The one of `settings` that a seed uses.
fn one_of(settings: &[Setting], seed: u64) -> Setting {
    let index = usize::try_from(seed).unwrap_or(0) % settings.len();
    settings[index].clone()
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
    let db = Db::open(Path::new(FOLDER), setting.on(&disk, &runtime))
        .expect("the database opens after a crash");
    disk.stop_observing();
    let found = contents(&db).expect("the database can be read after a crash");
    Recovered {
        disk,
        runtime,
        db,
        found,
    }
}

/// Crashes `image` once with each of `policies`. Each crash must leave what `bounds` allow.
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
