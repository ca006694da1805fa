//! The settings that every engine gets alike, with Windrow's defaults, as far as it has them.
//!
//! The cache is one that Windrow itself hardly uses unless its block source is buffered, as it is in
//! `windrow-buffered`: by default it reads mapped tables out of the page cache, as LMDB does with its
//! file, and LevelDB on 64-bit systems with up to 1000 tables.

use std::collections::BTreeMap;

use windrow::{Compression, Error, Options, Result};
use windrow_bench::BenchArgs;

/// Bytes of a data block, in every engine that has blocks.
#[cfg(any(feature = "fjall", feature = "leveldb", feature = "rocksdb"))]
pub(crate) const BLOCK_BYTES: usize = 4 << 10;

/// Settings in the units that the other engines take.
#[derive(Debug)]
#[cfg_attr(
    not(any(feature = "fjall", feature = "leveldb", feature = "rocksdb")),
    expect(dead_code, reason = "trees of pages have fewer of them")
)]
pub(crate) struct Settings {
    pub(crate) memtable_bytes: usize,
    pub(crate) cache_bytes: usize,
    pub(crate) bits_per_key: f64,
    pub(crate) compressed: bool,
    pub(crate) sync: bool,
}

impl Settings {
    /// The settings of `args`; peers know no compression but LZ4.
    pub(crate) fn of(args: &BenchArgs, peer: &str) -> Result<Self> {
        let options: Options = args.windrow_options()?;
        let cache_bytes = usize::try_from(options.cache_bytes).unwrap_or(usize::MAX);
        Ok(Self {
            memtable_bytes: options.keyspace.memtable_bytes,
            cache_bytes,
            bits_per_key: options.keyspace.bits_per_key,
            compressed: match options.keyspace.compression {
                Compression::None => false,
                Compression::Lz4 => true,
                Compression::Zstd => {
                    let message = format!("{peer} is built here without zstd");
                    return Err(Error::invalid_argument(message));
                }
            },
            sync: args.sync,
        })
    }

    /// Bytes of the write buffer and the cache together, for engines that have one memory for both.
    #[cfg(feature = "redb")]
    pub(crate) fn memory_bytes(&self) -> usize {
        self.memtable_bytes.saturating_add(self.cache_bytes)
    }

    /// Bits per key for filters that take a whole number.
    #[cfg(feature = "leveldb")]
    #[expect(clippy::cast_possible_truncation, reason = "filter bits are few")]
    pub(crate) fn bloom_bits(&self) -> std::ffi::c_int {
        self.bits_per_key.round() as std::ffi::c_int
    }

    /// Refuses compression for a `peer` that has none.
    #[cfg(any(feature = "leveldb", feature = "lmdb", feature = "redb"))]
    pub(crate) fn uncompressed(self, peer: &str) -> Result<Self> {
        if self.compressed {
            return Err(Error::invalid_argument(format!("{peer} has no LZ4")));
        }
        Ok(self)
    }
}

/// What an engine was told, as reports record it.
pub(crate) type Told = BTreeMap<String, String>;

/// Records `settings`; those without a value are the engine's defaults and stay away.
pub(crate) fn told(settings: &[(&str, Option<String>)]) -> Told {
    let known = |(name, value): &(&str, Option<String>)| {
        let value = value.clone()?;
        Some(((*name).to_owned(), value))
    };
    settings.iter().filter_map(known).collect()
}
