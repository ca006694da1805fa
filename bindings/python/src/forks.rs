//! The number of forks on the way to this process.
//!
//! # Safety argument
//! The system calls [`count_fork`] in the child of each fork, where only what is safe in a signal handler may run: it adds
//! to an atomic number. The function stays, because Python unloads no module.
//!
//! Concurrency: any thread.

#![expect(unsafe_code, reason = "the system calls a function after a fork")]

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::PyResult;

static FORKS: AtomicU64 = AtomicU64::new(0);

extern "C" fn count_fork() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// How often the process was forked on the way from the first one to this, since [`watch`].
pub(crate) fn count() -> u64 {
    FORKS.load(Ordering::Relaxed)
}

/// Has the forks of this process counted from now on.
///
/// # Errors
/// The system has no memory for it.
pub(crate) fn watch() -> PyResult<()> {
    static CODE: OnceLock<i32> = OnceLock::new();
    let code = *CODE.get_or_init(|| {
        // SAFETY: the function stays.
        unsafe { libc::pthread_atfork(None, None, Some(count_fork)) }
    });
    if code == 0 {
        return Ok(());
    }
    Err(std::io::Error::from_raw_os_error(code).into())
}
