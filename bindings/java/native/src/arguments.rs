//! Arguments of methods as values of Rust.
//!
//! # Safety argument
//! The memory of a direct buffer of the caller may go away at any time, by the close of its arena. So this library never uses
//! it: Java copies between it and a [`Scratch`], and checks that it is there. A scratch belongs to one thread, which keeps it
//! while a method has its address, and every method gets that of its own thread.
//!
//! Concurrency: no state.

use std::ops::{Bound, Deref};
use std::time::Duration;

use jni::Env;
use jni::objects::{JByteArray, JByteBuffer};
use jni::sys::{jbyte, jlong};
use windrow::{Durability, Error, ErrorKind, Result};

use crate::errors::Outcome;
use crate::handles::method;
use crate::packed;

/// Most keys have no more bytes.
const SHORT_BYTES: usize = 256;

/// From this length on, an array for which there is no memory is an error. A shorter one ends the process then, as
/// everywhere.
const LARGE_BYTES: usize = 1 << 20;

/// The bytes of a scratch; the class `Scratch` has the same number.
const SCRATCH_BYTES: usize = 16 << 10;

/// A copy of bytes of Java.
#[expect(clippy::large_enum_variant, reason = "a short key needs no allocation")]
pub(crate) enum Bytes {
    Short([u8; SHORT_BYTES], usize),
    Long(Vec<u8>),
}

impl Bytes {
    /// The copy of an array.
    pub(crate) fn new(env: &Env<'_>, array: &JByteArray<'_>) -> Outcome<Self> {
        let length = array.len(env)?;
        Self::of_region(env, array, 0, length)
    }

    /// The copy of a part of an array.
    pub(crate) fn of_region(
        env: &Env<'_>,
        array: &JByteArray<'_>,
        start: usize,
        length: usize,
    ) -> Outcome<Self> {
        let start = i32::try_from(start).map_err(|_| out_of_range())?;
        if length <= SHORT_BYTES {
            let mut short = [0; SHORT_BYTES];
            array.get_region(env, start, signed(&mut short[..length]))?;
            return Ok(Self::Short(short, length));
        }
        let mut long = if length < LARGE_BYTES {
            vec![0; length]
        } else {
            zeroed(length)?
        };
        array.get_region(env, start, signed(&mut long))?;
        Ok(Self::Long(long))
    }

    /// The copy of an array, or nothing for null.
    pub(crate) fn optional(env: &Env<'_>, array: &JByteArray<'_>) -> Outcome<Option<Self>> {
        if array.is_null() {
            return Ok(None);
        }
        Self::new(env, array).map(Some)
    }

    pub(crate) fn into_vec(self) -> Vec<u8> {
        match self {
            Self::Short(bytes, length) => bytes[..length].to_vec(),
            Self::Long(bytes) => bytes,
        }
    }

    /// As text.
    pub(crate) fn text(&self) -> Result<&str> {
        std::str::from_utf8(self).map_err(|error| Error::invalid_argument(error.to_string()))
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Short(bytes, length) => &bytes[..*length],
            Self::Long(bytes) => bytes,
        }
    }
}

/// The address of the calling thread's own memory (the class `Scratch`), with what a method needs at its start.
#[repr(transparent)]
pub(crate) struct Scratch(jlong);

#[expect(unsafe_code, reason = "the border to Java")]
impl Scratch {
    /// The bytes from `start` on.
    pub(crate) fn bytes(&self, start: i32, length: i32) -> Result<&[u8]> {
        let (address, length) = self.part(start, length)?;
        // SAFETY: the memory has these bytes, and no other thread uses it (the safety argument).
        Ok(unsafe { std::slice::from_raw_parts(address, length) })
    }

    /// A key, and a value behind it.
    pub(crate) fn pair(&self, key: i32, value: i32) -> Result<(&[u8], &[u8])> {
        Ok((self.bytes(0, key)?, self.bytes(key, value)?))
    }

    /// Writes a value to the start if it has no more than `space` bytes. Returns its length.
    pub(crate) fn fill(self, value: &[u8], space: i32) -> Result<i32> {
        let length = i32::try_from(value.len()).map_err(|_| packed::too_long())?;
        if length <= space {
            let (address, length) = self.part(0, length)?;
            // SAFETY: the memory has the space, which is no memory of Rust, and nobody borrows it any more.
            unsafe { std::ptr::copy_nonoverlapping(value.as_ptr(), address, length) };
        }
        Ok(length)
    }

    fn part(&self, start: i32, length: i32) -> Result<(*mut u8, usize)> {
        let start = usize::try_from(start).ok();
        let length = usize::try_from(length).ok();
        let (Some(start), Some(length)) = (start, length) else {
            return Err(out_of_range());
        };
        if start > SCRATCH_BYTES || length > SCRATCH_BYTES - start {
            return Err(out_of_range());
        }
        // SAFETY: the start is within the memory.
        Ok((unsafe { (self.0 as *mut u8).add(start) }, length))
    }
}

fn zeroed(length: usize) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if bytes.try_reserve_exact(length).is_err() {
        let message = format!("there is no memory for {length} bytes");
        return Err(Error::new(ErrorKind::Io, message));
    }
    bytes.resize(length, 0);
    Ok(bytes)
}

#[expect(unsafe_code, reason = "bytes of Java have a sign")]
fn signed(bytes: &mut [u8]) -> &mut [jbyte] {
    // SAFETY: both types have one byte and all values.
    unsafe { std::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast(), bytes.len()) }
}

fn out_of_range() -> Error {
    Error::invalid_argument("the bytes are not in the array")
}

/// The keys from `start` on and before `end`; null is no bound.
pub(crate) struct Keys {
    start: Option<Bytes>,
    end: Option<Bytes>,
}

impl Keys {
    pub(crate) fn new(
        env: &Env<'_>,
        start: &JByteArray<'_>,
        end: &JByteArray<'_>,
    ) -> Outcome<Self> {
        Ok(Self {
            start: Bytes::optional(env, start)?,
            end: Bytes::optional(env, end)?,
        })
    }

    pub(crate) fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (
            self.start
                .as_deref()
                .map_or(Bound::Unbounded, Bound::Included),
            self.end
                .as_deref()
                .map_or(Bound::Unbounded, Bound::Excluded),
        )
    }
}

/// The durability with this number in the enumeration of Java, or that of the database for -1.
pub(crate) fn durability(number: i32) -> Result<Option<Durability>> {
    match number {
        -1 => Ok(None),
        0 => Ok(Some(Durability::Buffered)),
        1 => Ok(Some(Durability::Sync)),
        _ => Err(Error::invalid_argument("there is no such durability")),
    }
}

/// A time to live in milliseconds; none for -1.
pub(crate) fn time_to_live(milliseconds: i64) -> Result<Option<Duration>> {
    match milliseconds {
        -1 => Ok(None),
        _ => u64::try_from(milliseconds)
            .map(|milliseconds| Some(Duration::from_millis(milliseconds)))
            .map_err(|_| Error::invalid_argument("a time to live is not negative")),
    }
}

// The address of the memory of a new scratch.
method!(Java_io_windrow_Native_addressOf, env, scratch: JByteBuffer<'local>; jlong, {
    Ok(env.get_direct_buffer_address(&scratch)? as jlong)
});
