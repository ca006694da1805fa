//! What all functions do: no panic leaves them, and each result and error is set.

use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::ptr::null_mut;

use windrow::{Error as WindrowError, Result};
use windrow_ffi::handles::give;
use windrow_ffi::{allocate, catch};

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
        error.write(failed.map(give));
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

/// Gives text to the caller.
pub(super) fn written(
    result: Option<&mut MaybeUninit<*mut c_char>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
    write: impl FnOnce() -> Result<serde_json::Result<String>>,
) -> i32 {
    // Nobody would free text for which there is no result.
    let is_wanted = result.is_some();
    call_for(result, null_mut(), error, || {
        let text = write()?.map_err(|error| WindrowError::invalid_argument(error.to_string()))?;
        if !is_wanted {
            return Ok(null_mut());
        }
        allocate(text.as_bytes())
    })
}
