//! The wake-up of threads that wait for the next commit.
//!
//! A commit looks at one number, which is zero while nobody waits, and takes no lock then. No wake-up is lost: a thread
//! that waits counts itself first, then passes the lock that every leader takes between the publication and the look,
//! and then looks for news under the lock of the wake-up.
//!
//! Concurrency: any thread.

use std::time::Duration;

use crate::base::sync::atomic::{AtomicU64, Ordering};
use crate::base::sync::{Condvar, Mutex};

/// A waiting thread looks again after this time: a poisoned database notifies nobody, nor does a consumer that falls behind.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Notifies waiting threads of commits.
#[derive(Debug, Default)]
pub(crate) struct CommitNotice {
    waiting: AtomicU64,
    lock: Mutex<()>,
    changed: Condvar,
}

impl CommitNotice {
    /// Wakes all waiting threads. The caller has published before it took the lock that [`Self::wait`] passes.
    #[inline]
    pub(crate) fn notify(&self) {
        if self.waiting.load(Ordering::Relaxed) > 0 {
            self.wake();
        }
    }

    /// The same, whatever the caller has published before.
    #[cold]
    pub(crate) fn wake(&self) {
        drop(self.lock.lock());
        self.changed.notify_all();
    }

    /// Blocks until a notification, or for `timeout`, unless there `is_news` already. It may end early. `pass` takes and
    /// releases the lock that every commit takes after its publication.
    pub(crate) fn wait(&self, timeout: Duration, pass: impl FnOnce(), is_news: impl Fn() -> bool) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        pass();
        let guard = self.lock.lock();
        if !is_news() {
            drop(self.changed.wait_timeout(guard, timeout.min(LOOK_INTERVAL)));
        }
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}
