//! The bulk load: it writes ascending entries to tables, once.
//!
//! The tables are written before the entries have a place in the commit order, so their entries are unnumbered. Values
//! are placed by their size as a compaction into the level of the first key would place them: medium ones beside their
//! keys if nothing has to be compacted later, large ones in value logs of the load.
//!
//! I1. Keys ascend strictly, so an entry needs no number to be distinct.
//!
//! Concurrency: the calling thread writes; it counts as a job, so a close waits for it.

use std::mem;
use std::sync::Arc;

use super::out_of_order;
use super::tables::NewTables;
use crate::base::expiry::{put_expiring, split_expiring};
use crate::base::key::UNNUMBERED;
use crate::base::sync::Shared;
use crate::base::{Error, Expiry, Kind, Moment, Result, Trailer};
use crate::compact::job::{CancelCheck, IoPriority};
use crate::compact::output::Output;
use crate::compact::pending_files::PendingFiles;
use crate::compact::values::Values;
use crate::engine::counters;
use crate::engine::jobs::context::table_options;
use crate::engine::jobs::tree_summary::summary;
use crate::engine::keyspace::KeyspaceWork;
use crate::engine::{Engine, KeyspaceCore, Lifetime};
use crate::options;
use crate::policy::{OutputCutter, bulk_load_output, filter_units};
use crate::table::FileMeta;
use crate::value::{ValueFileMeta, ValuePointer};

/// Takes the entries of a bulk load.
pub(crate) struct BulkWriter<'e, 'c> {
    pub(super) engine: &'e Engine,
    pub(super) keyspace: &'c Arc<KeyspaceCore>,
    pub(super) cancel: CancelCheck<'c>,
    /// `None` before the first entry.
    output: Option<Output<'e, 'c>>,
    last_key: Vec<u8>,
    user_bytes: u64,
    /// When entries expire that say nothing of it, if ever.
    expiry: Option<Moment>,
    /// What an entry stores that expires.
    expiring: Vec<u8>,
    /// Value logs that were written before, with their files.
    kept: Option<(Vec<ValueFileMeta>, PendingFiles<'e>)>,
}

impl<'e> BulkWriter<'e, '_> {
    /// Adds an entry behind the others (I1). Without an `expiry` it expires as the load says.
    ///
    /// # Errors
    /// `InvalidArgument` if the key is not above the last one, or key or value break a limit; `NoSpace`, `Io`;
    /// `Closed`; `NotFound` if the keyspace was dropped. The load is over then.
    pub(crate) fn add(&mut self, key: &[u8], value: &[u8], expiry: Option<Expiry>) -> Result<()> {
        options::check_key(key)?;
        options::check_value(value)?;
        if key <= &self.last_key[..] {
            return Err(out_of_order("a bulk load", key, &self.last_key));
        }
        match self.expiry_of(expiry)? {
            None => self.add_stored(key, Kind::Value, value)?,
            Some(expiry) => {
                let mut expiring = mem::take(&mut self.expiring);
                expiring.clear();
                put_expiring(&mut expiring, expiry, value);
                self.add_stored(key, Kind::ExpiringValue, &expiring)?;
                self.expiring = expiring;
            }
        }
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        Ok(())
    }

    /// When an entry expires that says this of it, if ever.
    ///
    /// # Errors
    /// `InvalidArgument` if entries of the keyspace cannot expire, or none so late.
    pub(super) fn expiry_of(&self, expiry: Option<Expiry>) -> Result<Option<Moment>> {
        match expiry {
            None => Ok(self.expiry),
            Some(expiry) => {
                let lifetime = Lifetime::Until(expiry);
                self.engine.expiry_of(self.keyspace, lifetime)
            }
        }
    }

    /// As [`add`](Self::add), for an entry in the form in which a sorted run stores it, perhaps with a pointer into a value
    /// log.
    pub(super) fn add_stored(&mut self, key: &[u8], kind: Kind, stored: &[u8]) -> Result<()> {
        let (engine, keyspace, cancel) = (self.engine, self.keyspace, self.cancel);
        let new = || new_output(engine, keyspace, cancel, key);
        let output = self.output.get_or_insert_with(new);
        output.begin_key(key)?;
        output.add(key, Trailer::new(UNNUMBERED, kind), stored)?;
        self.user_bytes += key.len() as u64 + value_bytes(kind, value_of(kind, stored))?;
        Ok(())
    }

    /// Adds a version of a key with its own number, in the form in which a table stores it with its value in place.
    /// Keys ascend, and the versions of a key descend.
    pub(in crate::engine) fn add_version(
        &mut self,
        key: &[u8],
        trailer: Trailer,
        stored: &[u8],
    ) -> Result<()> {
        let (engine, keyspace, cancel) = (self.engine, self.keyspace, self.cancel);
        let new = || new_output(engine, keyspace, cancel, key);
        let output = self.output.get_or_insert_with(new);
        if *key != *self.last_key {
            output.begin_key(key)?;
            self.last_key.clear();
            self.last_key.extend_from_slice(key);
        }
        output.add(key, trailer, stored)?;
        self.user_bytes += (key.len() + value_of(trailer.kind(), stored).len()) as u64;
        Ok(())
    }

    /// Leaves an entry of a sorted run out, which is older than the one that was added last.
    pub(super) fn leave_out(&mut self, kind: Kind, stored: &[u8]) -> Result<()> {
        match &mut self.output {
            Some(output) if kind.lasting() == Kind::ValueLogPointer => {
                output.discard(value_of(kind, stored))
            }
            _ => Ok(()),
        }
    }

    /// Adds value logs that entries point to, with their files.
    pub(super) fn keep(&mut self, value_logs: Vec<ValueFileMeta>, files: PendingFiles<'e>) {
        self.kept = Some((value_logs, files));
    }
}

/// The value or pointer of an entry that stores this.
fn value_of(kind: Kind, stored: &[u8]) -> &[u8] {
    if kind.is_expiring() {
        split_expiring(stored).1
    } else {
        stored
    }
}

/// The bytes of the value of an entry.
fn value_bytes(kind: Kind, value: &[u8]) -> Result<u64> {
    if kind.lasting() != Kind::ValueLogPointer {
        return Ok(value.len() as u64);
    }
    let pointer = ValuePointer::decode(value);
    let pointer = pointer.map_err(|error| error.in_file("an entry of a sorted run", 0))?;
    Ok(pointer.value_bytes)
}

/// The output of a load that begins with `key`.
fn new_output<'e, 'c>(
    engine: &'e Engine,
    keyspace: &KeyspaceCore,
    cancel: CancelCheck<'c>,
    key: &[u8],
) -> Output<'e, 'c> {
    let options = keyspace.options();
    let version = Shared::clone(&keyspace.state().version);
    let work = KeyspaceWork {
        level_count: keyspace.work.lock().level_count,
        ..KeyspaceWork::default()
    };
    let plan = bulk_load_output(&summary(&version, &work), &options, &key);
    let units = filter_units(1.0, keyspace.filter_price(), &options);
    let mediums_stay = plan.are_mediums_in_place;
    Output::new(
        engine,
        cancel,
        IoPriority::Compaction,
        (keyspace.id(), table_options(&options, units)),
        Values::of_flush(version.values(), options, mediums_stay),
        Some(OutputCutter::of_bulk_load(plan.file_bytes)),
    )
}

impl Engine {
    /// Adds the entries that `fill` writes to `keyspace`, all in one step, or none after an error. Returns their number.
    /// Those that say nothing of their expiry live for `lifetime`. On return they are durable, with every write acknowledged before.
    ///
    /// # Errors
    /// Those of `fill` and of [`BulkWriter::add`]; with nothing added, `NoSpace`, `NotFound`, `Closed`, `ReadOnly`.
    /// `Poisoned`, or the error that poisoned the database: a reopen shows whether the load counts.
    pub(crate) fn bulk_load<E: From<Error>>(
        &self,
        keyspace: &Arc<KeyspaceCore>,
        lifetime: Lifetime,
        fill: impl FnOnce(&mut BulkWriter<'_, '_>) -> std::result::Result<(), E>,
    ) -> std::result::Result<u64, E> {
        self.check_writable()?;
        let cancel = || self.check_needed(keyspace);
        let Some(running) = self.signal.begin_job() else {
            return Err(Error::closed().into());
        };
        cancel()?;
        let mut writer = BulkWriter {
            engine: self,
            keyspace,
            cancel: &cancel,
            output: None,
            last_key: Vec::new(),
            user_bytes: 0,
            expiry: self.expiry_of(keyspace, lifetime)?,
            expiring: Vec::new(),
            kept: None,
        };
        fill(&mut writer)?;
        let BulkWriter {
            output,
            user_bytes,
            kept,
            ..
        } = writer;
        let Some(output) = output else {
            running.end_unchanged();
            return Ok(0);
        };
        let entries = output.entries();
        let mut written = output.finish()?;
        let written_entries: u64 = written.tables.iter().map(FileMeta::entries).sum();
        assert_eq!(entries, written_entries, "a bulk load loses entries");
        if let Some((value_logs, files)) = kept {
            written.value_logs.extend(value_logs);
            let files = [files.release(), written.pending.release()].concat();
            written.pending = PendingFiles::adopt(self, files);
        }
        let value_log_bytes = written.value_logs.iter().map(|log| log.length).sum();
        let transient_log_bytes = written.transient_logs.iter().map(|log| log.length).sum();
        let bytes = written.tables.iter().map(FileMeta::bytes).sum();
        let tables = NewTables {
            keyspace: Arc::clone(keyspace),
            tables: written.tables,
            transient_logs: written.transient_logs,
            value_logs: written.value_logs,
            discard_lists: written.discard_lists,
            references: written.log_references,
        };
        self.add_tables(&[tables], written.pending)?;
        let counters = &self.counters;
        counters::add(&counters.user_bytes, user_bytes);
        counters::add(&counters.user_writes, entries);
        counters::add(&counters.bulk_loads, 1);
        counters::add(&counters.bulk_load_bytes, bytes);
        counters::add(&counters.value_log_bytes, value_log_bytes);
        counters::add(&counters.transient_log_bytes_written, transient_log_bytes);
        Ok(entries)
    }
}
