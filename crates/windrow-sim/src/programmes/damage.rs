//! Damage to the files of a closed database: every bit flipped, sectors zeroed, files cut,
//! extended, deleted, swapped and replaced by what they once were; and every bit flipped in the
//! logs and the manifest of one whose process was killed.
//!
//! Opening, reading and `verify` must give the right answer or `Corruption`; and damage to a byte
//! that counts must be noticed by one of them. After a kill, what was durable before the last write
//! must be told from a torn tail.

use super::{Replay, empty_model, for_seeds, history};
use crate::disk::{Image, SECTOR_BYTES, SimDisk};
use crate::history::{Operation, Profile};
use crate::model::{Contents, differences};
use crate::session::{FOLDER, JOBS_MAX, Session, contents};
use crate::settings::Setting;
use crate::{Random, SteppedRuntime, combine};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use windrow::{Db, Durability, Error, ErrorKind};

/// How many sentences about wrong answers a report holds for each database.
const FAULTS_SHOWN_MAX: usize = 20;

/// How much is done.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Databases, one for each seed.
    pub seeds: u64,
    /// Operations that fill each database.
    pub operations: usize,
    /// One in so many bits is flipped.
    pub one_in: u64,
    /// Threads.
    pub threads: usize,
    /// The first seed.
    pub first_seed: u64,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            seeds: 2,
            operations: 60,
            one_in: 8,
            threads: 2,
            first_seed: 1,
        }
    }
}

/// What was done.
#[derive(Debug, Default)]
pub struct Tally {
    /// By kind of damage and file: how often it was noticed, did no harm, or went wrong.
    pub outcomes: BTreeMap<String, [u64; 3]>,
    /// What went wrong.
    pub faults: Vec<String>,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<34} {:>9} {:>9} {:>9}",
            "damage", "noticed", "harmless", "wrong"
        )?;
        for (kind, [noticed, harmless, wrong]) in &self.outcomes {
            writeln!(f, "{kind:<34} {noticed:>9} {harmless:>9} {wrong:>9}")?;
        }
        for fault in &self.faults {
            writeln!(f, "{fault}")?;
        }
        Ok(())
    }
}

/// Runs the stress test.
pub fn run(plan: &Plan) -> Tally {
    let tally = Mutex::new(Tally::default());
    for_seeds(
        plan.first_seed,
        plan.threads,
        |seed| seed < plan.first_seed + plan.seeds,
        |seed| {
            let of_seed = run_seed(plan, seed);
            let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
            for (kind, counts) in of_seed.outcomes {
                let sum = tally.outcomes.entry(kind).or_default();
                for (sum, count) in sum.iter_mut().zip(counts) {
                    *sum += count;
                }
            }
            tally.faults.extend(of_seed.faults);
        },
    );
    tally.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Damages the database of one seed in every way.
pub fn run_seed(plan: &Plan, seed: u64) -> Tally {
    let arguments = format!(
        "--first-seed {seed} --operations {} --one-in {}",
        plan.operations, plan.one_in
    );
    let mut damage = Damage {
        victim: Victim::new(plan, seed, Fate::Closed),
        replay: Replay::new("damage", &arguments),
        tally: Tally::default(),
    };
    let mut random = Random::new(combine(seed, 3));
    damage.flip_bits(&mut random, plan.one_in, |_| true);
    damage.harm_files();
    damage.victim = Victim::new(plan, seed, Fate::Killed);
    damage.flip_bits(&mut random, plan.one_in.div_ceil(4), |path| {
        path.extension()
            .is_some_and(|extension| extension != "table" && extension != "values")
    });
    damage.tally
}

/// How the process of a victim ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Closed,
    Killed,
}

/// A database with every kind of file and section.
struct Victim {
    setting: Setting,
    image: Image,
    /// The same database earlier in its life.
    earlier: Image,
    contents: Contents,
    /// The contents without the last write, where that may be torn.
    torn: Option<Contents>,
}

impl Victim {
    fn new(plan: &Plan, seed: u64, fate: Fate) -> Self {
        let names = ["tiny", "compressed", "buffered", "many-runs"];
        let name = names[usize::try_from(seed).unwrap_or(0) % names.len()];
        let setting = Setting::named(name).expect("there is such a setting");
        let mut session = Session::new(SimDisk::new(), seed, setting.clone(), empty_model());
        let profile = Profile {
            keys: 40,
            keyspaces: 2,
            synced: 20,
            kills: false,
        };
        let operations = history(seed, profile).operations(plan.operations);
        let (first, second) = operations.split_at(plan.operations / 2);
        let mut fill = || -> windrow::Result<Image> {
            session.open()?;
            carry_out(&mut session, first)?;
            session.db().flush()?;
            session.runtime.run_until_idle(JOBS_MAX);
            let earlier = session.disk.image();
            carry_out(&mut session, second)?;
            match fate {
                Fate::Closed => session.close()?,
                Fate::Killed => {
                    session.db().persist()?;
                    // Its record says that everything before it is durable.
                    let last = ("keyspace-0".to_owned(), b"last".to_vec(), Some(vec![1]));
                    session.write(&[last], Durability::Buffered)?;
                }
            }
            Ok(earlier)
        };
        let earlier = match fill() {
            Ok(earlier) => earlier,
            Err(error) => panic!("the victim cannot be made: {error:?}"),
        };
        let model = session.lock_model().clone();
        Self {
            setting,
            image: session.disk.image(),
            earlier,
            contents: model.current().clone(),
            torn: (fate == Fate::Killed).then(|| model.state(model.begun() - 1)),
        }
    }

    fn files(&self) -> Vec<PathBuf> {
        let mut files = self.image.files();
        files.retain(|path| !path.ends_with("LOCK"));
        files
    }

    fn read(&self, path: &Path) -> Vec<u8> {
        self.image.read(path).expect("the file exists")
    }
}

fn carry_out(session: &mut Session, operations: &[Operation]) -> windrow::Result<()> {
    operations
        .iter()
        .try_for_each(|operation| session.apply(operation))
}

/// What came of damage.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Outcome {
    /// Something said `Corruption`.
    Noticed,
    /// Every answer was right and nothing was noticed.
    Harmless,
    /// A wrong answer, or an error that misleads.
    Wrong(String),
}

struct Damage {
    victim: Victim,
    replay: Replay,
    tally: Tally,
}

impl Damage {
    fn flip_bits(&mut self, random: &mut Random, one_in: u64, wanted: impl Fn(&Path) -> bool) {
        for path in self.victim.files() {
            if !wanted(&path) {
                continue;
            }
            let bytes = self.victim.read(&path);
            for bit in 0..bytes.len() * 8 {
                if random.chance(1, one_in) {
                    let mut bytes = bytes.clone();
                    bytes[bit / 8] ^= 1 << (bit % 8);
                    let place = format!("bit {bit} of {} flipped", path.display());
                    self.with_file("bit flipped", &path, &bytes, &place);
                }
            }
        }
    }

    fn harm_files(&mut self) {
        for path in self.victim.files() {
            let bytes = self.victim.read(&path);
            let shown = path.display();
            for start in (0..bytes.len()).step_by(SECTOR_BYTES) {
                let end = bytes.len().min(start + SECTOR_BYTES);
                let mut zeroed = bytes.clone();
                zeroed[start..end].fill(0);
                if zeroed != bytes {
                    let place = format!("{shown} zeroed from {start}");
                    self.with_file("sector zeroed", &path, &zeroed, &place);
                }
            }
            for end in 0..bytes.len() {
                if end.is_multiple_of(SECTOR_BYTES) || bytes.len() - end < 100 {
                    let place = format!("{shown} cut to {end}");
                    self.with_file("cut", &path, &bytes[..end], &place);
                }
            }
            for filler in [0, 0xa5] {
                let mut longer = bytes.clone();
                longer.resize(bytes.len() + 3000, filler);
                // What is behind the recorded end need not be noticed.
                self.with_file("extended", &path, &longer, &format!("{shown} extended"));
            }
            let mut image = self.victim.image.clone();
            image.remove(&path).expect("the file exists");
            let place = format!("{shown} deleted");
            self.try_image("deleted", &path, image, &place);
            self.replace(&path, &bytes);
        }
    }

    /// Puts other files of the database, and earlier states of this one, in its place.
    fn replace(&mut self, path: &Path, bytes: &[u8]) {
        let shown = path.display().to_string();
        for other in self.victim.files() {
            let replacement = self.victim.read(&other);
            if replacement != bytes {
                let place = format!("{shown} replaced by {}", other.display());
                self.with_file("replaced by another", path, &replacement, &place);
            }
        }
        if let Ok(earlier) = self.victim.earlier.read(path)
            && earlier != bytes
        {
            let place = format!("{shown} replaced by an earlier state");
            self.with_file("replaced by earlier", path, &earlier, &place);
        }
    }

    fn with_file(&mut self, kind: &str, path: &Path, bytes: &[u8], place: &str) {
        let mut image = self.victim.image.clone();
        image.write(path, bytes).expect("the folder exists");
        self.try_image(kind, path, image, place);
    }

    fn try_image(&mut self, kind: &str, path: &Path, image: Image, place: &str) {
        self.replay.at(place.to_owned());
        let outcome = self.examine(image);
        let extension = path.extension().or(path.file_name()).unwrap_or_default();
        let name = format!("{kind}: {}", extension.to_string_lossy());
        let index = match outcome {
            Outcome::Noticed => 0,
            Outcome::Harmless => 1,
            Outcome::Wrong(what) => {
                if self.tally.faults.len() < FAULTS_SHOWN_MAX {
                    self.tally.faults.push(format!("{place}: {what}"));
                }
                2
            }
        };
        self.tally.outcomes.entry(name).or_default()[index] += 1;
    }

    /// Opens, scans, reads each key, verifies.
    fn examine(&self, image: Image) -> Outcome {
        match self.answers(image) {
            Ok(()) => Outcome::Harmless,
            Err(Finding::Error(error)) if error.kind() == ErrorKind::Corruption => Outcome::Noticed,
            Err(Finding::Error(error)) => Outcome::Wrong(format!("{error:?}")),
            Err(Finding::WrongAnswer(what)) => Outcome::Wrong(what),
        }
    }

    /// The first error, but any wrong answer before it.
    fn answers(&self, image: Image) -> Result<(), Finding> {
        let mut expected = &self.victim.contents;
        let disk = SimDisk::from_image(image);
        let runtime = SteppedRuntime::new(1);
        let db = Db::open(Path::new(FOLDER), self.victim.setting.on(&disk, &runtime))?;
        let scanned = contents(&db);
        if let Some(torn) = &self.victim.torn
            && scanned.as_ref().is_ok_and(|found| found == torn)
        {
            expected = torn;
        }
        if let Ok(found) = &scanned
            && found != expected
        {
            let differences = differences(expected, found);
            let shown = differences[..differences.len().min(2)].join("; ");
            let count = differences.len();
            return Err(Finding::WrongAnswer(format!(
                "{count} wrong answers: {shown}"
            )));
        }
        let mut first_error = scanned.err();
        for (name, entries) in expected {
            let keyspace = db.keyspace(name)?;
            for (key, value) in entries {
                match keyspace.get(key) {
                    Ok(found) if found.as_ref() == Some(value) => {}
                    Ok(_) => return Err(Finding::WrongAnswer("a get is wrong".to_owned())),
                    Err(error) => first_error = first_error.or(Some(error)),
                }
            }
        }
        let report = db.verify()?;
        match first_error.or(report.damage.into_iter().next()) {
            Some(error) => Err(error.into()),
            None => Ok(()),
        }
    }
}

/// What is not as it should be.
enum Finding {
    Error(Error),
    WrongAnswer(String),
}

impl From<Error> for Finding {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}
