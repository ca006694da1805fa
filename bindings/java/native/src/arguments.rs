//! Arguments of methods as values of Rust.
//!
//! # Safety argument
//! The memory of a direct buffer belongs to Java. Java keeps the buffer while a method has it, and [`region`] checks that the
//! bytes are within it. They are read and written by copies alone, because other threads may change them.
//!
//! Concurrency: no state.

use std::ops::{Bound, Deref};
use std::time::Duration;

use jni::Env;
use jni::objects::{JByteArray, JByteBuffer};
use jni::sys::jbyte;
use windrow::{Durability, Error, Result};

use crate::errors::Outcome;

/// Most keys have no more bytes.
const SHORT_BYTES: usize = 256;

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
        let mut long = vec![0; length];
        array.get_region(env, start, signed(&mut long))?;
        Ok(Self::Long(long))
    }

    /// The copy of a part of a direct buffer.
    #[expect(unsafe_code, reason = "the border to Java")]
    pub(crate) fn of_buffer(
        env: &Env<'_>,
        buffer: &JByteBuffer<'_>,
        start: i32,
        length: i32,
    ) -> Outcome<Self> {
        let (address, length) = region(env, buffer, start, length)?;
        let mut copy = if length <= SHORT_BYTES {
            Self::Short([0; SHORT_BYTES], length)
        } else {
            Self::Long(vec![0; length])
        };
        let target = match &mut copy {
            Self::Short(bytes, _) => bytes.as_mut_ptr(),
            Self::Long(bytes) => bytes.as_mut_ptr(),
        };
        // SAFETY: the buffer has these bytes, and Java keeps it during the call; the copy has as many.
        unsafe { std::ptr::copy_nonoverlapping(address, target, length) };
        Ok(copy)
    }

    /// The copy of an array, or nothing for null.
    pub(crate) fn optional(env: &Env<'_>, array: &JByteArray<'_>) -> Outcome<Option<Self>> {
        if array.is_null() {
            return Ok(None);
        }
        Self::new(env, array).map(Some)
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

/// The address and length of a part of a direct buffer.
#[expect(unsafe_code, reason = "the border to Java")]
pub(crate) fn region(
    env: &Env<'_>,
    buffer: &JByteBuffer<'_>,
    start: i32,
    length: i32,
) -> Outcome<(*mut u8, usize)> {
    let capacity = env.get_direct_buffer_capacity(buffer)?;
    let start = usize::try_from(start).map_err(|_| out_of_range())?;
    let length = usize::try_from(length).map_err(|_| out_of_range())?;
    if start > capacity || length > capacity - start {
        return Err(out_of_range().into());
    }
    let address = env.get_direct_buffer_address(buffer)?;
    // SAFETY: the start is within the buffer.
    Ok((unsafe { address.add(start) }, length))
}

/// Writes `bytes` to a part of a direct buffer that has as many.
#[expect(unsafe_code, reason = "the border to Java")]
pub(crate) fn fill(
    env: &Env<'_>,
    buffer: &JByteBuffer<'_>,
    start: i32,
    bytes: &[u8],
) -> Outcome<()> {
    let length = i32::try_from(bytes.len()).map_err(|_| out_of_range())?;
    let (address, length) = region(env, buffer, start, length)?;
    // SAFETY: the buffer has this part, and Java keeps it during the call. It is no memory of Rust.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), address, length) };
    Ok(())
}

#[expect(unsafe_code, reason = "bytes of Java have a sign")]
fn signed(bytes: &mut [u8]) -> &mut [jbyte] {
    // SAFETY: both types have one byte and all values.
    unsafe { std::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast(), bytes.len()) }
}

fn out_of_range() -> Error {
    Error::invalid_argument("the bytes are not in the array or buffer")
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
