//! The state machine of a node.
//!
//! Invariants:
//! - I1: The state, the last applied log id and the membership change in one transaction. Each entry has its own, so that
//!   the limit of a transaction is one of a request.
//! - I2: The published progress is never ahead of the database.
//!
//! Concurrency: openraft calls a state machine from one task. Readers and builders of snapshots work beside it.

use std::fmt::{self, Debug};
use std::io::SeekFrom;
use std::sync::Arc;

use openraft::storage::RaftStateMachine;
use openraft::{
    Entry, EntryPayload, LogId, OptionalSend, RaftTypeConfig, Snapshot, StorageError,
    StorageIOError, StoredMembership,
};
use tokio::fs::File;
use tokio::io::{AsyncSeekExt, AsyncWriteExt};
use tokio::sync::watch;
use windrow::{Db, Durability, Error, ErrorKind, Isolation, Keyspace, Result};

use crate::application::{Application, StateReader};
use crate::blocking::blocking;
use crate::progress::Progress;
use crate::records::{Record, Records, encode};
use crate::snapshot_builder::SnapshotBuilder;
use crate::snapshot_file::{Meta, SnapshotReader};
use crate::snapshot_folder::SnapshotFolder;
use crate::state::{self, State};

/// The state of a node: openraft's `RaftStateMachine`.
pub struct StateMachine<C: RaftTypeConfig, A> {
    db: Db,
    records: Records,
    state: State<C>,
    folder: SnapshotFolder,
    application: Arc<A>,
    current: watch::Sender<Keyspace>,
    progress: watch::Sender<Progress<C::NodeId>>,
}

type Stored<T, C> = std::result::Result<T, StorageError<<C as RaftTypeConfig>::NodeId>>;
type Applied<C> = (
    Option<LogId<<C as RaftTypeConfig>::NodeId>>,
    StoredMembership<<C as RaftTypeConfig>::NodeId, <C as RaftTypeConfig>::Node>,
);

impl<C, A> StateMachine<C, A>
where
    C: RaftTypeConfig<Entry = Entry<C>, SnapshotData = File>,
    C::R: Default,
    A: Application<C>,
{
    pub(crate) fn new(
        db: Db,
        records: Records,
        state: State<C>,
        folder: SnapshotFolder,
        application: A,
    ) -> Self {
        let progress = Progress {
            applied: state.record.last_applied.clone(),
            is_receiving: false,
            has_failed: false,
        };
        Self {
            db,
            records,
            folder,
            application: Arc::new(application),
            current: watch::Sender::new(state.keyspace.clone()),
            progress: watch::Sender::new(progress),
            state,
        }
    }

    /// A reader of the state, also while openraft has the state machine.
    pub fn reader(&self) -> StateReader {
        StateReader::new(self.current.subscribe())
    }

    pub(crate) fn progress(&self) -> watch::Receiver<Progress<C::NodeId>> {
        self.progress.subscribe()
    }

    /// Lets the state be `state`, which the database has.
    fn set(&mut self, state: State<C>) {
        self.state = state;
        self.progress.send_modify(|progress| {
            progress.applied.clone_from(&self.state.record.last_applied);
        });
    }

    async fn apply_all(&mut self, entries: Vec<Entry<C>>) -> Result<Vec<C::R>> {
        let (db, records) = (self.db.clone(), self.records.clone());
        let (mut state, application) = (self.state.clone(), Arc::clone(&self.application));
        let (state, answers) = blocking(move || {
            let mut answers = Vec::with_capacity(entries.len());
            for Entry { log_id, payload } in entries {
                // Nobody else writes here, so what was read need not be checked.
                let transaction = db.transaction_with(Isolation::Snapshot);
                state.record.last_applied = Some(log_id.clone());
                answers.push(match payload {
                    EntryPayload::Blank => C::R::default(),
                    EntryPayload::Normal(request) => {
                        application.apply(&state.keyspace, &transaction, request)?
                    }
                    EntryPayload::Membership(membership) => {
                        state.record.membership = StoredMembership::new(Some(log_id), membership);
                        C::R::default()
                    }
                });
                let record = encode(&state.record)?;
                transaction.insert(records.keyspace(), Record::State.key(), record)?;
                transaction.commit_with(Durability::Buffered)?;
            }
            Ok((state, answers))
        })
        .await?;
        self.set(state);
        Ok(answers)
    }

    async fn install(&mut self, meta: &Meta<C>, mut received: File) -> Result<()> {
        let rewound = match received.flush().await {
            Ok(()) => received.seek(SeekFrom::Start(0)).await,
            Err(error) => Err(error),
        };
        rewound.map_err(failed)?;
        let mut received = received.into_std().await;
        let (db, records) = (self.db.clone(), self.records.clone());
        let (old, meta, folder) = (self.state.clone(), meta.clone(), self.folder.clone());
        let current = self.current.clone();
        let state = blocking(move || {
            let mut new = folder.create()?;
            let failed = |error| Error::io("write", &new.path, error);
            std::io::copy(&mut received, &mut new.file).map_err(failed)?;
            std::io::Seek::rewind(&mut new.file).map_err(failed)?;
            let (own, entries) = SnapshotReader::open::<C>(&new.file, &new.path)?;
            if own.last_log_id != meta.last_log_id {
                let message = "a snapshot was received that is not the one that was announced";
                return Err(Error::new(ErrorKind::Corruption, message));
            }
            let state = state::install(&db, &records, &old, &meta, entries)?;
            // Readers leave the old state before it goes.
            current.send_replace(state.keyspace.clone());
            folder.publish::<C>(&new, &meta)?;
            state.finish(&db)
        })
        .await?;
        self.set(state);
        Ok(())
    }

    /// The newest snapshot if there is one. If its file is damaged, or older than the purged log, a new one is built: openraft
    /// ends a leader that has none for a follower who needs it.
    async fn newest_snapshot(&self) -> Result<Option<Snapshot<C>>> {
        let (records, folder) = (self.records.clone(), self.folder.clone());
        let (current, is_there) = blocking(move || {
            let purged: Option<LogId<C::NodeId>> = records.get(Record::Purged)?;
            let current = folder.current::<C>()?;
            // A crash between an installation and its publication leaves an older file.
            let current = current.filter(|(meta, _)| meta.last_log_id >= purged);
            Ok((current, folder.has_snapshot()?))
        })
        .await?;
        match current {
            Some((meta, file)) => {
                let snapshot = Box::new(File::from_std(file));
                Ok(Some(Snapshot { meta, snapshot }))
            }
            None if is_there => self.builder().build().await.map(Some),
            None => Ok(None),
        }
    }

    fn builder(&self) -> SnapshotBuilder<C> {
        SnapshotBuilder::new(self.db.clone(), self.state.clone(), self.folder.clone())
    }
}

impl<C, A> RaftStateMachine<C> for StateMachine<C, A>
where
    C: RaftTypeConfig<Entry = Entry<C>, SnapshotData = File>,
    C::R: Default,
    A: Application<C>,
{
    type SnapshotBuilder = SnapshotBuilder<C>;

    async fn applied_state(&mut self) -> Stored<Applied<C>, C> {
        let record = &self.state.record;
        Ok((record.last_applied.clone(), record.membership.clone()))
    }

    async fn apply<I>(&mut self, entries: I) -> Stored<Vec<C::R>, C>
    where
        I: IntoIterator<Item = Entry<C>> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let entries: Vec<_> = entries.into_iter().collect();
        let answers = self.apply_all(entries).await;
        answers.map_err(|error| StorageIOError::write_state_machine(&error).into())
    }

    async fn get_snapshot_builder(&mut self) -> SnapshotBuilder<C> {
        self.builder()
    }

    async fn begin_receiving_snapshot(&mut self) -> Stored<Box<File>, C> {
        self.progress
            .send_modify(|progress| progress.is_receiving = true);
        let folder = self.folder.clone();
        let file = blocking(move || folder.create_nameless()).await;
        let file = file.map_err(|error| StorageIOError::write_snapshot(None, &error))?;
        Ok(Box::new(File::from_std(file)))
    }

    async fn install_snapshot(&mut self, meta: &Meta<C>, snapshot: Box<File>) -> Stored<(), C> {
        let installed = self.install(meta, *snapshot).await;
        installed.map_err(|error| {
            self.progress
                .send_modify(|progress| progress.has_failed = true);
            StorageIOError::write_snapshot(Some(meta.signature()), &error).into()
        })
    }

    async fn get_current_snapshot(&mut self) -> Stored<Option<Snapshot<C>>, C> {
        let snapshot = self.newest_snapshot().await;
        snapshot.map_err(|error| StorageIOError::read_snapshot(None, &error).into())
    }
}

fn failed(error: std::io::Error) -> Error {
    Error::io("receive", std::path::Path::new("snapshot"), error)
}

impl<C: RaftTypeConfig, A> Debug for StateMachine<C, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StateMachine").finish_non_exhaustive()
    }
}
