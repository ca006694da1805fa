//! Bytes, ranges of keys, values and text.

use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;
use std::ops::Bound;
use std::ptr::null;
use std::time::{Duration, SystemTime};

use windrow::{Error as WindrowError, Expiry, PinnedValue, Result};
use windrow_ffi::handles::{check, take};
use windrow_ffi::{bytes, calls, catch, release};

/// Bytes that somebody else owns: a key, a value, an operand, a bound. `data` may be null if `length` is 0.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Bytes {
    /// The first byte.
    pub data: *const u8,
    /// The number of bytes.
    pub length: usize,
}

impl Bytes {
    /// None: a null pointer.
    pub(super) const NONE: Self = Self {
        data: null(),
        length: 0,
    };

    /// No bytes have an address, too: that of an empty slice of Rust is a small number, which Go takes for a fault.
    pub(super) fn of(bytes: &[u8]) -> Self {
        static EMPTY: u8 = 0;
        Self {
            data: if bytes.is_empty() {
                &raw const EMPTY
            } else {
                bytes.as_ptr()
            },
            length: bytes.len(),
        }
    }

    /// # Safety
    /// As [`bytes`].
    pub(super) unsafe fn get<'a>(self) -> Result<&'a [u8]> {
        // SAFETY: the caller promises the same.
        unsafe { bytes(self.data.cast(), self.length) }
    }

    /// `None` for a null pointer.
    ///
    /// # Safety
    /// As [`bytes`].
    pub(super) unsafe fn get_bound<'a>(self) -> Result<Option<&'a [u8]>> {
        // SAFETY: the caller promises the same.
        let bytes = unsafe { self.get()? };
        Ok((!self.data.is_null()).then_some(bytes))
    }
}

/// A range for Rust.
pub(super) type Bounds<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);

/// The keys from `start` on and before `end`. A bound whose `data` is null is none, so a range of zeros is all keys.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Range {
    /// The first key.
    pub start: Bytes,
    /// The key behind the last one.
    pub end: Bytes,
}

impl Range {
    /// # Safety
    /// As [`bytes`], for both bounds.
    pub(super) unsafe fn get<'a>(self) -> Result<Bounds<'a>> {
        // SAFETY: the caller promises the same.
        let start = unsafe { self.start.get_bound()? };
        // SAFETY: the same.
        let end = unsafe { self.end.get_bound()? };
        Ok((
            start.map_or(Bound::Unbounded, Bound::Included),
            end.map_or(Bound::Unbounded, Bound::Excluded),
        ))
    }
}

/// A value that a read has found. It keeps its bytes in place, without a copy if they are in a file, also after later
/// writes and after the close of the database. It keeps the file, too: free values soon. Any thread may use it.
#[derive(Debug)]
pub struct Value(pub(super) Holder);

#[derive(Debug)]
pub(super) enum Holder {
    Pinned(PinnedValue),
    Copied(Vec<u8>),
}

/// The bytes of a value, valid until it is freed; none for null.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_value_bytes(value: Option<&Value>) -> Bytes {
    check(value).map_or(Bytes::NONE, |value| match &value.0 {
        Holder::Pinned(value) => Bytes::of(value),
        Holder::Copied(value) => Bytes::of(value),
    })
}

/// Frees a value. Null is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_value_free(value: Option<Box<Value>>) {
    drop(catch(|| drop(take(value))));
}

/// Frees text that a function of this header has returned for this purpose. Null is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_text_free(text: *mut c_char) {
    // SAFETY: the caller promises text of this library, or null.
    unsafe { release(text.cast::<c_void>()) };
}

/// The entry does not exist.
pub const WINDROW_EXPIRY_ABSENT: u64 = 0;
/// The entry stays until it is removed or replaced.
pub const WINDROW_EXPIRY_NEVER: u64 = u64::MAX;

/// When an entry expires, for Rust.
pub(super) fn expiry_from(milliseconds: u64) -> Result<Expiry> {
    match milliseconds {
        WINDROW_EXPIRY_NEVER => return Ok(Expiry::Never),
        WINDROW_EXPIRY_ABSENT => None,
        _ => SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(milliseconds)),
    }
    .map(Expiry::At)
    .ok_or_else(|| WindrowError::invalid_argument("no entry expires at that time"))
}

/// When an entry expires, for C; `None` for one that does not exist.
pub(super) fn expiry_of(expiry: Option<Expiry>) -> u64 {
    match expiry {
        None => WINDROW_EXPIRY_ABSENT,
        Some(Expiry::Never) => WINDROW_EXPIRY_NEVER,
        Some(Expiry::At(time)) => {
            let since_1970 = time.duration_since(SystemTime::UNIX_EPOCH);
            let milliseconds = since_1970.map_or(0, |since_1970| since_1970.as_millis());
            // Windrow has no entries before 1970; one that expires at its start would look absent.
            u64::try_from(milliseconds).unwrap_or(u64::MAX).max(1)
        }
    }
}

/// The elements of an array of the caller.
///
/// # Safety
/// A pointer that is not null points to `count` elements, which nobody changes while the result is in use.
pub(super) unsafe fn elements<'a, T>(pointer: *const T, count: usize) -> Result<&'a [T]> {
    check_array(pointer, count)?;
    // SAFETY: the caller promises the elements.
    Ok(unsafe { calls::elements(pointer, count) })
}

/// The elements of an array that the function writes.
///
/// # Safety
/// A pointer that is not null points to space for `count` elements, which nobody else uses while the result is in use.
pub(super) unsafe fn spaces<'a, T>(
    pointer: *mut MaybeUninit<T>,
    count: usize,
) -> Result<&'a mut [MaybeUninit<T>]> {
    check_array(pointer, count)?;
    // SAFETY: the caller promises the space.
    Ok(unsafe { calls::outputs(pointer.cast::<T>(), count) })
}

fn check_array<T>(pointer: *const T, count: usize) -> Result<()> {
    if count > 0 && !calls::is_array(pointer, count) {
        let message = format!("there is no array of {count} elements");
        return Err(WindrowError::invalid_argument(message));
    }
    Ok(())
}
