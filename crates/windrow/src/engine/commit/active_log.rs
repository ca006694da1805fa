//! The log that is written: its switch, its markers, its syncs.
//!
//! Concurrency: only the leader of the commits locks the [`ActiveLog`], so the lock is never contended. A thread
//! holds `next` while it creates a log. So logs enter the manifest in the order of their numbers, and
//! each log is in use before the next one is created.

use std::time::Duration;

use crate::base::{FileNumber, Result, SequenceNumber};
use crate::codec::Compression;
use crate::codec::compression::Compressor;
use crate::engine::Engine;
use crate::engine::counters;
use crate::engine::recovery::replay::ReplayedLog;
use crate::log::batch;
use crate::log::{LogWriter, Predecessor, WalHeader};
use crate::manifest::Record;
use crate::manifest::names::FileName;

/// The scratch buffer of the compressor keeps at most this capacity.
const SCRATCH_BYTES_KEPT: usize = 1 << 20;

/// A log that nobody has written to for this long gets a marker.
const MARK_AFTER: Duration = Duration::from_secs(1);

/// How long nothing has been written to the log.
#[derive(Debug, Default)]
pub(super) struct Idle {
    /// The length at the last look, and when the log was first seen at it.
    written: u64,
    since: Duration,
    /// The length behind the last marker.
    marked: u64,
}

impl Idle {
    /// Looks at a log of `written` bytes; true when it has been idle long enough for a marker and
    /// has none.
    fn is_over(&mut self, written: u64, now: Duration) -> bool {
        if written != self.written {
            (self.written, self.since) = (written, now);
        }
        written != self.marked && now.saturating_sub(self.since) >= MARK_AFTER
    }
}

/// The end of the write-ahead log.
#[derive(Debug)]
pub(super) struct ActiveLog {
    /// `None` only while the database is being opened.
    pub(super) writer: Option<LogWriter>,
    /// The newest sequence number that was given out.
    pub(super) last_sequence: SequenceNumber,
    pub(super) packer: Packer,
}

/// Compresses the entries of records.
#[derive(Debug)]
pub(super) struct Packer {
    compressor: Compressor,
    /// What entries become.
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
    /// Compresses the entries of the record that begins at `start` in `chunk`, if that pays.
    pub(super) fn pack(&mut self, chunk: &mut Vec<u8>, start: usize) {
        batch::pack(chunk, start, &mut self.compressor, &mut self.scratch);
        self.scratch.shrink_to(SCRATCH_BYTES_KEPT);
    }
}

impl Engine {
    /// Goes on in a new log, which begins with where the present one ends.
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

    /// Begins the first log of this opening, behind the last one that was replayed.
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

    /// Creates an empty log that the manifest knows.
    fn create_log(&self) -> Result<LogWriter> {
        let number = FileNumber(self.catalog.allocate()?);
        let vfs = &*self.options.vfs;
        let name = FileName::Wal(number).to_string();
        let writer = LogWriter::create(vfs, &self.directory, &name, number, self.chain.last_log())?;
        let added = self.sync_directory().and_then(|()| {
            self.catalog
                .commit(|_| vec![Record::AddLog(number)], |_| ())
        });
        if let Err(error) = added {
            if !self.poison.is_set() {
                // What cannot be removed now is removed when the database is opened next.
                drop(vfs.remove(&self.directory.join(name)));
            }
            return Err(error);
        }
        Ok(writer)
    }

    /// Whether the present log is half full and the one after it does not exist yet.
    pub(in crate::engine) fn is_log_due(&self) -> bool {
        self.chain.last_log_bytes() >= self.log_bytes_max() / 2
            && self.commits.next.lock().is_none()
    }

    /// The length at which a log is full: that of a memtable.
    pub(in crate::engine) fn log_bytes_max(&self) -> u64 {
        self.memory
            .memtable_bytes(self.options.keyspace.memtable_bytes) as u64
    }

    /// Creates the log after the present one, so that no writer has to wait for it.
    pub(in crate::engine) fn prepare_log(&self) -> Result<()> {
        let mut next = self.commits.next.lock();
        if next.is_none() {
            *next = Some(self.create_log()?);
        }
        Ok(())
    }

    /// Whether the log is durable to its end and has been left alone for a while: then a marker in it
    /// lets recovery tell damage to its last record from a torn tail.
    pub(in crate::engine) fn is_marker_due(&self) -> bool {
        let Some(log) = self.chain.last_log() else {
            return false;
        };
        let (written, now) = (log.written(), self.options.runtime.now());
        let is_durable = log.synced() == written;
        self.commits.idle.lock().is_over(written, now) && is_durable
    }

    /// Says in the log how far it is durable.
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

    /// Makes everything that was acknowledged so far durable.
    pub(crate) fn persist(&self) -> Result<()> {
        self.check_writable()?;
        self.sync_logs()
    }

    /// Makes everything in the logs durable, oldest log first.
    pub(in crate::engine) fn sync_logs(&self) -> Result<()> {
        let synced = self.chain.sync().inspect_err(|error| {
            self.poison.set(error);
            self.values.doubt();
        })?;
        counters::add(&self.counters.wal_syncs, u64::from(synced));
        self.poison.check()
    }
}
