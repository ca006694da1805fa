//! The settings that every engine gets alike, with Windrow's defaults.

use windrow::{Error, Options, Result};
use windrow_bench::{BenchArgs, CompressionArg};

/// Bytes of a data block, in every engine.
pub(crate) const BLOCK_BYTES: usize = 4 << 10;

/// Settings in the units that the other engines take.
#[derive(Debug)]
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
            compressed: match args.compression {
                CompressionArg::None => false,
                CompressionArg::Lz4 => true,
                CompressionArg::Zstd => {
                    let message = format!("{peer} is built here without zstd");
                    return Err(Error::invalid_argument(message));
                }
            },
            sync: args.sync,
        })
    }
}
