//! The repair of each damaged database.
//!
//! Whatever the damage, a repair ends with a sound database or a named error, and says so if anything differs. It must also
//! have kept all that the damage did not touch ([`judge`]).

mod judge;

use super::{Finding, Victim, commit_prepared};
use crate::SteppedRuntime;
use crate::disk::{Image, SimDisk};
use crate::history::{KEYSPACES_MAX, keyspace_name};
use crate::model::Contents;
use crate::session::{FOLDER, verify};
use std::collections::BTreeSet;
use std::path::Path;
use windrow::{Db, ErrorKind, ManifestUse, RepairReport, Result};

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

/// Repairs `image`, in which `hit` is damaged. `is_flip` if that is one bit.
pub(super) fn repair(victim: &Victim, image: Image, hit: &Path, is_flip: bool) -> Repaired {
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
    let found = open_new(victim, &report, &disk, &runtime).and_then(|db| {
        verify(&db)?;
        Ok((all_entries(&db)?, db))
    });
    let (found, db) = match found {
        Ok(found) => found,
        Err(error) => return Repaired::Wrong(format!("the new database is not sound: {error:?}")),
    };
    let case = judge::Case {
        victim,
        report: &report,
        hit,
        is_flip,
    };
    let judged = case.judge(&found);
    match (commit_prepared(&db), &judged) {
        (Err(Finding::WrongAnswer(what)), Repaired::Everything) if report.is_whole() => {
            Repaired::Wrong(what)
        }
        _ => judged,
    }
}

/// Opens the new database with the merge operator of all histories for each keyspace that takes one: without a manifest the
/// names are new. A keyspace whose entries expire takes none.
fn open_new(
    victim: &Victim,
    report: &RepairReport,
    disk: &SimDisk,
    runtime: &SteppedRuntime,
) -> Result<Db> {
    let mut names: BTreeSet<String> = match report.manifest {
        ManifestUse::Whole => (0..KEYSPACES_MAX).map(keyspace_name).collect(),
        _ => report.keyspaces.iter().map(|it| it.name.clone()).collect(),
    };
    loop {
        let options = victim.setting.appending_to(names.clone(), disk, runtime);
        let error = match Db::open(Path::new(NEW), options) {
            Err(error) if error.kind() == ErrorKind::InvalidArgument => error,
            opened => return opened,
        };
        let sentence = error.to_string();
        let before = names.len();
        names.retain(|name| !sentence.contains(&format!("\"{name}\"")));
        if names.len() == before {
            return Err(error);
        }
    }
}

/// The entries of all keyspaces.
fn all_entries(db: &Db) -> Result<Contents> {
    let mut contents = Contents::new();
    for name in db.keyspace_names() {
        let entries = db.keyspace(&name)?.iter()?.collect::<Result<_>>()?;
        contents.insert(name, entries);
    }
    Ok(contents)
}

/// Repairs a database without damage.
pub(super) fn check_undamaged(victim: &Victim) -> std::result::Result<(), String> {
    let image = victim.image.clone();
    match repair(victim, image, Path::new(""), true) {
        Repaired::Everything => Ok(()),
        other => Err(format!("the repair of a sound database gives {other:?}")),
    }
}
