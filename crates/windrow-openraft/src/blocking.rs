//! Calls that may wait for a device, on threads that may wait.

use std::any::Any;

use tokio::task::spawn_blocking;
use windrow::{Error, ErrorKind, Result};

/// Runs `work` on a thread for blocking calls. It runs to its end, even if nobody awaits it any more.
///
/// # Errors
/// That of `work`; `Poisoned` if it panics, since openraft does not notice when one of its own tasks panics; `Closed` if
/// the runtime shuts down before `work` begins.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    match spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(match error.try_into_panic() {
            Ok(payload) => panicked(&*payload),
            Err(_) => Error::new(ErrorKind::Closed, "the runtime shuts down"),
        }),
    }
}

fn panicked(payload: &(dyn Any + Send)) -> Error {
    let text = match payload.downcast_ref::<String>() {
        Some(text) => text,
        None => payload.downcast_ref().copied().unwrap_or("no text"),
    };
    let message = format!("a call of the stores has panicked: {text}");
    Error::new(ErrorKind::Poisoned, message)
}
