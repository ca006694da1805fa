//! Point reads and cursors.
//!
//! A read takes the state of the keyspace first and the visible sequence number second. With this order
//! the state contains everything that was visible when it was taken, and it still holds every file that
//! a compaction has replaced since. Entries that become visible in between may be in a newer memtable.
//! Then the reader sees the prefix of the commits that its state holds.
//!
//! Concurrency: no locks and no waits, with three exceptions. A read opens a table or value file that is not open under
//! the lock of its slot, the block cache has short locks of its own, and a move that passes many entries records them
//! under the lock of the tombstone spans.

mod explain;

use std::cell::OnceCell;
use std::sync::Arc;

use super::keyspace::ANSWERED_BY_MEMTABLES;
use super::{Engine, KeyspaceCore, SnapshotPoint};
use crate::base::expiry::is_expired;
use crate::base::sync::atomic::Ordering;
use crate::base::sync::{Guard, Shared};
use crate::base::{Expiry, KeyspaceId, Moment, Result, SequenceNumber};
use crate::latency::{Latencies, Operation};
use crate::memtable::Memtable;
use crate::read::coverage::Coverage;
use crate::read::entry_cursor::EntryCursor;
use crate::read::get::{Found, Source, Sources, announce, get};
use crate::read::merge::MergingCursor;
use crate::read::operands::Folds;
use crate::read::source::SourceCursor;
use crate::read::state::ReadState;
use crate::read::tombstone_spans::TombstoneSpans;
use crate::read::value_reader::ValueReader;
use crate::read::visible::{KeyRange, VisibleCursor};
use crate::table::{OpenTables, PointRead, ReadCounters};
use crate::value::OpenValues;

/// The most keys of a `multi_get` whose blocks are asked for at once.
const ANNOUNCED_KEYS_MAX: usize = 128;

/// The outcome of a read that does not wait for a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Near<T> {
    /// The key exists.
    Found(T),
    /// The key does not exist.
    Absent,
    /// The answer may not be in memory.
    Unknown,
}

/// A read of the newest value of a key.
#[derive(Debug)]
pub(super) struct NewestRead {
    pub(super) is_found: bool,
    /// When it expires, if ever.
    pub(super) expiry: Option<Moment>,
    /// The read knows every entry up to this number, perhaps also newer ones.
    pub(super) since: SequenceNumber,
    /// The memtable that was active.
    pub(super) active: Arc<Memtable>,
}

/// A cursor over one keyspace at a sequence number.
pub(crate) type StateCursor = EntryCursor<MergingCursor<SourceCursor>>;

/// One keyspace at a sequence number, held for cursors.
#[derive(Debug)]
pub(crate) struct StateView {
    keyspace: KeyspaceId,
    state: Shared<ReadState>,
    sequence: SequenceNumber,
    /// The moment at which it is read, if anything in it may expire.
    moment: Option<Moment>,
    /// The state contains every commit up to this number.
    complete: SequenceNumber,
    tables: Arc<OpenTables>,
    values: Arc<OpenValues>,
    tombstones: Arc<TombstoneSpans>,
    latencies: Arc<Latencies>,
}

impl StateView {
    /// A cursor over the visible entries of `range`.
    pub(crate) fn cursor(&self, range: KeyRange) -> StateCursor {
        let (sources, covering) =
            SourceCursor::all(&self.state, self.keyspace, &self.tables, &range);
        let visible = VisibleCursor::new(MergingCursor::new(sources), self.sequence, range)
            .at_moment(self.moment)
            .covered_by(Coverage::new(covering, self.sequence))
            .skipping(Arc::clone(&self.tombstones), self.complete);
        EntryCursor::new(
            visible,
            self.keyspace,
            &self.state,
            Arc::clone(&self.values),
        )
        .timed_by(&self.latencies)
    }
}

impl Engine {
    /// Calls `found` with the value of `key`, as of `at` or the newest.
    #[inline]
    pub(crate) fn get<R>(
        &self,
        keyspace: &KeyspaceCore,
        key: &[u8],
        at: Option<SnapshotPoint>,
        found: impl FnOnce(Found<'_>) -> Result<R>,
    ) -> Result<Option<R>> {
        self.check_readable(keyspace, at)?;
        let (state, sequence) = self.state_at(keyspace, at);
        let lives = |expiry| !is_expired(expiry, self.moment_of(at));
        let sources = self.sources(keyspace, &state, at.is_none());
        self.get_in(keyspace, sources, key, sequence, lives, found)
    }

    /// As [`get`](Self::get), if what the read needs is in memory. [`Near::Unknown`] says that it may not be.
    pub(crate) fn get_near<R>(
        &self,
        keyspace: &KeyspaceCore,
        key: &[u8],
        at: Option<SnapshotPoint>,
        found: impl FnOnce(&[u8]) -> R,
    ) -> Result<Near<R>> {
        self.check_readable(keyspace, at)?;
        let (state, sequence) = self.state_at(keyspace, at);
        let lives = |expiry| !is_expired(expiry, self.moment_of(at));
        let sources = self.sources(keyspace, &state, false);
        let mut read = PointRead::without_wait();
        let mut is_apart = false;
        let in_place = |value: Found<'_>| {
            is_apart = matches!(value, Found::Apart(_));
            Ok(value.in_place().map(found))
        };
        let answer = get(sources, key, sequence, &mut read, lives, in_place)?;
        if read.is_far() || is_apart {
            // Another read follows this one.
            self.counters.add_read(0, &read.counters);
            return Ok(Near::Unknown);
        }
        self.counters.add_read(1, &read.counters);
        let answer = answer.and_then(|answer| count_answer(keyspace, answer));
        Ok(answer.map_or(Near::Absent, Near::Found))
    }

    /// When the entry of `key` expires; `None` if there is none.
    pub(crate) fn expiry(
        &self,
        keyspace: &KeyspaceCore,
        key: &[u8],
        at: Option<SnapshotPoint>,
    ) -> Result<Option<Expiry>> {
        let found = self.get_with_expiry(keyspace, key, at, |_| Ok(()))?;
        Ok(found.map(|((), expiry)| expiry.into()))
    }

    /// Calls `found` with the value of `key`, as of `at` or the newest. Returns the answer, and when the entry expires, if
    /// ever.
    pub(super) fn get_with_expiry<R>(
        &self,
        keyspace: &KeyspaceCore,
        key: &[u8],
        at: Option<SnapshotPoint>,
        found: impl FnOnce(Found<'_>) -> Result<R>,
    ) -> Result<Option<(R, Option<Moment>)>> {
        self.check_readable(keyspace, at)?;
        let (state, sequence) = self.state_at(keyspace, at);
        let mut met = None;
        let lives = |expiry| {
            met = Some(expiry);
            !is_expired(expiry, self.moment_of(at))
        };
        let sources = self.sources(keyspace, &state, false);
        let found = self.get_in(keyspace, sources, key, sequence, lives, found)?;
        Ok(found.map(|answer| (answer, met)))
    }

    /// The newest state of `keyspace`, and the sequence number of a read at `at` or of the newest one. The state comes
    /// first, since a later one may lack what an older number needs. It then may lack the newest commits, but has all
    /// before any that it has: so after an ingestion in between, which changes no memtable, both are loaded again.
    #[inline]
    fn state_at(
        &self,
        keyspace: &KeyspaceCore,
        at: Option<SnapshotPoint>,
    ) -> (Guard<Shared<ReadState>>, SequenceNumber) {
        loop {
            let state = keyspace.state();
            let sequence = self.sequence_of(at);
            if at.is_some() || keyspace.has_ingestions(&state) {
                return (state, sequence);
            }
        }
    }

    /// The sequence number of a read at `at` or of the newest state.
    #[inline]
    fn sequence_of(&self, at: Option<SnapshotPoint>) -> SequenceNumber {
        match at {
            Some(at) => at.sequence,
            None => self.visible.load(Ordering::Acquire),
        }
    }

    /// The moment of a read at `at` or of the newest state.
    #[cold]
    fn moment_of(&self, at: Option<SnapshotPoint>) -> Moment {
        at.map_or_else(|| self.expiry_clock.now(), |at| at.moment)
    }

    /// The values of `keys`, all at the same sequence number.
    pub(crate) fn multi_get<K: AsRef<[u8]>>(
        &self,
        keyspace: &KeyspaceCore,
        keys: &[K],
        at: Option<SnapshotPoint>,
    ) -> Result<Vec<Option<Vec<u8>>>> {
        self.check_readable(keyspace, at)?;
        let (state, sequence) = self.state_at(keyspace, at);
        let state = Guard::into_inner(state);
        let sources = self.sources(keyspace, &state, at.is_none());
        let moment = OnceCell::new();
        let lives = |expiry| !is_expired(expiry, *moment.get_or_init(|| self.moment_of(at)));
        let mut values = Vec::with_capacity(keys.len());
        for keys in keys.chunks(ANNOUNCED_KEYS_MAX) {
            if keys.len() > 1 && self.tables.context().clock.is_cold() {
                values.append(&mut self.get_many_cold(keyspace, sources, keys, sequence, lives)?);
                continue;
            }
            for key in keys {
                let copy = |found: Found<'_>| found.to_vec();
                values.push(self.get_in(keyspace, sources, key.as_ref(), sequence, lives, copy)?);
            }
        }
        Ok(values)
    }

    /// The values of `keys`, for reads that wait for a device: the requests of all keys are under way before the first
    /// one is waited for, and likewise those for separated values.
    fn get_many_cold<K: AsRef<[u8]>>(
        &self,
        keyspace: &KeyspaceCore,
        sources: Sources<'_>,
        keys: &[K],
        sequence: SequenceNumber,
        lives: impl Fn(Moment) -> bool + Copy,
    ) -> Result<Vec<Option<Vec<u8>>>> {
        for key in keys {
            announce(sources.state, key.as_ref(), sequence);
        }
        let mut pointers = Vec::new();
        let mut values = Vec::with_capacity(keys.len());
        for (position, key) in keys.iter().enumerate() {
            let value =
                self.get_in(
                    keyspace,
                    sources,
                    key.as_ref(),
                    sequence,
                    lives,
                    |found| match found {
                        Found::Apart(apart) => {
                            pointers.push((position, apart.announce().to_vec()));
                            Ok(Vec::new())
                        }
                        found => found.to_vec(),
                    },
                );
            values.push(value?);
        }
        let reader = ValueReader {
            files: sources.state.version.values(),
            open: sources.values,
        };
        for (position, pointer) in pointers {
            if let Some(value) = &mut values[position] {
                reader.read_into(keys[position].as_ref(), &pointer, value)?;
            }
        }
        Ok(values)
    }

    /// Reads the newest value of `key` into `value`, for a write that depends on it.
    pub(super) fn get_newest(
        &self,
        keyspace: &KeyspaceCore,
        key: &[u8],
        value: &mut Vec<u8>,
    ) -> Result<NewestRead> {
        self.check_readable(keyspace, None)?;
        // Before the state, which may lack entries up to `sequence` after a rotation or an ingestion in between.
        let since = self.visible.load(Ordering::Acquire);
        let (state, sequence) = self.state_at(keyspace, None);
        let mut expiry = None;
        let lives = |at| {
            expiry = Some(at);
            !is_expired(at, self.expiry_clock.now())
        };
        let found = |found: Found<'_>| found.copy_into(value);
        // The write that follows gives the key a base.
        let sources = self.sources(keyspace, &state, false);
        let found = self.get_in(keyspace, sources, key, sequence, lives, found)?;
        Ok(NewestRead {
            is_found: found.is_some(),
            expiry,
            since,
            active: Arc::clone(&state.active),
        })
    }

    /// # Errors
    /// `Closed`; `NotFound` for the newest state of a dropped keyspace. Its snapshots stay readable, since
    /// nothing changes its state any more.
    #[inline]
    fn check_readable(&self, keyspace: &KeyspaceCore, at: Option<SnapshotPoint>) -> Result<()> {
        self.check_open()?;
        match at {
            None => keyspace.check_exists(),
            Some(_) => Ok(()),
        }
    }

    /// The sources of a read, which keeps what it folds if `keeps_folds`.
    #[inline]
    fn sources<'a>(
        &'a self,
        keyspace: &KeyspaceCore,
        state: &'a ReadState,
        keeps_folds: bool,
    ) -> Sources<'a> {
        let folds = || Folds {
            keeper: self,
            keyspace: keyspace.id(),
        };
        Sources {
            state,
            tables: &self.tables,
            values: &self.values,
            folds: keeps_folds.then(folds),
        }
    }

    #[inline]
    fn get_in<R>(
        &self,
        keyspace: &KeyspaceCore,
        sources: Sources<'_>,
        key: &[u8],
        sequence: SequenceNumber,
        lives: impl FnOnce(Moment) -> bool,
        found: impl FnOnce(Found<'_>) -> Result<R>,
    ) -> Result<Option<R>> {
        let latencies = self.observer.latencies();
        let start = latencies.begin_nth(self.counters.gets_here());
        let mut read = PointRead::default();
        let answer = get(sources, key, sequence, &mut read, lives, found);
        if let Some(start) = start {
            latencies.end(Operation::Get, start);
        }
        self.counters.add_read(1, &read.counters);
        Ok(answer?.map(|answer| count_answer(keyspace, answer)))
    }

    /// The keyspace as of `at` or the newest, held for cursors.
    pub(crate) fn state_view(
        &self,
        keyspace: &KeyspaceCore,
        at: Option<SnapshotPoint>,
    ) -> Result<StateView> {
        self.check_readable(keyspace, at)?;
        let complete = self.visible.load(Ordering::Acquire);
        let (state, sequence) = self.state_at(keyspace, at);
        let state = Guard::into_inner(state);
        // Loaded after the sequence number was published, the state has everything that the view sees.
        let moment = state.may_expire().then(|| self.moment_of(at));
        Ok(StateView {
            keyspace: keyspace.id(),
            state,
            sequence,
            moment,
            complete,
            tables: Arc::clone(&self.tables),
            values: Arc::clone(&self.values),
            tombstones: Arc::clone(&keyspace.tombstones),
            latencies: Arc::clone(self.observer.latencies()),
        })
    }

    /// Adds the counts of a cursor.
    pub(crate) fn count_scan(&self, cursor: &mut StateCursor) {
        cursor.count_reads();
        self.counters.add_passed(cursor.take_passed());
        let mut counters = ReadCounters {
            seeks: cursor.take_seeks(),
            ..ReadCounters::default()
        };
        cursor.visit_merged(|merged| {
            for source in merged.children_mut() {
                counters.add(&source.take_counters());
            }
        });
        self.counters.add_read(0, &counters);
    }
}

/// Counts that a source has answered a get. Returns the answer.
#[inline]
fn count_answer<R>(keyspace: &KeyspaceCore, (source, answer): (Source, R)) -> R {
    let answered = match source {
        Source::Memtables => ANSWERED_BY_MEMTABLES,
        Source::Level(level) => level,
    };
    keyspace.answered.add(answered, 1);
    answer
}

#[cfg(test)]
mod tests;
