//! Adds new tables to the trees of keyspaces, as one commit.
//!
//! 0. Wait as long as writers are stopped: each addition may add a run to level 0.
//! 1. Claim the flush of each keyspace, so that no other thread flushes it meanwhile.
//! 2. Flush memtables that hold keys of the tables. Writers go on.
//! 3. Lead the commits. Prepared transactions may forbid the keys. Flush again what was written meanwhile, which is little.
//! 4. Look in files that overlap a table for keys between its ends: a read of a block for each such file and table, made
//!    once before step 3, so that it finds the blocks in memory. Let the policy choose the level of each table, and claim
//!    its keys there. Before a table goes to level 0, flush the rest: what a later flush writes to level 0 must be newer
//!    as a whole.
//! 5. Take a sequence number, commit one edit, install the versions, publish.
//!
//! Step 3 ends, whatever other threads write, because they wait. Until step 4 the levels may change; afterwards only jobs
//! with other claims change them, and these bring no key of the tables above them: none was there.
//!
//! Concurrency: [`Claims`] holds what step 1 and 4 claim. The leadership is held from step 3 on, the catalog's lock
//! during step 5, as usual.

use std::ops::Bound;
use std::slice;
use std::sync::Arc;
use std::time::Duration;

use crate::base::key::SEQUENCE_MAX;
use crate::base::sync::Shared;
use crate::base::{Cause, Cursor as _, KeyspaceId, Result, SequenceNumber};
use crate::compact::pending_files::PendingFiles;
use crate::engine::jobs::context::{garbage_records, on_disk, value_log_records};
use crate::engine::jobs::tree_summary::summary;
use crate::engine::{Engine, KeyspaceCore};
use crate::log::batch::Numbered;
use crate::manifest::names::FileName;
use crate::manifest::{ChangeEvent, FileHandle, ManifestState, Record, ReferenceChanges, Version};
use crate::memtable::MemtableCursor;
use crate::policy::{Claim, NewTable, ingestion_plan};
use crate::read::newer::newer_in_file;
use crate::read::visible::KeyRange;
use crate::table::FileMeta;
use crate::value::{DiscardList, ValueFileMeta};

/// A thread that waits for the flush of another one checks again after this time.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Durable tables for one keyspace, with ascending keys and unnumbered entries.
#[derive(Debug)]
pub(super) struct NewTables {
    pub(super) keyspace: Arc<KeyspaceCore>,
    /// At least one.
    pub(super) tables: Vec<FileMeta>,
    pub(super) transient_logs: Vec<ValueFileMeta>,
    pub(super) value_logs: Vec<ValueFileMeta>,
    /// Lists of the values in these logs that no entry points to.
    pub(super) discard_lists: Vec<DiscardList>,
    /// The references of the tables to value logs.
    pub(super) references: ReferenceChanges,
}

impl NewTables {
    /// Whether a memtable holds a key, or deletes a range, between the ends of a table.
    fn are_in_memtables(&self) -> Result<bool> {
        let state = self.keyspace.state_full();
        for memtable in state.memtables() {
            let mut cursor = MemtableCursor::new(memtable);
            for table in &self.tables {
                let (smallest, largest) = table.range();
                // One that begins between the ends is an entry there.
                if memtable
                    .newest_range(smallest, SEQUENCE_MAX, |_| ())
                    .is_some()
                {
                    return Ok(true);
                }
                cursor.seek(smallest, SEQUENCE_MAX)?;
                if cursor.is_valid() && cursor.key() <= largest {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// For each table, the first level of `version` with a key, or a range tombstone, between its ends; the largest
    /// number if there is none.
    fn held_from(&self, engine: &Engine, version: &Version) -> Result<Vec<usize>> {
        let first_level = |table: &FileMeta| {
            let ends = table.range();
            let levels = version.levels();
            for (index, level) in levels.iter().enumerate() {
                let files = match index {
                    0 => 0..level.len(),
                    _ => level.overlapping(ends.0, ends.1),
                };
                for file in files.filter_map(|position| level.file(position)) {
                    if has_key_between(engine, file, ends)? {
                        return Ok(index);
                    }
                }
            }
            Ok(usize::MAX)
        };
        self.tables.iter().map(first_level).collect()
    }
}

/// Whether `file` has a key, or a range tombstone, between two keys, both included.
fn has_key_between(
    engine: &Engine,
    file: &Shared<FileHandle>,
    (smallest, largest): (&[u8], &[u8]),
) -> Result<bool> {
    // Without a read: the ends of a file are keys of it.
    let is_between = |key: &[u8]| (smallest..=largest).contains(&key);
    if file.meta.range_tombstones() == 0
        && (is_between(file.smallest()) || is_between(file.largest()))
    {
        return Ok(true);
    }
    let range = KeyRange {
        lower: Bound::Included(smallest.into()),
        upper: Bound::Included(largest.into()),
    };
    Ok(newer_in_file(file, &engine.tables, &range, 0)?.is_some())
}

/// Where the tables of one keyspace go.
#[derive(Debug)]
struct Place {
    levels: Vec<usize>,
    /// The new number of levels, if it changes.
    level_count: Option<usize>,
}

/// What an ingestion, or a flush of everything, has claimed in its keyspaces. A drop releases it.
#[derive(Debug, Default)]
pub(in crate::engine) struct Claims<'a> {
    /// Keyspaces whose flush is claimed.
    flushes: Vec<Arc<KeyspaceCore>>,
    /// The keys of tables below level 0.
    ranges: Vec<(&'a KeyspaceCore, Claim<Box<[u8]>>)>,
    /// Keyspaces whose number of levels changes.
    resizes: Vec<&'a KeyspaceCore>,
}

impl<'a> Claims<'a> {
    /// Claims the flush of `keyspace`, if no other thread has it.
    fn try_flush(&mut self, keyspace: &Arc<KeyspaceCore>) -> bool {
        let mut work = keyspace.work.lock();
        let is_free = !work.is_flushing;
        if is_free {
            work.is_flushing = true;
            self.flushes.push(Arc::clone(keyspace));
        }
        is_free
    }

    /// Chooses the levels of `tables` and claims their keys there. No memtable has keys between the ends of a table.
    ///
    /// # Errors
    /// `Corruption` or `Io` from reading a table.
    fn choose(&mut self, engine: &Engine, new: &'a NewTables) -> Result<Place> {
        let keyspace = &*new.keyspace;
        // Until the claim, jobs may only move keys to deeper levels.
        let held_from = new.held_from(engine, &keyspace.state_full().version)?;
        let mut work = keyspace.work.lock();
        let state = keyspace.state_full();
        let table = |(table, held_from): (&'a FileMeta, usize)| {
            let (smallest, largest) = table.range();
            NewTable {
                smallest,
                largest,
                logical_bytes: table.logical_bytes(),
                held_from,
            }
        };
        let tables: Vec<NewTable<&[u8]>> = new.tables.iter().zip(held_from).map(table).collect();
        let options = keyspace.options();
        let tree = summary(&state.version, &work);
        let plan = ingestion_plan(&tree, &options, &tables, !work.is_resizing);
        drop(tree);
        for (table, &level) in tables.iter().zip(&plan.levels) {
            if level > 0 {
                let claim = Claim {
                    level,
                    smallest: Box::from(table.smallest),
                    largest: Box::from(table.largest),
                };
                work.claims.push(claim.clone());
                self.ranges.push((keyspace, claim));
            }
        }
        let grows = plan.level_count != work.level_count;
        if grows {
            work.is_resizing = true;
            self.resizes.push(keyspace);
        }
        Ok(Place {
            levels: plan.levels,
            level_count: grows.then_some(plan.level_count),
        })
    }
}

impl Drop for Claims<'_> {
    fn drop(&mut self) {
        for (keyspace, claim) in &self.ranges {
            keyspace.work.lock().drop_claim(claim);
        }
        for keyspace in &self.resizes {
            keyspace.work.lock().is_resizing = false;
        }
        for keyspace in &self.flushes {
            keyspace.work.lock().is_flushing = false;
        }
    }
}

impl Engine {
    /// Adds the tables of `new`, which has ascending keyspaces, each once. `pending` has all of their files. Returns
    /// the sequence number of all entries.
    ///
    /// # Errors
    /// `NoSpace`, `NotFound` if a keyspace was dropped, `Conflict` if a prepared transaction holds keys of a table, the
    /// error of a flush: nothing was added. `Closed`; `ReadOnly`.
    /// `Poisoned`, or the error that poisoned the database: a reopen shows whether the tables count.
    pub(super) fn add_tables(
        &self,
        new: &[NewTables],
        pending: PendingFiles<'_>,
    ) -> Result<SequenceNumber> {
        let keyspaces: Vec<_> = new.iter().map(|it| Arc::clone(&it.keyspace)).collect();
        self.admit_tables(&keyspaces)?;
        let mut claims = Claims::default();
        let sequence = self.poison_on_panic(|| {
            for added in new {
                self.claim_flush_of(&added.keyspace, &mut claims)?;
            }
            for added in new {
                if added.are_in_memtables()? {
                    let newest = self.rotate(slice::from_ref(&added.keyspace))?;
                    self.flush_frozen(&added.keyspace, newest)?;
                }
                // Writers do not wait for the device later.
                added.held_from(self, &added.keyspace.state_full().version)?;
            }
            self.commit_numbered(
                Numbered::Tables,
                |newest| {
                    let mut places = Vec::new();
                    self.check_held(new)?;
                    for added in new {
                        if added.are_in_memtables()? {
                            self.flush_whole(&added.keyspace, newest)?;
                        }
                        let place = claims.choose(self, added)?;
                        if place.levels.contains(&0) {
                            self.flush_whole(&added.keyspace, newest)?;
                        }
                        places.push(place);
                    }
                    Ok(places)
                },
                |places, sequence| self.commit_edit(new, &places, sequence, pending),
            )
        });
        drop(claims);
        for added in new {
            if sequence.is_ok() {
                let entries = added.tables.iter().map(FileMeta::entries).sum();
                self.allocate_filters(&added.keyspace, entries);
            }
            added.keyspace.refresh_throttle();
        }
        self.refresh_shared_throttle();
        sequence
    }

    /// # Errors
    /// `Conflict` if a prepared transaction holds something between the ends of a table.
    fn check_held(&self, new: &[NewTables]) -> Result<()> {
        if !self.holds.is_any() {
            return Ok(());
        }
        for added in new {
            for table in &added.tables {
                let (smallest, largest) = table.range();
                let range = KeyRange {
                    lower: Bound::Included(smallest.into()),
                    upper: Bound::Included(largest.into()),
                };
                let held = self.holds.forbids_range(added.keyspace.id(), &range, None);
                if let Some(name) = held {
                    return Err(self.held(name.keyspace, &name.key));
                }
            }
        }
        Ok(())
    }

    /// Waits until no other thread flushes `keyspace`, and claims its flush. Makes a point that waits for a thread.
    pub(in crate::engine) fn claim_flush_of(
        &self,
        keyspace: &Arc<KeyspaceCore>,
        claims: &mut Claims<'_>,
    ) -> Result<()> {
        loop {
            let generation = self.signal.generation();
            self.make_begun_point();
            self.check_needed(keyspace)?;
            if claims.try_flush(keyspace) {
                return Ok(());
            }
            self.signal.wait_after(generation, POLL_INTERVAL);
        }
    }

    /// Flushes all memtables of `keyspace`, whose flush is claimed. The caller leads the commits; `newest` is the newest
    /// sequence number in use.
    fn flush_whole(&self, keyspace: &Arc<KeyspaceCore>, newest: SequenceNumber) -> Result<()> {
        if !keyspace.state().active.is_empty() {
            keyspace.rotate(newest);
        }
        self.flush_frozen(keyspace, newest)
    }

    /// Flushes the memtables of `keyspace` that were frozen at sequence number `through` or before. Its flush is claimed.
    pub(in crate::engine) fn flush_frozen(
        &self,
        keyspace: &Arc<KeyspaceCore>,
        through: SequenceNumber,
    ) -> Result<()> {
        let frozen = keyspace.state_full().frozen.clone();
        let older = frozen.iter().rev().filter(|it| it.through <= through);
        for oldest in older {
            self.with_reserve(|| self.flush(keyspace, oldest))?;
        }
        Ok(())
    }

    /// Commits the edit that adds the tables at `sequence`, and installs it.
    fn commit_edit(
        &self,
        new: &[NewTables],
        places: &[Place],
        sequence: SequenceNumber,
        pending: PendingFiles<'_>,
    ) -> Result<SequenceNumber> {
        let numbered = |added: &NewTables| {
            let tables = added.tables.iter().map(|table| table.numbered(sequence));
            tables.collect::<Vec<FileMeta>>()
        };
        let numbered: Vec<Vec<FileMeta>> = new.iter().map(numbered).collect();
        let keyspaces: Vec<&KeyspaceCore> = new.iter().map(|added| &*added.keyspace).collect();
        let each = || new.iter().zip(places).zip(&numbered);
        pending.commit(|| {
            self.catalog.commit_in_each(
                &keyspaces,
                |state| {
                    let mut records = Vec::new();
                    for ((added, place), tables) in each() {
                        added.put_records(place, tables, &mut records);
                    }
                    if state.changes.held_from().is_some() {
                        let ids = keyspaces.iter().map(|keyspace| keyspace.id());
                        let event = ChangeEvent::TablesAdded(ids.collect());
                        records.push(Record::ChangeEvent { sequence, event });
                    }
                    // No flush may record it before the logs that have it are gone.
                    records.push(Record::Used {
                        keyspace: state.last_keyspace,
                        sequence,
                    });
                    records
                },
                |state| {
                    for ((added, place), tables) in each() {
                        self.install_tables(&added.keyspace, place, tables, (sequence, state));
                        added.remove_unneeded(self, state);
                    }
                },
            )
        })?;
        Ok(sequence)
    }

    fn install_tables(
        &self,
        keyspace: &KeyspaceCore,
        place: &Place,
        tables: &[FileMeta],
        (sequence, state): (SequenceNumber, &ManifestState),
    ) {
        let mut adds = Vec::new();
        for (table, &level) in tables.iter().zip(&place.levels) {
            adds.extend(self.handles(level, slice::from_ref(table)));
            if !table.external {
                keyspace.count(level, [(Cause::BulkLoad, table.bytes())]);
            }
        }
        let version = self.next_version(keyspace, state, &adds, &[]);
        keyspace.install_ingestion(version, tables, sequence);
        if let Some(count) = place.level_count {
            keyspace.work.lock().level_count = count;
        }
    }
}

impl NewTables {
    /// Removes the value logs, and the lists of their garbage, to which no entry points: the edit that adds them also
    /// drops them.
    fn remove_unneeded(&self, engine: &Engine, state: &ManifestState) {
        engine.remove_unneeded_lists(&self.keyspace, state, &self.discard_lists);
        let known = state.keyspaces.get(&self.keyspace.id());
        for log in &self.value_logs {
            if known.is_some_and(|it| !it.values.files.contains_key(&log.number)) {
                engine.obsolete.add(FileName::Values(log.number));
            }
        }
    }

    /// Appends the records that add the `tables`, which have their numbers.
    fn put_records(&self, place: &Place, tables: &[FileMeta], records: &mut Vec<Record>) {
        let keyspace: KeyspaceId = self.keyspace.id();
        let transient_log = |&file: &ValueFileMeta| Record::AddTransientLog { keyspace, file };
        records.extend(self.transient_logs.iter().map(transient_log));
        records.extend(value_log_records(keyspace, &self.value_logs));
        let count = place.level_count.map(on_disk);
        records.extend(count.map(|count| Record::LevelCount { keyspace, count }));
        for (table, &level) in tables.iter().zip(&place.levels) {
            records.push(Record::AddFile {
                keyspace,
                level: on_disk(level),
                file: Arc::new(table.clone()),
            });
        }
        records.extend(garbage_records(keyspace, &self.discard_lists));
        records.extend(Record::count_references(keyspace, &self.references));
    }
}
