//! Places in manifests. Pure.

/// A place in the manifests of a database: a manifest, and an offset in it. Later ones are greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct ManifestPosition {
    pub(crate) number: u64,
    pub(crate) offset: u64,
}
