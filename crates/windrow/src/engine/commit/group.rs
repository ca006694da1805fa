//! A group of commits: what a queued writer asks of its leader, and what that answers.
//!
//! Concurrency: the leader owns the group; the members wait, or insert.

use std::sync::Arc;

use super::condition::{Condition, Member};
use super::queue::{CommitQueue, Leader};
use super::separation::Logged;
use super::write::{self, Inserted, Write};
use crate::base::{Result, SequenceNumber};
use crate::engine::KeyspaceCore;
use crate::log::batch::BatchReader;
use crate::options::Durability;

/// What a queued writer asks of its leader.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) encoded: Vec<u8>,
    pub(super) count: u32,
    pub(super) durability: Durability,
    /// The keyspaces of the entries.
    pub(super) keyspaces: Vec<Arc<KeyspaceCore>>,
    /// Whether any value may be large.
    pub(super) may_separate: bool,
    pub(super) condition: Option<Condition>,
}

impl Request {
    /// It as a member of the group, for the decision about its condition.
    pub(super) fn member(&self) -> Member<'_> {
        Member::queued(&self.encoded, self.count, self.condition.as_ref())
    }
}

/// The commits that wait, or are under way.
pub(super) type Queue = CommitQueue<Request, Result<Sequenced>, Result<Inserted>>;

/// The leader of the commits.
pub(super) type CommitLeader<'a> = Leader<'a, Request, Result<Sequenced>, Result<Inserted>>;

/// The entries of one writer after the leader has logged them.
#[derive(Debug)]
pub(super) struct Sequenced {
    /// The first sequence number.
    pub(super) first: SequenceNumber,
    pub(super) logged: Logged,
}

impl Sequenced {
    #[inline]
    pub(super) fn insert(&self, write: &Write<'_>) -> Result<Inserted> {
        match &self.logged {
            None => write.insert(self.first),
            Some(logged) => write.insert_logged(logged, self.first),
        }
    }

    /// Inserts the entries of another writer.
    pub(super) fn insert_for(&self, request: &Request) -> Result<Inserted> {
        let entries = self.logged.as_ref().unwrap_or(&request.encoded);
        let entries = BatchReader::entries(entries, self.first, request.count);
        write::insert_entries(entries, &request.keyspaces)
    }
}

/// The members of a group after the leader has logged those that stay.
pub(super) struct Placed {
    /// The first sequence number of the group.
    pub(super) first: SequenceNumber,
    /// The leader's entries, which come last.
    pub(super) own: Result<Logged>,
    /// Those of each other member.
    pub(super) others: Vec<Result<Logged>>,
}

impl Placed {
    /// Members that no record of the log has. `decided` are the decisions about them, that about the leader last; `None` if
    /// all stay.
    pub(super) fn unlogged(first: SequenceNumber, decided: Option<Vec<Result<()>>>) -> Self {
        let decided = decided.unwrap_or_default().into_iter();
        let mut others: Vec<_> = decided.map(|it| it.map(|()| None)).collect();
        let own = others.pop().unwrap_or(Ok(None));
        Self { first, own, others }
    }
}
