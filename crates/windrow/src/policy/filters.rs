//! Filter bits for each level.

use crate::options::KeyspaceOptions;

/// Bits per key of the filters that a merge into `level` writes: the same for every level.
pub(crate) fn bits_per_key(options: &KeyspaceOptions, _level: usize) -> f64 {
    options.bits_per_key
}
