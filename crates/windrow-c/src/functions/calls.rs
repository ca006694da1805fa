//! What all functions do: no panic leaves them, and each result and error is set.

use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::ptr::null_mut;

use windrow::{Error as WindrowError, Result};
use windrow_ffi::handles::{give, take};
use windrow_ffi::{allocate, catch};

use super::bytes::Bytes;
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

/// What a function gives to its caller.
pub(super) trait Outcome: Sized {
    /// Releases what no caller receives.
    fn release(self) {}
}

impl Outcome for bool {}
impl Outcome for u64 {}
impl Outcome for usize {}
impl Outcome for *mut c_char {}
impl Outcome for Bytes {}

impl<T: 'static> Outcome for Option<Box<T>> {
    fn release(self) {
        drop(take(self));
    }
}

/// As [`call`], for a function with a result. It is `fallback` after an error.
pub(super) fn call_for<T: Outcome>(
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
        // The release of a handle may panic.
        None => drop(catch(|| outcome.release())),
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

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::ffi::CStr;
    use std::mem::MaybeUninit;

    use windrow::Error as WindrowError;
    use windrow_ffi::handles::give;

    use super::super::errors::{
        Error, WINDROW_INTERNAL, WINDROW_INVALID_ARGUMENT, WINDROW_OK, windrow_error_code,
        windrow_error_free, windrow_error_message,
    };
    use super::{call, call_for, guard};

    type Written = MaybeUninit<Option<Box<Error>>>;

    /// Frees the error that a function has written. Returns its code and its message.
    fn taken(written: Written) -> (i32, String) {
        // SAFETY: the function has written it.
        let error = unsafe { written.assume_init() };
        let message = windrow_error_message(error.as_deref());
        // SAFETY: the message is there until the error is freed, and ends with a zero.
        let message = unsafe { CStr::from_ptr(message) };
        let found = (
            windrow_error_code(error.as_deref()),
            message.to_str().unwrap().to_owned(),
        );
        windrow_error_free(error);
        found
    }

    fn panicking<T>() -> windrow::Result<T> {
        panic!("the work panics");
    }

    #[test]
    fn a_panic_is_an_error_of_its_own() {
        let said = "Windrow has a bug: the work panics".to_owned();
        let mut error = Written::uninit();
        assert_eq!(call(Some(&mut error), panicking), WINDROW_INTERNAL);
        assert_eq!(taken(error), (WINDROW_INTERNAL, said.clone()));
        assert_eq!(call(None, panicking), WINDROW_INTERNAL);

        let (mut result, mut error) = (MaybeUninit::uninit(), Written::uninit());
        let code = call_for(Some(&mut result), 7_u64, Some(&mut error), panicking);
        // SAFETY: the function has written it.
        let result = unsafe { result.assume_init() };
        assert_eq!((code, result), (WINDROW_INTERNAL, 7));
        assert_eq!(taken(error), (WINDROW_INTERNAL, said));
        assert_eq!(guard(7, || panic!("the work panics")), 7);
    }

    #[test]
    fn results_and_errors_are_always_set() {
        let (mut result, mut error) = (MaybeUninit::uninit(), Written::uninit());
        let code = call_for(Some(&mut result), 0_u64, Some(&mut error), || Ok(5));
        // SAFETY: the function has written it.
        let result = unsafe { result.assume_init() };
        assert_eq!((code, result), (WINDROW_OK, 5));
        assert_eq!(taken(error), (WINDROW_OK, String::new()));

        let mut error = Written::uninit();
        let wrong = || Err(WindrowError::invalid_argument("wrong"));
        let code = call_for(None, false, Some(&mut error), wrong);
        assert_eq!(code, WINDROW_INVALID_ARGUMENT);
        assert_eq!(taken(error), (code, "wrong".to_owned()));
    }

    /// Counts its drops, and panics.
    struct Bomb(&'static Cell<u32>);

    impl Drop for Bomb {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
            panic!("the handle panics");
        }
    }

    #[test]
    fn a_handle_that_nobody_receives_is_released() {
        let drops: &'static Cell<u32> = Box::leak(Box::new(Cell::new(0)));
        // The second one has the address of the first, most likely: `give` fails if that is still a handle.
        for time in 1..=3 {
            let code = call_for(None, None, None, || Ok(Some(give(Bomb(drops)))));
            assert_eq!((code, drops.get()), (WINDROW_OK, time));
        }
    }
}
