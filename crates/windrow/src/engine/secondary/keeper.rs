//! The thread that renews a lease. It does nothing else, so nothing makes it late.
//!
//! Concurrency: the secondary and its views share the keeper. The last of them ends the thread.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::lease::{Lease, RENEW_INTERVAL};
use crate::base::sync::Mutex;
use crate::base::{Error, Result};
use crate::engine::jobs::signal::Signal;
use crate::manifest::ManifestPosition;
use crate::options::Options;
use crate::runtime::{Work, Workers};

/// A lease, and the thread that renews it until this is dropped.
#[derive(Debug)]
pub(super) struct Keeper {
    core: Arc<Core>,
    workers: Mutex<Option<Box<dyn Workers>>>,
}

#[derive(Debug)]
struct Core {
    options: Options,
    lease: Arc<Lease>,
    signal: Signal,
    /// What the lease needs if nobody holds a state.
    newest: Mutex<ManifestPosition>,
    renewed: Mutex<Duration>,
}

impl Keeper {
    /// Takes a lease on the database in `directory`.
    ///
    /// # Errors
    /// As [`Lease::take`]; `Io` if the system allows no thread.
    pub(super) fn start(directory: &Path, options: &Options) -> Result<Arc<Self>> {
        let runtime = &options.runtime;
        let lease = Lease::take(&options.vfs, directory, || runtime.random())?;
        let core = Arc::new(Core {
            options: options.clone(),
            lease: Arc::new(lease),
            signal: Signal::default(),
            newest: Mutex::default(),
            renewed: Mutex::new(runtime.now()),
        });
        let work: Arc<dyn Work> = Arc::<Core>::clone(&core);
        let workers = runtime
            .start(work, 1)
            .map_err(|error| Error::io("start a thread for", directory, error))?;
        Ok(Arc::new(Self {
            core,
            workers: Mutex::new(Some(workers)),
        }))
    }

    pub(super) fn lease(&self) -> &Arc<Lease> {
        &self.core.lease
    }

    /// Lets the lease move on to `newest`, as far as nobody holds older states.
    ///
    /// # Errors
    /// As [`Lease::renew`].
    pub(super) fn renew(&self, newest: ManifestPosition) -> Result<()> {
        *self.core.newest.lock() = newest;
        self.core.renew(false)
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.core.signal.stop();
        drop(self.workers.lock().take());
    }
}

impl Core {
    fn renew(&self, is_due: bool) -> Result<()> {
        if is_due {
            *self.renewed.lock() = self.options.runtime.now();
        }
        let newest = *self.newest.lock();
        self.lease.renew(newest, is_due)
    }
}

impl Work for Core {
    fn run_one(&self) -> bool {
        let now = self.options.runtime.now();
        let renewed = *self.renewed.lock();
        let is_due = now.saturating_sub(renewed) >= RENEW_INTERVAL;
        if is_due {
            // If this fails, a writer may give the reader up, which it then notices.
            drop(self.renew(true));
        }
        is_due
    }

    fn wait(&self) -> bool {
        let generation = self.signal.generation();
        if self.signal.is_stopping() {
            return false;
        }
        self.signal.wait_after(generation, RENEW_INTERVAL);
        !self.signal.is_stopping()
    }
}
