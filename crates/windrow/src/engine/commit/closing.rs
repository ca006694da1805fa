//! The end of an open database: its log.
//!
//! A clean close leaves a short log behind. Otherwise every later open reads a long log again, even if
//! nobody writes. So a close flushes the memtables, unless the log is short: a table for each of many
//! small writes would fill level 0.
//!
//! I1. No promise rests on this flush. If it fails, the log still holds every entry, and is durable.
//!
//! Concurrency: the caller has stopped all jobs and refuses new calls.

use std::sync::Arc;

use crate::base::Result;
use crate::engine::{Engine, KeyspaceCore};
use crate::manifest::{ManifestState, Record};

/// A close keeps logs of at most this length, and of at most a quarter of a full log, if it would write at most
/// [`TABLES_PER_KEPT_LOG`] tables.
const KEPT_LOG_BYTES_MAX: u64 = 1 << 20;

/// A close keeps twice that length above this many tables, three times above twice as many tables, and so on.
const TABLES_PER_KEPT_LOG: u64 = 64;

impl Engine {
    /// Ends the log, so that the next open finds little in it.
    ///
    /// # Errors
    /// That of the last sync or edit; `Poisoned`.
    pub(in crate::engine) fn end_writing(&self) -> Result<()> {
        if self.is_unlogged() {
            // What is durable is so already, and nothing else survives.
            return self.poison.check();
        }
        // I1. The next step reports a poison.
        drop(self.poison_on_panic(|| self.empty_log()));
        self.close_log()
    }

    /// Moves what long logs hold to tables.
    fn empty_log(&self) -> Result<()> {
        self.poison.check()?;
        if self.reserve.is_full() || self.chain.bytes() <= self.kept_log_bytes() {
            return Ok(());
        }
        // A new log that cannot be begun poisons the database: then nothing is synced any more.
        self.sync_logs()?;
        self.freeze_in_new_log()?;
        for keyspace in self.keyspaces.load().iter() {
            let frozen = keyspace.state_full().frozen.clone();
            for oldest in frozen.iter().rev() {
                self.flush(keyspace, oldest)?;
            }
        }
        if self.chain.count() > 1 {
            // No memtable held entries.
            self.drop_logs()?;
        }
        Ok(())
    }

    /// The length of logs that are not worth a flush.
    fn kept_log_bytes(&self) -> u64 {
        let keyspaces = self.keyspaces.load();
        let holds_entries = |keyspace: &&Arc<KeyspaceCore>| keyspace.unflushed(0).is_some();
        let tables = keyspaces.iter().filter(holds_entries).count() as u64;
        let kept = KEPT_LOG_BYTES_MAX.min(self.log_bytes_max() / 4);
        kept * tables.div_ceil(TABLES_PER_KEPT_LOG).max(1)
    }

    /// Freezes every memtable that holds entries and begins a new log: all older logs can go once
    /// these memtables are tables.
    fn freeze_in_new_log(&self) -> Result<()> {
        let leadership = self.commits.queue.exclusive();
        let mut log = self.commits.log.lock();
        self.begin_log(&mut log)?;
        for keyspace in self.keyspaces.load().iter() {
            if !keyspace.state().active.is_empty() {
                keyspace.rotate(log.last_sequence);
            }
        }
        drop(log);
        drop(leadership);
        Ok(())
    }

    /// Syncs the log, records its end in the manifest, and the manifest's end in `CURRENT`. So the next
    /// open can distinguish damage from a torn tail at every byte.
    fn close_log(&self) -> Result<()> {
        let leadership = self.commits.queue.exclusive();
        self.poison.check()?;
        self.sync_logs()?;
        let log = self.commits.log.lock();
        if let Some(writer) = &log.writer {
            let record = Record::LogEnd {
                number: writer.number(),
                offset: writer.end(),
            };
            let keyspaces = self.keyspaces.load();
            let records = |manifest: &ManifestState| {
                let totals = keyspaces.iter().filter_map(|it| it.totals_record(manifest));
                totals.chain([record.clone()]).collect()
            };
            self.with_reserve(|| self.catalog.commit(records, |_| ()))?;
        }
        self.with_reserve(|| self.catalog.record_manifest_length())?;
        drop(log);
        drop(leadership);
        Ok(())
    }
}
