//! The crash sweep: the power fails after each I/O of a history, and again after each I/O of the recovery.
//!
//! Recovery must find a state between the last durable acknowledgement and the last commit that was begun. A crash
//! during recovery does not change what the next recovery finds.

use super::steps::{StepNames, in_recovery, required};
use super::{Recovered, Replay, Seeds, recover, setting_of, write_counts};
use crate::disk::{CrashPolicy, Event, Image, SimDisk};
use crate::history::{FIRST_KEYSPACE, Generator, Operation, Profile};
use crate::model::{Bounds, Change, Contents, Effect, differences};
use crate::session::{CHECKPOINT, FOLDER, JOBS_MAX, Session, SharedModel, check, contents, verify};
use crate::settings::Setting;
use crate::{Model, Random, SteppedRuntime, combine};
use clap::Args;
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use windrow::{Db, Durability, ErrorKind};

/// Random crashes at each I/O, besides those that lose or keep everything.
const RANDOM_CRASHES: u64 = 6;

/// One in this many recoveries crashes at each of its I/Os.
const NESTED_ONE_IN: u64 = 50;

/// What is done.
#[derive(Debug, Clone, Copy, Args)]
pub struct Plan {
    /// The seeds of the histories. Their number does not count: the images and crossings end the stress test.
    #[command(flatten)]
    pub seeds: Seeds,
    /// Run histories until there are this many distinct disk images.
    #[arg(long, default_value_t = 100_000)]
    pub images: usize,
    /// Go on until the power has failed this often after each required step, with at most four times the
    /// images. Fail if a step is still missing then.
    #[arg(long, default_value_t = 100)]
    pub crossings: u64,
    /// Operations in the longest histories.
    #[arg(long, default_value_t = 120)]
    pub operations: usize,
}

/// What was done.
#[derive(Debug, Default)]
pub struct Tally {
    images: HashSet<u64>,
    /// Recoveries after one crash.
    pub crashes: u64,
    /// Recoveries after a crash during a recovery: of the first recovery, and of the second.
    pub nested: [u64; 2],
    /// Databases that were written, crashed and read again after a recovery.
    pub afterlives: u64,
    /// By the step before the crash.
    pub steps: BTreeMap<String, Crossings>,
    /// The steps after which the power failed too rarely.
    pub rare: Vec<String>,
}

/// The number of power failures right after a step.
#[derive(Debug, Clone, Copy, Default)]
pub struct Crossings {
    /// Crashes. Some leave the same image as an earlier crash, which was recovered and checked then.
    pub crashes: u64,
    /// Crashes that left a new image.
    pub new: u64,
}

impl Tally {
    /// The number of distinct disk images that were recovered.
    pub fn images(&self) -> usize {
        self.images.len()
    }

    /// The required steps after which the power failed less than `count` times.
    pub fn rare_steps(&self, count: u64) -> Vec<String> {
        let crashes = |step: &String| self.steps.get(step).map_or(0, |step| step.crashes);
        required().filter(|step| crashes(step) < count).collect()
    }

    fn cross(&mut self, step: String, is_new: bool) {
        let crossings = self.steps.entry(step).or_default();
        crossings.crashes += 1;
        crossings.new += u64::from(is_new);
    }
}

impl super::Tally for Tally {
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
        let counts = [
            ("distinct disk images", self.images() as u64),
            ("crashes", self.crashes),
            ("crashes during recovery", self.nested[0]),
            ("  and during the next recovery", self.nested[1]),
            ("written after recovery", self.afterlives),
        ];
        write_counts(f, &counts)?;
        writeln!(
            f,
            "{:<36} {:>10} {:>10}",
            "power failed after", "times", "new"
        )?;
        for (step, Crossings { crashes, new }) in &self.steps {
            writeln!(f, "  {step:<34} {crashes:>10} {new:>10}")?;
        }
        if !self.rare.is_empty() {
            writeln!(f, "too rarely: {}", self.rare.join(", "))?;
        }
        Ok(())
    }
}

/// Runs the stress test.
pub fn run(plan: &Plan) -> Tally {
    let crossings = if plan.seeds.only { 0 } else { plan.crossings };
    let is_wanted = |seed, tally: &Tally| {
        if plan.seeds.only {
            return plan.seeds.contain(seed);
        }
        let images = tally.images();
        let is_rare = || !tally.rare_steps(crossings).is_empty();
        images < plan.images || images < 4 * plan.images && is_rare()
    };
    let mut tally = plan.seeds.sum_while(is_wanted, |seed| run_seed(plan, seed));
    tally.rare = tally.rare_steps(crossings);
    tally
}

/// Sweeps the history of one seed.
fn run_seed(plan: &Plan, seed: u64) -> Tally {
    let arguments = format!("--operations {}", plan.operations);
    let mut sweep = Sweep {
        plan,
        replay: Replay::new("crash", seed, &arguments),
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
    /// Recovered images of this history, with the bounds that were checked.
    checked: HashSet<(u64, Bounds)>,
    /// Images of the current recovery that were recovered again.
    nested_checked: HashSet<u64>,
    tally: Tally,
}

impl Sweep<'_> {
    fn history(&mut self, seed: u64) {
        let mut session = Session::new(seed, self.setting.clone());
        let points = observe(&session.disk, session.shared_model());
        self.replay.at("the first open".to_owned());
        session.open().expect("a new database opens");
        self.crash_all(&points, &session.lock_model().clone());
        let mut random = Random::new(seed);
        let profile = Profile {
            synced: *random.pick(&[5, 30, 80]),
            keyspaces: *random.pick(&[1, 2, 3]),
            ..Profile::default()
        };
        // Long histories reach deep levels. Many short ones reach what happens once in each.
        let operations = self.plan.operations >> (seed % 4 * 2);
        let operations = Generator::new(seed, profile).operations(operations);
        for (index, operation) in operations.iter().enumerate() {
            self.replay.at(format!("operation {index}, {operation:?}"));
            // An open removes lost commits from the model. A crash of that open may still bring them back.
            let before = matches!(operation, Operation::Kill | Operation::Reopen)
                .then(|| session.lock_model().clone());
            session
                .apply(operation)
                .expect("operations succeed on a sound disk");
            let model = before.unwrap_or_else(|| session.lock_model().clone());
            self.crash_all(&points, &model);
        }
    }

    fn crash_all(&mut self, points: &CrashPoints, model: &Model) {
        for point in take(points) {
            self.crash(&point, model);
        }
    }

    /// Lets the power fail at `point` with many policies.
    fn crash(&mut self, point: &CrashPoint, model: &Model) {
        let mut policies = vec![CrashPolicy::DropUnsynced];
        if point.image.has_unsynced() {
            policies.push(CrashPolicy::KeepAll);
            for _ in 0..RANDOM_CRASHES {
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
            // An open for reading only finds the same.
            let read = read_only(FOLDER, &image, &self.setting);
            let read = read.unwrap_or_default();
            check(model, &read, bounds);
            let recovered = recover(image.clone(), &self.setting, 1, |_| {});
            assert!(
                read == recovered.found,
                "an open for reading only finds something else"
            );
        }
        let setting = if self.random.chance(1, 4) {
            // Every option may change between two opens.
            self.random.pick(&Setting::all()).clone()
        } else {
            self.setting.clone()
        };
        let seed = self.random.next_u64();
        if !self.random.chance(1, NESTED_ONE_IN) {
            let recovered = recover(image, &setting, seed, |_| {});
            check(model, &recovered.found, bounds);
            if self.random.chance(1, 16) {
                self.afterlife(recovered, &setting);
            }
            return;
        }
        let mut points = None;
        let recovered = recover(image, &setting, seed, |disk| {
            points = Some(observe(disk, SharedModel::default()));
        });
        check(model, &recovered.found, bounds);
        let found = recovered.found.clone();
        self.afterlife(recovered, &setting);
        self.nested_checked.clear();
        for point in points.iter().flat_map(take) {
            self.crash_again(&point, &found, &setting, 0);
        }
    }

    /// Panics unless a crash leaves all of a checkpoint, or one that does not open.
    fn check_checkpoint(&mut self, image: &Image, model: &Model, bounds: Bounds) {
        let copy = read_only(CHECKPOINT, image, &self.setting);
        let is_named = image.read(&Path::new(CHECKPOINT).join("CURRENT")).is_ok();
        assert_eq!(
            copy.is_some(),
            is_named,
            "a checkpoint opens if and only if it has a CURRENT"
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

    /// Lets the power fail during a recovery. The next recovery must find the same.
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
                    points = Some(observe(disk, SharedModel::default()));
                }
            });
            assert!(
                recovered.found == *found,
                "a crash during recovery changed what the next one finds: {}",
                differences(found, &recovered.found).join("; ")
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
            verify(&db)?;
            let keyspace = db.keyspace(FIRST_KEYSPACE)?;
            let key = format!("afterlife-{number}").into_bytes();
            if setting.has_log() {
                keyspace.insert_with(&key, b"again", Durability::Sync)?;
            } else {
                keyspace.insert(&key, b"again")?;
                db.persist()?;
            }
            if number.is_multiple_of(2) {
                db.flush()?;
                runtime.run_until_idle(JOBS_MAX);
                verify(&db)?;
            }
            Ok((
                FIRST_KEYSPACE.to_owned(),
                key,
                Effect::Insert(b"again".to_vec()),
            ))
        };
        let change = write().expect("a recovered database can be written");
        let image = disk.crash(CrashPolicy::DropUnsynced).image();
        drop(db);
        let mut model = Model::new(found);
        model.begin(vec![change]);
        model.persisted();
        let again = recover(image, setting, number, |_| {});
        check(&model, &again.found, model.power_failure_bounds());
    }
}

/// What the database in `folder` contains, opened for reading only; `None` if it has no CURRENT or no
/// files.
fn read_only(folder: &str, image: &Image, setting: &Setting) -> Option<Contents> {
    let disk = SimDisk::from_image(image.clone());
    let options = setting.on(&disk, &SteppedRuntime::new(1));
    let is_named = image.read(&Path::new(folder).join("CURRENT")).is_ok();
    let found = match Db::open_read_only(folder, options) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) if error.kind() == ErrorKind::Corruption && !is_named => Ok(None),
        opened => opened.and_then(|db| {
            let found = contents(&db)?;
            verify(&db)?;
            db.close()?;
            Ok(Some(found))
        }),
    };
    assert_eq!(
        disk.changes(),
        0,
        "an open for reading only changes the disk"
    );
    found.expect("the database can be read after a crash")
}

/// Collects the state after each I/O.
fn observe(disk: &SimDisk, model: SharedModel) -> CrashPoints {
    let points = CrashPoints::default();
    let target = Arc::clone(&points);
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
