//! The open: the same path for creation, recovery after a crash, and a reopen after a clean close.
//!
//! 1. Check the folder and take the lock.
//! 2. Read the manifest. Every file that it names must exist.
//! 3. Replay the logs into memtables ([`replay`](super::replay)). Nothing on disk has changed yet. Full memtables are
//!    frozen. Together they may exceed the memory budget: all entries of the logs are in memory.
//! 4. Make the replayed values and then the logs durable: [rewrite] in place what is not proved durable. Then record in
//!    a new manifest where history ended, without the oldest logs whose entries are all in tables. From here on a
//!    second crash recovers the same state.
//! 5. Remove the files that the manifest does not name.
//! 6. Begin a new log. Replayed logs get no more records and never change.
//! 7. If that makes more than [`LOGS_MAX`] logs, flush everything that was replayed.
//!
//! An open for reading ends after step 3, takes a shared lock, and changes nothing.
//!
//! An open reads the names in the folder, the manifest once, the logs, and the values that replayed entries
//! point to. Except for step 7 it opens no table and runs no job.
//!
//! A crash between any two steps leaves a folder that the next open treats in the same way.
//!
//! Concurrency: one thread, before the database is open.

use std::path::Path;
use std::sync::Arc;

use super::cut::place_of_cut;
use super::folder::{
    LOCK, check_files, check_finished, check_unnamed_logs, is_missing_folder, list, lock_failure,
    no_database, prepare_directory, unnamed_files, unused_number,
};
use super::recovered_values::RecoveredValues;
use super::replay::{RecordedLogs, Replayed, ReplayedLog, replay};
use crate::base::key::NUMBER_MAX;
use crate::base::{Error, ErrorKind, FileNumber, KeyspaceId, Moment, Result, SequenceNumber};
use crate::engine::catalog::Catalog;
use crate::engine::changes::present;
use crate::engine::commit::value_log::ValueLog;
use crate::engine::commit::wal::WalChain;
use crate::engine::counters::Counters;
use crate::engine::errors::poison::Poison;
use crate::engine::keyspace::KeyspaceCore;
use crate::engine::throttling::memory::Memory;
use crate::engine::{Access, Engine};
use crate::log::rewrite;
use crate::manifest::names::{FILE_NUMBER_MAX, FileName};
use crate::manifest::{
    Contradiction, Edit, KeyspaceState, ManifestState, Obsolete, Record, Version, manifest_length,
    read_manifest,
};
use crate::options::{KeyspaceOptions, Options};
use crate::vfs::{LockGuard, Vfs};

/// An open leaves at most this many logs, its own included, unless the disk is full. By default full logs stay below
/// it ([`Options::max_wal_bytes`]); only many short opens reach it.
const LOGS_MAX: usize = 16;

/// The result of an open.
#[derive(Debug)]
pub(crate) struct Opened {
    /// `None` if an open for reading has found nothing to lock.
    pub(crate) lock: Option<Box<dyn LockGuard>>,
    /// The files that earlier opens have left behind, which the manifest does not name.
    pub(crate) unnamed: Vec<FileName>,
    pub(crate) catalog: Catalog,
    pub(crate) chain: WalChain,
    pub(crate) keyspaces: Vec<Arc<KeyspaceCore>>,
    /// The newest committed sequence number.
    pub(crate) last_sequence: SequenceNumber,
    /// The last replayed log that is needed.
    pub(crate) last_log: Option<ReplayedLog>,
    /// The damage of the logs at which history was cut.
    pub(crate) damage: Option<Error>,
    pub(crate) recovered: Recovered,
}

/// What an open has found, for people.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Recovered {
    pub(crate) is_new: bool,
    pub(crate) logs: usize,
    pub(crate) log_bytes: u64,
}

impl Recovered {
    fn of(logs: &[ReplayedLog], is_new: bool) -> Self {
        Self {
            is_new,
            logs: logs.len(),
            log_bytes: logs.iter().map(|log| log.end).sum(),
        }
    }
}

/// The parts of an engine that exist before the open.
#[derive(Debug)]
pub(crate) struct Parts<'a> {
    pub(crate) directory: &'a Path,
    pub(crate) options: &'a Options,
    pub(crate) memory: Arc<Memory>,
    pub(crate) obsolete: Arc<Obsolete>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) poison: Arc<Poison>,
    pub(crate) access: Access,
}

/// Opens the database of `parts`.
pub(crate) fn open(parts: &Parts<'_>) -> Result<Opened> {
    let Parts {
        directory, options, ..
    } = *parts;
    let vfs = &options.vfs;
    let lock = prepare_directory(&**vfs, directory, options)?;
    let files = list(&**vfs, directory)?;
    check_finished(directory, &files, parts.access)?;
    let found = read_manifest(&**vfs, directory)?;
    let is_new = found.is_none();
    let mut state = match found {
        Some(_) if options.error_if_exists => {
            return Err(Error::new(
                ErrorKind::AlreadyExists,
                format!("there is a database in {} already", directory.display()),
            ));
        }
        Some((manifest, state)) => {
            check_unnamed_logs(&**vfs, directory, manifest, &state, &files)?;
            state
        }
        None if options.create_if_missing => ManifestState::default(),
        None => return Err(no_database(directory)),
    };
    check_files(&state, &files, options.recovery)?;
    if !options.log && !state.changes.consumers.is_empty() {
        let what = "consumers of changes need a log: remove them before an open without one";
        return Err(Error::invalid_argument(what));
    }

    let keyspaces = build_keyspaces(&state, parts)?;
    let (history, recovery) = fill_memtables(parts, &state, &keyspaces)?;
    check_operators(&keyspaces, &state)?;
    let cut = place_of_cut(&state, &history)?;
    let (replayed, damage) = (history.logs, history.damage);
    // Before the logs, which refer to the values.
    recovery.make_durable(&**vfs, directory)?;
    make_durable(&**vfs, directory, &replayed)?;
    let cut_logs = cut.map(|end| recovery.cut_behind(&**vfs, directory, end));
    let cut_logs = cut_logs.transpose()?.unwrap_or_default();
    let seals = recovery.into_seals();
    apply(&mut state, &seals)?;
    if let Some(end) = cut {
        state.cut_history(replayed.last().map(|log| log.number), end);
        state
            .cut_value_logs(&cut_logs, end)
            .map_err(|it| damaged(&it))?;
    }
    apply(&mut state, &merge_operators(&keyspaces))?;
    for keyspace in &keyspaces {
        if let Some(state) = state.keyspaces.get(&keyspace.id()) {
            keyspace.set_value_files(state, &parts.obsolete);
        }
    }
    let replayed_last = last_sequence_of(&replayed);
    let last_sequence = recorded_last(&state).max(replayed_last);
    if last_sequence > NUMBER_MAX {
        let what = format!("a file has sequence number {last_sequence}, which no database reaches");
        return Err(Error::new(ErrorKind::Corruption, what));
    }
    // Logs that are dropped may hold entries of dropped keyspaces, which are in no table.
    state.used_sequence = last_sequence;
    let first_needed = replayed.iter().position(|log| log.is_needed);
    let needed = &replayed[first_needed.unwrap_or(replayed.len())..];
    let last_log = needed.last().copied();
    let dropped = &replayed[..replayed.len() - needed.len()];
    let kept = kept_logs(dropped, &state, present(&*parts.options.runtime));
    apply(&mut state, &kept)?;
    if last_log.is_some() && last_sequence != replayed_last {
        // New entries would not continue the sequence of the logs that stay.
        let what = format!(
            "the manifest records sequence number {last_sequence}, but the logs end at {replayed_last}"
        );
        return Err(Error::new(ErrorKind::Corruption, what));
    }
    state
        .end_history(
            needed.first().map(|log| log.number),
            last_log.map(|log| (log.number, log.end)),
        )
        .map_err(|it| damaged(&it))?;
    state.is_unlogged = !options.log;
    let catalog = Catalog::start(
        Arc::clone(vfs),
        directory,
        unused_number(&state, &files)?,
        state,
        Arc::clone(&parts.counters),
        Arc::clone(&parts.poison),
    )?;
    let unnamed = unnamed_files(&files, &catalog, is_new);
    Ok(Opened {
        lock: Some(lock),
        unnamed,
        catalog,
        chain: chain_of(needed),
        keyspaces,
        last_sequence,
        last_log,
        damage,
        recovered: Recovered::of(&replayed, is_new),
    })
}

/// Opens the database of `parts` for reading: like `open`, but it changes nothing on disk and
/// does not make replayed entries durable.
pub(crate) fn open_read_only(parts: &Parts<'_>) -> Result<Opened> {
    let Parts {
        directory, options, ..
    } = *parts;
    let vfs = &options.vfs;
    let path = directory.join(LOCK);
    let lock = match vfs.lock_shared(&path) {
        Ok(lock) => Some(lock),
        // The folder does not exist, or was never opened.
        Err(error) if is_missing_folder(&error) => None,
        Err(error) => return Err(lock_failure(directory, error)),
    };
    let Some((manifest, mut state)) = read_manifest(&**vfs, directory)? else {
        return Err(no_database(directory));
    };
    let files = list(&**vfs, directory)?;
    // A repair that has ended early may have left no lock.
    check_finished(directory, &files, parts.access)?;
    check_unnamed_logs(&**vfs, directory, manifest, &state, &files)?;
    check_files(&state, &files, options.recovery)?;
    let keyspaces = build_keyspaces(&state, parts)?;
    let (history, recovery) = fill_memtables(parts, &state, &keyspaces)?;
    check_operators(&keyspaces, &state)?;
    let cut = place_of_cut(&state, &history)?;
    let (replayed, damage) = (history.logs, history.damage);
    // Value logs that were being written stay so: nobody has made them durable.
    let ends = recovery.ends();
    for keyspace in &keyspaces {
        let own = ends.iter().filter(|end| end.0 == keyspace.id());
        *keyspace.value_log.lock() = ValueLog::of_state(own.map(|end| (end.1, end.2)));
    }
    if let Some(end) = cut {
        state.cut_history(replayed.last().map(|log| log.number), end);
    }
    Ok(Opened {
        lock,
        unnamed: Vec::new(),
        chain: chain_of(&replayed),
        keyspaces,
        last_sequence: recorded_last(&state).max(last_sequence_of(&replayed)),
        last_log: None,
        damage,
        recovered: Recovered::of(&replayed, false),
        catalog: Catalog::read_only(
            Arc::clone(vfs),
            Arc::new(state),
            manifest_length(&**vfs, directory, manifest)?,
            Arc::clone(&parts.counters),
            Arc::clone(&parts.poison),
        ),
    })
}

/// The largest sequence number in the manifest, those of tables included: a new entry is newer than all.
fn recorded_last(state: &ManifestState) -> SequenceNumber {
    let levels = state.keyspaces.values().flat_map(|own| &own.levels);
    let tables = levels.flat_map(|level| level.values());
    let newest = tables.map(|table| table.sequence_max()).max();
    state.last_sequence().max(newest.unwrap_or(0))
}

fn last_sequence_of(logs: &[ReplayedLog]) -> SequenceNumber {
    logs.last().map_or(0, |log| log.last_sequence)
}

/// The records that keep those of the `dropped` logs that consumers of changes hold.
fn kept_logs(dropped: &[ReplayedLog], state: &ManifestState, moment: Moment) -> Edit {
    let chain = chain_of(dropped);
    let kept = state.changes.held_from().map(|from| {
        let all = FileNumber(FILE_NUMBER_MAX);
        chain.entries_before(all, from, moment)
    });
    let record = |(number, log)| Record::KeepLog { number, log };
    Edit {
        records: kept.into_iter().flatten().map(record).collect(),
    }
}

fn chain_of(logs: &[ReplayedLog]) -> WalChain {
    let chain = WalChain::default();
    for log in logs {
        chain.push_replayed(log.number, log.first_sequence, log.end, log.last_sequence);
    }
    chain
}

/// The names of the merge operators of `keyspaces`, as the manifest records them.
fn merge_operators(keyspaces: &[Arc<KeyspaceCore>]) -> Edit {
    let record = |keyspace: &Arc<KeyspaceCore>| {
        Some(Record::MergeOperator {
            keyspace: keyspace.id(),
            name: keyspace.operator().name()?.to_owned(),
        })
    };
    Edit {
        records: keyspaces.iter().filter_map(record).collect(),
    }
}

/// Checks that no keyspace with entries that expire gets a merge operator. One whose operator is recorded already opens: a
/// transaction that was prepared before may have written such entries, and each read says whether it can fold its key.
///
/// # Errors
/// `InvalidArgument`: nothing on disk has changed, and an open without the operator succeeds.
fn check_operators(keyspaces: &[Arc<KeyspaceCore>], state: &ManifestState) -> Result<()> {
    let expires = |keyspace: &&Arc<KeyspaceCore>| {
        let recorded = state.keyspaces.get(&keyspace.id());
        let is_new = recorded.is_none_or(|it| it.merge_operator.is_none());
        keyspace.has_default_ttl() || is_new && keyspace.state().may_expire()
    };
    for keyspace in keyspaces.iter().filter(expires) {
        keyspace.check_expiring()?;
    }
    Ok(())
}

fn apply(state: &mut ManifestState, edit: &Edit) -> Result<()> {
    state.apply(edit).map_err(|it| damaged(&it))
}

fn damaged(contradiction: &Contradiction) -> Error {
    Error::new(ErrorKind::Corruption, contradiction.to_string())
}

/// Replays the logs that `state` names into the memtables of `keyspaces`.
fn fill_memtables<'a>(
    parts: &Parts<'_>,
    state: &'a ManifestState,
    keyspaces: &'a [Arc<KeyspaceCore>],
) -> Result<(Replayed, RecoveredValues<'a>)> {
    let (vfs, directory) = (&parts.options.vfs, parts.directory);
    let recorded = RecordedLogs {
        live: state.logs.iter().copied().collect(),
        ends: state.log_ends.clone(),
        synced: state.log_synced,
    };
    let mut recovered = RecoveredValues::new(vfs, directory, state, keyspaces);
    let recovery = parts.options.recovery;
    let replayed = replay(&**vfs, directory, &recorded, recovery, &mut recovered)?;
    Ok((replayed, recovered))
}

impl Engine {
    /// Flushes what was replayed if many opens have left many logs. So neither their number nor the work of
    /// the next open grows without bound.
    ///
    /// # Errors
    /// Those of a flush, except a full disk: then the database opens with the logs that it has.
    pub(in crate::engine) fn flush_long_chain(&self) -> Result<()> {
        if self.chain.count() <= LOGS_MAX {
            return Ok(());
        }
        match self.flush_all() {
            Err(error) if error.kind() == ErrorKind::NoSpace => self.poison.check(),
            outcome => outcome,
        }
    }
}

fn build_keyspaces(state: &ManifestState, parts: &Parts<'_>) -> Result<Vec<Arc<KeyspaceCore>>> {
    let build = |(id, keyspace): (&KeyspaceId, &KeyspaceState)| {
        let version = Version::from_state(keyspace, &parts.obsolete).map_err(|contradiction| {
            Error::new(
                ErrorKind::Corruption,
                format!("the manifest contradicts itself: {contradiction}"),
            )
        })?;
        let core = build_keyspace(*id, keyspace, version, parts.options, &parts.memory)?;
        Ok(Arc::new(core))
    };
    state.keyspaces.iter().map(build).collect()
}

/// The keyspace that the manifest describes, with the files of `version`.
pub(in crate::engine) fn build_keyspace(
    id: KeyspaceId,
    keyspace: &KeyspaceState,
    version: Version,
    options: &Options,
    memory: &Arc<Memory>,
) -> Result<KeyspaceCore> {
    let core = KeyspaceCore::new(
        id,
        keyspace.name.clone(),
        recorded_options(keyspace, options)?,
        options.merge_operator(&keyspace.name, keyspace.merge_operator.as_deref())?,
        version,
        usize::from(keyspace.level_count),
        memory,
    );
    let filter = options.compaction_filters.of_keyspace(&keyspace.name);
    let core = core.with_compaction_filter(filter);
    Ok(core.with_totals(keyspace.totals.clone()))
}

/// The recorded options of `keyspace`.
fn recorded_options(keyspace: &KeyspaceState, options: &Options) -> Result<KeyspaceOptions> {
    if keyspace.options.is_empty() {
        return Ok(options.keyspace.clone());
    }
    let unsupported = |fault: String| {
        let message = format!(
            "this version cannot use the recorded options of keyspace \"{}\": {fault}",
            keyspace.name
        );
        Error::new(ErrorKind::Unsupported, message)
    };
    let recorded = KeyspaceOptions::from_recorded(&keyspace.options).map_err(unsupported)?;
    recorded
        .validate()
        .map_err(|error| unsupported(error.to_string()))?;
    Ok(recorded)
}

/// Makes the replayed logs durable, oldest first. After the end of a process, or a failed sync, their
/// bytes may be in the page cache only.
fn make_durable(vfs: &dyn Vfs, directory: &Path, logs: &[ReplayedLog]) -> Result<()> {
    for log in logs.iter().filter(|log| log.durable < log.end) {
        let name = FileName::Wal(log.number).to_string();
        rewrite(vfs, directory, &name, log.number, log.durable, log.end)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
