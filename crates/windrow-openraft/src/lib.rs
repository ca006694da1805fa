//! A log store and a state machine for [openraft] 0.9 on [Windrow](windrow).
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
//!         // A request that the database refuses would end all nodes.
//!         if name.is_empty() || name.len() > 100 {
//!             return Ok(0);
//!         }
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
//! - Entries are written, in batches of 64 MiB, and synced before `append` returns. openraft 0.9 has one append at a time.
//! - A truncation is one range delete without a sync of its own. The next entries and votes are synced, so before a node
//!   promises anything about its log, all earlier truncations are durable.
//! - `apply` changes the state, the last applied log id and the membership in one transaction for each entry, without a
//!   sync. Committed entries are durable on a majority of the nodes; a node that loses the newest changes applies them
//!   again.
//! - A purge is one batch with the new purged log id and a range delete. It follows the state that contains the purged
//!   entries: a snapshot syncs this state before it counts, and a purge during an installation waits for its end.
//! - An installation loads a new keyspace, and then one synced record makes it the state. A crash leaves the old state or
//!   the new one.
//! - What an open reads after a crash is durable from then on, even if it was not synced before. So a node keeps promises
//!   that it makes from what it has found.

mod application;
mod blocking;
mod log_store;
mod progress;
mod records;
mod snapshot_builder;
mod snapshot_file;
mod snapshot_folder;
mod state;
mod state_machine;

use std::path::Path;

use openraft::{Entry, RaftTypeConfig};
use windrow::{Db, Error, Options, Result};

pub use application::{Application, StateReader};
pub use log_store::{LogReader, LogStore};
pub use snapshot_builder::SnapshotBuilder;
pub use state_machine::StateMachine;

use blocking::blocking;
use records::Records;
use snapshot_folder::SnapshotFolder;

/// Opens the stores of a node in `folder`, or creates them. The folder then has `database`, a Windrow database, and
/// `snapshot`, the newest snapshot if there is one.
///
/// `options` are those of the database. Its keyspaces get [`Options::keyspace`] when they are created. The durability of
/// the options counts for nothing here: see the [crate](self). The state is the keyspace `state`, and `state-new` while a
/// snapshot is installed. So a merge operator or a compaction filter of the state is given for both names.
///
/// The database closes when openraft's tasks have ended and all [readers](StateReader) and their keyspaces are dropped.
/// `Raft::shutdown` does not wait for all of these tasks. Until then another open of the folder returns `Locked`.
///
/// # Errors
/// Those of [`Db::open`]; `InvalidArgument` if [`default_ttl`](windrow::KeyspaceOptions::default_ttl) is set; `Corruption`
/// if a record cannot be decoded; `Io` of the folder.
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
    if options.keyspace.default_ttl.is_some() {
        let message = "what raft stores must not expire, so the keyspaces have no default_ttl";
        return Err(Error::invalid_argument(message));
    }
    blocking(move || {
        // First of all, since it makes the folder durable and locks it.
        let db = Db::open(folder.join("database"), options)?;
        let snapshots = SnapshotFolder::open(&folder)?;
        let records = Records::open(&db)?;
        let state = state::open::<C>(&db, &records)?;
        snapshots.remove_ahead::<C>(state.record.last_applied.as_ref())?;
        let entries = LogReader::open(&db)?;
        let machine = StateMachine::new(db.clone(), records.clone(), state, snapshots, application);
        let log = LogStore::new(db, entries, records, machine.progress());
        Ok((log, machine))
    })
    .await
}
