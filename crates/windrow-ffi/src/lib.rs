//! What the interfaces of Windrow for other languages share: the arguments of C callers as Rust values, memory that C
//! callers free, and the border that no panic crosses. In files of their own: handles, options by name, backups, what the
//! interfaces of LevelDB and RocksDB share, a transaction with its cursors, and what both kinds of cursors have in common.
//!
//! # Safety argument
//! A C caller passes bytes as a pointer and a length, and text as a pointer to bytes that end with a zero. Rust cannot
//! check them, so the functions that take them are unsafe: each says what the caller must promise, and a C header makes
//! the same promise a duty of its caller. What can be checked is checked: a null pointer and a length that no object has
//! are errors. Memory for C callers comes from `malloc`, because they release it with `free`.
//!
//! Concurrency: no state.

#![expect(unsafe_code, reason = "the border to C")]

pub mod backups;
pub mod calls;
pub mod handles;
pub mod iterator;
pub mod key_order;
pub mod leveldb;
pub mod moves;
pub mod settings;
pub mod transaction;

use std::any::Any;
use std::ffi::{CStr, OsStr, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::slice;

use windrow::{Error, ErrorKind, Result};

use handles::Handle;

/// The bytes that a C caller passes. A null pointer stands for no bytes.
///
/// # Errors
/// `InvalidArgument` for a null pointer with a length above 0, and for a length that no object has.
///
/// # Safety
/// A pointer that is not null points to `length` bytes, which nobody changes while the result is in use.
pub unsafe fn bytes<'a>(pointer: *const c_char, length: usize) -> Result<&'a [u8]> {
    if length == 0 {
        return Ok(&[]);
    }
    if pointer.is_null() {
        return Err(Error::invalid_argument(format!(
            "a null pointer was passed for {length} bytes"
        )));
    }
    if isize::try_from(length).is_err() {
        return Err(Error::invalid_argument(format!(
            "no object has {length} bytes"
        )));
    }
    // SAFETY: it is not null, and the caller promises the bytes.
    Ok(unsafe { slice::from_raw_parts(pointer.cast(), length) })
}

/// The text that a C caller passes as `what`, without the zero at its end.
///
/// # Errors
/// `InvalidArgument` for a null pointer, and for text that is not UTF-8.
///
/// # Safety
/// A pointer that is not null points to bytes with a zero at their end, which nobody changes while the result is in use.
pub unsafe fn text<'a>(pointer: *const c_char, what: &str) -> Result<&'a str> {
    // SAFETY: the caller promises the same.
    let text = unsafe { terminated(pointer, what)? };
    text.to_str()
        .map_err(|error| Error::invalid_argument(format!("the {what} is not UTF-8: {error}")))
}

/// The path of a file or folder that a C caller passes.
///
/// # Errors
/// `InvalidArgument` for a null pointer.
///
/// # Safety
/// As [`text`].
pub unsafe fn path<'a>(pointer: *const c_char) -> Result<&'a Path> {
    // SAFETY: the caller promises the same.
    let text = unsafe { terminated(pointer, "path")? };
    Ok(Path::new(OsStr::from_bytes(text.to_bytes())))
}

/// # Safety
/// As [`text`].
unsafe fn terminated<'a>(pointer: *const c_char, what: &str) -> Result<&'a CStr> {
    if pointer.is_null() {
        return Err(null(what));
    }
    // SAFETY: it is not null, and the caller promises the zero.
    Ok(unsafe { CStr::from_ptr(pointer) })
}

/// The handle that a C caller passes as `what`, if it is not null.
///
/// # Errors
/// `InvalidArgument` for a null pointer.
pub fn given<H: Handle>(handle: Option<H>, what: &str) -> Result<H> {
    not_null(handles::check(handle), what)
}

/// What a C caller passes as `what` and is no handle, if it is not null.
///
/// # Errors
/// `InvalidArgument` for a null pointer.
pub fn not_null<T>(passed: Option<T>, what: &str) -> Result<T> {
    passed.ok_or_else(|| null(what))
}

fn null(what: &str) -> Error {
    Error::invalid_argument(format!("a null pointer was passed as {what}"))
}

/// A copy of `bytes` with a zero behind them, which a C caller releases with `free`.
///
/// # Errors
/// `Io` if there is no memory.
pub fn allocate(bytes: &[u8]) -> Result<*mut c_char> {
    // SAFETY: the length is not zero.
    let copy = unsafe { libc::malloc(bytes.len() + 1) }.cast::<u8>();
    if copy.is_null() {
        let message = format!("there is no memory for {} bytes", bytes.len());
        return Err(Error::new(ErrorKind::Io, message));
    }
    // SAFETY: there is space for the bytes and one more, and it is new.
    unsafe { copy.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    // SAFETY: the last byte of the space.
    let end = unsafe { copy.add(bytes.len()) };
    // SAFETY: the same.
    unsafe { end.write(0) };
    Ok(copy.cast())
}

/// A copy of `value` that a C caller releases with `free`.
///
/// # Errors
/// `Io` if there is no memory.
pub fn allocate_value<T: Copy>(value: T) -> Result<*mut T> {
    const { assert!(size_of::<T>() > 0 && align_of::<T>() <= align_of::<libc::max_align_t>()) };
    // SAFETY: the length is not zero.
    let copy = unsafe { libc::malloc(size_of::<T>()) }.cast::<T>();
    if copy.is_null() {
        return Err(Error::new(ErrorKind::Io, "there is no memory"));
    }
    // SAFETY: there is space for the value, it is aligned for any, and it is new.
    unsafe { copy.write(value) };
    Ok(copy)
}

/// Releases what [`allocate`] or [`allocate_value`] has made; null is no error.
///
/// # Safety
/// The pointer is null, or comes from `malloc` and was not released before.
pub unsafe fn release(pointer: *mut c_void) {
    // SAFETY: the caller promises it.
    unsafe { libc::free(pointer) };
}

/// Runs `body` and stops a panic, which must not enter C: it becomes a sentence. What `body` has borrowed may be in any
/// state after a panic; Windrow's own handles poison themselves.
///
/// # Errors
/// The sentence.
pub fn catch<R>(body: impl FnOnce() -> R) -> std::result::Result<R, String> {
    catch_unwind(AssertUnwindSafe(body)).map_err(|payload| {
        let what = message(&*payload);
        // The payload may be anything, and its drop may panic.
        drop(catch_unwind(AssertUnwindSafe(|| drop(payload))));
        format!("Windrow has a bug: {what}")
    })
}

/// What a panic says.
fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned())
}

#[cfg(test)]
#[expect(
    clippy::multiple_unsafe_ops_per_block,
    reason = "all calls of a test have the same arguments"
)]
mod tests {
    use std::ptr::null;

    use windrow::ErrorKind;

    use super::{allocate, bytes, catch, not_null, path, release, text};

    #[test]
    fn bytes_are_checked_as_far_as_possible() {
        let found = c"ab\xff".as_ptr();
        // SAFETY: the text has four bytes; the other pointers are null.
        unsafe {
            assert_eq!(bytes(found, 3).unwrap(), b"ab\xff");
            assert_eq!(bytes(found, 0).unwrap(), b"");
            assert_eq!(bytes(null(), 0).unwrap(), b"");
            for length in [1, usize::MAX] {
                let error = bytes(null(), length).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
            }
            assert!(bytes(found, usize::MAX).is_err());
            assert_eq!(path(found).unwrap().as_os_str().len(), 3);
            assert!(path(null()).is_err());
            assert_eq!(text(c"name".as_ptr(), "name").unwrap(), "name");
            assert!(text(found, "name").is_err());
            assert!(text(null(), "name").is_err());
        }
        assert_eq!(not_null(Some(1), "database").unwrap(), 1);
        let error = not_null(None::<u8>, "database").unwrap_err();
        assert_eq!(error.to_string(), "a null pointer was passed as database");
    }

    #[test]
    fn copies_end_with_a_zero() {
        for length in [0, 1, 5000] {
            let copied = vec![7_u8; length];
            let copy = allocate(&copied).unwrap();
            // SAFETY: it has one byte more than `copied`, and is released once.
            unsafe {
                assert_eq!(bytes(copy, length).unwrap(), copied);
                assert_eq!(*copy.add(length), 0);
                release(copy.cast());
            }
        }
        // SAFETY: null is allowed.
        unsafe { release(std::ptr::null_mut()) };
    }

    /// A payload whose drop panics, too.
    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("the payload panics");
        }
    }

    #[test]
    fn a_panic_becomes_a_sentence() {
        assert_eq!(catch(|| 5), Ok(5));
        let number = 5;
        let error = catch(|| panic!("number {number}")).unwrap_err();
        assert_eq!(error, "Windrow has a bug: number 5");
        let error = catch(|| std::panic::panic_any(Bomb)).unwrap_err();
        assert_eq!(error, "Windrow has a bug: a panic without a message");
    }
}
