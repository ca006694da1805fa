//! The thread of a locking transaction, on which it waits for its locks.
//!
//! A call that waits for a lock must not have a thread of libuv: there are four, and the commit that frees the lock needs
//! one, too.
//!
//! Concurrency: the calls of a transaction run in the order of their begin. The thread ends with the transaction.

use std::sync::mpsc::{Sender, channel};
use std::thread;

use napi::bindgen_prelude::Object;
use napi::{Env, JsDeferred};
use windrow::{Error, ErrorKind, Result};

use crate::work::run;

type Job = Box<dyn FnOnce() + Send>;

/// What ends a promise, on the thread of JavaScript.
type Resolver = Box<dyn FnOnce(Env) -> napi::Result<()>>;

pub(crate) struct Waiting(Sender<Job>);

impl Waiting {
    /// # Errors
    /// `Io` if the system gives no thread.
    pub(crate) fn new() -> Result<Self> {
        let (sender, jobs) = channel::<Job>();
        let work = move || jobs.into_iter().for_each(|job| job());
        let name = "windrow-locks".to_owned();
        let started = thread::Builder::new().name(name).spawn(work);
        started.map_err(|error| {
            let message = format!("cannot start a thread for a transaction: {error}");
            Error::new(ErrorKind::Io, message)
        })?;
        Ok(Self(sender))
    }

    /// A promise for the end of `work`.
    pub(crate) fn promise<'env>(
        &self,
        env: &'env Env,
        work: impl FnOnce() -> Result<()> + Send + 'static,
    ) -> napi::Result<Object<'env>> {
        let (deferred, promise): (JsDeferred<(), Resolver>, _) = env.create_deferred()?;
        let job = move || {
            let outcome = run(work);
            deferred.resolve(Box::new(|env| {
                outcome.map_err(|failure| failure.rejection(env))
            }));
        };
        let sent = self.0.send(Box::new(job));
        // The thread ends only when nobody can send.
        sent.map_err(|error| napi::Error::from_reason(error.to_string()))?;
        Ok(promise)
    }
}
