//! The repair of each damaged database.
//!
//! Whatever the damage, a repair ends with a sound database or a named error, and says so if anything differs. After a
//! flipped bit it must also have kept all that the flip did not touch: what differs lies between the keys of a reported
//! loss, or in the one record of the log that the flip has hit. If the manifest has lost edits, names and the files that
//! count are lost with them. Then the new database must be sound, the report must say so, and after a flipped bit each key
//! must be there, in the keyspace of its name unless names are lost: all tables and logs are whole.

use super::{Finding, Victim, commit_prepared};
use crate::SteppedRuntime;
use crate::disk::{Image, SimDisk};
use crate::model::{Contents, differences, differing_keys};
use crate::session::{FOLDER, contents, verify};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use windrow::{Db, ErrorKind, Loss, ManifestUse, RepairReport, Result};

/// The folder of the new database.
const NEW: &str = "/repaired";

/// The outcome of a repair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Repaired {
    /// The new database has everything.
    Everything,
    /// It lacks what the report says.
    TheRest,
    /// The repair has given a named error.
    Refused,
    /// It has lost something silently, or too much.
    Wrong(String),
}

/// Repairs `image`. `is_flip` if one bit of it is damaged.
pub(super) fn repair(victim: &Victim, image: Image, is_flip: bool) -> Repaired {
    let disk = SimDisk::from_image(image);
    let runtime = SteppedRuntime::new(1);
    runtime.set_unix_time(victim.moment);
    let options = victim.setting.on(&disk, &runtime);
    let report = match Db::repair(FOLDER, NEW, &options) {
        Ok(report) => report,
        Err(error) => {
            let is_named = matches!(
                error.kind(),
                ErrorKind::Corruption | ErrorKind::NotFound | ErrorKind::Unsupported
            );
            return if is_named && !is_flip {
                Repaired::Refused
            } else {
                Repaired::Wrong(format!("the repair failed: {error:?}"))
            };
        }
    };
    let opened = Db::open(Path::new(NEW), options);
    if report.manifest != ManifestUse::Whole {
        // Names, merge operators, and which files count, are lost. What is there is sound.
        let keys = opened.and_then(|db| {
            verify(&db)?;
            keys(&db)
        });
        return match keys {
            Ok(_) if report.is_whole() => {
                Repaired::Wrong("a repair hides that edits are lost".to_owned())
            }
            Ok(found) if is_flip => judge_keys(victim, &report, &found),
            Ok(_) => Repaired::TheRest,
            Err(error) => Repaired::Wrong(format!("the new database is not sound: {error:?}")),
        };
    }
    let found = opened.and_then(|db| {
        verify(&db)?;
        Ok((contents(&db)?, db))
    });
    let (found, db) = match found {
        Ok(found) => found,
        Err(error) => return Repaired::Wrong(format!("the new database is not sound: {error:?}")),
    };
    let judged = judge(victim, &report, &found, is_flip);
    match (commit_prepared(&db), &judged) {
        (Err(Finding::WrongAnswer(what)), Repaired::Everything) if report.is_whole() => {
            Repaired::Wrong(what)
        }
        _ => judged,
    }
}

/// The keys of each keyspace.
#[derive(Default)]
struct Keys {
    all: BTreeMap<String, BTreeSet<Vec<u8>>>,
    /// How many more there are that have operands, whose operator is lost with the name of the keyspace.
    unreadable: usize,
}

fn keys(db: &Db) -> Result<Keys> {
    let mut keys = Keys::default();
    for name in db.keyspace_names() {
        let of_keyspace = keys.all.entry(name.clone()).or_default();
        for entry in db.keyspace(&name)?.iter()? {
            match entry {
                Ok((key, _)) => drop(of_keyspace.insert(key)),
                Err(error) if error.kind() == ErrorKind::Corruption => return Err(error),
                Err(_) => keys.unreadable += 1,
            }
        }
    }
    Ok(keys)
}

/// Judges the keys of the new database if the manifest has lost edits, and nothing else is damaged.
fn judge_keys(victim: &Victim, report: &RepairReport, found: &Keys) -> Repaired {
    let is_lost = |key: &Vec<u8>| {
        report
            .losses
            .iter()
            .any(|loss| loss.from.as_ref() == Some(key) && loss.to.as_ref() == Some(key))
    };
    let mut absent = Vec::new();
    for (name, entries) in &victim.contents {
        for key in entries.keys().filter(|key| !is_lost(key)) {
            let is_there = match found.all.get(name) {
                Some(keys) => keys.contains(key),
                None => found.all.values().any(|keys| keys.contains(key)),
            };
            let is_torn = victim.torn.as_ref().is_some_and(|torn| {
                let entries = torn.get(name);
                entries.is_none_or(|entries| !entries.contains_key(key))
            });
            if !is_there && !is_torn {
                absent.push(format!("{name}: {}", key.escape_ascii()));
            }
        }
    }
    if absent.len() <= found.unreadable {
        return Repaired::TheRest;
    }
    let losses: Vec<String> = report.losses.iter().map(ToString::to_string).collect();
    Repaired::Wrong(format!(
        "{:?} are absent; reported: {losses:?}",
        &absent[..absent.len().min(3)]
    ))
}

/// Judges the contents of the new database.
fn judge(victim: &Victim, report: &RepairReport, found: &Contents, is_flip: bool) -> Repaired {
    let mut expected = &victim.contents;
    if let Some(torn) = &victim.torn
        && torn == found
    {
        expected = torn;
    }
    let differing = differing_keys(expected, found);
    if differing.is_empty() {
        return Repaired::Everything;
    }
    let shown = differences(expected, found);
    let wrong = |what: &str| {
        let losses: Vec<String> = report.losses.iter().map(ToString::to_string).collect();
        let shown = shown[..shown.len().min(3)].join("; ");
        Repaired::Wrong(format!("{what}: {shown}; reported: {losses:?}"))
    };
    if report.is_whole() {
        return wrong("a repair loses something silently");
    }
    let is_in = |loss: &Loss, (name, key): &(String, Vec<u8>)| {
        loss.keyspace.as_ref() == Some(name)
            && loss.from.as_ref().is_none_or(|from| from <= key)
            && loss.to.as_ref().is_none_or(|to| key <= to)
    };
    let unexplained = differing
        .iter()
        .filter(|place| !report.losses.iter().any(|loss| is_in(loss, place)));
    let unexplained: BTreeSet<Vec<u8>> = unexplained.map(|(_, key)| key.clone()).collect();
    let is_log = |loss: &Loss| {
        loss.file
            .as_ref()
            .is_some_and(|file| file.ends_with(".wal"))
    };
    let is_log = report.losses.iter().any(is_log);
    // If the bytes of a compressed record do not say how many entries it had, the report says which ones are lost with it.
    let are_misplaced = |loss: &Loss| loss.what.starts_with("the place of ");
    let are_misplaced = report.losses.iter().any(are_misplaced);
    let of_log = || is_log && (are_misplaced || victim.model.is_of_one_commit(&unexplained));
    if is_flip && !unexplained.is_empty() && !of_log() {
        return wrong("a repair loses what the flip did not touch");
    }
    Repaired::TheRest
}

/// Repairs a database without damage.
pub(super) fn check_undamaged(victim: &Victim) -> std::result::Result<(), String> {
    let image = victim.image.clone();
    match repair(victim, image, true) {
        Repaired::Everything => Ok(()),
        other => Err(format!("the repair of a sound database gives {other:?}")),
    }
}
