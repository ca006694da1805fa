//! The repair: a new database with all that is provably sound of a damaged one, which it only reads.
//!
//! 1. Survey the folder ([`survey`]): the manifest, or the part of it that is sound, and the files.
//! 2. Find the sound records of the logs, and the numbers of their entries ([`logs`]).
//! 3. Mark the new folder as unfinished, durably. Write a manifest there with the keyspaces, and open it.
//! 4. Read all tables ([`tables`]). What is left of damaged ones, and the entries of the logs, become sorted runs
//!    in the new folder ([`sort`]).
//! 5. Merge the sources of each keyspace, with values from wherever their pointers lead ([`values`]), into a bulk
//!    load whose entries keep their numbers ([`output`]).
//! 6. Close the new database. Then remove the mark, durably.
//!
//! I1. Nothing in the damaged folder changes.
//! I2. The new folder opens only after the mark is gone, and then it is whole. An interrupted repair leaves a folder that no
//!     open accepts, or an empty one.
//! I3. Of each key the newest sound version decides. `docs/repair.md` says what may be older than it was.
//!
//! Concurrency: one thread, which holds a shared lock of the damaged folder and the lock of the new one.

mod logs;
mod names;
mod output;
pub(super) mod report;
mod sort;
mod survey;
mod tables;
#[cfg(test)]
#[cfg(not(any(loom, shuttle)))]
mod tests;
mod values;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use super::admin::checkpoint::check_outside;
use super::commit::expiring::Lifetime;
use super::recovery::folder::{self, LOCK};
use super::recovery::value_order::ValueOrder;
use super::{Access, Engine, Handle};
use crate::base::key::NUMBER_MAX;
use crate::base::{
    Error, ErrorKind, FileNumber, KeyspaceId, RangeTombstones, Result, SequenceNumber, Trailer,
};
use crate::log::batch::Entry;
use crate::manifest::{Edit, ManifestState, ManifestStore, Record, put_mark, remove_mark};
use crate::options::Options;
use crate::value::ValuePointer;
use crate::vfs::{LockGuard, Vfs};
use logs::{Folder, Logs};
use names::Names;
use output::{Merge, OLDEST, sources};
use report::{Loss, RepairReport, RepairedKeyspace};
use sort::{Sorter, is_valid};
use survey::{KEYSPACE_MAX, Survey};
use tables::{OldTables, UnnamedSegment, name_untagged, unnamed_segments};
use values::OldValues;

/// The memory in which entries are sorted, in bytes, unless the memory budget is small.
const SORT_BYTES_MAX: usize = 64 << 20;

/// The most keyspaces that a repair makes because entries of logs alone name them: so many, and one for each
/// [`LOG_BYTES_PER_KEYSPACE`] of sound records. Each takes about 40 KiB of memory, and an entry of a few bytes is enough to name
/// one. The entries of the others are lost. A keyspace that a table names has no bound: the table has more bytes.
const LOG_KEYSPACES_MAX: u64 = 1000;

/// How many bytes of records stand for one more keyspace.
const LOG_BYTES_PER_KEYSPACE: u64 = 1 << 10;

/// The most keyspaces that are left out and that the report names.
const NAMED_MAX: usize = 10;

/// Writes all that is provably sound of the database in `from` to a new one in `to`.
pub(crate) fn repair(from: &Path, to: &Path, options: &Options) -> Result<RepairReport> {
    options.validate()?;
    let vfs = &*options.vfs;
    let _lock = lock_shared(vfs, from)?;
    let mut survey = Survey::read(vfs, from)?;
    check_outside(vfs, from, to)?;
    let mut report = RepairReport::new(survey.manifest);
    let folder = Folder { vfs, path: from };
    let recorded = survey.logs(vfs, from)?;
    report.logs = recorded.live.len() as u64;
    for loss in std::mem::take(&mut survey.losses) {
        report.lose(loss);
    }
    let values = OldValues::new(options, from.to_owned(), &survey);
    let mut order = ValueOrder::default();
    let mut has_value = |entry: &Entry<'_>| -> Result<bool> {
        let Some(pointer) = entry.log_pointer() else {
            return Ok(true);
        };
        let is_flushed = entry.sequence <= survey.flushed(entry.keyspace);
        if is_flushed || !survey.has_keyspace(entry.keyspace) {
            return Ok(true);
        }
        if survey.has_lost_file(pointer) {
            return Ok(true); // It was there, so history goes on. The merge reports the value.
        }
        let place = ValuePointer::decode(pointer).ok();
        if place.is_none_or(|place| order.pass(&place).is_err()) {
            return Ok(false);
        }
        match values.read(entry.keyspace, entry.key, pointer, &mut Vec::new()) {
            Err(error) if error.kind() == ErrorKind::Corruption => Ok(false),
            outcome => outcome.map(|()| true),
        }
    };
    let logs = Logs::find(folder, &survey, &recorded, &mut has_value)?;

    let mut losses = Vec::new();
    let mut unnamed = unnamed_segments(vfs, from, &survey, &mut losses)?;
    for loss in losses {
        report.lose(loss);
    }
    let mut ids: BTreeSet<KeyspaceId> = survey.state.keyspaces.keys().copied().collect();
    ids.extend(unnamed.iter().filter_map(|segment| segment.keyspace));
    let mut left = LOG_KEYSPACES_MAX.saturating_add(logs.bytes() / LOG_BYTES_PER_KEYSPACE);
    let (mut beyond, mut left_out, mut without) = (0_u64, 0_u64, BTreeSet::new());
    logs.each_entry(
        folder,
        &survey,
        &mut RepairReport::new(survey.manifest),
        &mut |entry| {
            beyond += u64::from(entry.keyspace > KEYSPACE_MAX);
            if !survey.has_keyspace(entry.keyspace) || ids.contains(&entry.keyspace) {
                return Ok(());
            }
            if left > 0 {
                left -= 1;
                ids.insert(entry.keyspace);
            } else {
                left_out += 1;
                if without.len() < NAMED_MAX {
                    without.insert(entry.keyspace);
                }
            }
            Ok(())
        },
    )?;
    if beyond > 0 {
        report.lose(Loss {
            what: format!(
                "{beyond} entries of the logs name keyspaces above {KEYSPACE_MAX}, which no database reaches: they are left out"
            ),
            ..Loss::default()
        });
    }
    if left_out > 0 {
        report.lose(too_many_keyspaces(left_out, &without));
    }
    let known = survey.state.keyspaces.iter();
    let mut names = Names::new(known.map(|(&id, keyspace)| (id, keyspace.name.clone())));
    for &id in &ids {
        names.add(id, &format!("keyspace-{id}"));
    }
    name_untagged(&mut unnamed, survey.state.last_keyspace, &mut names);
    let names = names.into_map();
    let mut newest = survey.state.last_sequence().max(logs.last_sequence());
    for &id in survey.state.keyspaces.keys() {
        newest = newest.max(survey.newest_in_tables(id));
    }
    for segment in &unnamed {
        let largest = segment.sequence_max(vfs, from)?;
        newest = newest.max(OLDEST);
        if largest > NUMBER_MAX {
            report.lose(segment.loss_beyond(largest));
        } else {
            newest = newest.max(largest);
        }
    }
    if newest > NUMBER_MAX {
        let what = format!("a file has sequence number {newest}, which no database reaches");
        return Err(Error::new(ErrorKind::Corruption, what));
    }
    let state = new_state(&survey, &names, newest)?;
    begin(options, to, state)?;
    let new_options = Options {
        create_if_missing: false,
        error_if_exists: false,
        // What it loads is durable at its close.
        log: true,
        ..options.clone()
    };
    let handle = Handle::open(to, new_options, Access::Repair)?;
    let source = Sources {
        folder,
        survey: &survey,
        logs: &logs,
        unnamed: &unnamed,
        names: &names,
        values: &values,
        newest,
    };
    let filled = fill(handle.engine(), &source, &mut report);
    let closed = handle.close();
    filled.and(closed)?;
    remove_mark(vfs, to)?;
    Ok(report)
}

/// What is read of the damaged database.
struct Sources<'a> {
    folder: Folder<'a>,
    survey: &'a Survey,
    logs: &'a Logs,
    unnamed: &'a [UnnamedSegment],
    names: &'a BTreeMap<KeyspaceId, String>,
    values: &'a OldValues,
    newest: SequenceNumber,
}

/// Writes everything to the new database.
fn fill(engine: &Engine, from: &Sources<'_>, report: &mut RepairReport) -> Result<()> {
    let budget = usize::try_from(engine.options().memory_budget / 8).unwrap_or(SORT_BYTES_MAX);
    let memory_bytes = match budget {
        0 => SORT_BYTES_MAX,
        budget => budget.min(SORT_BYTES_MAX),
    };
    let mut sorter = Sorter::new(engine, memory_bytes);
    let mut tables = OldTables::new(engine, from.folder.path.to_owned());
    tables.read_named(from.survey, &mut sorter, report)?;
    for segment in from.unnamed {
        // All of them have a keyspace now.
        if let Some((&id, name)) = segment
            .keyspace
            .and_then(|id| from.names.get_key_value(&id))
        {
            tables.read_unnamed(segment, (id, name), &mut sorter, report)?;
        }
    }
    let survey = from.survey;
    from.logs
        .each_entry(from.folder, survey, report, &mut |entry| {
            let trailer = Trailer::new(entry.sequence, entry.kind);
            let is_wanted = survey.has_keyspace(entry.keyspace)
                && from.names.contains_key(&entry.keyspace)
                && entry.sequence > survey.flushed(entry.keyspace)
                && is_valid(entry.key, entry.kind, entry.value);
            if is_wanted {
                sorter.add(entry.keyspace, entry.key, trailer, entry.value)?;
            }
            Ok(())
        })?;
    let mut runs = sorter.finish()?;
    let keyspaces = engine.keyspaces.load_full();
    for keyspace in keyspaces.iter() {
        let id = keyspace.id();
        let name = keyspace.name().to_string();
        let mut all = sources(
            &tables.open,
            tables.segments.remove(&id).unwrap_or_default(),
        );
        all.extend(sources(
            &engine.tables,
            runs.remove(&id).unwrap_or_default(),
        ));
        let merge = Merge {
            keyspace: id,
            name: &name,
            sources: all,
            ranges: RangeTombstones::new(sorter.ranges.remove(&id).unwrap_or_default()),
            values: from.values,
            newest: from.newest,
            report,
        };
        let entries =
            engine.bulk_load(keyspace, Lifetime::Default, |writer| merge.write(writer))?;
        if name != crate::base::PREPARED_KEYSPACE {
            report.keyspaces.push(RepairedKeyspace { name, entries });
        }
    }
    Ok(())
}

/// The loss of `count` entries of logs that belong to too many keyspaces; `ids` are some of these.
fn too_many_keyspaces(count: u64, ids: &BTreeSet<KeyspaceId>) -> Loss {
    let ids: Vec<String> = ids.iter().map(KeyspaceId::to_string).collect();
    Loss {
        what: format!(
            "{count} entries of the logs are left out: they name more keyspaces that neither a manifest nor a table describes \
             than a repair makes, as {}",
            ids.join(", ")
        ),
        ..Loss::default()
    }
}

/// Locks the damaged database for reading, if it has a lock.
fn lock_shared(vfs: &dyn Vfs, folder: &Path) -> Result<Option<Box<dyn LockGuard>>> {
    match vfs.lock_shared(&folder.join(LOCK)) {
        Ok(lock) => Ok(Some(lock)),
        Err(error) if folder::is_missing_folder(&error) => Ok(None),
        Err(error) => Err(folder::lock_failure(folder, error)),
    }
}

/// The state of the new database before it has entries: its keyspaces have the ids and the options of the old ones, and
/// no number up to `newest` is used again.
fn new_state(
    survey: &Survey,
    names: &BTreeMap<KeyspaceId, String>,
    newest: SequenceNumber,
) -> Result<ManifestState> {
    let mut records = Vec::new();
    for (&id, name) in names {
        let name = name.clone();
        records.push(Record::CreateKeyspace { id, name });
        let Some(old) = survey.state.keyspaces.get(&id) else {
            continue;
        };
        if !old.options.is_empty() {
            let options = old.options.clone();
            records.push(Record::KeyspaceOptions {
                keyspace: id,
                options,
            });
        }
        if let Some(name) = old.merge_operator.clone() {
            records.push(Record::MergeOperator { keyspace: id, name });
        }
    }
    let last = names.keys().next_back().copied().unwrap_or_default();
    records.push(Record::Used {
        keyspace: last.max(survey.state.last_keyspace),
        sequence: newest,
    });
    records.push(Record::ExpiredBy(survey.state.expired_by));
    let mut state = ManifestState::default();
    state
        .apply(&Edit { records })
        .map_err(|contradiction| Error::new(ErrorKind::Corruption, contradiction.to_string()))?;
    Ok(state)
}

/// Marks `to`, which must be empty or missing, as unfinished, and writes a manifest there.
fn begin(options: &Options, to: &Path, state: ManifestState) -> Result<()> {
    let vfs = &options.vfs;
    vfs.create_dir_all(to)
        .map_err(|error| Error::io("create", to, error))?;
    let names = vfs.list(to).map_err(|error| Error::io("list", to, error))?;
    if !names.is_empty() {
        let message = format!("nothing is repaired into {}: it is not empty", to.display());
        return Err(Error::new(ErrorKind::AlreadyExists, message));
    }
    put_mark(&**vfs, to)?;
    ManifestStore::start(Arc::clone(vfs), to, FileNumber(state.next_id), state).map(drop)
}
