//! Generations of the state: each installation of a snapshot makes a new one.
//!
//! A generation is a keyspace. The record [`Record::State`] says which one counts, together with the last applied log id
//! and the membership.
//!
//! Invariants:
//! - I1: The record changes in one batch with the state of its generation, or after a new generation is whole and durable.
//! - I2: After an open there is no other generation than the one of the record.
//!
//! Concurrency: one thread at a time changes generations. Snapshots and readers may use them meanwhile.

use openraft::{LogId, RaftTypeConfig, SnapshotMeta, StoredMembership};
use serde::{Deserialize, Serialize};
use windrow::{Batch, Db, Durability, Keyspace, Result};

use crate::records::{Record, Records};

const PREFIX: &str = "state-";

/// Which state counts, and what it contains.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(bound = "")]
pub(crate) struct StateRecord<C: RaftTypeConfig> {
    generation: u64,
    pub(crate) last_applied: Option<LogId<C::NodeId>>,
    pub(crate) membership: StoredMembership<C::NodeId, C::Node>,
}

/// The state and its record.
#[derive(Debug, Clone)]
pub(crate) struct State<C: RaftTypeConfig> {
    pub(crate) record: StateRecord<C>,
    pub(crate) keyspace: Keyspace,
}

/// Opens the state that counts, and drops what an installation has left.
pub(crate) fn open<C: RaftTypeConfig>(db: &Db, records: &Records) -> Result<State<C>> {
    let record = records.get(Record::State)?.unwrap_or_else(|| StateRecord {
        generation: 1,
        last_applied: None,
        membership: StoredMembership::default(),
    });
    let name = name(record.generation);
    for other in db.keyspace_names() {
        if other.starts_with(PREFIX) && other != name {
            db.drop_keyspace(&other)?;
        }
    }
    let keyspace = db.keyspace(&name)?;
    Ok(State { record, keyspace })
}

/// Makes a state of `entries`, which ascend by key, and lets it count instead of `old`. It is durable when this returns.
///
/// # Errors
/// After an error of the entries, or of the database before the last step, `old` still counts.
pub(crate) fn install<C: RaftTypeConfig>(
    db: &Db,
    records: &Records,
    old: &State<C>,
    meta: &SnapshotMeta<C::NodeId, C::Node>,
    entries: impl Iterator<Item = Result<(Vec<u8>, Vec<u8>)>>,
) -> Result<State<C>> {
    let record = StateRecord {
        generation: old.record.generation + 1,
        last_applied: meta.last_log_id.clone(),
        membership: meta.last_membership.clone(),
    };
    let name = name(record.generation);
    if db.existing_keyspace(&name)?.is_some() {
        db.drop_keyspace(&name)?;
    }
    let keyspace = db.keyspace(&name)?;
    keyspace.try_bulk_load(entries)?;
    let mut batch = Batch::new();
    records.insert(&mut batch, Record::State, &record)?;
    db.write_with(&batch, Durability::Sync)?;
    db.drop_keyspace(&old.keyspace.name())?;
    Ok(State { record, keyspace })
}

fn name(generation: u64) -> String {
    format!("{PREFIX}{generation}")
}
