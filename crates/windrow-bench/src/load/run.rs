//! Runs loads one after the other and reports each.

use std::fs;
use std::path::Path;

use windrow::{Error, Result};

use crate::data::random::mix;
use crate::engine::owned_folder::OwnedFolder;
use crate::load::contents::Contents;
use crate::load::job::Job;
use crate::measure::caches::drop_caches;
use crate::measure::memory::HeldMemory;
use crate::{BenchArgs, Engine, Load, Progress, Report, Scan};

/// Checks the arguments before anything runs.
///
/// # Errors
/// `InvalidArgument` for contradictory arguments, and for loads that the engine does not support.
pub fn check_loads<E: Engine>(args: &BenchArgs) -> Result<()> {
    let data = args.data_set()?;
    args.check(&data)?;
    if data.key_bytes_max() > E::KEY_BYTES_MAX {
        return Err(Error::invalid_argument(format!(
            "{} takes keys of {} bytes at most, including one byte for missing keys",
            E::NAME,
            E::KEY_BYTES_MAX
        )));
    }
    let needs = |load: &Load| Some((load.name(), load.feature()?));
    for (load, feature) in args.loads().iter().filter_map(needs) {
        if !E::FEATURES.contains(&feature) {
            return Err(Error::invalid_argument(format!(
                "{} has no {}, which {load} needs",
                E::NAME,
                feature.name()
            )));
        }
    }
    Ok(())
}

/// Runs the loads of `args` on engine `E`. `open` opens or creates its store in a folder. Calls `each` with every
/// report as soon as it exists, and `progress` during each load.
///
/// # Errors
/// An error of the engine; `InvalidArgument` for contradictory arguments, and for memory that the system does not lock;
/// `Corruption` for a read with wrong data.
pub fn run_loads<E: Engine>(
    args: &BenchArgs,
    open: impl Fn(&Path) -> Result<E>,
    progress: &dyn Progress,
    mut each: impl FnMut(&Report) -> Result<()>,
) -> Result<()> {
    check_loads::<E>(args)?;
    let data = args.data_set()?;
    let mut memory = args.memory.map(HeldMemory::leave).transpose()?;
    let temporary = match &args.db {
        Some(_) => None,
        None => Some(OwnedFolder::new("windrow-bench-", &std::env::temp_dir())?),
    };
    let parent = match (&args.db, &temporary) {
        (Some(folder), _) => folder.as_path(),
        (None, Some(folder)) => folder.path(),
        (None, None) => Path::new("."),
    };
    let folder = parent.join(E::NAME);
    let mut contents = Contents::default();
    let mut engine: Option<E> = None;
    for (position, &load) in args.loads().iter().enumerate() {
        if load.is_fill() {
            if let Some(engine) = engine.take() {
                engine.close()?;
            }
            contents = Contents::nothing(load, &data)?;
            empty::<E>(&folder)?;
        }
        let mut dropped_caches = None;
        if args.drop_caches && load.meets_caches() && is_store::<E>(&folder) {
            if let Some(engine) = engine.take() {
                engine.close()?;
            }
            dropped_caches = Some(drop_caches(&folder)?);
        }
        let open = match engine.take() {
            Some(engine) => engine,
            // A load that cannot run creates no store.
            None if load.needs_data() && !is_store::<E>(&folder) => return Err(no_data(load)),
            None => {
                let is_old = is_store::<E>(&folder);
                let engine = open(&folder)?;
                if is_old && !args.unsettled {
                    // The background work of earlier runs belongs to no load of this run.
                    engine.settle()?;
                }
                engine
            }
        };
        if load.needs_data() && !open.scan()?.seek(&[0])? {
            return Err(no_data(load));
        }
        let job = Job {
            engine: &open,
            args,
            data: &data,
            load,
            folder: &folder,
            progress,
            dropped_caches,
            stream: stream(&args.loads()[..position], load),
            generation: u16::try_from(position).unwrap_or(u16::MAX),
        };
        let report = job.run(&mut contents)?;
        if let Some(memory) = &mut memory {
            memory.check()?;
        }
        each(&report)?;
        engine = Some(open);
    }
    engine.map_or(Ok(()), Engine::close)
}

/// The random stream of `load`. Each repetition of a load in a run has another stream.
pub(crate) fn stream(before: &[Load], load: Load) -> u64 {
    let repetition = before.iter().filter(|&&other| other == load).count() as u64;
    load.name()
        .bytes()
        .fold(repetition, |name, byte| mix(name ^ u64::from(byte)))
}

fn no_data(load: Load) -> Error {
    let (name, fills) = (load.name(), load.contents().fills());
    Error::invalid_argument(format!("{name} needs data: put {fills} before it"))
}

/// Whether a store of the engine is in `folder`.
fn is_store<E: Engine>(folder: &Path) -> bool {
    folder.join(E::MARKER).is_file()
}

/// Empties `folder`. Removes a store; anything else is an error and stays.
fn empty<E: Engine>(folder: &Path) -> Result<()> {
    if is_store::<E>(folder) {
        fs::remove_dir_all(folder).map_err(|error| Error::io("remove", folder, error))?;
    }
    fs::create_dir_all(folder).map_err(|error| Error::io("create", folder, error))?;
    let mut left = fs::read_dir(folder).map_err(|error| Error::io("list", folder, error))?;
    if left.next().is_some() {
        return Err(Error::invalid_argument(format!(
            "{} is not empty and holds no store; a fill would remove its contents",
            folder.display()
        )));
    }
    Ok(())
}
