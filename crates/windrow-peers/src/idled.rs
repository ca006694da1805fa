//! The idle time at the end of an engine's last settling. Any thread may read it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// That time, in microseconds.
#[derive(Debug, Default)]
pub(crate) struct Idled(AtomicU64);

impl Idled {
    pub(crate) fn set(&self, idled: Duration) {
        let micros = u64::try_from(idled.as_micros()).unwrap_or(u64::MAX);
        self.0.store(micros, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> Duration {
        Duration::from_micros(self.0.load(Ordering::Relaxed))
    }
}
