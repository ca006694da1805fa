//! Snapshots.
//!
//! Concurrency: a snapshot never changes until its close.

use std::sync::{Mutex, PoisonError};

use napi_derive::napi;
use windrow::{Error, ErrorKind};

use crate::errors::{Failure, Result};

/// The state of a database at one moment.
#[napi]
pub(crate) struct Snapshot(Mutex<Option<windrow::Snapshot>>);

impl Snapshot {
    pub(crate) fn new(snapshot: windrow::Snapshot) -> Self {
        Self(Mutex::new(Some(snapshot)))
    }

    /// The snapshot, if it is open.
    pub(crate) fn get(&self) -> windrow::Result<windrow::Snapshot> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let closed = || Error::new(ErrorKind::Closed, "the snapshot has been closed");
        held.clone().ok_or_else(closed)
    }
}

#[napi]
impl Snapshot {
    /// The sequence number of its newest write.
    #[napi]
    pub fn sequence(&self) -> Result<i64> {
        let snapshot = self.get();
        let snapshot = snapshot.map_err(|error| Failure::from(error).thrown())?;
        Ok(snapshot.sequence().cast_signed())
    }

    /// Gives the snapshot up. What reads it keeps what it needs.
    #[napi]
    pub fn close(&self) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        drop(held.take());
    }
}
