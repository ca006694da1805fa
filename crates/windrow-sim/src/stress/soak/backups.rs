//! The process that makes backups from a secondary, and the thread of the writer that archives changes beside it.
//!
//! Both purge old backups, restore some to a new folder, and compare what they get.
//!
//! Concurrency: each store has one process; a restore goes to a folder of its own.

use super::child::{Event, Report, Stage, options, unless_full};
use super::readers;
use crate::Random;
use crate::session::verify;
use crate::stress::lanes::{Counts, Model};
use std::path::Path;
use std::time::Duration;
use windrow::backup::{Backups, Purge, RestoreTo};
use windrow::runtime::Runtime;
use windrow::{Db, ErrorKind, Result};

/// The folder of the backups.
pub(super) const BACKUPS: &str = "backups";
/// The folder of the archive and its backups.
pub(super) const ARCHIVE: &str = "archive";
/// Backups that a purge leaves.
const KEPT: usize = 4;
/// Between two archivings.
const ARCHIVE_PAUSE: Duration = Duration::from_millis(250);

/// Makes a backup now and then, and one at the end.
pub(super) fn run(stage: &Stage) -> Result<()> {
    let Some(secondary) = readers::open(stage)? else {
        return Ok(());
    };
    let backups = Backups::open(stage.path(BACKUPS))?;
    let mut random = stage.random(0);
    let mut model = Model::new(stage.seed);
    loop {
        let is_last = stage.is_over();
        let least = stage.acknowledged.get();
        let state = secondary.catch_up()?;
        let made = state.backup(&backups)?;
        stage.happened(Event::BackedUp);
        if is_last {
            let counts = model.check(&state, least, "the state of the last backup")?;
            stage.report(Report::Last(counts));
            return Ok(());
        }
        drop(state);
        if random.chance(1, 2) {
            backups.purge(Purge::KeepNewest(KEPT))?;
            stage.happened(Event::Purged);
        }
        if random.chance(1, 2) {
            let listed = backups.list()?;
            let number = random.pick(&listed).number;
            let least = if number == made.number {
                least
            } else {
                Counts::default()
            };
            check_store(&backups);
            let target = stage.removed("restored");
            backups.restore(number, &target)?;
            compare(&target, &mut model, least, "a backup")?;
            stage.removed("restored");
            stage.happened(Event::Restored);
        }
        stage.sleep(stage.interval);
    }
}

/// Panics if anything in the store is damaged or missing.
fn check_store(backups: &Backups) {
    let check = backups.verify(None).expect("the store can be read");
    assert!(check.is_sound(), "the store is damaged: {check:?}");
}

/// Compares the restored database in `folder`.
pub(super) fn compare(
    folder: &Path,
    model: &mut Model,
    least: Counts,
    what: &str,
) -> Result<Counts> {
    let db = Db::open(folder, options())?;
    verify(&db)?;
    let counts = model.check(&db, least, what)?;
    db.close()?;
    Ok(counts)
}

/// Archives the changes of `db`, often enough that its consumer holds little.
pub(super) fn archive(stage: &Stage, db: &Db) -> Result<()> {
    let backups = Backups::open(stage.path(ARCHIVE))?;
    let mut random = stage.random(20);
    let mut model = Model::new(stage.seed);
    let mut next_look = stage.clock.now() + stage.interval;
    loop {
        let is_last = stage.is_over();
        let least = stage.acknowledged.get();
        let archived = match db.archive(&backups) {
            // More was written while a backup was made than the consumer may hold. The next call begins again.
            Err(error) if error.kind() == ErrorKind::FellBehind => None,
            archived => unless_full(archived)?,
        };
        if archived.is_some() {
            stage.happened(Event::Archived);
            if !is_last && stage.clock.now() >= next_look {
                next_look = stage.clock.now() + stage.interval;
                if random.chance(1, 2) {
                    restore_between(stage, &backups, &mut random, &mut model, least)?;
                } else if unless_full(db.backup(&backups))?.is_some() {
                    backups.purge(Purge::KeepNewest(KEPT))?;
                }
            }
        }
        if is_last {
            return Ok(());
        }
        stage.sleep(ARCHIVE_PAUSE);
    }
}

/// Restores the newest archived state, which has `least`, or any other.
fn restore_between(
    stage: &Stage,
    backups: &Backups,
    random: &mut Random,
    model: &mut Model,
    least: Counts,
) -> Result<()> {
    let reachable = backups.reachable()?;
    let is_whole = reachable.damage.is_empty() && reachable.unusable.is_empty();
    assert!(is_whole, "the archive: {reachable:?}");
    let is_newest = random.chance(1, 2);
    let states = match reachable.states.last() {
        Some(newest) if is_newest => newest,
        _ => random.pick(&reachable.states),
    };
    let range = match states.sequences.last() {
        Some(newest) if is_newest => newest,
        _ => random.pick(&states.sequences),
    };
    let (sequence, least) = if is_newest {
        (*range.end(), least)
    } else {
        let length = range.end() - range.start() + 1;
        (range.start() + random.below(length), Counts::default())
    };
    let target = stage.removed("restored-between");
    backups.restore_to(RestoreTo::Sequence(sequence), Some(states.backup), &target)?;
    compare(&target, model, least, "a state between backups")?;
    stage.removed("restored-between");
    stage.happened(Event::RestoredBetween);
    Ok(())
}
