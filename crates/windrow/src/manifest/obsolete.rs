//! When the files of a database may be deleted.
//!
//! I1. A file's name reaches [`Obsolete`] at most once: after the edit that removes the file is
//!     durable, when the last handle on the file is dropped.
//!
//! Concurrency: everything is shared freely.

use std::sync::Arc;

use crate::base::sync::Mutex;
use crate::base::sync::atomic::{AtomicBool, Ordering};

use super::names::FileName;

/// Files that may be deleted.
#[derive(Debug, Default)]
pub(crate) struct Obsolete(Mutex<Vec<FileName>>);

impl Obsolete {
    /// Adds a file that no version holds.
    pub(crate) fn add(&self, file: FileName) {
        self.0.lock().push(file);
    }

    /// Takes the files that were added since the last call.
    pub(crate) fn take(&self) -> Vec<FileName> {
        std::mem::take(&mut *self.0.lock())
    }
}

/// Adds its file to [`Obsolete`] when it is dropped, if it was marked. All handles on the file share
/// it.
#[derive(Debug)]
pub(super) struct ObsoleteGuard {
    file: FileName,
    is_obsolete: AtomicBool,
    obsolete: Arc<Obsolete>,
}

impl ObsoleteGuard {
    pub(super) fn new(file: FileName, obsolete: &Arc<Obsolete>) -> Arc<Self> {
        Arc::new(Self {
            file,
            is_obsolete: AtomicBool::new(false),
            obsolete: Arc::clone(obsolete),
        })
    }

    /// Records that the edit that removes the file is durable.
    pub(super) fn mark(&self) {
        self.is_obsolete.store(true, Ordering::Release);
    }

    pub(super) fn is_marked(&self) -> bool {
        self.is_obsolete.load(Ordering::Acquire)
    }
}

impl Drop for ObsoleteGuard {
    fn drop(&mut self) {
        if self.is_marked() {
            self.obsolete.add(self.file); // I1
        }
    }
}
