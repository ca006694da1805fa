//! Requests to an object store from code that waits for them.
//!
//! One thread of the process runs the requests of all stores, and stays. So a caller may be anywhere, also in a task of a
//! runtime, which then waits; and the connections of a client outlive each store that uses it.
//!
//! Concurrency: any thread makes requests; those of several threads run at once.

use std::io;
use std::sync::LazyLock;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use object_store::{Error, Result};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

static RUNTIME: LazyLock<io::Result<Runtime>> = LazyLock::new(|| {
    Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("windrow-objects")
        .enable_all()
        .build()
});

/// A thread that makes requests and does not run so long after their limit is stuck.
const MARGIN: Duration = Duration::from_secs(1);

/// Makes a request and waits for its end, or until `limit` is over.
pub(crate) fn make<T: Send + 'static>(
    limit: Duration,
    request: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    let runtime = match &*RUNTIME {
        Ok(runtime) => runtime,
        Err(error) => return Err(failure(format!("no thread can be started: {error}"))),
    };
    let (sender, outcome) = sync_channel(1);
    runtime.spawn(async move {
        let late = format!("no answer within {} seconds", limit.as_secs_f64());
        let outcome = timeout(limit, request).await;
        drop(sender.send(outcome.unwrap_or_else(|_| Err(failure(late)))));
    });
    outcome
        .recv_timeout(limit.saturating_add(MARGIN))
        .unwrap_or_else(|error| {
            Err(failure(match error {
                RecvTimeoutError::Timeout => "the thread that makes requests is stuck".to_owned(),
                // The sender goes without a message only then.
                RecvTimeoutError::Disconnected => "the request has panicked".to_owned(),
            }))
        })
}

fn failure(message: String) -> Error {
    Error::Generic {
        store: "windrow",
        source: message.into(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::make;

    #[test]
    fn a_call_ends_though_the_thread_of_requests_is_stuck() {
        let (sender, receiver) = channel::<()>();
        let stuck = async move {
            receiver.recv().ok();
            Ok(())
        };
        let error = make(Duration::from_millis(1), stuck).unwrap_err();
        assert!(error.to_string().contains("is stuck"), "{error}");
        drop(sender);
    }

    #[test]
    fn a_request_that_panics_is_an_error() {
        let panics = async { panic!("as planned") };
        let error = make::<()>(Duration::from_secs(10), panics).unwrap_err();
        assert!(error.to_string().contains("has panicked"), "{error}");
    }
}
