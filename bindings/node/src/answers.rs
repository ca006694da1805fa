//! What work gives, as values of JavaScript.
//!
//! Concurrency: no state.

use std::time::SystemTime;

use napi::Env;
use napi::bindgen_prelude::{BufferSlice, Either3, Null};
use windrow::{Expiry, PinnedValue};

use crate::backups::Listed;
use crate::border::Text;
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
    Text(Vec<u8>),
    Bytes(Vec<u8>),
}

impl Value {
    /// Copies a value on a thread of libuv.
    pub(crate) fn new(found: Option<PinnedValue>, as_bytes: bool) -> Self {
        Self::of(found.map(|found| found.to_vec()), as_bytes)
    }

    pub(crate) fn of(found: Option<Vec<u8>>, as_bytes: bool) -> Self {
        match found {
            None => Self::None,
            Some(found) if as_bytes => Self::Bytes(found),
            Some(found) => Self::Text(found),
        }
    }
}

impl Answer for Value {
    type Value<'env> = Either3<Text, BufferSlice<'env>, ()>;

    fn value(self, env: &Env) -> napi::Result<Self::Value<'_>> {
        Ok(match self {
            Self::None => Either3::C(()),
            Self::Text(text) => Either3::A(Text(text)),
            Self::Bytes(bytes) => Either3::B(buffer(env, bytes)?),
        })
    }
}

/// When an entry expires, if there is one.
pub(crate) struct Expires(pub(crate) Option<Expiry>);

impl Answer for Expires {
    type Value<'env> = Either3<f64, Null, ()>;

    fn value(self, _env: &Env) -> napi::Result<Self::Value<'_>> {
        Ok(match self.0 {
            None => Either3::C(()),
            Some(Expiry::Never) => Either3::B(Null),
            Some(Expiry::At(time)) => {
                let since = time.duration_since(SystemTime::UNIX_EPOCH);
                Either3::A(since.unwrap_or_default().as_secs_f64() * 1000.0)
            }
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
