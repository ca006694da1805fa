//! Calls that may wait for a device, on threads that may wait.

use std::panic;

use tokio::task::spawn_blocking;
use windrow::{Error, ErrorKind, Result};

/// Runs `work` on a thread for blocking calls. It runs to its end, even if nobody awaits it any more.
///
/// # Errors
/// That of `work`; `Closed` if the runtime shuts down before `work` begins.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    match spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) if error.is_panic() => panic::resume_unwind(error.into_panic()),
        Err(_) => {
            let message = "the runtime shuts down";
            Err(Error::new(ErrorKind::Closed, message))
        }
    }
}
