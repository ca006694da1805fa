//! The facade over synchronisation primitives.
//!
//! Other modules take their locks and atomics from here, so `--cfg loom` and `--cfg shuttle` run the same code
//! under a model checker. Exceptions are memory trackers, a static of `striped.rs`, and the locks of `vfs/os`. A
//! lock never reports poisoning: the engine catches a panic of a background job, and poisons the *database* with a
//! clear error.

#![cfg_attr(
    not(any(loom, shuttle)),
    expect(
        clippy::disallowed_types,
        reason = "this file wraps locks for the engine"
    )
)]

#[cfg(loom)]
use loom::sync as primitives;
#[cfg(shuttle)]
use shuttle::sync as primitives;
#[cfg(not(any(loom, shuttle)))]
use std::sync as primitives;

pub(crate) use primitives::atomic;

#[cfg(loom)]
pub(crate) use loom::thread_local;
#[cfg(shuttle)]
pub(crate) use shuttle::thread_local;
#[cfg(not(any(loom, shuttle)))]
pub(crate) use std::thread_local;

#[cfg(not(loom))]
pub(crate) use arc_swap::{ArcSwap, Guard};
#[cfg(loom)]
pub(crate) use swap::{ArcSwap, Guard};

/// An `Arc` that loom sees: for values that readers and jobs share and whose drop has effects.
#[cfg(loom)]
pub(crate) type Shared<T> = loom::sync::Arc<T>;
/// An `Arc` that loom sees: for values that readers and jobs share and whose drop has effects.
#[cfg(not(loom))]
pub(crate) type Shared<T> = std::sync::Arc<T>;

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

/// Replaces the crate `arc_swap` under loom, which cannot see into it.
///
/// Contract of both: all loads and stores of one `ArcSwap` have one order. A load returns the last stored
/// value and synchronises with its store. A loaded value lives until its guard is dropped, even if
/// another is stored meanwhile. The lock also orders a store after earlier loads; `arc_swap` does not
/// promise that, and no code may rely on it.
#[cfg(loom)]
mod swap {
    use super::{Mutex, Shared};
    use std::ops::Deref;

    #[derive(Debug)]
    pub(crate) struct ArcSwap<T>(Mutex<Shared<T>>);

    /// A borrowed value.
    #[derive(Debug)]
    pub(crate) struct Guard<P>(P);

    impl<P> Guard<P> {
        pub(crate) fn into_inner(guard: Self) -> P {
            guard.0
        }
    }

    impl<P> Deref for Guard<P> {
        type Target = P;

        fn deref(&self) -> &P {
            &self.0
        }
    }

    impl<T> ArcSwap<T> {
        pub(crate) fn from_pointee(value: T) -> Self {
            Self(Mutex::new(Shared::new(value)))
        }

        pub(crate) fn load(&self) -> Guard<Shared<T>> {
            Guard(self.load_full())
        }

        pub(crate) fn load_full(&self) -> Shared<T> {
            Shared::clone(&self.0.lock())
        }

        pub(crate) fn store(&self, value: Shared<T>) {
            let old = std::mem::replace(&mut *self.0.lock(), value);
            drop(old); // Not under the lock: its drop may take locks.
        }
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

    /// Waits until notified or until the `timeout`; models ignore the timeout.
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

/// Stands between two sequentially consistent operations of a thread whose total order with those of others counts. Loom
/// gives such operations no total order, but fences.
#[inline]
pub(crate) fn keep_total_order() {
    #[cfg(loom)]
    atomic::fence(atomic::Ordering::SeqCst);
}

/// Models plain bytes that one thread writes and publishes to others by an atomic.
///
/// Loom does not see plain memory, but it sees this: it reports every [`receive`](Handover::receive) that no
/// synchronisation orders after the [`give`](Handover::give). It costs nothing outside of models.
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

/// Models plain bytes that one thread writes and publishes to others by an atomic.
///
/// It has an effect only under `--cfg loom`: a model reports reads of the bytes that no synchronisation
/// orders after the write.
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
