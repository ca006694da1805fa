//! The options of an open for callers in C.

use std::sync::Arc;

use windrow_ffi::key_order::KeyOrder;
use windrow_ffi::leveldb;

/// The options of an open.
#[derive(Default)]
pub(crate) struct OpenOptions {
    /// Those that callers in other languages have, too.
    pub(crate) common: leveldb::OpenOptions,
    /// A custom comparator.
    pub(crate) order: Option<Arc<KeyOrder>>,
}
