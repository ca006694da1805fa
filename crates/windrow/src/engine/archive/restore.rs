//! The restore of a state between backups.
//!
//! 1. Find the way: a backup, and the changes behind it. Nothing is written before all of the way is known to be there.
//! 2. Restore the backup to the target, marked as unfinished.
//! 3. Open it, and commit the changes, each record of the log as one batch with the same sequence numbers.
//! 4. Close it. Then remove the mark: from here on the target is a database.
//!
//! I1. Every commit has the sequence numbers that it had. What a dropped keyspace has lost takes numbers and changes nothing.
//! I2. Keyspaces have the ids that they had: prepared transactions name them.
//! I3. Nobody else opens the target before the last step, and nothing but the changes is written: no prepared transaction
//!     holds anything, no filter judges, no consumer waits.
//!
//! After an error before the last step the target is empty. After a crash no open accepts it.
//!
//! Concurrency: one thread, which has the lock of the target.

use std::path::Path;
use std::sync::Arc;

use crate::backup::archive::{Item, Route, Stretch, each_item, find, of_stretch};
use crate::backup::{BackupPhase, Backups, Meter, RestoreTo, Restored, StoreInUse};
use crate::base::sync::Shared;
use crate::base::sync::atomic::Ordering;
use crate::base::{Error, ErrorKind, KeyspaceId, Result, SequenceNumber};
use crate::engine::recovery::open::build_keyspace;
use crate::engine::{Access, Engine, Handle, KeyspaceCore, Write, destroy};
use crate::log::batch::{self, BatchReader, Numbered};
use crate::manifest::{ChangeEvent, Edit, ManifestState, Record, Version, remove_mark};
use crate::options::{Durability, Options};

/// Writes the state `to` to the folder `target`, from backup `from` if it is given.
pub(crate) fn restore_to(
    backups: &Backups,
    to: RestoreTo,
    from: Option<u64>,
    target: &Path,
) -> Result<Restored> {
    let store = backups.take();
    let mut meter = store.meter(&|| Ok(()));
    let route = find(store.store, to, from, &mut meter)?;
    let (number, base) = (route.number, route.manifest.sequence);
    if route.stretches.is_empty() {
        store.restore(number, route.manifest, (target, false), &mut meter)?;
        return Ok(Restored {
            backup: number,
            sequence: base,
        });
    }
    let Route {
        manifest,
        to,
        stretches,
        ..
    } = route;
    store.restore(number, manifest, (target, true), &mut meter)?;
    let applied = apply(&store, (base, to), &stretches, target, &mut meter);
    let reached = applied.inspect_err(|_| {
        // It does not open: it has the mark. What this cannot remove, nobody takes for a database.
        drop(destroy(&**store.vfs, target));
    })?;
    remove_mark(&**store.vfs, target)?;
    Ok(Restored {
        backup: number,
        sequence: reached,
    })
}

/// Applies the changes of `stretches` behind `base` and up to `to`. Returns the sequence number of the last one.
fn apply(
    store: &StoreInUse<'_>,
    (base, to): (SequenceNumber, SequenceNumber),
    stretches: &[Stretch],
    target: &Path,
    meter: &mut Meter<'_>,
) -> Result<SequenceNumber> {
    let options = Options {
        create_if_missing: false,
        vfs: Arc::clone(store.vfs),
        runtime: Arc::clone(store.runtime()),
        ..Options::default()
    };
    let handle = Handle::open(target, options, Access::Repair)?;
    let applied = apply_to(handle.engine(), store, (base, to), stretches, meter);
    let closed = handle.close();
    let reached = applied?;
    closed.map(|()| reached)
}

fn apply_to(
    engine: &Engine,
    store: &StoreInUse<'_>,
    (base, to): (SequenceNumber, SequenceNumber),
    stretches: &[Stretch],
    meter: &mut Meter<'_>,
) -> Result<SequenceNumber> {
    let bytes = stretches.iter().map(Stretch::bytes).sum();
    meter.begin(BackupPhase::Applying, bytes);
    let newest = || engine.visible.load(Ordering::Acquire);
    if newest() != base {
        let what = format!("a backup of sequence number {base} has {}", newest());
        return Err(Error::new(ErrorKind::Corruption, what));
    }
    for stretch in stretches {
        let goes_on = each_item(store.store, stretch, meter, &mut |item, first, last| {
            let end = last.unwrap_or(first);
            if end > to {
                return Ok(false);
            }
            if last.is_none() || end > base {
                let applied = engine.apply_item(item, first, last);
                applied.map_err(|error| of_stretch(stretch.name, error))?;
                if last.is_some_and(|last| last != newest()) {
                    return Err(of_stretch(stretch.name, other_numbers(first, end))); // I1
                }
            }
            Ok(true)
        })?;
        if !goes_on {
            break;
        }
    }
    Ok(newest())
}

fn other_numbers(first: SequenceNumber, last: SequenceNumber) -> Error {
    let what = format!("the changes {first} to {last} do not take these numbers");
    Error::new(ErrorKind::Corruption, what)
}

impl Engine {
    fn apply_item(
        &self,
        item: &Item<'_>,
        first: SequenceNumber,
        last: Option<SequenceNumber>,
    ) -> Result<()> {
        match item {
            Item::Batch { payload, .. } => self.apply_batch(payload, first, last.unwrap_or(first)),
            Item::Numbered { edit, .. } => {
                self.apply_event(edit)?;
                // Behind the event: nobody sees what is between both.
                self.commit_numbered(Numbered::Keyspaces, |_| Ok(()), |(), _| Ok(()))
            }
            Item::Keyspace(edit) => self.add_keyspace(edit),
        }
    }

    fn apply_batch(
        &self,
        payload: &[u8],
        first: SequenceNumber,
        last: SequenceNumber,
    ) -> Result<()> {
        let damaged = |error: crate::codec::reader::DecodeError| {
            Error::new(ErrorKind::Corruption, format!("a batch: {}", error.what))
        };
        let mut unpacked = Vec::new();
        let mut reader = BatchReader::new(payload, first, &mut unpacked).map_err(damaged)?;
        let count = reader.remaining();
        let known = self.keyspaces.load_full();
        let (mut entries, mut longest) = (Vec::new(), 0);
        let mut keyspaces: Vec<Arc<KeyspaceCore>> = Vec::new();
        while let Some(entry) = reader.next().map_err(damaged)? {
            if entry.log_pointer().is_some() {
                let what = "a batch of an archive has a pointer";
                return Err(Error::new(ErrorKind::Corruption, what));
            }
            let keyspace = known.iter().find(|it| it.id() == entry.keyspace);
            let Some(keyspace) = keyspace else {
                batch::put_number(&mut entries, Numbered::Keyspaces); // I1
                continue;
            };
            longest = longest.max(entry.key.len() + entry.value.len());
            if !keyspaces.iter().any(|it| Arc::ptr_eq(it, keyspace)) {
                keyspaces.push(Arc::clone(keyspace));
            }
            let (kind, key, value) = (entry.kind, entry.key, entry.value);
            batch::put_entry(&mut entries, entry.keyspace, kind, key, value);
        }
        if first + u64::from(count) != last + 1 {
            return Err(other_numbers(first, last));
        }
        let write = Write::Batch {
            entries: &entries,
            count,
            longest,
            keyspaces: &keyspaces,
        };
        self.commit(&write, Durability::Buffered)
    }

    fn apply_event(&self, edit: &Edit) -> Result<()> {
        let event = edit.records.iter().find_map(|record| match record {
            Record::ChangeEvent { event, .. } => Some(event),
            _ => None,
        });
        match event {
            None => Ok(()),
            Some(ChangeEvent::Created { .. }) => self.add_keyspace(edit),
            Some(ChangeEvent::Dropped { keyspace, .. }) => match self.name_of(*keyspace) {
                Some(name) => self.drop_keyspace(&name),
                None => Ok(()),
            },
            Some(ChangeEvent::Renamed { keyspace, from, to }) => {
                let is_taken = self.existing_keyspace(to)?.is_some();
                match self.name_of(*keyspace) {
                    Some(name) if is_taken => self.swap_keyspaces(&name, to),
                    Some(_) => self.rename_known(*keyspace, to),
                    // One that is not here has exchanged its name with this one.
                    None if is_taken => match self.existing_keyspace(to)? {
                        Some(other) => self.rename_keyspace(&other, from),
                        None => Ok(()),
                    },
                    None => Ok(()),
                }
            }
            Some(ChangeEvent::TablesAdded(_)) => {
                let what = "tables were added, which no archive has";
                Err(Error::new(ErrorKind::Corruption, what))
            }
        }
    }

    fn rename_known(&self, id: KeyspaceId, to: &str) -> Result<()> {
        let keyspaces = self.keyspaces.load_full();
        let keyspace = keyspaces.iter().find(|it| it.id() == id);
        keyspace.map_or(Ok(()), |keyspace| self.rename_keyspace(keyspace, to))
    }

    fn name_of(&self, id: KeyspaceId) -> Option<String> {
        let keyspaces = self.keyspaces.load();
        let keyspace = keyspaces.iter().find(|it| it.id() == id);
        keyspace.map(|keyspace| keyspace.name().to_string())
    }

    /// Creates the keyspace that `edit` describes, with its id, if there is none. Without a description it has been dropped
    /// before it was archived.
    fn add_keyspace(&self, edit: &Edit) -> Result<()> {
        let is_definition = |record: &&Record| {
            matches!(
                record,
                Record::CreateKeyspace { .. }
                    | Record::KeyspaceOptions { .. }
                    | Record::MergeOperator { .. }
            )
        };
        let records: Vec<Record> = edit.records.iter().filter(is_definition).cloned().collect();
        let mut state = ManifestState::default();
        let contradiction = |error: crate::manifest::Contradiction| {
            Error::new(ErrorKind::Corruption, error.to_string())
        };
        let defined = Edit { records };
        state.apply(&defined).map_err(contradiction)?;
        let creating = self.begin_creating();
        for (&id, keyspace) in &state.keyspaces {
            let keyspaces = self.keyspaces.load_full();
            if keyspaces.iter().any(|it| it.id() == id) {
                continue;
            }
            // A commit of what contradicts the manifest would poison the database, as a failed write does.
            let mut after = self.catalog.with_state(ManifestState::clone);
            after.apply(&defined).map_err(contradiction)?;
            let (options, memory) = (&self.options, &self.memory);
            let core = build_keyspace(id, keyspace, Version::default(), options, memory)?;
            let mut all = Vec::clone(&keyspaces);
            all.push(Arc::new(core));
            let records = defined.records.clone();
            let installed = self
                .catalog
                .commit(|_| records, |_| self.keyspaces.store(Shared::new(all)));
            installed?;
        }
        drop(creating);
        Ok(())
    }
}
