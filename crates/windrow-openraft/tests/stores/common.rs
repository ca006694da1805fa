//! A small application, and short forms of what the tests do with its stores.

use std::collections::BTreeMap;
use std::path::Path;

use openraft::storage::{RaftLogStorage, RaftLogStorageExt, RaftStateMachine, Snapshot};
use openraft::{
    CommittedLeaderId, Entry, EntryPayload, LogId, Membership, RaftLogReader, RaftSnapshotBuilder,
    StoredMembership, Vote, declare_raft_types,
};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use windrow::{Keyspace, Options, Transaction};
use windrow_openraft::{Application, LogStore, StateMachine, StateReader, open};

declare_raft_types!(
    /// Requests that append to values.
    pub(crate) Config: D = (String, String), R = u64, SnapshotData = tokio::fs::File,
);

pub(crate) type Log = LogStore<Config>;
pub(crate) type Machine = StateMachine<Config, Append>;
pub(crate) type State = BTreeMap<Vec<u8>, Vec<u8>>;

/// Appends to the value of a key, so that a request that is applied twice, or not at all, shows.
#[derive(Debug)]
pub(crate) struct Append;

impl Application<Config> for Append {
    fn apply(
        &self,
        state: &Keyspace,
        transaction: &Transaction,
        (key, more): (String, String),
    ) -> windrow::Result<u64> {
        assert_ne!(key, "panic");
        let mut value = transaction.get(state, &key)?.unwrap_or_default();
        value.extend(more.into_bytes());
        transaction.insert(state, &key, &value)?;
        Ok(value.len() as u64)
    }
}

/// What `Append` does, without a database.
pub(crate) fn append(state: &mut State, (key, more): &(String, String)) {
    let value = state.entry(key.clone().into_bytes()).or_default();
    value.extend(more.bytes());
}

pub(crate) fn id(term: u64, index: u64) -> LogId<u64> {
    LogId::new(CommittedLeaderId::new(term, 0), index)
}

pub(crate) fn request(term: u64, index: u64, key: &str, more: &str) -> Entry<Config> {
    Entry {
        log_id: id(term, index),
        payload: EntryPayload::Normal((key.to_owned(), more.to_owned())),
    }
}

/// Everything that a node has stored, as openraft sees it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Contents {
    pub(crate) log: Vec<Entry<Config>>,
    pub(crate) purged: Option<LogId<u64>>,
    pub(crate) vote: Option<Vote<u64>>,
    pub(crate) committed: Option<LogId<u64>>,
    pub(crate) applied: Option<LogId<u64>>,
    pub(crate) membership: StoredMembership<u64, openraft::BasicNode>,
    pub(crate) state: State,
}

/// The stores of a node.
pub(crate) struct Node {
    pub(crate) log: Log,
    pub(crate) machine: Machine,
    pub(crate) reader: StateReader,
}

impl Node {
    pub(crate) async fn open(folder: &Path, options: Options) -> Self {
        let (log, machine) = open(folder, options, Append).await.unwrap();
        let reader = machine.reader();
        Self {
            log,
            machine,
            reader,
        }
    }

    pub(crate) async fn append(&mut self, entries: impl IntoIterator<Item = Entry<Config>>) {
        let entries: Vec<_> = entries.into_iter().collect();
        self.log.blocking_append(entries).await.unwrap();
    }

    pub(crate) async fn apply(&mut self, entries: Vec<Entry<Config>>) -> Vec<u64> {
        self.machine.apply(entries).await.unwrap()
    }

    pub(crate) async fn build(&mut self) -> Snapshot<Config> {
        let mut builder = self.machine.get_snapshot_builder().await;
        builder.build_snapshot().await.unwrap()
    }

    pub(crate) fn state(&self) -> State {
        let entries = self.reader.keyspace().iter().unwrap();
        entries.map(Result::unwrap).collect()
    }

    pub(crate) async fn contents(&mut self) -> Contents {
        let log = self.log.try_get_log_entries(..).await.unwrap();
        let state = self.log.get_log_state().await.unwrap();
        let purged = state.last_purged_log_id;
        let last = log.last().map(|entry| entry.log_id).or(purged);
        assert_eq!(state.last_log_id, last);
        let (applied, membership) = self.machine.applied_state().await.unwrap();
        Contents {
            log,
            purged,
            vote: self.log.read_vote().await.unwrap(),
            committed: self.log.read_committed().await.unwrap(),
            applied,
            membership,
            state: self.state(),
        }
    }
}

/// The bytes of a snapshot.
pub(crate) async fn bytes(snapshot: &mut Snapshot<Config>) -> Vec<u8> {
    let mut bytes = Vec::new();
    snapshot.snapshot.read_to_end(&mut bytes).await.unwrap();
    bytes
}

/// A file that `machine` has received.
pub(crate) async fn receive<A: Application<Config>>(
    machine: &mut StateMachine<Config, A>,
    bytes: &[u8],
) -> Box<tokio::fs::File> {
    let mut file = machine.begin_receiving_snapshot().await.unwrap();
    for chunk in bytes.chunks(100) {
        file.write_all(chunk).await.unwrap();
    }
    file
}

pub(crate) fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// A node with a membership and `requests` requests, all applied.
pub(crate) async fn node(folder: &TempDir, requests: u64) -> (Node, State) {
    let mut node = Node::open(folder.path(), Options::default()).await;
    let mut state = State::new();
    let mut entries = vec![membership(id(1, 1)).0];
    for index in 2..2 + requests {
        let (key, more) = (format!("key {}", index % 50), format!("{index},"));
        append(&mut state, &(key.clone(), more.clone()));
        entries.push(request(1, index, &key, &more));
    }
    node.append(entries.clone()).await;
    node.apply(entries).await;
    (node, state)
}

/// Lets `target` install `snapshot`.
pub(crate) async fn install(target: &mut Node, mut snapshot: Snapshot<Config>) {
    let bytes = bytes(&mut snapshot).await;
    let received = receive(&mut target.machine, &bytes).await;
    let machine = &mut target.machine;
    let installed = machine.install_snapshot(&snapshot.meta, received).await;
    installed.unwrap();
}

/// A membership of three nodes at `log_id`.
pub(crate) fn membership(
    log_id: LogId<u64>,
) -> (Entry<Config>, StoredMembership<u64, openraft::BasicNode>) {
    let nodes = BTreeMap::from([1, 2, 3].map(|node| (node, openraft::BasicNode::new("a node"))));
    let membership = Membership::from(nodes);
    let entry = Entry {
        log_id,
        payload: EntryPayload::Membership(membership.clone()),
    };
    (entry, StoredMembership::new(Some(log_id), membership))
}
