//! Compression codecs for blocks.

/// How data blocks are compressed. The values are the codes on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum Compression {
    /// Not at all.
    #[default]
    None = 0,
    /// LZ4: cheap on both sides.
    Lz4 = 1,
    /// Zstandard: smaller, dearer; needs the feature `zstd`.
    Zstd = 2,
}

impl Compression {
    /// Whether this build has the codec.
    pub fn is_available(self) -> bool {
        self != Self::Zstd || cfg!(feature = "zstd")
    }
}
