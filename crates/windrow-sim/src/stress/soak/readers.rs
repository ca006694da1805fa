//! The processes that follow the writer as secondaries, and compare each state that they read.
//!
//! Concurrency: one thread, and that of the secondary, which catches up by itself.

use super::child::{Event, Report, Stage, options};
use crate::Random;
use crate::model::{Contents, Entries};
use crate::session::verify;
use crate::stress::lanes::{Counts, KEYSPACES, Model};
use std::time::Duration;
use windrow::runtime::Runtime;
use windrow::{Db, ErrorKind, Result, Secondary};

/// The most states that a reader holds.
const HELD_MAX: usize = 6;

/// A state that is held until it is compared.
struct Held {
    state: Db,
    /// Of this state, or of one before it.
    model: Model,
    /// What it has shown before, or else the least that it must show.
    counts: Counts,
    was_read: bool,
    until: Duration,
}

pub(super) fn run(stage: &Stage) -> Result<()> {
    let Some(secondary) = open(stage)? else {
        return Ok(());
    };
    let mut random = stage.random(0);
    if random.chance(1, 2) {
        secondary.follow(Duration::from_millis(20))?;
    }
    let mut model = Model::new(stage.seed);
    let mut newest = Counts::default();
    let mut held = Vec::new();
    loop {
        let is_last = stage.is_over();
        let followed = secondary.db();
        newest = model.check(&followed, newest, "a followed state")?;
        let least = stage.acknowledged.get();
        let state = secondary.catch_up()?;
        let mut counts = later(least, newest);
        // The files of others are opened only when they are compared.
        let is_read = is_last || random.chance(3, 4);
        if is_read {
            counts = model.check(&state, counts, "a catch-up")?;
            newest = counts;
            stage.happened(Event::CaughtUp);
            inspect(stage, &mut random, &state, &mut model, counts)?;
        }
        if is_last {
            stage.report(Report::Last(counts));
            return Ok(());
        }
        held.push(Held {
            state,
            model: model.clone(),
            counts,
            was_read: is_read,
            until: stage.clock.now() + held_for(&mut random),
        });
        compare_due(stage, &mut held)?;
        stage.sleep(Duration::from_millis(random.below(300)));
    }
}

/// Verifies some states, and reads some slowly.
fn inspect(
    stage: &Stage,
    random: &mut Random,
    state: &Db,
    model: &mut Model,
    counts: Counts,
) -> Result<()> {
    match random.below(16) {
        0 => verify(state)?,
        1 => {
            let found = scan_slowly(stage, state)?;
            let seen = model.check_contents(found, counts, "a slow scan");
            assert_eq!(seen, counts, "a slow scan");
            stage.happened(Event::Scanned);
        }
        _ => {}
    }
    Ok(())
}

/// Waits until there is a database; `None` if the end comes first.
pub(super) fn open(stage: &Stage) -> Result<Option<Secondary>> {
    while !stage.is_over() {
        match Db::open_secondary(stage.db(), options()) {
            Err(error)
                if error.kind() == ErrorKind::NotFound
                    && stage.acknowledged.get() == Counts::default() => {}
            opened => return opened.map(Some),
        }
        stage.sleep(Duration::from_millis(20));
    }
    Ok(None)
}

fn later(one: Counts, other: Counts) -> Counts {
    std::array::from_fn(|lane| one[lane].max(other[lane]))
}

/// Most states for a moment, some for seconds.
fn held_for(random: &mut Random) -> Duration {
    let longest = if random.chance(1, 4) { 8000 } else { 1000 };
    Duration::from_millis(random.below(longest))
}

/// Compares the states that were held for long enough.
fn compare_due(stage: &Stage, held: &mut Vec<Held>) -> Result<()> {
    let now = stage.clock.now();
    for mut due in held.extract_if(.., |held| held.until <= now) {
        let counts = due.model.check(&due.state, due.counts, "a held state")?;
        if due.was_read {
            assert_eq!(counts, due.counts, "a held state");
            stage.happened(Event::ComparedAgain);
        } else {
            stage.happened(Event::ComparedLate);
        }
    }
    held.truncate(HELD_MAX);
    Ok(())
}

/// Reads all entries, with pauses in which the writer goes on.
fn scan_slowly(stage: &Stage, state: &Db) -> Result<Contents> {
    let mut contents = Contents::new();
    for name in KEYSPACES {
        let mut entries = Entries::new();
        if let Some(keyspace) = state.existing_keyspace(name)? {
            for entry in keyspace.iter()? {
                let (key, value) = entry?;
                entries.insert(key, value);
                if entries.len().is_multiple_of(128) {
                    stage.sleep(Duration::from_millis(60));
                }
            }
        }
        contents.insert(name.to_owned(), entries);
    }
    Ok(contents)
}
