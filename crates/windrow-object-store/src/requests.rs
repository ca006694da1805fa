//! Requests to an object store from code that waits for them.
//!
//! One thread of the process runs the requests of all stores, and stays. So a caller may be anywhere, also in a task of a
//! runtime, which then waits; and the connections of a client outlive each store that uses it.
//!
//! Concurrency: any thread makes requests; those of several threads run at once.

use std::io;
use std::sync::LazyLock;
use std::sync::mpsc::sync_channel;
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
    // The sender goes without a message only if the request panics.
    outcome
        .recv()
        .unwrap_or_else(|_| Err(failure("the request has panicked".to_owned())))
}

fn failure(message: String) -> Error {
    Error::Generic {
        store: "windrow",
        source: message.into(),
    }
}
