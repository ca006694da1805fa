//! The state, and how an installation replaces it.
//!
//! The state is the keyspace `state`. An installation loads another one, `state-new`, and then lets it count by
//! [`Record::State`], which also has the last applied log id and the membership. Afterwards the old keyspace is dropped,
//! and the new one gets its name.
//!
//! Invariants:
//! - I1: The record changes in one batch with the state, or after a new state is whole and durable.
//! - I2: While the record says that the new state counts, `state-new` is whole, or it is named `state` already and no
//!   `state-new` exists.
//! - I3: After an open there is no `state-new`.
//!
//! Concurrency: one thread at a time replaces states. Snapshots and readers may use them meanwhile.

use openraft::{LogId, RaftTypeConfig, StoredMembership};
use serde::{Deserialize, Serialize};
use windrow::{Batch, Db, Durability, Error, ErrorKind, Keyspace, Result};

use crate::records::{Record, Records};
use crate::snapshot_file::Meta;

const NAME: &str = "state";
const NEW: &str = "state-new";

/// Which state counts, and what it contains.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(bound = "")]
pub(crate) struct StateRecord<C: RaftTypeConfig> {
    is_new: bool,
    pub(crate) last_applied: Option<LogId<C::NodeId>>,
    pub(crate) membership: StoredMembership<C::NodeId, C::Node>,
}

/// The state and its record.
#[derive(Debug, Clone)]
pub(crate) struct State<C: RaftTypeConfig> {
    pub(crate) record: StateRecord<C>,
    pub(crate) keyspace: Keyspace,
}

/// Opens the state that counts, and ends or undoes an installation.
///
/// # Errors
/// `Corruption` if the state is missing that the record describes.
pub(crate) fn open<C: RaftTypeConfig>(db: &Db, records: &Records) -> Result<State<C>> {
    let stored: Option<StateRecord<C>> = records.get(Record::State)?;
    if let Some(new) = db.existing_keyspace(NEW)? {
        match &stored {
            Some(record) if record.is_new => rename(db, &new)?,
            _ => db.drop_keyspace(NEW)?,
        }
    }
    let Some(record) = stored else {
        let record = StateRecord {
            is_new: false,
            last_applied: None,
            membership: StoredMembership::default(),
        };
        let keyspace = db.keyspace(NAME)?;
        return Ok(State { record, keyspace });
    };
    let keyspace = db.existing_keyspace(NAME)?.ok_or_else(|| {
        let message = format!("the keyspace \"{NAME}\" of a node is missing");
        Error::new(ErrorKind::Corruption, message)
    })?;
    let record = StateRecord {
        is_new: false,
        ..record
    };
    Ok(State { record, keyspace })
}

/// Makes a state of `entries`, which ascend by key, and lets it count instead of `old`. It is durable when this returns.
/// Readers may use `old` until [`State::finish`].
///
/// # Errors
/// After an error of the entries, or of the database before the last step, `old` still counts.
pub(crate) fn install<C: RaftTypeConfig>(
    db: &Db,
    records: &Records,
    old: &State<C>,
    meta: &Meta<C>,
    entries: impl Iterator<Item = Result<(Vec<u8>, Vec<u8>)>>,
) -> Result<State<C>> {
    // I2: The record may still speak of the last installation. A new keyspace makes earlier writes durable.
    write(db, records, &old.record, Durability::Buffered)?;
    if db.existing_keyspace(NEW)?.is_some() {
        db.drop_keyspace(NEW)?;
    }
    let keyspace = db.keyspace(NEW)?;
    keyspace.try_bulk_load(entries)?;
    let record = StateRecord {
        is_new: true,
        last_applied: meta.last_log_id.clone(),
        membership: meta.last_membership.clone(),
    };
    write(db, records, &record, Durability::Sync)?;
    Ok(State { record, keyspace })
}

impl<C: RaftTypeConfig> State<C> {
    /// Drops the state that this one has replaced, and takes its name.
    pub(crate) fn finish(mut self, db: &Db) -> Result<Self> {
        rename(db, &self.keyspace)?;
        self.record.is_new = false;
        Ok(self)
    }
}

fn write<C: RaftTypeConfig>(
    db: &Db,
    records: &Records,
    record: &StateRecord<C>,
    durability: Durability,
) -> Result<()> {
    let mut batch = Batch::new();
    records.insert(&mut batch, Record::State, record)?;
    db.write_with(&batch, durability)
}

fn rename(db: &Db, new: &Keyspace) -> Result<()> {
    if db.existing_keyspace(NAME)?.is_some() {
        db.drop_keyspace(NAME)?;
    }
    new.rename(NAME)
}
