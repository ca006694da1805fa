//! The commit path: group commit, from a write to its visible entries.
//!
//! 1. A writer enters the [queue]. One writer is the leader; the others wait.
//! 2. The leader batches the queued writers into its group.
//! 3. If necessary, the leader freezes full memtables and begins a new log.
//! 4. The leader gives the group the next sequence numbers. It writes large values to value logs, and then one
//!    log record for the whole group. It syncs the logs if any writer of the group asked for that.
//! 5. The leader inserts the entries of the group into the memtables. If the group is large, each member inserts its
//!    own, in parallel.
//! 6. After all insertions the leader publishes the group and gives the leadership up.
//!
//! A group ends before the next one begins. So groups become visible in commit order, and no insertion
//! runs while a leader freezes memtables.
//!
//! Without a log, the leader only gives numbers in step 4 ([`point`]).
//!
//! A writer may have a [`condition`]: the leader then decides before step 3 whether the writer stays in the group.
//!
//! The files: [`write`](self::write), what a writer commits; [`group`], what writers ask of their leader; [`expiring`], values that expire; [`condition`] and [`read_set`], what must not have changed;
//! [`separation`] and [`value_log`], large values;
//! [`tables`], entries that are in tables already; [`active_log`], the log that is written; [`wal`], the chain of all logs; [`point`], what is durable without a log; `closing`, the end.
//!
//! Invariants:
//! - I1: A sequence number belongs to one entry. A group takes numbers only for a record that was
//!   written. A failed write with an unknown outcome ends all writing.
//! - I2: A writer gets its acknowledgement after the durability that it asked for. No group becomes
//!   visible after a poison.
//!
//! Concurrency: only the leader locks `log`, so the lock is never contended.

pub(super) mod active_log;
mod closing;
pub(super) mod condition;
pub(super) mod expiring;
mod group;
mod point;
mod queue;
pub(super) mod read_set;
mod separation;
mod tables;
pub(super) mod value_log;
pub(super) mod wal;
pub(super) mod write;

pub(crate) use point::PendingPoint;
pub(super) use point::{BegunPoint, Point};

use std::mem;
use std::sync::Arc;

use crate::base::key::SEQUENCE_MAX;
use crate::base::limits::BATCH_BYTES_MAX;
use crate::base::sync::Mutex;
use crate::base::sync::atomic::Ordering;
use crate::base::{Error, ErrorKind, Result, SequenceNumber};
use crate::engine::counters;
use crate::engine::errors::full_disk::SpaceUser;
use crate::engine::errors::poison::Poison;
use crate::engine::{Engine, KeyspaceCore};
use crate::latency::{Operation, Sampled};
use crate::log::LogWriter;
use crate::log::batch::{self, PACKED_FROM_BYTES};
use crate::options::Durability;
use active_log::{ActiveLog, Idle};
use condition::Condition;
use condition::Member;
use group::{CommitLeader, Placed, Queue, Request, Sequenced};
use queue::{CommitQueue, Turn};
use separation::{Logged, Touched};
use write::{Inserted, Write};

/// The most encoded bytes that a leader batches from queued writers.
const GROUP_BYTES_MAX: usize = 1 << 20;

/// Members insert their own entries if those beside the leader's have so many encoded bytes. Otherwise it would take
/// longer to wake them than to insert for them.
#[cfg(not(shuttle))]
const PARALLEL_FROM_BYTES: usize = 16 << 10;
/// Schedules have groups of both kinds.
#[cfg(shuttle)]
const PARALLEL_FROM_BYTES: usize = 1024;

/// A group whose entries are in the memtables. A member may have been refused.
struct InsertedGroup {
    /// The last sequence number of the group.
    last: SequenceNumber,
    own: Result<Inserted>,
    /// What the leader has inserted for each other member; `None` without one, and if they insert their own entries.
    others: Option<Vec<Result<Inserted>>>,
}

/// The queue of writers and the log that the leader writes.
#[derive(Debug)]
pub(super) struct Commits {
    queue: Queue,
    log: Mutex<ActiveLog>,
    /// The next log, if a job has prepared it: created, durable and empty. A thread holds the lock while
    /// it creates a log. So logs enter the manifest in the order of their numbers, and each log is in
    /// use before the next one is created.
    next: Mutex<Option<LogWriter>>,
    idle: Mutex<Idle>,
}

impl Commits {
    pub(super) fn new(last_sequence: SequenceNumber) -> Self {
        Self {
            queue: CommitQueue::new(GROUP_BYTES_MAX),
            log: Mutex::new(ActiveLog::new(last_sequence)),
            next: Mutex::new(None),
            idle: Mutex::default(),
        }
    }

    /// Waits until a leader that has published gives the leadership up, if one is about to.
    pub(super) fn pass(&self) {
        self.queue.pass();
    }
}

impl Engine {
    /// Commits `write`. On return it is visible, and durable if that was asked for.
    ///
    /// # Errors
    /// With nothing written: `NoSpace`; `NotFound` for a dropped keyspace; `Closed`; `ReadOnly`; the error of a job
    /// that the write waits for. `Poisoned`, or the error that poisoned the database: the outcome of the write is
    /// unknown until the database is reopened.
    #[inline]
    pub(crate) fn commit(&self, write: &Write<'_>, durability: Durability) -> Result<()> {
        self.commit_if(None, write, durability)
    }

    /// Commits `write` if its `condition` holds at its place in the commit order.
    ///
    /// # Errors
    /// As [`commit`](Self::commit); with nothing written, `Conflict`, or an error from reading a table for the condition.
    pub(super) fn commit_on(
        &self,
        mut condition: Condition,
        write: &Write<'_>,
        durability: Durability,
    ) -> Result<()> {
        let checked = match condition.active {
            None => self.check_early(&mut condition, write),
            Some(_) => Ok(()),
        };
        let outcome = checked.and_then(|()| self.commit_if(Some(&condition), write, durability));
        if let Err(error) = &outcome {
            self.counters.add_refusal(error);
        }
        outcome
    }

    fn commit_if(
        &self,
        condition: Option<&Condition>,
        write: &Write<'_>,
        durability: Durability,
    ) -> Result<()> {
        let latencies = self.observer.latencies();
        let start = latencies.begin(Sampled::Commit);
        let outcome = match self.commit_once(condition, write, durability) {
            Err(error) if error.kind() == ErrorKind::NoSpace => {
                self.commit_in_reserve(condition, write, durability, error)
            }
            outcome => outcome,
        };
        if let Some(start) = start {
            latencies.end(Operation::Commit, start);
        }
        outcome
    }

    /// Commits on a full disk what only removes, with the space of the reserve.
    ///
    /// # Errors
    /// `refusal`, which the first try has got, for another write.
    #[cold]
    fn commit_in_reserve(
        &self,
        condition: Option<&Condition>,
        write: &Write<'_>,
        durability: Durability,
        refusal: Error,
    ) -> Result<()> {
        self.reserve.release();
        self.note_reserve();
        if write.only_removes() {
            return self.commit_once(condition, write, durability);
        }
        Err(refusal)
    }

    #[inline]
    fn commit_once(
        &self,
        condition: Option<&Condition>,
        write: &Write<'_>,
        durability: Durability,
    ) -> Result<()> {
        self.check_accepts(write)?;
        if durability == Durability::Sync {
            self.check_logged()?;
        }
        if self.reserve.is_full() {
            self.admit_to_full_disk(write)?;
        }
        self.admit(write)?;
        let inserted = self.commit_admitted(condition, write, durability)?;
        counters::add(&self.counters.user_bytes, inserted.user_bytes);
        counters::add(&self.counters.user_writes, u64::from(write.count()));
        if inserted.operands | inserted.range_deletes > 0 {
            counters::add(&self.counters.operands, inserted.operands.into());
            let range_deletes = inserted.range_deletes.into();
            counters::add(&self.counters.range_deletes, range_deletes);
        }
        Ok(())
    }

    /// Commits `write` of a job if its `condition` holds. Waits for its turn alone: returns false, with nothing written, if
    /// writers are throttled or the disk is full. A stall may wait for the job.
    ///
    /// # Errors
    /// As [`commit_on`](Self::commit_on).
    pub(super) fn commit_without_stall(
        &self,
        mut condition: Condition,
        write: &Write<'_>,
    ) -> Result<bool> {
        self.check_accepts(write)?;
        if self.reserve.is_full() || self.is_throttled(write.keyspaces()) {
            return Ok(false);
        }
        self.check_early(&mut condition, write)?;
        self.commit_admitted(Some(&condition), write, Durability::Buffered)?;
        Ok(true)
    }

    #[inline]
    fn check_accepts(&self, write: &Write<'_>) -> Result<()> {
        self.check_writable()?;
        let mut keyspaces = write.keyspaces().iter();
        keyspaces.try_for_each(|keyspace| keyspace.check_exists())
    }

    /// Commits a write that needs to wait for nothing but its turn.
    #[inline]
    fn commit_admitted(
        &self,
        condition: Option<&Condition>,
        write: &Write<'_>,
        durability: Durability,
    ) -> Result<Inserted> {
        let request = || {
            let mut encoded = Vec::with_capacity(write.encoded_bytes_max());
            write.encode_into(&mut encoded);
            Request {
                encoded,
                count: write.count(),
                durability,
                keyspaces: write.keyspaces().to_vec(),
                may_separate: write.may_separate(),
                condition: condition.cloned(),
            }
        };
        let committed = match self.commits.queue.enter(write.encoded_bytes_max(), request) {
            Turn::Lead(leader) => {
                let committed = self.lead(leader, condition, write, durability);
                self.note_space(SpaceUser::Writers, &committed);
                committed
            }
            Turn::Follow(follower, Ok(sequenced)) => {
                let inserted = sequenced.insert(write)?;
                if !follower.done() {
                    return Err(self.abandoned());
                }
                Ok(inserted)
            }
            Turn::Follow(follower, Err(error)) => {
                // It has nothing to insert. Another try finds what the group has published.
                let _is_published = follower.done();
                Err(error)
            }
            Turn::Done(inserted) => inserted,
            Turn::Abandoned => Err(self.abandoned()),
        };
        let inserted = committed?;
        if inserted.is_full {
            self.background.request_rotation();
        }
        Ok(inserted)
    }

    /// Commits one group.
    fn lead(
        &self,
        mut leader: CommitLeader<'_>,
        condition: Option<&Condition>,
        write: &Write<'_>,
        durability: Durability,
    ) -> Result<Inserted> {
        // A group is one batch for those who read changes, so it stays within the bound of a batch.
        if write.encoded_bytes_max() <= BATCH_BYTES_MAX - GROUP_BYTES_MAX {
            leader.build_group();
        }
        // This guard drops before `leader` does. After a panic it poisons the database first, so the next
        // group cannot publish a part of this one.
        let mut interrupted = PoisonOnDrop {
            poison: &self.poison,
            is_over: false,
        };
        let placed = match self.write_group(&leader, condition, write, durability) {
            Ok(placed) => placed,
            Err(error) => {
                interrupted.is_over = true;
                leader.finish_with(|_| Err(error.duplicate()));
                return Err(error);
            }
        };
        let inserted = insert_group(&mut leader, placed, write);
        let followers_done = leader.wait_for_followers();
        // Only a lack of memory gets here. A group with a missing part must never become visible.
        let (Ok(group), true) = (inserted, followers_done) else {
            drop(interrupted);
            return Err(self.abandoned());
        };
        self.poison.check()?; // I2
        self.visible.store(group.last, Ordering::Release);
        interrupted.is_over = true;
        match group.others {
            Some(others) => {
                let mut others = others.into_iter();
                leader.finish_with(|_| others.next().unwrap_or_else(|| Err(self.abandoned())));
            }
            None => leader.finish(),
        }
        self.notice.notify();
        group.own
    }

    /// Writes one record for the members of the group whose conditions hold.
    fn write_group(
        &self,
        leader: &CommitLeader<'_>,
        condition: Option<&Condition>,
        write: &Write<'_>,
        durability: Durability,
    ) -> Result<Placed> {
        let mut log = self.commits.log.lock();
        // Under the leadership: no record may follow the log end that a close has recorded.
        self.check_writable()?;
        let mut decided = None;
        if condition.is_some()
            || self.holds.is_any()
            || leader.requests().any(|it| it.condition.is_some())
        {
            let own = Member::leading(write, condition);
            let members = leader.requests().map(Request::member).chain([own]);
            decided = Some(self.decide(&members.collect::<Vec<_>>(), log.last_sequence));
        }
        let decisions = decided.as_deref_mut().unwrap_or_default();
        let first = log.last_sequence + 1;
        let stays = |position: usize| decisions.get(position).is_none_or(Result::is_ok);
        let (mut count, mut sync, mut position) = (0, false, 0);
        for request in leader.requests() {
            if stays(position) {
                count += request.count;
                sync |= request.durability == Durability::Sync;
            }
            position += 1;
        }
        if stays(position) {
            count += write.count();
            sync |= durability == Durability::Sync;
        }
        if count == 0 {
            return Ok(Placed::unlogged(first, decided));
        }
        self.make_space(&mut log)?;
        let last = log.last_sequence + u64::from(count);
        assert!(last <= SEQUENCE_MAX, "sequence numbers are used up");
        if !self.options.log {
            log.last_sequence = last;
            return Ok(Placed::unlogged(first, decided));
        }
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
        let put = self.put_group(chunk, leader, write, first, decisions, &mut touched);
        if put.is_ok() && chunk.len() - start >= PACKED_FROM_BYTES && write.is_compressed() {
            packer.pack(chunk, start);
        }
        let written = match put {
            Ok(placed) => self.write_record(writer, &touched, last).map(|()| placed),
            Err(error) => {
                touched.discard();
                // The log is unchanged, and no record points to the values that were written.
                if touched.is_log_missing() {
                    return Err(error);
                }
                Err(error)
            }
        };
        let placed = self.poison_unless_full(written)?;
        counters::add(&self.counters.wal_bytes, writer.end() - before);
        log.last_sequence = last;
        if sync {
            self.sync_logs()?; // I2
        }
        Ok(placed)
    }

    /// Appends the entries of the members that stay to `record`. `decisions` may be empty: then all stay.
    fn put_group(
        &self,
        record: &mut Vec<u8>,
        leader: &CommitLeader<'_>,
        write: &Write<'_>,
        first: SequenceNumber,
        decisions: &mut [Result<()>],
        touched: &mut Touched,
    ) -> Result<Placed> {
        let mut refusal = |position: usize| {
            let decision = decisions.get_mut(position)?;
            mem::replace(decision, Ok(())).err()
        };
        let mut others = Vec::new();
        for (position, request) in leader.requests().enumerate() {
            others.push(match refusal(position) {
                Some(refusal) => Err(refusal),
                None if !request.may_separate => {
                    record.extend_from_slice(&request.encoded);
                    Ok(None)
                }
                None => {
                    let entries = (&request.encoded[..], request.count);
                    Ok(self.put_encoded(record, entries, &request.keyspaces, touched)?)
                }
            });
        }
        let own = match refusal(others.len()) {
            Some(refusal) => Err(refusal),
            None => Ok(self.put_entries(record, write, touched)?),
        };
        Ok(Placed { first, own, others })
    }

    /// Freezes full memtables, and begins a new log if the active one is long.
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
                // The active log may still have space.
                Err(error) if error.kind() == ErrorKind::NoSpace => {}
                outcome => outcome?,
            }
        }
        Ok(())
    }

    /// Freezes the active memtables of `keyspaces`, except empty ones. Returns the newest sequence number in use then.
    pub(super) fn rotate(&self, keyspaces: &[Arc<KeyspaceCore>]) -> Result<SequenceNumber> {
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
        Ok(last_sequence)
    }

    /// Calls `look` between two commits, with the number of the newest. On return everything up to it is durable.
    pub(super) fn between_commits<R>(
        &self,
        look: impl FnOnce(SequenceNumber) -> Result<R>,
    ) -> Result<R> {
        if self.is_unlogged() {
            return self.at_point(look);
        }
        // Syncs most of the data before writers must wait.
        self.sync_logs()?;
        let leadership = self.commits.queue.exclusive();
        self.check_copyable()?;
        self.sync_logs()?;
        let seen = look(self.visible.load(Ordering::Acquire));
        drop(leadership);
        seen
    }

    fn poison_unless_full<R>(&self, outcome: Result<R>) -> Result<R> {
        outcome.inspect_err(|error| {
            if error.kind() != ErrorKind::NoSpace {
                self.poison.set(error);
                self.values.note_failure();
            }
        })
    }

    /// The error of a writer whose leader failed.
    #[cold]
    fn abandoned(&self) -> Error {
        match self.poison.check() {
            Err(error) => error,
            Ok(()) => Error::new(ErrorKind::Poisoned, "a commit was interrupted"),
        }
    }
}

/// Inserts the entries of the group of `leader`, or lets its members insert their own.
fn insert_group(
    leader: &mut CommitLeader<'_>,
    placed: Placed,
    write: &Write<'_>,
) -> Result<InsertedGroup> {
    let mut next = placed.first;
    let mut take = |logged: Result<Logged>, count: u32| {
        logged.map(|logged| {
            let first = next;
            next += u64::from(count);
            Sequenced { first, logged }
        })
    };
    let mut others = None;
    if !leader.is_alone() {
        let mut placed = placed.others.into_iter();
        let mut sequenced =
            |request: &Request| take(placed.next().unwrap_or(Ok(None)), request.count);
        if leader.bytes() < PARALLEL_FROM_BYTES {
            let inserted = others.insert(Vec::new());
            for request in leader.requests() {
                inserted.push(match sequenced(request) {
                    Ok(sequenced) => Ok(sequenced.insert_for(request)?),
                    Err(refusal) => Err(refusal),
                });
            }
        } else {
            leader.answer(sequenced);
        }
    }
    let own = match take(placed.own, write.count()) {
        Ok(sequenced) => Ok(sequenced.insert(write)?),
        Err(refusal) => Err(refusal),
    };
    Ok(InsertedGroup {
        last: next - 1,
        own,
        others,
    })
}

/// Poisons the database when it is dropped before the group is over, also in a panic.
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
