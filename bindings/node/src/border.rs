//! Bytes that come from JavaScript, and values that go there, by one call of Node-API if it is enough.
//!
//! # Safety argument
//! napi-rs calls these functions on the thread of an environment, with values of it, and a call of JavaScript waits
//! meanwhile. Node-API writes no more bytes than there is space for, and copies the bytes that it is
//! given before it returns. So no pointer is kept, and nobody else has one.
//!
//! Concurrency: no state.

#![expect(unsafe_code, reason = "the border to Node-API")]

use std::ops::Deref;
use std::ptr;

use napi::bindgen_prelude::{FromNapiValue, Null, ToNapiValue, TypeName, Uint8ArraySlice};
use napi::{Env, ValueType, check_status, sys};

/// The space for bytes that need no allocation.
const SHORT_BYTES: usize = 128;

/// Text ends up to this many bytes before the end of a space that is too short for it: one for the zero, and those of a
/// character that would not fit.
const UNUSED_BYTES_MAX: usize = 4;

/// A key or value that JavaScript passes as text or as an array of bytes, copied.
pub(crate) enum Bytes {
    Short([u8; SHORT_BYTES], usize),
    Long(Vec<u8>),
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

impl From<&[u8]> for Bytes {
    fn from(given: &[u8]) -> Self {
        let mut bytes = [0; SHORT_BYTES];
        match bytes.get_mut(..given.len()) {
            None => Self::Long(given.to_vec()),
            Some(space) => {
                space.copy_from_slice(given);
                Self::Short(bytes, given.len())
            }
        }
    }
}

impl FromNapiValue for Bytes {
    unsafe fn from_napi_value(env: sys::napi_env, value: sys::napi_value) -> napi::Result<Self> {
        let (mut bytes, mut length) = ([0; SHORT_BYTES], 0);
        let space = bytes.as_mut_ptr().cast();
        // SAFETY: there is space for this many bytes.
        let status = unsafe {
            sys::napi_get_value_string_utf8(env, value, space, SHORT_BYTES, &raw mut length)
        };
        if status == sys::Status::napi_ok {
            if length + UNUSED_BYTES_MAX < SHORT_BYTES {
                return Ok(Self::Short(bytes, length));
            }
            // SAFETY: the caller promises the same.
            let text = unsafe { String::from_napi_value(env, value)? };
            return Ok(Self::Long(text.into_bytes()));
        }
        // SAFETY: the caller promises the same.
        let array = unsafe { Uint8ArraySlice::from_napi_value(env, value)? };
        Ok(array.as_ref().into())
    }
}

/// A value of JavaScript in the scope of a call of it.
#[derive(Clone, Copy)]
pub(crate) struct Made(sys::napi_value);

/// Bytes of a value as an array of bytes, or as text.
pub(crate) fn made(env: &Env, value: &[u8], as_bytes: bool) -> napi::Result<Made> {
    // SAFETY: an environment is at hand only on its thread, during a call of JavaScript.
    let made = unsafe {
        let make = if as_bytes { buffer } else { text };
        make(env.raw(), value)
    };
    made.map(Made)
}

/// What a read has found.
pub(crate) enum Found {
    Value(Made),
    /// Becomes `undefined`.
    Absent,
    /// Becomes `null`.
    Unknown,
}

impl ToNapiValue for Found {
    unsafe fn to_napi_value(env: sys::napi_env, found: Self) -> napi::Result<sys::napi_value> {
        match found {
            Self::Value(Made(value)) => Ok(value),
            // SAFETY: the caller promises the same.
            Self::Absent => unsafe { <()>::to_napi_value(env, ()) },
            // SAFETY: the caller promises the same.
            Self::Unknown => unsafe { Null::to_napi_value(env, Null) },
        }
    }
}

/// Text, which may be no UTF-8.
pub(crate) struct Text(pub(crate) Vec<u8>);

impl TypeName for Text {
    fn type_name() -> &'static str {
        "String"
    }

    fn value_type() -> ValueType {
        ValueType::String
    }
}

impl ToNapiValue for Text {
    unsafe fn to_napi_value(env: sys::napi_env, it: Self) -> napi::Result<sys::napi_value> {
        // SAFETY: the caller promises the same.
        unsafe { text(env, &it.0) }
    }
}

/// # Safety
/// As [`ToNapiValue::to_napi_value`].
unsafe fn buffer(env: sys::napi_env, bytes: &[u8]) -> napi::Result<sys::napi_value> {
    let (mut copy, data) = (ptr::null_mut(), bytes.as_ptr().cast());
    // SAFETY: there are this many bytes, which Node-API copies.
    check_status!(unsafe {
        sys::napi_create_buffer_copy(env, bytes.len(), data, ptr::null_mut(), &raw mut copy)
    })?;
    Ok(copy)
}

/// Text that is not UTF-8 has U+FFFD where it is not.
///
/// # Safety
/// As [`ToNapiValue::to_napi_value`].
unsafe fn text(env: sys::napi_env, bytes: &[u8]) -> napi::Result<sys::napi_value> {
    let (mut text, data) = (ptr::null_mut(), bytes.as_ptr().cast());
    // The text of ASCII is the same, and needs no search for its characters.
    let create = if bytes.is_ascii() {
        sys::napi_create_string_latin1
    } else {
        sys::napi_create_string_utf8
    };
    // SAFETY: there are this many bytes, which Node-API copies.
    check_status!(unsafe { create(env, data, bytes.len().cast_signed(), &raw mut text) })?;
    Ok(text)
}
