//! A log store and a state machine for [openraft](openraft) 0.9 on [Windrow](windrow).
//!
//! [`open`] opens one database with the log, the vote and the state of a node. An [`Application`] says how a request
//! changes the state.
//!
//! ```
//! use openraft::declare_raft_types;
//! use windrow::{Keyspace, Options, Transaction};
//! use windrow_openraft::Application;
//!
//! declare_raft_types!(
//!     /// Requests that append to a text, and answer with its length.
//!     Texts: D = (String, String), R = u64, SnapshotData = tokio::fs::File,
//! );
//!
//! struct Append;
//!
//! impl Application<Texts> for Append {
//!     fn apply(
//!         &self,
//!         state: &Keyspace,
//!         transaction: &Transaction,
//!         (name, more): (String, String),
//!     ) -> windrow::Result<u64> {
//!         let mut text = transaction.get(state, &name)?.unwrap_or_default();
//!         text.extend(more.into_bytes());
//!         transaction.insert(state, &name, &text)?;
//!         Ok(text.len() as u64)
//!     }
//! }
//!
//! # fn main() -> windrow::Result<()> {
//! # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
//! # runtime.block_on(async {
//! # let folder = tempfile::tempdir().unwrap();
//! # let folder = folder.path();
//! let (log, state_machine) =
//!     windrow_openraft::open::<Texts, _>(folder, Options::default(), Append).await?;
//! let reader = state_machine.reader();
//! // let raft = Raft::new(node, config, network, log, state_machine).await?;
//! assert_eq!(reader.keyspace().get("a text")?, None);
//! # drop((log, state_machine));
//! # Ok(())
//! # })
//! # }
//! ```
//!
//! # Durability
//!
//! Log and state are keyspaces of one database, so they share one write-ahead log, and a crash leaves a prefix of all
//! writes in the order in which they were acknowledged. All promises follow from this:
//!
//! - A vote is synced before `save_vote` returns.
//! - Entries are written as one batch before `append` returns, and readers see them then. The callback comes after a sync.
//!   Appends that wait for a sync get it together.
//! - A truncation is one range delete without a sync of its own. The next entries and votes are synced, so before a node
//!   promises anything about its log, all earlier truncations are durable.
//! - `apply` changes the state, the last applied log id and the membership in one transaction without a sync. Committed
//!   entries are durable on a majority of the nodes; a node that loses the newest changes applies them again.
//! - A purge is one batch with the new purged log id and a range delete. It follows the state that contains the purged
//!   entries: a snapshot syncs this state before it counts, and a purge during an installation waits for its end.
//! - An installation loads a new keyspace, and then one synced record makes it the state. A crash leaves the old state or
//!   the new one.

mod application;
mod blocking;
mod flusher;
mod generations;
mod log_store;
mod progress;
mod records;
mod snapshot_builder;
mod snapshot_file;
mod snapshot_folder;
mod state_machine;

use std::path::Path;

use openraft::{Entry, RaftTypeConfig};
use windrow::{Db, Options, Result};

pub use application::{Application, StateReader};
pub use log_store::{LogReader, LogStore};
pub use snapshot_builder::SnapshotBuilder;
pub use state_machine::StateMachine;

use blocking::blocking;
use flusher::Flusher;
use records::Records;
use snapshot_folder::SnapshotFolder;

/// Opens the stores of a node in `folder`, or creates them. The folder then has `database`, a Windrow database, and
/// `snapshot`, the newest snapshot if there is one.
///
/// `options` are those of the database. Its keyspaces get [`Options::keyspace`] when they are created. The durability of
/// the options counts for nothing here: see the [crate](self).
///
/// # Errors
/// Those of [`Db::open`]; `Corruption` if a record cannot be decoded; `Io` of the folder.
///
/// # Panics
/// Outside of a runtime of tokio.
pub async fn open<C, A>(
    folder: impl AsRef<Path>,
    options: Options,
    application: A,
) -> Result<(LogStore<C>, StateMachine<C, A>)>
where
    C: RaftTypeConfig<Entry = Entry<C>, SnapshotData = tokio::fs::File>,
    C::R: Default,
    A: Application<C>,
{
    let folder = folder.as_ref().to_owned();
    let flusher = Flusher::start();
    blocking(move || {
        let snapshots = SnapshotFolder::open(&folder)?;
        let db = Db::open(folder.join("database"), options)?;
        let records = Records::open(&db)?;
        let state = generations::open::<C>(&db, &records)?;
        let entries = LogReader::open(&db)?;
        let machine = StateMachine::new(db.clone(), records.clone(), state, snapshots, application);
        let log = LogStore::new(db, entries, records, flusher, machine.progress());
        Ok((log, machine))
    })
    .await
}
