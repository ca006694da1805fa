//! The conditions of writes: what must not have changed when a group commits.
//!
//! The leader of the commits decides before it writes the record of its group. Every earlier group is over then, so its
//! entries are in the memtables, and the members of its own group are in commit order. A member with a condition is
//! compared with
//! - the sources of each keyspace, for entries above the sequence number that it has read at (`read/newer.rs`);
//! - the keys that earlier members of the group write, and the ranges that they delete.
//!
//! A member whose condition does not hold leaves the group: it takes no sequence numbers. So nothing is remembered of
//! writes without a condition, and they pay nothing for those with one.
//!
//! While a prepared transaction exists, every member has a condition more: it writes no key that such a transaction
//! holds (`engine/locks/holds.rs`), unless it is the commit of that transaction.
//!
//! I1. The decision is exact for a member that holds a snapshot at its sequence number or an older one, or names the
//!     memtable that was active when it read. In the second case a rotation or an ingestion in between
//!     counts as a change.
//!
//! Concurrency: only the leader decides. [`Engine::check_early`] is called without the leadership; it looks at what has
//! been published so far, so that the leader needs to look only at the rest.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::read_set::{KeyspaceReads, ReadSet};
use super::write::Write;
use crate::base::key::SEQUENCE_MAX;
use crate::base::range_tombstones::is_below;
use crate::base::sync::atomic::Ordering;
use crate::base::{Error, KeyspaceId, Kind, Result, SequenceNumber};
use crate::engine::locks::Owner;
use crate::engine::{Engine, KeyspaceCore};
use crate::log::batch::BatchReader;
use crate::memtable::Memtable;
use crate::read::newer::{is_newer, newer_in};
use crate::read::visible::{KeyRange, is_ordered};

/// A check of more keys than this begins before the writer enters the queue.
const KEYS_UNCHECKED_MAX: usize = 64;

const HAS_CHANGED: &str = "was changed by another write after it was read";

const IS_HELD: &str = "is held by a prepared transaction";

/// What must hold when a write commits.
#[derive(Debug, Clone, Default)]
pub(crate) struct Condition {
    /// The writer has read at this sequence number, except keys that have a higher one of their own.
    pub(crate) since: SequenceNumber,
    /// What it has read.
    pub(crate) reads: Option<Arc<ReadSet>>,
    /// Whether the keys that it writes must not have changed either, except those that only get operands.
    pub(crate) covers_writes: bool,
    /// The memtable of its one keyspace that was active when it read, for a writer without a snapshot.
    pub(crate) active: Option<Arc<Memtable>>,
    /// Who it is to the locks. It may write what it holds itself.
    pub(crate) owner: Option<Owner>,
}

/// One writer of a group.
#[derive(Debug, Clone, Copy)]
pub(super) struct Member<'a> {
    entries: Entries<'a>,
    condition: Option<&'a Condition>,
}

impl<'a> Member<'a> {
    /// The leader, which commits `write`.
    pub(super) fn leading(write: &'a Write<'a>, condition: Option<&'a Condition>) -> Self {
        let entries = Entries::Write(write);
        Self { entries, condition }
    }

    /// A writer of `count` encoded entries.
    pub(super) fn queued(encoded: &'a [u8], count: u32, condition: Option<&'a Condition>) -> Self {
        let entries = Entries::Encoded(encoded, count);
        Self { entries, condition }
    }
}

/// The entries of a writer.
#[derive(Debug, Clone, Copy)]
enum Entries<'a> {
    Write(&'a Write<'a>),
    Encoded(&'a [u8], u32),
}

/// What an entry writes.
#[derive(Debug, Clone, Copy)]
enum Written<'a> {
    Key(&'a [u8]),
    /// An operand of this key, which loses nothing that came before.
    Operand(&'a [u8]),
    /// The keys from the first one to before the second one, which is empty without an end.
    Range(&'a [u8], &'a [u8]),
}

impl<'a> Written<'a> {
    fn of(kind: Kind, key: &'a [u8], value: &'a [u8]) -> Self {
        match kind {
            Kind::RangeTombstone => Self::Range(key, value),
            Kind::Operand => Self::Operand(key),
            _ => Self::Key(key),
        }
    }
}

/// What earlier members of the group write.
type Earlier<'a> = BTreeMap<KeyspaceId, EarlierWrites<'a>>;

/// What earlier members of the group write to one keyspace.
#[derive(Debug, Default)]
struct EarlierWrites<'a> {
    keys: BTreeSet<&'a [u8]>,
    ranges: Vec<(&'a [u8], &'a [u8])>,
}

impl<'a> EarlierWrites<'a> {
    fn add(&mut self, written: Written<'a>) {
        match written {
            Written::Key(key) | Written::Operand(key) => drop(self.keys.insert(key)),
            Written::Range(start, end) => self.ranges.push((start, end)),
        }
    }

    /// Whether they write `key`.
    fn have(&self, key: &[u8]) -> bool {
        let covers = |(start, end): &(&[u8], &[u8])| *start <= key && is_below(key, end);
        self.keys.contains(key) || self.ranges.iter().any(covers)
    }

    /// A key of `range` that they write.
    fn first_in(&self, range: &KeyRange) -> Option<Vec<u8>> {
        if let Some(key) = self.keys.range::<[u8], _>(range.bounds()).next() {
            return Some(key.to_vec());
        }
        // Of a range and one that overlaps it, one begins in the other one.
        let first = range.first_key();
        self.ranges.iter().find_map(|(start, end)| {
            let is_within = range.is_above_lower(start) && range.is_below_upper(start);
            let covers = |first: &Vec<u8>| *start <= &first[..] && is_below(first, end);
            let covered = || first.clone().filter(covers);
            is_within.then(|| start.to_vec()).or_else(covered)
        })
    }
}

impl<'a> Entries<'a> {
    /// Calls `visit` with the keyspace of each entry and what that writes.
    fn visit(self, mut visit: impl FnMut(KeyspaceId, Written<'a>) -> Result<()>) -> Result<()> {
        let (encoded, count) = match self {
            Self::Write(Write::One {
                keyspace,
                kind,
                key,
                value,
            }) => return visit(keyspace.id(), Written::of(*kind, key, value)),
            Self::Write(Write::Batch { entries, count, .. }) => (*entries, *count),
            Self::Encoded(encoded, count) => (encoded, count),
        };
        let mut entries = BatchReader::entries(encoded, 0, count);
        let damaged = |_| Error::invalid_argument("a batch was damaged in memory");
        while let Some(entry) = entries.next().map_err(damaged)? {
            visit(
                entry.keyspace,
                Written::of(entry.kind, entry.key, entry.value),
            )?;
        }
        Ok(())
    }
}

/// What has changed since a writer has read.
struct Changes<'a> {
    engine: &'a Engine,
    since: SequenceNumber,
    earlier: &'a Earlier<'a>,
    /// Nothing was published after this sequence number.
    last: SequenceNumber,
}

impl Changes<'_> {
    /// Checks `key`, which was read at `since`, or later.
    fn check_key(&self, keyspace: &KeyspaceCore, key: &[u8], since: SequenceNumber) -> Result<()> {
        let since = since.max(self.since);
        let earlier = self.earlier.get(&keyspace.id());
        let is_changed = earlier.is_some_and(|earlier| earlier.have(key))
            || since < self.last && is_newer(&keyspace.state(), &self.engine.tables, key, since)?;
        if is_changed {
            return Err(Error::conflicting(&keyspace.name(), key, HAS_CHANGED));
        }
        Ok(())
    }

    /// Checks `range`, which was read at `since`, or later.
    fn check_range(
        &self,
        keyspace: &KeyspaceCore,
        range: &KeyRange,
        since: SequenceNumber,
    ) -> Result<()> {
        if !is_ordered(range.bounds()) {
            return Ok(());
        }
        let since = since.max(self.since);
        let earlier = self.earlier.get(&keyspace.id());
        let changed = match earlier.and_then(|earlier| earlier.first_in(range)) {
            Some(key) => Some(key),
            None if since >= self.last => None,
            None => newer_in(&keyspace.state(), &self.engine.tables, range, since)?,
        };
        match changed {
            Some(key) => Err(Error::conflicting(&keyspace.name(), &key, HAS_CHANGED)),
            None => Ok(()),
        }
    }

    fn check_reads(&self, reads: &KeyspaceReads) -> Result<()> {
        reads.keyspace.check_exists()?;
        for (key, since) in &reads.keys {
            self.check_key(&reads.keyspace, key, *since)?;
        }
        for (range, since) in &reads.ranges {
            self.check_range(&reads.keyspace, range, *since)?;
        }
        Ok(())
    }

    /// Checks all of `condition` for a writer of `entries`.
    fn check(&self, condition: &Condition, entries: Entries<'_>) -> Result<()> {
        if let Some(reads) = &condition.reads {
            for reads in reads.keyspaces() {
                self.check_reads(reads)?;
            }
        }
        if !condition.covers_writes {
            return Ok(());
        }
        let keyspaces = self.engine.keyspaces.load();
        entries.visit(|id, written| {
            let found = keyspaces.iter().find(|keyspace| keyspace.id() == id);
            let Some(keyspace) = found else {
                return Err(Error::dropped(&id.to_string()));
            };
            let state = keyspace.state();
            if let Some(active) = &condition.active
                && (!Arc::ptr_eq(active, &state.active) || state.in_tables > condition.since)
            {
                // I1
                let (Written::Key(key) | Written::Operand(key) | Written::Range(key, _)) = written;
                return Err(Error::conflicting(&keyspace.name(), key, HAS_CHANGED));
            }
            match written {
                Written::Key(key) => self.check_key(keyspace, key, self.since),
                Written::Operand(_) => Ok(()),
                Written::Range(start, end) => {
                    self.check_range(keyspace, &KeyRange::from_start(start, end), self.since)
                }
            }
        })
    }
}

impl Engine {
    /// Decides for each member of a group, the leader with `condition` and `write` first, whether its condition holds.
    /// `last` is the newest sequence number in use.
    ///
    /// The error of a member is a conflict, or that of a read of a table.
    #[cold]
    pub(super) fn decide(&self, members: &[Member<'_>], last: SequenceNumber) -> Vec<Result<()>> {
        let has_holds = self.holds.is_any();
        // Only members before the last condition can break it.
        let needed = members
            .iter()
            .rposition(|member| member.condition.is_some());
        let mut earlier = Earlier::new();
        let mut decisions = Vec::with_capacity(members.len());
        for (position, member) in members.iter().enumerate() {
            let decided = member.condition.map_or(Ok(()), |condition| {
                let changes = Changes {
                    engine: self,
                    since: condition.since,
                    earlier: &earlier,
                    last,
                };
                changes.check(condition, member.entries)
            });
            let decided = match decided {
                Ok(()) if has_holds => self.check_holds(member),
                decided => decided,
            };
            decisions.push(match decided {
                Ok(()) if Some(position) < needed => member.entries.visit(|keyspace, written| {
                    earlier.entry(keyspace).or_default().add(written);
                    Ok(())
                }),
                decided => decided,
            });
        }
        decisions
    }

    /// # Errors
    /// `Conflict` if another prepared transaction holds a key that `member` writes.
    fn check_holds(&self, member: &Member<'_>) -> Result<()> {
        let owner = member.condition.and_then(|condition| condition.owner);
        member.entries.visit(|id, written| {
            let forbidden = match written {
                Written::Key(key) | Written::Operand(key) => self.holds.forbids_key(id, key, owner),
                Written::Range(start, end) => {
                    let range = KeyRange::from_start(start, end);
                    self.holds.forbids_range(id, &range, owner)
                }
            };
            match forbidden {
                Some(name) => Err(self.held(name.keyspace, &name.key)),
                None => Ok(()),
            }
        })
    }

    /// The error of a write to a key that a prepared transaction holds.
    pub(in crate::engine) fn held(&self, keyspace: KeyspaceId, key: &[u8]) -> Error {
        Error::conflicting(&self.keyspace_name(keyspace), key, IS_HELD)
    }

    /// Compares `condition` with everything that is published, for a transaction that ends without a write.
    ///
    /// # Errors
    /// As [`check_early`](Self::check_early).
    pub(in crate::engine) fn check_reads(&self, condition: &Condition) -> Result<()> {
        let changes = Changes {
            engine: self,
            since: condition.since,
            earlier: &Earlier::new(),
            last: SEQUENCE_MAX,
        };
        let reads = condition.reads.as_deref();
        reads
            .map_or(&[][..], ReadSet::keyspaces)
            .iter()
            .try_for_each(|reads| changes.check_reads(reads))
    }

    /// Whether `key` has an entry above `since`, if a snapshot at `since` or an older one is held.
    ///
    /// # Errors
    /// `Corruption` or `Io` from reading a table.
    pub(in crate::engine) fn has_changed(
        &self,
        keyspace: &KeyspaceCore,
        key: &[u8],
        since: SequenceNumber,
    ) -> Result<bool> {
        is_newer(&keyspace.state(), &self.tables, key, since)
    }

    /// Compares `condition` of `write` with everything that is published, and moves its sequence number up to there, if
    /// the leader of a group would otherwise have to look at much.
    ///
    /// # Errors
    /// `Conflict`; `NotFound` for a dropped keyspace; `Corruption` or `Io` from reading a table.
    pub(super) fn check_early(&self, condition: &mut Condition, write: &Write<'_>) -> Result<()> {
        // Every state that is loaded later has all entries up to this number.
        let published = self.visible.load(Ordering::Acquire);
        let since = condition.since;
        if published <= since {
            return Ok(());
        }
        let reads = condition.reads.as_deref();
        let (ranges, keys) = reads.map_or((0, 0), ReadSet::len);
        let read = reads.map_or(&[][..], ReadSet::keyspaces);
        let is_flushed = |keyspace: &Arc<KeyspaceCore>| keyspace.state().in_tables > since;
        let is_long = ranges > 0
            || keys + write.count() as usize > KEYS_UNCHECKED_MAX
            || read.iter().any(|reads| is_flushed(&reads.keyspace))
            || write.keyspaces().iter().any(is_flushed);
        if is_long {
            let changes = Changes {
                engine: self,
                since,
                earlier: &Earlier::new(),
                last: SEQUENCE_MAX,
            };
            changes.check(condition, Entries::Write(write))?;
            condition.since = published;
        }
        Ok(())
    }
}
