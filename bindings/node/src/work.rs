//! Work on a thread of libuv, with a promise for its outcome.
//!
//! What the work owns (a lease, a snapshot, keys) is made and dropped on the thread of JavaScript: threads that drop it
//! elsewhere would wait for each other's locks.
//!
//! Concurrency: the work runs on one thread, once.

use napi::bindgen_prelude::{AsyncTask, ToNapiValue, TypeName};
use napi::{Env, ScopedTask};
use windrow_ffi::catch;

use crate::errors::Failure;

/// What work gives, and what JavaScript gets.
pub(crate) trait Answer: Send + 'static {
    /// The value for JavaScript.
    type Value<'env>: ToNapiValue + TypeName;

    /// Makes the value, on the thread of JavaScript.
    fn value(self, env: &Env) -> napi::Result<Self::Value<'_>>;
}

/// Work, and what it owns.
pub(crate) struct Work<T>(Box<dyn FnMut() -> windrow::Result<T> + Send>);

impl<'env, T: Answer> ScopedTask<'env> for Work<T> {
    type Output = Result<T, Failure>;
    type JsValue = T::Value<'env>;

    fn compute(&mut self) -> napi::Result<Self::Output> {
        Ok(run(&mut self.0))
    }

    fn resolve(&mut self, env: &'env Env, outcome: Self::Output) -> napi::Result<Self::JsValue> {
        match outcome {
            Ok(answer) => answer.value(env),
            Err(failure) => Err(failure.rejection(Env::from_raw(env.raw()))),
        }
    }
}

/// A promise for the outcome of `work`.
pub(crate) fn promise<T: Answer>(
    work: impl FnMut() -> windrow::Result<T> + Send + 'static,
) -> AsyncTask<Work<T>> {
    AsyncTask::new(Work(Box::new(work)))
}

/// Runs `work` here, and stops a panic.
pub(crate) fn run<T>(work: impl FnOnce() -> windrow::Result<T>) -> Result<T, Failure> {
    match catch(work) {
        Ok(outcome) => outcome.map_err(Failure::Error),
        Err(message) => Err(Failure::Panic(message)),
    }
}
