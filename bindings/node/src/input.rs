//! Arguments: keys and values as text or bytes, and ranges of keys.
//!
//! Concurrency: no state. Bytes are copied at once, because other code of JavaScript may change them later.

use std::ops::Bound;

use napi::bindgen_prelude::{Either, Uint8ArraySlice};
use windrow_ffi::leveldb::Bounds;

/// A key or value: text, or an array of bytes.
pub(crate) type Input<'env> = Either<String, Uint8ArraySlice<'env>>;

/// The bytes of a key or value; those of text are its UTF-8.
pub(crate) fn bytes(input: Input<'_>) -> Vec<u8> {
    match input {
        Either::A(text) => text.into_bytes(),
        Either::B(bytes) => bytes.to_vec(),
    }
}

/// The keys between two bounds.
#[derive(Debug, Clone)]
pub(crate) struct Range {
    lower: Bound<Vec<u8>>,
    upper: Bound<Vec<u8>>,
}

/// A range of keys, as JavaScript passes it. A bound that is there is included if its flag says so.
#[napi_derive::napi(object, object_to_js = false)]
pub(crate) struct JsRange<'env> {
    /// The lower bound.
    pub lower: Option<Input<'env>>,
    /// Whether the lower bound is in the range.
    pub has_lower: bool,
    /// The upper bound.
    pub upper: Option<Input<'env>>,
    /// Whether the upper bound is in the range.
    pub has_upper: bool,
}

impl From<JsRange<'_>> for Range {
    fn from(range: JsRange<'_>) -> Self {
        let bound = |key: Option<Input<'_>>, is_included| match key.map(bytes) {
            None => Bound::Unbounded,
            Some(key) if is_included => Bound::Included(key),
            Some(key) => Bound::Excluded(key),
        };
        Self {
            lower: bound(range.lower, range.has_lower),
            upper: bound(range.upper, range.has_upper),
        }
    }
}

impl Range {
    pub(crate) fn bounds(&self) -> Bounds<'_> {
        (
            self.lower.as_ref().map(Vec::as_slice),
            self.upper.as_ref().map(Vec::as_slice),
        )
    }

    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        let is_above_lower = match &self.lower {
            Bound::Unbounded => true,
            Bound::Included(lower) => key >= &lower[..],
            Bound::Excluded(lower) => key > &lower[..],
        };
        let is_below_upper = match &self.upper {
            Bound::Unbounded => true,
            Bound::Included(upper) => key <= &upper[..],
            Bound::Excluded(upper) => key < &upper[..],
        };
        is_above_lower && is_below_upper
    }
}
