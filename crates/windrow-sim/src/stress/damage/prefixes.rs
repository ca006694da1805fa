//! The open of a database with damaged logs by `Recovery::UpToDamage`.
//!
//! It refuses, or the database is what it was after some commit, stays so over a strict open, and takes new writes.

use super::Victim;
use crate::SteppedRuntime;
use crate::disk::{Image, SimDisk};
use crate::history::FIRST_KEYSPACE;
use crate::model::Contents;
use crate::session::{FOLDER, contents, verify};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;
use windrow::{Db, Durability, ErrorKind, Event, Recovery, SequenceNumber};

/// The outcome of an open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Prefix {
    /// The database is open, and what is behind this sequence number was cut off.
    CutAt(SequenceNumber),
    /// Nothing was cut off.
    Whole,
    /// There is no prefix to go on with.
    Refused,
    /// A wrong answer or a misleading error.
    Wrong(String),
}

/// Opens `image`, in which a log is damaged.
pub(super) fn open(victim: &Victim, image: Image) -> Prefix {
    let disk = SimDisk::from_image(image);
    let runtime = SteppedRuntime::new(1);
    runtime.set_unix_time(victim.moment);
    let (sender, cuts) = channel();
    let listener = move |event: &Event| {
        if let Event::HistoryCut { last_sequence, .. } = event {
            let sent = sender.send(*last_sequence);
            sent.expect("the receiver is in this function");
        }
    };
    let mut options = victim.setting.on(&disk, &runtime);
    options.recovery = Recovery::UpToDamage;
    let db = match Db::open(FOLDER, options.with_listener(Arc::new(listener))) {
        Ok(db) => db,
        Err(error) if error.kind() == ErrorKind::Corruption => return Prefix::Refused,
        Err(error) => return Prefix::Wrong(format!("the open failed: {error:?}")),
    };
    let cut = cuts.try_recv().ok();
    let examined = contents(&db).and_then(|found| {
        let keyspace = db.keyspace(FIRST_KEYSPACE)?;
        keyspace.insert_with("last", [2], Durability::Sync)?;
        drop(keyspace);
        db.close()?;
        let db = Db::open(FOLDER, victim.setting.on(&disk, &runtime))?;
        verify(&db)?;
        Ok((found, contents(&db)?))
    });
    match examined {
        Err(error) => Prefix::Wrong(format!("the prefix is not sound: {error:?}")),
        Ok((found, _)) if !is_prefix(victim, &found, cut.is_some()) => {
            Prefix::Wrong("the database is as it was after no commit".to_owned())
        }
        Ok((mut found, later)) => {
            let first = found.entry(FIRST_KEYSPACE.to_owned()).or_default();
            first.insert(b"last".to_vec(), vec![2]);
            if later != found {
                return Prefix::Wrong("a strict open shows something else".to_owned());
            }
            cut.map_or(Prefix::Whole, Prefix::CutAt)
        }
    }
}

/// Whether `found` is the state after some commit; if nothing `is_cut`, after the last ones. Of a keyspace that was dropped
/// since, nothing is compared: its removal is no commit.
fn is_prefix(victim: &Victim, found: &Contents, is_cut: bool) -> bool {
    let without_dropped = |mut contents: Contents| {
        contents.retain(|name, entries| !victim.dropped.contains(name) && !entries.is_empty());
        contents
    };
    let found = without_dropped(found.clone());
    let begun = victim.model.begun();
    let least = if is_cut { 0 } else { begun.saturating_sub(1) };
    (least..=begun).any(|count| without_dropped(victim.model.state(count)) == found)
}

/// Whether the file at `path` is a log.
pub(super) fn is_log(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "wal")
}
