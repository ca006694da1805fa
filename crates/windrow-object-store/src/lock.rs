//! The lock of a store: an object that only one process can create.
//!
//! An object store does not know whether a process is gone, and a lock that ended by itself would let a process that has
//! paused go on beside another one. So the lock stays until its holder, or somebody who knows, removes it. The holder does not
//! if a change of its may still reach the store.
//!
//! - I1. An open creates the object on the condition that there is none. A store that ignores the condition is refused.
//! - I2. The object has a random number, so a holder sees whether it is its own.
//!
//! Concurrency: processes, by the condition; within one, an atomic flag says whether the object is kept.

use std::sync::atomic::{AtomicBool, Ordering};

use object_store::Error::{AlreadyExists, NotFound, Precondition};
use object_store::{ObjectStoreExt as _, PutMode};
use windrow::runtime::{Runtime, Threads};
use windrow::{Error, ErrorKind, Result};

use crate::bucket::Bucket;

/// No object of a backup has this name.
pub(crate) const NAME: &str = "LOCK";

/// A lock that this process has taken. The drop gives it back, unless it is to be kept; what cannot be given back stays.
#[derive(Debug)]
pub(crate) struct Lock {
    bucket: Bucket,
    /// The bytes of the object: a random number, a space, and the owner.
    text: String,
    /// Whether the object outlives this.
    is_kept: AtomicBool,
}

impl Lock {
    pub(crate) fn take(bucket: Bucket, owner: &str) -> Result<Self> {
        let threads = Threads::default();
        let text = format!("{:016x}{:016x} {owner}", threads.random(), threads.random());
        // From here on it is given back. An attempt whose answer is lost may have taken it.
        let is_kept = AtomicBool::new(false);
        let lock = Self {
            bucket,
            text,
            is_kept,
        };
        // I1
        if lock.create()? && lock.create()? {
            let message = format!(
                "{} ignores the condition that there is no object of a name, so nothing keeps two writers apart",
                lock.bucket
            );
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        match lock.other_holder()? {
            None => Ok(lock),
            Some(holder) => {
                let message = format!(
                    "the backups in {} are in use by {holder}; if that process is gone and no request of it can arrive any more, remove the object {NAME}",
                    lock.bucket
                );
                Err(Error::new(ErrorKind::Locked, message))
            }
        }
    }

    /// Creates the object, and returns whether there was none.
    fn create(&self) -> Result<bool> {
        let content = self.text.clone().into_bytes();
        match self.bucket.put(NAME, content, PutMode::Create) {
            Ok(()) => Ok(true),
            Err(AlreadyExists { .. } | Precondition { .. }) => Ok(false),
            Err(error) => Err(self.bucket.failed("create", NAME, &error)),
        }
    }

    /// Who has the lock now, unless it is this; empty if nobody has it.
    pub(crate) fn other_holder(&self) -> Result<Option<String>> {
        let text = read(&self.bucket)?.unwrap_or_default();
        Ok((text != self.text).then(|| owner(&text)))
    }

    /// From here on the lock stays until somebody else removes it.
    pub(crate) fn keep(&self) {
        self.is_kept.store(true, Ordering::Release);
    }

    pub(crate) fn is_kept(&self) -> bool {
        self.is_kept.load(Ordering::Acquire)
    }

    /// Removes the lock of anybody, and returns its owner.
    pub(crate) fn remove(bucket: &Bucket) -> Result<Option<String>> {
        let Some(text) = read(bucket)? else {
            return Ok(None);
        };
        let path = bucket.path(NAME);
        match bucket.request(|objects| async move { objects.delete(&path).await }) {
            Ok(()) | Err(NotFound { .. }) => Ok(Some(owner(&text))),
            Err(error) => Err(bucket.failed("delete", NAME, &error)),
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if !self.is_kept() && matches!(self.other_holder(), Ok(None)) {
            drop(Self::remove(&self.bucket));
        }
    }
}

/// The bytes of the lock; `None` if there is none.
fn read(bucket: &Bucket) -> Result<Option<String>> {
    match bucket.get(NAME) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(NotFound { .. }) => Ok(None),
        Err(error) => Err(bucket.failed("read", NAME, &error)),
    }
}

fn owner(text: &str) -> String {
    let (_, owner) = text.split_once(' ').unwrap_or_default();
    owner.to_owned()
}
