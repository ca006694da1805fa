//! What work gives, as values of JavaScript.
//!
//! Concurrency: no state.

use napi::Env;
use napi::bindgen_prelude::{BufferSlice, Either3};
use windrow::PinnedValue;

use crate::backups::Listed;
use crate::work::Answer;

macro_rules! itself {
    ($($answer:ty),*) => {$(
        impl Answer for $answer {
            type Value<'env> = Self;

            fn value(self, _env: &Env) -> napi::Result<Self> {
                Ok(self)
            }
        }
    )*};
}
itself!(
    (),
    bool,
    f64,
    i64,
    String,
    Vec<i64>,
    Vec<String>,
    Vec<Listed>
);

/// Longer bytes are not copied once more, but freed with their buffer. Node frees such buffers only between two turns of its
/// loop.
const COPIED_BYTES_MAX: usize = 128 << 10;

/// The value of a key, if there is one.
pub(crate) enum Value {
    None,
    Text(String),
    Bytes(Vec<u8>),
}

/// The value in JavaScript.
pub(crate) type JsValue<'env> = Either3<String, BufferSlice<'env>, ()>;

impl Value {
    /// Copies a value on a thread of libuv. Text that is not UTF-8 has U+FFFD where it is not.
    pub(crate) fn new(found: Option<PinnedValue>, as_bytes: bool) -> Self {
        match found {
            None => Self::None,
            Some(found) if as_bytes => Self::Bytes(found.to_vec()),
            Some(found) => Self::Text(String::from_utf8_lossy(&found).into_owned()),
        }
    }
}

/// Copies a value to JavaScript, on its thread.
pub(crate) fn copied(
    env: &Env,
    found: Option<PinnedValue>,
    as_bytes: bool,
) -> napi::Result<JsValue<'_>> {
    Ok(match found {
        None => Either3::C(()),
        Some(found) if as_bytes => Either3::B(BufferSlice::copy_from(env, &*found)?),
        Some(found) => Either3::A(String::from_utf8_lossy(&found).into_owned()),
    })
}

impl Answer for Value {
    type Value<'env> = JsValue<'env>;

    fn value(self, env: &Env) -> napi::Result<JsValue<'_>> {
        Ok(match self {
            Self::None => Either3::C(()),
            Self::Text(text) => Either3::A(text),
            Self::Bytes(bytes) => Either3::B(buffer(env, bytes)?),
        })
    }
}

/// Bytes in the form of `packed`.
pub(crate) struct Packed(pub(crate) Vec<u8>);

impl Answer for Packed {
    type Value<'env> = BufferSlice<'env>;

    fn value(self, env: &Env) -> napi::Result<BufferSlice<'_>> {
        buffer(env, self.0)
    }
}

/// Bytes as an array of JavaScript.
pub(crate) fn buffer(env: &Env, bytes: Vec<u8>) -> napi::Result<BufferSlice<'_>> {
    if bytes.len() <= COPIED_BYTES_MAX {
        BufferSlice::copy_from(env, bytes)
    } else {
        BufferSlice::from_data(env, bytes)
    }
}
