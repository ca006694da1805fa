//! The facade over synchronisation primitives.
//!
//! Everything above takes its locks and atomics from here, so that `--cfg loom` and `--cfg shuttle`
//! run the same code under a model checker. A lock never reports poisoning: a panic in a
//! background job is caught by the engine, which poisons the *database* with a clear error.

#![cfg_attr(
    not(any(loom, shuttle)),
    expect(
        clippy::disallowed_types,
        reason = "this file is what stands between the engine and locks"
    )
)]

#[cfg(loom)]
use loom::sync as primitives;
#[cfg(shuttle)]
use shuttle::sync as primitives;
#[cfg(not(any(loom, shuttle)))]
use std::sync as primitives;

pub(crate) use primitives::atomic;

use std::sync::PoisonError;
use std::time::Duration;

pub(crate) type MutexGuard<'a, T> = primitives::MutexGuard<'a, T>;

/// A mutual-exclusion lock without poisoning.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(primitives::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(primitives::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A condition variable for [`Mutex`].
#[derive(Debug, Default)]
pub(crate) struct Condvar(primitives::Condvar);

impl Condvar {
    pub(crate) fn new() -> Self {
        Self(primitives::Condvar::new())
    }

    pub(crate) fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.0.wait(guard).unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until notified or until `timeout` is over; models ignore the timeout.
    pub(crate) fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        timeout: Duration,
    ) -> MutexGuard<'a, T> {
        match self.0.wait_timeout(guard, timeout) {
            Ok((guard, _)) => guard,
            Err(poisoned) => poisoned.into_inner().0,
        }
    }

    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }

    pub(crate) fn notify_one(&self) {
        self.0.notify_one();
    }
}

/// Accompanies plain bytes that one thread writes and hands over to others by an atomic.
///
/// It costs nothing outside of models. Loom sees no plain memory, but it does see this: it reports
/// every [`receive`](Handover::receive) that no synchronisation orders after the [`give`]
/// (Handover::give).
#[cfg(loom)]
#[derive(Debug)]
pub(crate) struct Handover(loom::cell::UnsafeCell<()>);

#[cfg(loom)]
impl Handover {
    pub(crate) fn new() -> Self {
        Self(loom::cell::UnsafeCell::new(()))
    }

    /// The bytes have been written.
    pub(crate) fn give(&self) {
        self.0.with_mut(|_| ());
    }

    /// The bytes are about to be read.
    pub(crate) fn receive(&self) {
        self.0.with(|_| ());
    }
}

/// Accompanies plain bytes that one thread writes and hands over to others by an atomic.
///
/// It does something under `--cfg loom` only, where it shows a model reads of the bytes that no
/// synchronisation orders after the write.
#[cfg(not(loom))]
#[derive(Debug)]
pub(crate) struct Handover;

#[cfg(not(loom))]
#[expect(clippy::unused_self, reason = "the form under loom has state")]
impl Handover {
    #[inline]
    pub(crate) fn new() -> Self {
        Self
    }

    /// The bytes have been written.
    #[inline]
    pub(crate) fn give(&self) {}

    /// The bytes are about to be read.
    #[inline]
    pub(crate) fn receive(&self) {}
}
