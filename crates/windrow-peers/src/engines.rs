//! The engines of this build: their names, their features, and which loads and settings each refuses.

use clap::ValueEnum;
use windrow::Result;
use windrow_bench::{BenchArgs, Engine, Feature, Load, WindrowEngine, check_loads};

#[cfg(feature = "fjall")]
use crate::fjall;
#[cfg(feature = "leveldb")]
use crate::leveldb;
#[cfg(feature = "lmdb")]
use crate::lmdb;
#[cfg(feature = "redb")]
use crate::redb;
#[cfg(feature = "rocksdb")]
use crate::rocksdb;
#[cfg(any(
    feature = "fjall",
    feature = "leveldb",
    feature = "lmdb",
    feature = "redb",
    feature = "rocksdb"
))]
use crate::settings;

/// The engines of this build.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EngineName {
    Windrow,
    /// Windrow with blocks in its own cache, with any --block-source
    WindrowBuffered,
    #[cfg(feature = "rocksdb")]
    Rocksdb,
    /// RocksDB with large values in blob files
    #[cfg(feature = "rocksdb")]
    Blobdb,
    /// BlobDB with direct write. A crash may lose large values that were not flushed
    #[cfg(feature = "rocksdb")]
    BlobdbDirect,
    /// RocksDB with direct I/O, and with a block cache of three eighths of --memory
    #[cfg(feature = "rocksdb")]
    RocksdbDirectIo,
    /// RocksDB with optimistic transactions
    #[cfg(feature = "rocksdb")]
    RocksdbOptimistic,
    /// RocksDB with locking transactions
    #[cfg(feature = "rocksdb")]
    RocksdbLocking,
    #[cfg(feature = "leveldb")]
    Leveldb,
    #[cfg(feature = "fjall")]
    Fjall,
    /// fjall with large values in blob files
    #[cfg(feature = "fjall")]
    FjallSeparated,
    /// fjall with optimistic transactions
    #[cfg(feature = "fjall")]
    FjallOptimistic,
    /// fjall with the transactions of a single writer
    #[cfg(feature = "fjall")]
    FjallSingleWriter,
    #[cfg(feature = "redb")]
    Redb,
    #[cfg(feature = "lmdb")]
    Lmdb,
}

/// The name of Windrow with blocks in its own cache.
pub(crate) const WINDROW_BUFFERED: &str = "windrow-buffered";

/// The result of a function for the type of an engine.
macro_rules! for_engine {
    ($engine:expr, $function:ident) => {
        match $engine {
            EngineName::Windrow | EngineName::WindrowBuffered => $function::<WindrowEngine>(),
            #[cfg(feature = "rocksdb")]
            EngineName::Rocksdb => $function::<rocksdb::RocksDb<rocksdb::Plain>>(),
            #[cfg(feature = "rocksdb")]
            EngineName::Blobdb => $function::<rocksdb::RocksDb<rocksdb::Blobs>>(),
            #[cfg(feature = "rocksdb")]
            EngineName::BlobdbDirect => $function::<rocksdb::RocksDb<rocksdb::DirectBlobs>>(),
            #[cfg(feature = "rocksdb")]
            EngineName::RocksdbDirectIo => $function::<rocksdb::RocksDb<rocksdb::DirectIo>>(),
            #[cfg(feature = "rocksdb")]
            EngineName::RocksdbOptimistic => $function::<rocksdb::Optimistic>(),
            #[cfg(feature = "rocksdb")]
            EngineName::RocksdbLocking => $function::<rocksdb::Locking>(),
            #[cfg(feature = "leveldb")]
            EngineName::Leveldb => $function::<leveldb::LevelDb>(),
            #[cfg(feature = "fjall")]
            EngineName::Fjall => $function::<fjall::Fjall<fjall::Plain>>(),
            #[cfg(feature = "fjall")]
            EngineName::FjallSeparated => $function::<fjall::Fjall<fjall::Separated>>(),
            #[cfg(feature = "fjall")]
            EngineName::FjallOptimistic => $function::<fjall::Fjall<fjall::Optimistic>>(),
            #[cfg(feature = "fjall")]
            EngineName::FjallSingleWriter => $function::<fjall::Fjall<fjall::SingleWriter>>(),
            #[cfg(feature = "redb")]
            EngineName::Redb => $function::<redb::Redb>(),
            #[cfg(feature = "lmdb")]
            EngineName::Lmdb => $function::<lmdb::Lmdb>(),
        }
    };
}

impl EngineName {
    /// Refuses loads and settings that no engine has, and those that this engine does not have.
    pub(crate) fn check(self, args: &BenchArgs) -> Result<()> {
        match self {
            Self::Windrow | Self::WindrowBuffered => check_loads::<WindrowEngine>(args),
            #[cfg(feature = "rocksdb")]
            Self::Rocksdb => settings::check::<rocksdb::RocksDb<rocksdb::Plain>>(args).map(drop),
            #[cfg(feature = "rocksdb")]
            Self::Blobdb => settings::check::<rocksdb::RocksDb<rocksdb::Blobs>>(args).map(drop),
            #[cfg(feature = "rocksdb")]
            Self::BlobdbDirect => {
                settings::check::<rocksdb::RocksDb<rocksdb::DirectBlobs>>(args).map(drop)
            }
            #[cfg(feature = "rocksdb")]
            Self::RocksdbDirectIo => {
                settings::check::<rocksdb::RocksDb<rocksdb::DirectIo>>(args).map(drop)
            }
            #[cfg(feature = "rocksdb")]
            Self::RocksdbOptimistic => settings::check::<rocksdb::Optimistic>(args).map(drop),
            #[cfg(feature = "rocksdb")]
            Self::RocksdbLocking => settings::check::<rocksdb::Locking>(args).map(drop),
            #[cfg(feature = "leveldb")]
            Self::Leveldb => settings::check::<leveldb::LevelDb>(args)?
                .uncompressed(self.name())
                .map(drop),
            #[cfg(feature = "fjall")]
            Self::Fjall => settings::check::<fjall::Fjall<fjall::Plain>>(args).map(drop),
            #[cfg(feature = "fjall")]
            Self::FjallSeparated => {
                settings::check::<fjall::Fjall<fjall::Separated>>(args).map(drop)
            }
            #[cfg(feature = "fjall")]
            Self::FjallOptimistic => {
                settings::check::<fjall::Fjall<fjall::Optimistic>>(args).map(drop)
            }
            #[cfg(feature = "fjall")]
            Self::FjallSingleWriter => {
                settings::check::<fjall::Fjall<fjall::SingleWriter>>(args).map(drop)
            }
            #[cfg(feature = "redb")]
            Self::Redb => settings::check::<redb::Redb>(args)?
                .uncompressed(self.name())
                .map(drop),
            #[cfg(feature = "lmdb")]
            Self::Lmdb => settings::check::<lmdb::Lmdb>(args)?
                .uncompressed(self.name())
                .map(drop),
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::WindrowBuffered => WINDROW_BUFFERED,
            _ => for_engine!(self, name_of),
        }
    }

    /// Whether it has what `load` needs.
    pub(crate) fn has(self, load: Load) -> bool {
        let features = for_engine!(self, features_of);
        load.feature()
            .is_none_or(|feature| features.contains(&feature))
    }
}

fn name_of<E: Engine>() -> &'static str {
    E::NAME
}

fn features_of<E: Engine>() -> &'static [Feature] {
    E::FEATURES
}
