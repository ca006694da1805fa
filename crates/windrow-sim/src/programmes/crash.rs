//! The crash sweep: the power fails after each I/O of a history, and again after each I/O of the
//! recovery. What comes back must be a state between the last durable acknowledgement and the last
//! commit begun; a crash during recovery changes nothing of it.

use super::steps::{StepNames, in_recovery, required};
use super::{Recovered, Replay, empty_model, for_seeds, history, recover, setting_of};
use crate::disk::{CrashPolicy, Event, Image, SimDisk};
use crate::history::{Operation, Profile};
use crate::model::{Bounds, Change, Contents};
use crate::session::{CHECKPOINT, FOLDER, JOBS_MAX, Session, SharedModel, check, contents};
use crate::settings::Setting;
use crate::{Model, Random, SteppedRuntime, combine};
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use windrow::{Db, Durability, ErrorKind};

/// How much is done.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Stop when so many distinct disk images were recovered,
    pub images: usize,
    /// and the power has failed so often after each required step; at four times as many images at the
    /// latest.
    pub crossings: u64,
    /// Operations in the longest histories.
    pub operations: usize,
    /// Random crashes at each I/O, besides losing and keeping everything.
    pub choices: u64,
    /// One in so many recoveries is itself crashed at each I/O.
    pub nested_one_in: u64,
    /// Threads.
    pub threads: usize,
    /// The first seed.
    pub first_seed: u64,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            images: 100_000,
            crossings: 0,
            operations: 120,
            choices: 6,
            nested_one_in: 50,
            threads: 2,
            first_seed: 1,
        }
    }
}

/// What was done.
#[derive(Debug, Default)]
pub struct Tally {
    images: HashSet<u64>,
    /// Recoveries after one crash.
    pub crashes: u64,
    /// Recoveries after a crash during a recovery, by depth less two.
    pub nested: [u64; 2],
    /// Databases that were written to, crashed and read again after a recovery.
    pub afterlives: u64,
    /// By the step before the crash.
    pub steps: BTreeMap<String, Crossings>,
}

/// How often the power failed right after a step.
#[derive(Debug, Clone, Copy, Default)]
pub struct Crossings {
    /// Crashes. Some leave what an earlier one has left, which was recovered and checked then.
    pub crashes: u64,
    /// Those that left something new.
    pub new: u64,
}

impl Tally {
    /// How many distinct disk images were recovered.
    pub fn images(&self) -> usize {
        self.images.len()
    }

    /// The steps after which the power failed less than `count` times.
    pub fn rare_steps(&self, count: u64) -> Vec<String> {
        let crashes = |step: &String| self.steps.get(step).map_or(0, |step| step.crashes);
        required().filter(|step| crashes(step) < count).collect()
    }

    fn cross(&mut self, step: String, is_new: bool) {
        let crossings = self.steps.entry(step).or_default();
        crossings.crashes += 1;
        crossings.new += u64::from(is_new);
    }

    fn add(&mut self, other: Self) {
        self.images.extend(other.images);
        self.crashes += other.crashes;
        for (sum, count) in self.nested.iter_mut().zip(other.nested) {
            *sum += count;
        }
        self.afterlives += other.afterlives;
        for (step, Crossings { crashes, new }) in other.steps {
            let sum = self.steps.entry(step).or_default();
            sum.crashes += crashes;
            sum.new += new;
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "distinct disk images      {:>10}", self.images())?;
        writeln!(f, "crashes                   {:>10}", self.crashes)?;
        writeln!(f, "crashes during recovery   {:>10}", self.nested[0])?;
        writeln!(f, "  and during the next one {:>10}", self.nested[1])?;
        writeln!(f, "written to afterwards     {:>10}", self.afterlives)?;
        writeln!(
            f,
            "{:<36} {:>10} {:>10}",
            "power failed after", "times", "new"
        )?;
        for (step, Crossings { crashes, new }) in &self.steps {
            writeln!(f, "  {step:<34} {crashes:>10} {new:>10}")?;
        }
        Ok(())
    }
}

/// Runs the stress test.
pub fn run(plan: &Plan) -> Tally {
    let tally = Mutex::new(Tally::default());
    let lock = || tally.lock().unwrap_or_else(PoisonError::into_inner);
    for_seeds(
        plan.first_seed,
        plan.threads,
        |_| {
            let tally = lock();
            let images = tally.images();
            let is_rare = || !tally.rare_steps(plan.crossings).is_empty();
            images < plan.images || images < 4 * plan.images && is_rare()
        },
        |seed| {
            let of_seed = run_seed(plan, seed);
            lock().add(of_seed);
        },
    );
    tally.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Sweeps the history of one seed.
pub fn run_seed(plan: &Plan, seed: u64) -> Tally {
    let mut sweep = Sweep {
        plan,
        replay: Replay::new(
            "crash",
            &format!("--first-seed {seed} --operations {}", plan.operations),
        ),
        setting: setting_of(seed),
        random: Random::new(combine(seed, 1)),
        checked: HashSet::new(),
        nested_checked: HashSet::new(),
        tally: Tally::default(),
    };
    sweep.history(seed);
    sweep.tally
}

/// The state of the disk after one I/O.
#[derive(Debug)]
struct CrashPoint {
    steps: Vec<String>,
    image: Image,
    bounds: Bounds,
}

type CrashPoints = Arc<Mutex<Vec<CrashPoint>>>;

struct Sweep<'a> {
    plan: &'a Plan,
    replay: Replay,
    setting: Setting,
    random: Random,
    /// Images of this history that were recovered, with what was asked of them.
    checked: HashSet<(u64, Bounds)>,
    /// Images of the present recovery that were recovered again.
    nested_checked: HashSet<u64>,
    tally: Tally,
}

impl Sweep<'_> {
    fn history(&mut self, seed: u64) {
        let model = empty_model();
        let disk = SimDisk::new();
        disk.forbid_removal_in_use(".table");
        disk.forbid_removal_in_use(".values");
        let points = observe(&disk, &model);
        let mut session = Session::new(disk, seed, self.setting.clone(), Arc::clone(&model));
        self.replay.at("the first opening".to_owned());
        if let Err(error) = session.open() {
            panic!("a new database does not open: {error:?}");
        }
        self.crash_all(&points, &session.lock_model().clone());
        let mut random = Random::new(seed);
        let profile = Profile {
            synced: *random.pick(&[5, 30, 80]),
            keyspaces: *random.pick(&[1, 2, 3]),
            ..Profile::default()
        };
        // Long histories reach deep levels; many short ones reach what happens once in each.
        let operations = self.plan.operations >> (seed % 4 * 2);
        let operations = history(seed, profile).operations(operations);
        for (index, operation) in operations.iter().enumerate() {
            self.replay.at(format!("operation {index}, {operation:?}"));
            // A reopening forgets what was lost, which its own crashes may still bring back.
            let before = matches!(operation, Operation::Kill | Operation::Reopen)
                .then(|| session.lock_model().clone());
            if let Err(error) = session.apply(operation) {
                panic!("an operation failed on a sound disk: {error:?}");
            }
            let model = before.unwrap_or_else(|| session.lock_model().clone());
            self.crash_all(&points, &model);
        }
    }

    fn crash_all(&mut self, points: &CrashPoints, model: &Model) {
        for point in take(points) {
            self.crash(&point, model);
        }
    }

    /// Lets the power fail at `point` in many ways.
    fn crash(&mut self, point: &CrashPoint, model: &Model) {
        let mut policies = vec![CrashPolicy::DropUnsynced];
        if point.image.has_unsynced() {
            policies.push(CrashPolicy::KeepAll);
            for _ in 0..self.plan.choices {
                let seed = self.random.next_u64();
                policies.push(match seed % 8 {
                    0 => CrashPolicy::RandomWithGarbage(seed),
                    _ => CrashPolicy::Random(seed),
                });
            }
        }
        for policy in policies {
            let image = point.image.crash(policy);
            let hash = image.hash();
            let is_new = self.checked.insert((hash, point.bounds));
            for step in &point.steps {
                self.tally.cross(step.clone(), is_new);
            }
            if is_new {
                self.tally.images.insert(hash);
                self.tally.crashes += 1;
                self.recover(image, model, point.bounds);
            }
        }
    }

    fn recover(&mut self, image: Image, model: &Model, bounds: Bounds) {
        if image
            .files()
            .iter()
            .any(|path| path.starts_with(CHECKPOINT))
        {
            self.check_checkpoint(&image, model, bounds);
        }
        if self.random.chance(1, 8) {
            // Reading alone finds the same, and changes nothing.
            let read = read_only(FOLDER, &image, &self.setting);
            let read = read.unwrap_or_default();
            check(model, &read, bounds);
            let recovered = recover(image.clone(), &self.setting, 1, |_| {});
            assert!(
                read == recovered.found,
                "reading alone finds something else"
            );
        }
        let setting = if self.random.chance(1, 4) {
            // Every option may change between two openings.
            self.random.pick(&Setting::all()).clone()
        } else {
            self.setting.clone()
        };
        let seed = self.random.next_u64();
        if !self.random.chance(1, self.plan.nested_one_in) {
            let recovered = recover(image, &setting, seed, |_| {});
            check(model, &recovered.found, bounds);
            if self.random.chance(1, 16) {
                self.afterlife(recovered, &setting);
            }
            return;
        }
        let mut points = None;
        let recovered = recover(image, &setting, seed, |disk| {
            points = Some(observe(disk, &empty_model()));
        });
        check(model, &recovered.found, bounds);
        let found = recovered.found.clone();
        self.afterlife(recovered, &setting);
        self.nested_checked.clear();
        for point in points.iter().flat_map(take) {
            self.crash_again(&point, &found, &setting, 0);
        }
    }

    /// What a crash leaves of a checkpoint is all of it, or does not open.
    fn check_checkpoint(&mut self, image: &Image, model: &Model, bounds: Bounds) {
        let copy = read_only(CHECKPOINT, image, &self.setting);
        let is_named = image.read(&Path::new(CHECKPOINT).join("CURRENT")).is_ok();
        assert_eq!(
            copy.is_some(),
            is_named,
            "a checkpoint opens when it is named"
        );
        if let Some(found) = copy {
            let all = Bounds {
                required: bounds.begun,
                ..bounds
            };
            check(model, &found, all);
            self.tally.cross("checkpoint complete".to_owned(), true);
        }
    }

    /// Lets the power fail during a recovery: the next one must find the same.
    fn crash_again(
        &mut self,
        point: &CrashPoint,
        found: &Contents,
        setting: &Setting,
        depth: usize,
    ) {
        for _ in 0..3 {
            let policy = match self.random.below(4) {
                0 => CrashPolicy::DropUnsynced,
                1 => CrashPolicy::KeepAll,
                _ => CrashPolicy::Random(self.random.next_u64()),
            };
            let image = point.image.crash(policy);
            let hash = image.hash();
            let is_new = self.nested_checked.insert(hash);
            for step in &point.steps {
                self.tally.cross(in_recovery(step), is_new);
            }
            if !is_new {
                continue;
            }
            self.tally.images.insert(hash);
            self.tally.nested[depth] += 1;
            let mut points = None;
            let goes_deeper = depth == 0 && self.random.chance(1, 8);
            let recovered = recover(image, setting, hash, |disk| {
                if goes_deeper {
                    points = Some(observe(disk, &empty_model()));
                }
            });
            assert!(
                recovered.found == *found,
                "a crash during recovery changed what comes back: {}",
                crate::model::differences(found, &recovered.found).join("; ")
            );
            drop(recovered);
            for point in points.iter().flat_map(take) {
                self.crash_again(&point, found, setting, 1);
            }
        }
    }

    /// Writes to a recovered database, crashes it and reads again.
    fn afterlife(&mut self, recovered: Recovered, setting: &Setting) {
        let Recovered {
            disk,
            runtime,
            db,
            found,
        } = recovered;
        self.tally.afterlives += 1;
        let number = self.tally.afterlives;
        let write = || -> windrow::Result<Change> {
            assert!(db.verify()?.is_sound(), "verify finds damage after a crash");
            let keyspace = db.keyspace("keyspace-0")?;
            let key = format!("afterlife-{number}").into_bytes();
            keyspace.insert_with(&key, b"again", Durability::Sync)?;
            if number.is_multiple_of(2) {
                db.flush()?;
                runtime.run_until_idle(JOBS_MAX);
                assert!(db.verify()?.is_sound(), "verify finds damage after a flush");
            }
            Ok(("keyspace-0".to_owned(), key, Some(b"again".to_vec())))
        };
        let change = match write() {
            Ok(change) => change,
            Err(error) => panic!("a recovered database cannot be written: {error:?}"),
        };
        let image = disk.crash(CrashPolicy::DropUnsynced).image();
        drop(db);
        let mut model = Model::new(found);
        model.begin(vec![change]);
        model.persisted();
        let again = recover(image, setting, number, |_| {});
        check(&model, &again.found, model.power_failure_bounds());
    }
}

/// What the database in `folder` contains, opened for reading only; `None` where there is none, or
/// files without a name.
fn read_only(folder: &str, image: &Image, setting: &Setting) -> Option<Contents> {
    let disk = SimDisk::from_image(image.clone());
    let options = setting.on(&disk, &SteppedRuntime::new(1));
    let is_named = image.read(&Path::new(folder).join("CURRENT")).is_ok();
    let found = match Db::open_read_only(folder, options) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) if error.kind() == ErrorKind::Corruption && !is_named => Ok(None),
        opened => opened.and_then(|db| {
            let found = contents(&db)?;
            assert!(db.verify()?.is_sound(), "verify finds damage after a crash");
            db.close()?;
            Ok(Some(found))
        }),
    };
    assert_eq!(disk.changes(), 0, "reading changes the disk");
    match found {
        Ok(found) => found,
        Err(error) => panic!("the database cannot be read after a crash: {error:?}"),
    }
}

/// Collects the state after each I/O.
fn observe(disk: &SimDisk, model: &SharedModel) -> CrashPoints {
    let points = CrashPoints::default();
    let target = Arc::clone(&points);
    let model = Arc::clone(model);
    let mut names = StepNames::default();
    disk.on_change(move |event: &Event, image: &Image| {
        let bounds = model
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .power_failure_bounds();
        let point = CrashPoint {
            steps: names.of(event),
            image: image.clone(),
            bounds,
        };
        let mut points = target.lock().unwrap_or_else(PoisonError::into_inner);
        points.push(point);
    });
    points
}

fn take(points: &CrashPoints) -> Vec<CrashPoint> {
    std::mem::take(&mut *points.lock().unwrap_or_else(PoisonError::into_inner))
}
