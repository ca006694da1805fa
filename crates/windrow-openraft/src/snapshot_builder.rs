//! Builds snapshots of the state.
//!
//! Concurrency: a builder reads a snapshot of the database, so the state machine changes the state meanwhile.

use std::fmt::{self, Debug};

use openraft::{
    LogIdOptionExt, RaftSnapshotBuilder, RaftTypeConfig, Snapshot, SnapshotMeta, StorageError,
    StorageIOError,
};
use windrow::{Db, Error, Result, View};

use crate::blocking::blocking;
use crate::snapshot_file;
use crate::snapshot_folder::SnapshotFolder;
use crate::state::State;

/// Builds a snapshot of the state at the time when the builder was made: openraft's `RaftSnapshotBuilder`.
pub struct SnapshotBuilder<C: RaftTypeConfig> {
    db: Db,
    at: windrow::Snapshot,
    state: State<C>,
    /// Outlives the drop of the keyspace by an installation.
    view: Result<View>,
    folder: SnapshotFolder,
}

impl<C: RaftTypeConfig<SnapshotData = tokio::fs::File>> SnapshotBuilder<C> {
    pub(crate) fn new(db: Db, state: State<C>, folder: SnapshotFolder) -> Self {
        let at = db.snapshot();
        let view = state.keyspace.at(&at);
        Self {
            db,
            at,
            state,
            view,
            folder,
        }
    }

    pub(crate) async fn build(&self) -> Result<Snapshot<C>> {
        let view = match &self.view {
            Ok(view) => view.clone(),
            Err(error) => return Err(Error::new(error.kind(), error.to_string())),
        };
        let (db, at) = (self.db.clone(), self.at.clone());
        let (state, folder) = (self.state.clone(), self.folder.clone());
        blocking(move || {
            let last_log_id = state.record.last_applied;
            let next = last_log_id.next_index();
            let snapshot_id = format!("{next}-{}", at.sequence());
            let meta = SnapshotMeta {
                last_log_id,
                last_membership: state.record.membership,
                snapshot_id,
            };
            let new = folder.create()?;
            let mut entries = view.cursor()?;
            snapshot_file::write::<C>(&new.file, &new.path, &meta, &mut entries)?;
            // A snapshot lets openraft purge the log, so first the state survives that it is made of.
            db.persist()?;
            let file = folder.publish::<C>(&new, &meta)?;
            let snapshot = Box::new(tokio::fs::File::from_std(file));
            Ok(Snapshot { meta, snapshot })
        })
        .await
    }
}

impl<C: RaftTypeConfig<SnapshotData = tokio::fs::File>> RaftSnapshotBuilder<C>
    for SnapshotBuilder<C>
{
    async fn build_snapshot(
        &mut self,
    ) -> std::result::Result<Snapshot<C>, StorageError<C::NodeId>> {
        let built = self.build().await;
        built.map_err(|error| StorageIOError::write_snapshot(None, &error).into())
    }
}

impl<C: RaftTypeConfig> Debug for SnapshotBuilder<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SnapshotBuilder").finish_non_exhaustive()
    }
}
