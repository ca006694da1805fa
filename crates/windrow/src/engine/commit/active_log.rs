//! The log that is written: its switch, its markers, its syncs.
//!
//! Concurrency: only the leader of the commits locks the [`ActiveLog`], and the open before it ends.

use std::time::Duration;

use super::point::PendingPoint;
use crate::base::{FileNumber, Result, SequenceNumber};
use crate::codec::Compression;
use crate::codec::compression::Compressor;
use crate::engine::Engine;
use crate::engine::counters;
use crate::engine::recovery::replay::ReplayedLog;
use crate::latency::Operation;
use crate::log::batch;
use crate::log::{LogWriter, Predecessor, WalHeader};
use crate::manifest::Record;
use crate::manifest::names::FileName;

/// The compressor keeps a scratch buffer of at most this capacity.
const SCRATCH_BYTES_KEPT: usize = 1 << 20;

/// A log gets a marker after it has been idle for this time.
const MARK_AFTER: Duration = Duration::from_secs(1);

/// Since when the log has been idle.
#[derive(Debug, Default)]
pub(super) struct Idle {
    /// The length at the last check, and the time when a check first saw this length.
    written: u64,
    since: Duration,
    /// The length after the last marker.
    marked: u64,
}

impl Idle {
    /// Notes the length `written`. Returns whether the log has been idle long enough for a marker and has
    /// none.
    fn is_over(&mut self, written: u64, now: Duration) -> bool {
        if written != self.written {
            (self.written, self.since) = (written, now);
        }
        written != self.marked && now.saturating_sub(self.since) >= MARK_AFTER
    }
}

/// The log that is written.
#[derive(Debug)]
pub(super) struct ActiveLog {
    /// `None` only until the open has begun the first log.
    pub(super) writer: Option<LogWriter>,
    /// The newest sequence number that a group has taken.
    pub(super) last_sequence: SequenceNumber,
    pub(super) packer: Packer,
}

/// Compresses the entries of records.
#[derive(Debug)]
pub(super) struct Packer {
    compressor: Compressor,
    /// The compressed entries.
    scratch: Vec<u8>,
}

impl ActiveLog {
    pub(super) fn new(last_sequence: SequenceNumber) -> Self {
        Self {
            writer: None,
            last_sequence,
            packer: Packer {
                compressor: Compressor::new(Compression::Lz4),
                scratch: Vec::new(),
            },
        }
    }
}

impl Packer {
    /// Compresses the entries of the record that begins at `start` in `chunk`, if that makes it smaller.
    pub(super) fn pack(&mut self, chunk: &mut Vec<u8>, start: usize) {
        batch::pack(chunk, start, &mut self.compressor, &mut self.scratch);
        self.scratch.shrink_to(SCRATCH_BYTES_KEPT);
    }
}

impl Engine {
    /// Begins a new log. Its header records the end of the log before it.
    pub(super) fn begin_log(&self, log: &mut ActiveLog) -> Result<()> {
        let predecessor = log.writer.as_ref().map(|writer| {
            let end = writer.end();
            let synced = writer.shared().synced() == end;
            Predecessor {
                number: writer.number(),
                end,
                synced,
            }
        });
        self.switch_log(log, predecessor)
    }

    /// Begins the first log of this open, after the last replayed log.
    pub(in crate::engine) fn begin_first_log(&self, last: Option<ReplayedLog>) -> Result<()> {
        let predecessor = last.map(|last| Predecessor {
            number: last.number,
            end: last.end,
            synced: true,
        });
        self.switch_log(&mut self.commits.log.lock(), predecessor)
    }

    fn switch_log(&self, log: &mut ActiveLog, predecessor: Option<Predecessor>) -> Result<()> {
        let mut prepared = self.commits.next.lock();
        let next = match &mut *prepared {
            Some(next) => next,
            None => prepared.insert(self.create_log()?),
        };
        let header = WalHeader {
            predecessor,
            base: log.last_sequence + 1,
        };
        header.encode(next.begin());
        self.poison_unless_full(next.commit())?;
        counters::add(&self.counters.wal_bytes, next.end());
        self.chain
            .switch(log.last_sequence, next.number(), next.shared());
        log.writer = prepared.take();
        drop(prepared);
        self.refresh_shared_throttle();
        Ok(())
    }

    /// Creates an empty log and adds it to the manifest.
    fn create_log(&self) -> Result<LogWriter> {
        let number = FileNumber(self.catalog.allocate()?);
        let file = FileName::Wal(number);
        let name = file.to_string();
        let previous = self.chain.last_log();
        let writer =
            LogWriter::create(&*self.options.vfs, &self.directory, &name, number, previous)?;
        self.add_to_manifest(file, || {
            self.catalog
                .commit(|_| vec![Record::AddLog(number)], |_| ())
        })?;
        Ok(writer)
    }

    /// Whether the active log is half full and the next log does not exist yet.
    pub(in crate::engine) fn is_log_due(&self) -> bool {
        self.chain.last_log_bytes() >= self.log_bytes_max() / 2
            && self.commits.next.lock().is_none()
    }

    /// The length of a full log: the size of a memtable.
    pub(in crate::engine) fn log_bytes_max(&self) -> u64 {
        self.memory
            .memtable_bytes(self.options.keyspace.memtable_bytes) as u64
    }

    /// Creates the next log early, so that no writer must wait for it.
    pub(in crate::engine) fn prepare_log(&self) -> Result<()> {
        let mut next = self.commits.next.lock();
        if next.is_none() {
            *next = Some(self.create_log()?);
        }
        Ok(())
    }

    /// Whether the log is idle and durable to its end. A marker then lets recovery distinguish damage in
    /// the last record from a torn tail.
    pub(in crate::engine) fn is_marker_due(&self) -> bool {
        let Some(log) = self.chain.last_log() else {
            return false;
        };
        let (written, now) = (log.written(), self.options.runtime.now());
        let is_durable = log.synced() == written;
        self.commits.idle.lock().is_over(written, now) && is_durable
    }

    /// Records in the log how far it is durable.
    pub(in crate::engine) fn mark_log(&self) -> Result<()> {
        let leadership = self.commits.queue.exclusive();
        let mut log = self.commits.log.lock();
        if let Some(writer) = &mut log.writer {
            let before = writer.end();
            self.poison_unless_full(writer.append_marker())?;
            counters::add(&self.counters.wal_bytes, writer.end() - before);
            self.commits.idle.lock().marked = writer.end();
        }
        drop(log);
        drop(leadership);
        Ok(())
    }

    /// Makes every acknowledged write durable.
    pub(crate) fn persist(&self) -> Result<()> {
        self.check_writable()?;
        if self.is_unlogged() {
            return self.persist_unlogged();
        }
        self.sync_logs()
    }

    /// Makes every write that is acknowledged now durable, later and by another thread. With a log it is done on return.
    pub(crate) fn begin_persist(&self) -> Result<PendingPoint> {
        self.check_writable()?;
        if self.is_unlogged() {
            return self.begin_point();
        }
        self.sync_logs()?;
        Ok(PendingPoint::ended())
    }

    /// Syncs all logs, oldest first.
    pub(in crate::engine) fn sync_logs(&self) -> Result<()> {
        let latencies = self.observer.latencies();
        let start = latencies.are_on().then(|| latencies.now());
        let synced = self.chain.sync().inspect_err(|error| {
            self.poison.set(error);
            self.values.note_failure();
        })?;
        counters::add(&self.counters.wal_syncs, u64::from(synced));
        if let Some(start) = start.filter(|_| synced) {
            latencies.end(Operation::Sync, start);
        }
        self.poison.check()
    }
}
