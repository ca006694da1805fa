//! The settings that all engines have in common, with Windrow's defaults.
//!
//! Windrow uses the cache only for compressed tables and with a buffered block source, as in `windrow-buffered`. It
//! reads other mapped tables from the page cache. LMDB does the same with its file, and LevelDB on 64-bit systems
//! with up to 1000 tables.

use std::collections::BTreeMap;

use windrow::{Compression, Error, KeyspaceOptions, Result};
use windrow_bench::{BenchArgs, Engine, check_loads};

/// Settings in the units of the other engines. For an absent setting each engine has its own default.
#[derive(Debug)]
#[cfg_attr(
    not(any(test, feature = "rocksdb")),
    expect(dead_code, reason = "only RocksDB has all of them")
)]
pub(crate) struct Settings {
    pub(crate) memtable_bytes: usize,
    pub(crate) cache_bytes: usize,
    pub(crate) bits_per_key: f64,
    pub(crate) compressed: bool,
    pub(crate) sync: bool,
    pub(crate) block_bytes: usize,
    pub(crate) size_ratio: Option<f64>,
    pub(crate) base_bytes: Option<u64>,
    pub(crate) file_bytes: Option<u64>,
    pub(crate) level0_runs: Option<usize>,
    pub(crate) background_threads: Option<usize>,
}

impl Settings {
    /// The settings of `args`. Peers have no compression except LZ4.
    pub(crate) fn of(args: &BenchArgs, peer: &str) -> Result<Self> {
        let options = args.windrow_options()?;
        let (own, default) = (options.keyspace, KeyspaceOptions::default());
        let flags = &args.policy;
        Ok(Self {
            memtable_bytes: own.memtable_bytes,
            cache_bytes: usize::try_from(options.cache_bytes).unwrap_or(usize::MAX),
            bits_per_key: own.bits_per_key,
            compressed: match own.compression {
                Compression::None => false,
                Compression::Lz4 => true,
                Compression::Zstd => {
                    let message = format!("{peer} is built here without zstd");
                    return Err(Error::invalid_argument(message));
                }
            },
            sync: args.sync,
            block_bytes: own.block_bytes,
            size_ratio: chosen(flags.size_ratio, own.size_ratio, default.size_ratio),
            base_bytes: chosen(flags.base_bytes, own.base_bytes, default.base_bytes),
            file_bytes: chosen(flags.file_bytes, own.file_bytes, default.file_bytes),
            level0_runs: chosen(flags.level0_runs, own.level0_runs, default.level0_runs),
            background_threads: args.background_threads,
        })
    }

    /// Bytes of the write buffer and the cache together, for engines with one memory for both.
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

    /// Refuses compression for a `peer` without it.
    #[cfg(any(feature = "leveldb", feature = "lmdb", feature = "redb"))]
    pub(crate) fn uncompressed(self, peer: &str) -> Result<Self> {
        if self.compressed {
            return Err(Error::invalid_argument(format!("{peer} has no LZ4")));
        }
        Ok(self)
    }
}

/// Refuses loads and settings that `E` does not have.
pub(crate) fn check<E: Engine>(args: &BenchArgs) -> Result<Settings> {
    check_loads::<E>(args)?;
    Settings::of(args, E::NAME)
}

/// The value of a flag, else of a preset or a file of options; `None` for Windrow's default.
fn chosen<T: Copy + PartialEq>(flag: Option<T>, own: T, default: T) -> Option<T> {
    flag.or((own != default).then_some(own))
}

/// The settings of an engine in reports.
pub(crate) type Reported = BTreeMap<String, String>;

/// Records `settings` except those without a value, which are the engine's defaults.
pub(crate) fn reported(settings: &[(&str, Option<String>)]) -> Reported {
    let known = |(name, value): &(&str, Option<String>)| {
        let value = value.clone()?;
        Some(((*name).to_owned(), value))
    };
    settings.iter().filter_map(known).collect()
}

#[cfg(test)]
mod tests {
    use windrow_bench::{Load, PolicyArgs, PresetArg};

    use super::*;

    fn of(policy: PolicyArgs) -> Settings {
        let args = BenchArgs {
            policy,
            ..BenchArgs::new(vec![Load::FillSeq])
        };
        Settings::of(&args, "a peer").unwrap()
    }

    /// The settings for which engines have their own defaults.
    fn of_shape(settings: &Settings) -> [Option<f64>; 4] {
        [
            settings.size_ratio,
            settings.base_bytes.map(|bytes| bytes as f64),
            settings.file_bytes.map(|bytes| bytes as f64),
            settings.level0_runs.map(|runs| runs as f64),
        ]
    }

    #[test]
    fn engines_keep_their_defaults_unless_a_setting_is_chosen() {
        let default = of(PolicyArgs::default());
        assert_eq!(of_shape(&default), [None; 4]);
        assert_eq!(
            (default.block_bytes, default.background_threads),
            (4096, None)
        );
        assert_eq!(
            (default.memtable_bytes, default.cache_bytes),
            (64 << 20, 64 << 20)
        );
        assert_eq!(
            (default.bits_per_key, default.compressed, default.sync),
            (10.0, false, false)
        );
        // A flag counts even if it repeats Windrow's default.
        let flags = of(PolicyArgs {
            size_ratio: Some(5.0),
            file_bytes: Some(2 << 20),
            ..PolicyArgs::default()
        });
        let file_bytes = f64::from(2 << 20);
        assert_eq!(of_shape(&flags), [Some(5.0), None, Some(file_bytes), None]);
        let preset = of(PolicyArgs {
            preset: PresetArg::Lsma,
            ..PolicyArgs::default()
        });
        assert_eq!(
            of_shape(&preset),
            [Some(10.0), None, Some(file_bytes), None]
        );
        assert_eq!((preset.bits_per_key, preset.compressed), (4.0, false));
    }

    #[test]
    #[expect(
        clippy::disallowed_methods,
        reason = "a file of options is in the system's own file system"
    )]
    fn a_file_of_options_reaches_every_engine() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("own.options");
        let text = "size_ratio = 4\nbase_bytes = 33554432\nfile_bytes = 1048576\nlevel0_runs = 6\n\
                    block_bytes = 16384\nmemtable_bytes = 8388608\n";
        std::fs::write(&file, text).unwrap();
        let settings = of(PolicyArgs {
            options_file: Some(file),
            ..PolicyArgs::default()
        });
        let expected = [4.0, 33_554_432.0, 1_048_576.0, 6.0].map(Some);
        assert_eq!(of_shape(&settings), expected);
        assert_eq!(
            (settings.block_bytes, settings.memtable_bytes),
            (16384, 8 << 20)
        );
    }
}
