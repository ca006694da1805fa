//! A bucket of bytes that fills at a rate: how long work must wait to keep to a rate.
//!
//! Concurrency: none; the owner locks it.

use std::time::Duration;

/// The bucket holds at most the bytes of this many seconds.
const BURST: f64 = 0.25;

/// A token bucket. It begins empty.
#[derive(Debug, Default)]
pub(crate) struct TokenBucket {
    /// Bytes that may pass; negative if too many have passed.
    bytes: f64,
    filled: Duration,
}

impl TokenBucket {
    /// Takes `bytes` at `now`, a moment of a clock that never goes back. Returns how many bytes are owed at `rate` bytes per
    /// second; a negative number if that many are left.
    pub(crate) fn take(&mut self, bytes: u64, rate: f64, now: Duration) -> f64 {
        let elapsed = now.saturating_sub(self.filled).as_secs_f64();
        self.filled = now;
        self.bytes = (self.bytes + elapsed * rate).min(rate * BURST) - bytes as f64;
        -self.bytes
    }
}
