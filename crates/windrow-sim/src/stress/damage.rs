//! Damage to the files of a closed database: every bit flipped, sectors zeroed, files cut, extended, deleted,
//! swapped or replaced by an earlier state. After a kill: every bit flipped in the logs and the manifest.
//!
//! Every open, read and `verify` gives the right answer or `Corruption`, and one of them notices each damage to a
//! byte that counts. After a kill, recovery must distinguish damage to durable records from a torn tail.

mod prefixes;
mod repairs;

use super::{Replay, Seeds};
use crate::disk::{Image, SECTOR_BYTES, SimDisk};
use crate::filtered::seen_value;
use crate::history::{FIRST_KEYSPACE, Generator, Operation, Profile};
use crate::model::{Contents, Effect, Model, differences};
use crate::session::{FOLDER, JOBS_MAX, Session, contents};
use crate::settings::Setting;
use crate::{Random, SteppedRuntime, combine};
use clap::Args;
use prefixes::Prefix;
use repairs::Repaired;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use windrow::{Db, Durability, Error, ErrorKind, SequenceNumber};

/// The name of the prepared transaction of each database, and the key that it inserts.
const PREPARED: &str = "prepared";

/// The most wrong answers that a report describes for each database.
const WRONG_SHOWN_MAX: usize = 20;

/// What is done.
#[derive(Debug, Clone, Copy, Args)]
pub struct Plan {
    /// The seeds of the databases.
    #[command(flatten)]
    pub seeds: Seeds,
    /// Operations that fill each database.
    #[arg(long, default_value_t = 60)]
    pub operations: usize,
    /// Flip one in this many bits.
    #[arg(long, default_value_t = 8)]
    pub one_in: u64,
    /// Repair one in this many damaged databases.
    #[arg(long, default_value_t = 4)]
    pub repair_one_in: u64,
}

/// What was done.
#[derive(Debug, Default)]
pub struct Tally {
    /// By kind of damage and of file: how often it was noticed, harmless, or gave a wrong answer.
    pub outcomes: BTreeMap<String, [u64; 3]>,
    /// By kind of damage and of file: how often a repair has kept everything, kept the rest, refused, or been wrong.
    pub repairs: BTreeMap<String, [u64; 4]>,
    /// By kind of damage to a log: how often an open up to the damage has cut history, cut nothing, refused, or been wrong.
    pub prefixes: BTreeMap<String, [u64; 4]>,
    /// The wrong answers.
    pub wrong: Vec<String>,
}

impl super::Tally for Tally {
    fn add(&mut self, other: Self) {
        for (kind, counts) in other.outcomes {
            let sum = self.outcomes.entry(kind).or_default();
            for (sum, count) in sum.iter_mut().zip(counts) {
                *sum += count;
            }
        }
        let add = |sums: &mut BTreeMap<String, [u64; 4]>, counts: BTreeMap<String, [u64; 4]>| {
            for (kind, counts) in counts {
                let sum = sums.entry(kind).or_default();
                for (sum, count) in sum.iter_mut().zip(counts) {
                    *sum += count;
                }
            }
        };
        add(&mut self.repairs, other.repairs);
        add(&mut self.prefixes, other.prefixes);
        self.wrong.extend(other.wrong);
    }
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
        writeln!(
            f,
            "{:<34} {:>9} {:>9} {:>9} {:>9}",
            "repair", "all", "the rest", "refused", "wrong"
        )?;
        for (kind, [all, rest, refused, wrong]) in &self.repairs {
            writeln!(f, "{kind:<34} {all:>9} {rest:>9} {refused:>9} {wrong:>9}")?;
        }
        writeln!(
            f,
            "{:<34} {:>9} {:>9} {:>9} {:>9}",
            "open up to the damage", "cut", "whole", "refused", "wrong"
        )?;
        for (kind, [cut, whole, refused, wrong]) in &self.prefixes {
            writeln!(f, "{kind:<34} {cut:>9} {whole:>9} {refused:>9} {wrong:>9}")?;
        }
        for wrong in &self.wrong {
            writeln!(f, "{wrong}")?;
        }
        Ok(())
    }
}

/// Runs the stress test.
pub fn run(plan: &Plan) -> Tally {
    plan.seeds.sum(|seed| run_seed(plan, seed))
}

/// Damages the database of one seed in every way.
fn run_seed(plan: &Plan, seed: u64) -> Tally {
    let Plan {
        operations,
        one_in,
        repair_one_in,
        ..
    } = plan;
    let arguments =
        format!("--operations {operations} --one-in {one_in} --repair-one-in {repair_one_in}");
    let mut damage = Damage {
        victim: Victim::new(plan, seed, ProcessEnd::Closed),
        replay: Replay::new("damage", seed, &arguments),
        tally: Tally::default(),
        repaired: Random::new(combine(seed, 4)),
        repair_one_in: *repair_one_in,
        last_cut: None,
    };
    damage.check_undamaged();
    let mut random = Random::new(combine(seed, 3));
    damage.flip_bits(&mut random, *one_in, |_| true);
    damage.damage_files();
    damage.victim = Victim::new(plan, seed, ProcessEnd::Killed);
    damage.last_cut = None;
    damage.check_undamaged();
    damage.flip_bits(&mut random, one_in.div_ceil(4), |path| {
        path.extension()
            .is_some_and(|extension| extension != "table" && extension != "values")
    });
    damage.tally
}

/// How the process of a database ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProcessEnd {
    Closed,
    Killed,
}

/// A database with every kind of file and section, and with a prepared transaction, to be damaged.
struct Victim {
    setting: Setting,
    image: Image,
    /// An earlier state of the same database.
    earlier: Image,
    contents: Contents,
    model: Model,
    /// What the system's clock shows.
    moment: Duration,
    /// The contents without the last write, if that write may be torn.
    torn: Option<Contents>,
    /// The keyspaces that were dropped since the last flush.
    dropped: BTreeSet<String>,
}

impl Victim {
    fn new(plan: &Plan, seed: u64, end: ProcessEnd) -> Self {
        let names = ["tiny", "compressed", "buffered", "many-runs"];
        let name = names[usize::try_from(seed).unwrap_or(0) % names.len()];
        let setting = Setting::named(name).expect("the setting exists");
        let mut session = Session::new(seed, setting.clone());
        let operations = Generator::new(seed, Profile::SMALL).operations(plan.operations);
        let (first, second) = operations.split_at(plan.operations / 2);
        // The model does not know that a name has moved: without an earlier commit the entries under the new one would be
        // others. So no record of a log is of an earlier name.
        let is_of_names =
            |it: &&Operation| matches!(it, Operation::Swap(..) | Operation::Rename(..));
        let second = second.iter().filter(|it| !is_of_names(it)).cloned();
        let second: Vec<Operation> = second.collect();
        let dropped = second.iter().filter_map(|operation| match operation {
            Operation::Drop(name) => Some(name.clone()),
            _ => None,
        });
        let dropped = dropped.collect();
        let mut fill = || -> windrow::Result<Image> {
            session.open()?;
            apply_all(&mut session, first)?;
            session.db().flush()?;
            session.runtime.run_until_idle(JOBS_MAX);
            let earlier = session.disk.image();
            apply_all(&mut session, &second)?;
            prepare(&mut session)?;
            match end {
                ProcessEnd::Closed => session.close()?,
                ProcessEnd::Killed => {
                    session.db().persist()?;
                    // The record of this write says that everything before it is durable.
                    let last = (
                        FIRST_KEYSPACE.to_owned(),
                        b"last".to_vec(),
                        Effect::Insert(vec![1]),
                    );
                    session.write(&[last], Durability::Buffered)?;
                }
            }
            Ok(earlier)
        };
        let earlier = fill().expect("the database can be filled");
        let model = session.lock_model().clone();
        Self {
            setting,
            image: session.disk.image(),
            earlier,
            contents: model.current(),
            moment: Duration::from_millis(model.moment()),
            model: model.clone(),
            torn: (end == ProcessEnd::Killed).then(|| model.state(model.begun() - 1)),
            dropped,
        }
    }

    fn files(&self) -> Vec<PathBuf> {
        let mut files = self.image.files();
        // Nothing depends on these.
        let unread = ["LOCK", "LOG", "LOG.old", "STATUS"];
        files.retain(|path| !unread.iter().any(|name| path.ends_with(name)));
        files
    }

    fn read(&self, path: &Path) -> Vec<u8> {
        self.image.read(path).expect("the file exists")
    }
}

/// Prepares a transaction, which nobody ends.
fn prepare(session: &mut Session) -> windrow::Result<()> {
    let keyspace = session.keyspace(FIRST_KEYSPACE)?;
    let transaction = session.db().transaction();
    transaction.get(&keyspace, "read")?;
    transaction.insert(&keyspace, PREPARED, PREPARED)?;
    transaction.prepare(PREPARED).map(drop)
}

fn apply_all(session: &mut Session, operations: &[Operation]) -> windrow::Result<()> {
    operations
        .iter()
        .try_for_each(|operation| session.apply(operation))
}

/// The outcome of one damage.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Outcome {
    /// An operation reported `Corruption`.
    Noticed,
    /// Every answer was right, and nothing was reported.
    Harmless,
    /// A wrong answer or a misleading error.
    Wrong(String),
}

struct Damage {
    victim: Victim,
    replay: Replay,
    tally: Tally,
    /// Chooses the damages that are repaired.
    repaired: Random,
    repair_one_in: u64,
    /// The log in which a bit was flipped last, and where history was cut then. Bits are flipped in their order.
    last_cut: Option<(PathBuf, SequenceNumber)>,
}

impl Damage {
    fn check_undamaged(&mut self) {
        let checked = repairs::check_undamaged(&self.victim);
        self.tally.wrong.extend(checked.err());
    }

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

    fn damage_files(&mut self) {
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
                // Bytes behind the recorded end may go unnoticed.
                self.with_file("extended", &path, &longer, &format!("{shown} extended"));
            }
            let mut image = self.victim.image.clone();
            image.remove(&path).expect("the file exists");
            let place = format!("{shown} deleted");
            self.try_image("deleted", &path, image, &place);
            self.replace(&path, &bytes);
        }
    }

    /// Replaces a file by each other file of the database, and by its own earlier state.
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
        let is_flip = kind == "bit flipped";
        let repaired = self.repaired.chance(1, self.repair_one_in);
        let repaired =
            repaired.then(|| repairs::repair(&self.victim, image.clone(), path, is_flip));
        let prefix = (repaired.is_some() && prefixes::is_log(path))
            .then(|| self.open_up_to_damage(path, image.clone(), is_flip));
        let outcome = self.examine(image);
        let extension = path.extension().or(path.file_name()).unwrap_or_default();
        let name = format!("{kind}: {}", extension.to_string_lossy());
        let index = match outcome {
            Outcome::Noticed => 0,
            Outcome::Harmless => 1,
            Outcome::Wrong(what) => {
                if self.tally.wrong.len() < WRONG_SHOWN_MAX {
                    self.tally.wrong.push(format!("{place}: {what}"));
                }
                2
            }
        };
        if let Some(repaired) = repaired {
            let index = match repaired {
                Repaired::Everything => 0,
                Repaired::TheRest => 1,
                Repaired::Refused => 2,
                Repaired::Wrong(what) => self.note_wrong(place, &what),
            };
            self.tally.repairs.entry(name.clone()).or_default()[index] += 1;
        }
        if let Some(prefix) = prefix {
            let index = match prefix {
                Prefix::CutAt(_) => 0,
                Prefix::Whole => 1,
                Prefix::Refused => 2,
                Prefix::Wrong(what) => self.note_wrong(place, &what),
            };
            self.tally.prefixes.entry(name.clone()).or_default()[index] += 1;
        }
        self.tally.outcomes.entry(name).or_default()[index] += 1;
    }

    /// Reports a wrong outcome of a repair or of an open up to the damage; returns its place in the counts.
    fn note_wrong(&mut self, place: &str, what: &str) -> usize {
        if self.tally.wrong.len() < WRONG_SHOWN_MAX {
            self.tally.wrong.push(format!("{place}: {what}"));
        }
        3
    }

    /// Opens `image`, in which the log at `path` is damaged. The further behind a flipped bit is, the more must be there.
    fn open_up_to_damage(&mut self, path: &Path, image: Image, is_flip: bool) -> Prefix {
        let prefix = prefixes::open(&self.victim, image);
        let Prefix::CutAt(sequence) = prefix else {
            return prefix;
        };
        if is_flip {
            let cut = (path.to_owned(), sequence);
            let before = self.last_cut.replace(cut);
            if let Some((_, before)) =
                before.filter(|(log, before)| log == path && *before > sequence)
            {
                return Prefix::Wrong(format!(
                    "cut at {sequence}, but at {before} for an earlier bit"
                ));
            }
        }
        prefix
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

    /// Returns the first error. A wrong answer takes precedence.
    fn answers(&self, image: Image) -> Result<(), Finding> {
        let mut expected = &self.victim.contents;
        let disk = SimDisk::from_image(image);
        let runtime = SteppedRuntime::new(1);
        runtime.set_unix_time(self.victim.moment);
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
                let found = keyspace.get(key);
                match found.map(|found| seen_value(name, found?)) {
                    Ok(found) if found.as_ref() == Some(value) => {}
                    Ok(_) => return Err(Finding::WrongAnswer("a get is wrong".to_owned())),
                    Err(error) => first_error = first_error.or(Some(error)),
                }
            }
        }
        let report = db.verify()?;
        first_error = first_error.or(commit_prepared(&db)?);
        match first_error.or(report.damage.into_iter().next()) {
            Some(error) => Err(error.into()),
            None => Ok(()),
        }
    }
}

/// Ends the prepared transaction. Returns the error that an operation has reported.
fn commit_prepared(db: &Db) -> Result<Option<Error>, Finding> {
    let names = db.prepared_transactions();
    let Some(prepared) = db
        .prepared_transaction(PREPARED)
        .filter(|_| names.len() == 1)
    else {
        let what = format!("{names:?} are prepared");
        return Err(Finding::WrongAnswer(what));
    };
    let found = prepared
        .commit()
        .and_then(|()| db.keyspace(FIRST_KEYSPACE)?.get(PREPARED));
    match found {
        Ok(found) if found.as_deref() == Some(PREPARED.as_bytes()) => Ok(None),
        Ok(_) => Err(Finding::WrongAnswer("a commit has no effect".to_owned())),
        Err(error) => Ok(Some(error)),
    }
}

/// What damage has caused.
enum Finding {
    Error(Error),
    WrongAnswer(String),
}

impl From<Error> for Finding {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}
