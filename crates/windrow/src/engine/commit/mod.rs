//! The way of a write: into the log, into its memtable, into sight.
//!
//! A writer enters the [queue](queue). Whoever leads takes the writers that wait as its
//! group, makes room (new memtable, new log) if need be, gives the group the next sequence numbers,
//! and writes one log record for all of it, synced if anybody asked for that. Then every member
//! inserts its own entries, in parallel; when all are in, the leader makes the group visible and
//! passes the leadership on. Since a group is over before the next begins, groups become visible in
//! commit order, and nothing is being inserted while a leader makes room.
//!
//! Invariants:
//! - I1: A sequence number belongs to one entry: numbers are taken only for a record that was
//!   written, and a failed write of which the outcome is unknown ends all writing.
//! - I2: An acknowledgement comes after the durability that was asked for, and no group becomes
//!   visible after a poison.
//!
//! Concurrency: `log` is locked by the leader only; the lock is never contended. `next` is held
//! while a log is created, so that logs enter the manifest in the order of their numbers and each is
//! used before the next is made.

pub(super) mod active_log;
mod queue;
mod separation;
pub(super) mod value_log;
pub(super) mod wal;
pub(super) mod write;

use std::sync::Arc;

use crate::base::key::SEQUENCE_MAX;
use crate::base::sync::Mutex;
use crate::base::sync::atomic::Ordering;
use crate::base::{Error, ErrorKind, Result, SequenceNumber};
use crate::engine::counters;
use crate::engine::errors::full_disk::SpaceUser;
use crate::engine::errors::poison::Poison;
use crate::engine::{Engine, KeyspaceCore};
use crate::log::LogWriter;
use crate::log::batch::{self, PACKED_FROM_BYTES};
use crate::manifest::Record;
use crate::options::Durability;
use active_log::{ActiveLog, Idle};
use queue::{CommitQueue, Leader, Turn};
use separation::{Logged, Touched};
use write::{Inserted, Write};

/// The most encoded bytes that a leader takes from waiting writers.
const GROUP_BYTES_MAX: usize = 1 << 20;

/// What a waiting writer asks of its leader.
#[derive(Debug)]
pub(super) struct Request {
    encoded: Vec<u8>,
    count: u32,
    durability: Durability,
    /// The keyspaces of the entries, where any value may be large.
    separable: Vec<Arc<KeyspaceCore>>,
}

/// What a leader answers.
pub(super) type Answer = Result<Sequenced>;

/// What became of the entries of one writer.
#[derive(Debug)]
pub(super) struct Sequenced {
    /// The first sequence number.
    first: SequenceNumber,
    logged: Logged,
}

impl Sequenced {
    fn insert(&self, write: &Write<'_>) -> Result<Inserted> {
        match &self.logged {
            None => write.insert(self.first),
            Some(logged) => write.insert_logged(logged, self.first),
        }
    }
}

/// The queue of writers and the log that its leader writes.
#[derive(Debug)]
pub(super) struct Commits {
    queue: CommitQueue<Request, Answer>,
    log: Mutex<ActiveLog>,
    /// A log that is created, durable and empty, to go on with when the present one is long.
    next: Mutex<Option<LogWriter>>,
    idle: Mutex<Idle>,
}

impl Commits {
    pub(super) fn new(last_sequence: SequenceNumber) -> Self {
        Self {
            queue: CommitQueue::new(),
            log: Mutex::new(ActiveLog::new(last_sequence)),
            next: Mutex::new(None),
            idle: Mutex::default(),
        }
    }
}

impl Engine {
    /// Commits `write`: when this returns, it is as durable as asked for and visible.
    ///
    /// # Errors
    /// `NoSpace` where nothing was written; `NotFound` for a keyspace that was dropped; `Closed`; `Poisoned`, or the error that poisoned the
    /// database, where the fate of the write is unknown until it is reopened.
    pub(crate) fn commit(&self, write: &Write<'_>, durability: Durability) -> Result<()> {
        match self.commit_once(write, durability) {
            Err(error) if error.kind() == ErrorKind::NoSpace => {
                self.reserve.release();
                self.note_reserve();
                if write.only_removes() {
                    return self.commit_once(write, durability);
                }
                Err(error)
            }
            outcome => outcome,
        }
    }

    #[inline]
    fn commit_once(&self, write: &Write<'_>, durability: Durability) -> Result<()> {
        self.check_writable()?;
        for keyspace in write.keyspaces() {
            keyspace.check_exists()?;
        }
        if self.reserve.is_full() {
            self.admit_to_full_disk(write)?;
        }
        self.admit(write)?;
        let request = || {
            let mut encoded = Vec::with_capacity(write.encoded_bytes_max());
            write.encode_into(&mut encoded);
            Request {
                encoded,
                count: write.count(),
                durability,
                separable: if write.may_separate() {
                    write.keyspaces().to_vec()
                } else {
                    Vec::new()
                },
            }
        };
        let committed = match self.commits.queue.enter(write.encoded_bytes_max(), request) {
            Turn::Lead(leader) => {
                let has_leader = self.lead(leader, write, durability);
                self.note_space(SpaceUser::Writers, &has_leader);
                has_leader
            }
            Turn::Follow(follower, answer) => {
                let inserted = answer?.insert(write)?;
                if !follower.done() {
                    return Err(self.abandoned());
                }
                Ok(inserted)
            }
            Turn::Abandoned => Err(self.abandoned()),
        };
        let inserted = committed?;
        if inserted.is_full {
            self.background.request_rotation();
        }
        counters::add(&self.counters.user_bytes, inserted.user_bytes);
        counters::add(&self.counters.user_writes, u64::from(write.count()));
        Ok(())
    }

    /// Leads one group.
    fn lead(
        &self,
        mut leader: Leader<'_, Request, Answer>,
        write: &Write<'_>,
        durability: Durability,
    ) -> Result<Inserted> {
        leader.build_group(GROUP_BYTES_MAX);
        // Before the leadership is passed on, should this thread panic: the next group must not
        // make a part of this one visible.
        let mut interrupted = PoisonOnDrop {
            poison: &self.poison,
            is_over: false,
        };
        let (own, others) = match self.write_group(&leader, write, durability) {
            Ok(placed) => placed,
            Err(error) => {
                leader.answer(|_| Err(error.fraction()));
                interrupted.is_over = true;
                return Err(error);
            }
        };
        let mut next = own.first + u64::from(write.count());
        let mut others = others.into_iter();
        leader.answer(|request| {
            let first = next;
            next += u64::from(request.count);
            let logged = others.next().flatten();
            Ok(Sequenced { first, logged })
        });
        let inserted = own.insert(write);
        // Only memory can fail here; a group of which a part is missing must never be seen.
        if !leader.wait_for_followers() || inserted.is_err() {
            drop(interrupted);
            return Err(self.abandoned());
        }
        self.poison.check()?; // I2
        self.visible.store(next - 1, Ordering::Release);
        interrupted.is_over = true;
        leader.finish();
        inserted
    }

    /// Writes one record for the whole group; returns what became of the leader's entries, and the
    /// others' as they were logged where values were separated.
    fn write_group(
        &self,
        leader: &Leader<'_, Request, Answer>,
        write: &Write<'_>,
        durability: Durability,
    ) -> Result<(Sequenced, Vec<Logged>)> {
        let mut log = self.commits.log.lock();
        // Under the leadership, so that nothing follows the end of the log that closing records.
        self.check_writable()?;
        self.make_space(&mut log)?;
        let first = log.last_sequence + 1;
        let mut count = write.count();
        let mut sync = durability == Durability::Sync;
        for request in leader.requests() {
            count += request.count;
            sync |= request.durability == Durability::Sync;
        }
        let last = log.last_sequence + u64::from(count);
        assert!(last <= SEQUENCE_MAX, "sequence numbers are used up");
        let ActiveLog {
            writer: Some(writer),
            packer,
            ..
        } = &mut *log
        else {
            return Err(self.abandoned());
        };
        let before = writer.end();
        let chunk = writer.begin();
        let start = chunk.len();
        batch::put_count(chunk, count);
        let mut touched = Touched::default();
        let put = self.put_group(chunk, leader, write, &mut touched);
        if put.is_ok() && chunk.len() - start >= PACKED_FROM_BYTES && write.is_compressed() {
            packer.pack(chunk, start);
        }
        let written = match put {
            Ok(placed) => self.write_record(writer, &touched, last).map(|()| placed),
            Err(error) => {
                touched.forget();
                // Nothing was written to the log, and nothing points to what was written beside it.
                if touched.is_refused() {
                    return Err(error);
                }
                Err(error)
            }
        };
        let (logged, others) = self.poison_unless_full(written)?;
        counters::add(&self.counters.wal_bytes, writer.end() - before);
        log.last_sequence = last;
        if sync {
            self.sync_logs()?; // I2
        }
        Ok((Sequenced { first, logged }, others))
    }

    /// Appends the entries of the whole group to `record`.
    fn put_group(
        &self,
        record: &mut Vec<u8>,
        leader: &Leader<'_, Request, Answer>,
        write: &Write<'_>,
        touched: &mut Touched,
    ) -> Result<(Logged, Vec<Logged>)> {
        let own = self.put_entries(record, write, touched)?;
        let mut others = Vec::new();
        for request in leader.requests() {
            others.push(if request.separable.is_empty() {
                record.extend_from_slice(&request.encoded);
                None
            } else {
                let entries = (&request.encoded[..], request.count);
                self.put_encoded(record, entries, &request.separable, touched)?
            });
        }
        Ok((own, others))
    }

    /// Puts full memtables aside and begins a new log where the present one is long.
    fn make_space(&self, log: &mut ActiveLog) -> Result<()> {
        if self.background.take_rotation_request() {
            for keyspace in self.keyspaces.load().iter() {
                if keyspace.is_memtable_full() {
                    keyspace.rotate(log.last_sequence);
                    keyspace.refresh_throttle();
                }
            }
            self.signal.notify();
        }
        let log_bytes_max = self.log_bytes_max();
        let is_long = |writer: &LogWriter| writer.end() >= log_bytes_max;
        if log.writer.as_ref().is_some_and(is_long) {
            match self.begin_log(log) {
                // The present log may still have room.
                Err(error) if error.kind() == ErrorKind::NoSpace => {}
                outcome => outcome?,
            }
        }
        Ok(())
    }

    /// Puts aside the active memtables of `keyspaces` that are not empty.
    pub(super) fn rotate(&self, keyspaces: &[Arc<KeyspaceCore>]) -> Result<()> {
        let leadership = self.commits.queue.exclusive();
        self.check_writable()?;
        let last_sequence = self.commits.log.lock().last_sequence;
        for keyspace in keyspaces {
            if !keyspace.state().active.is_empty() {
                keyspace.rotate(last_sequence);
                keyspace.refresh_throttle();
            }
        }
        drop(leadership);
        self.signal.notify();
        Ok(())
    }

    /// Calls `look` between two commits, with everything in the logs durable.
    pub(super) fn between_commits<R>(&self, look: impl FnOnce() -> Result<R>) -> Result<R> {
        // Most of it before writers have to wait.
        self.sync_logs()?;
        let leadership = self.commits.queue.exclusive();
        self.check_writable()?;
        self.sync_logs()?;
        let seen = look();
        drop(leadership);
        seen
    }

    /// Ends the log cleanly: everything durable, its end and the manifest's recorded, so that the next
    /// opening can tell damage from a torn tail at every byte.
    pub(super) fn close_log(&self) -> Result<()> {
        let leadership = self.commits.queue.exclusive();
        self.poison.check()?;
        self.sync_logs()?;
        let log = self.commits.log.lock();
        if let Some(writer) = &log.writer {
            let record = Record::LogEnd {
                number: writer.number(),
                offset: writer.end(),
            };
            self.with_reserve(|| self.catalog.commit(|_| vec![record.clone()], |_| ()))?;
        }
        self.with_reserve(|| self.catalog.vouch())?;
        drop(log);
        drop(leadership);
        Ok(())
    }

    fn poison_unless_full<R>(&self, outcome: Result<R>) -> Result<R> {
        outcome.inspect_err(|error| {
            if error.kind() != ErrorKind::NoSpace {
                self.poison.set(error);
                self.values.doubt();
            }
        })
    }

    /// The error of a writer whose group was given up.
    #[cold]
    fn abandoned(&self) -> Error {
        match self.poison.check() {
            Err(error) => error,
            Ok(()) => Error::new(ErrorKind::Poisoned, "a commit was interrupted"),
        }
    }
}

/// Ends all writing when it is dropped, in a panic too, before the group is over.
struct PoisonOnDrop<'a> {
    poison: &'a Poison,
    is_over: bool,
}

impl Drop for PoisonOnDrop<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.poison
                .set(&Error::new(ErrorKind::Poisoned, "a commit was interrupted"));
        }
    }
}
