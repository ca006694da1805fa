//! What all functions do: no panic leaves them, and each result and error is set.

use std::mem::MaybeUninit;

use windrow::Result;
use windrow_ffi::catch;

use super::errors::{Error, WINDROW_OK};

/// Runs the work of a function, and sets `*error`.
pub(super) fn call(
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
    work: impl FnOnce() -> Result<()>,
) -> i32 {
    let failed = match catch(work) {
        Ok(Ok(())) => None,
        Ok(Err(failed)) => Some(Error::new(&failed)),
        Err(panic) => Some(Error::of_panic(&panic)),
    };
    let code = failed.as_ref().map_or(WINDROW_OK, Error::code);
    if let Some(error) = error {
        error.write(failed.map(Box::new));
    }
    code
}

/// As [`call`], for a function with a result. It is `fallback` after an error.
pub(super) fn call_for<T>(
    result: Option<&mut MaybeUninit<T>>,
    fallback: T,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
    work: impl FnOnce() -> Result<T>,
) -> i32 {
    let mut outcome = fallback;
    let code = call(error, || {
        outcome = work()?;
        Ok(())
    });
    match result {
        Some(result) => drop(result.write(outcome)),
        // A handle that nobody receives is released, and may panic.
        None => drop(catch(|| drop(outcome))),
    }
    code
}

/// Runs the work of a function that cannot fail.
pub(super) fn guard<R>(fallback: R, work: impl FnOnce() -> R) -> R {
    catch(work).unwrap_or(fallback)
}
