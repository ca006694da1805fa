//! The engines of this build: their names, and which loads and settings each refuses.

use clap::ValueEnum;
use windrow::Result;
use windrow_bench::{BenchArgs, Engine, WindrowEngine, check_loads};

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
    #[cfg(feature = "leveldb")]
    Leveldb,
    #[cfg(feature = "fjall")]
    Fjall,
    /// fjall with large values in blob files
    #[cfg(feature = "fjall")]
    FjallSeparated,
    #[cfg(feature = "redb")]
    Redb,
    #[cfg(feature = "lmdb")]
    Lmdb,
}

/// The name of Windrow with blocks in its own cache.
pub(crate) const WINDROW_BUFFERED: &str = "windrow-buffered";

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
            #[cfg(feature = "leveldb")]
            Self::Leveldb => settings::check::<leveldb::LevelDb>(args)?
                .uncompressed(self.name())
                .map(drop),
            #[cfg(feature = "fjall")]
            Self::Fjall => settings::check::<fjall::Fjall<false>>(args).map(drop),
            #[cfg(feature = "fjall")]
            Self::FjallSeparated => settings::check::<fjall::Fjall<true>>(args).map(drop),
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
            Self::Windrow => WindrowEngine::NAME,
            Self::WindrowBuffered => WINDROW_BUFFERED,
            #[cfg(feature = "rocksdb")]
            Self::Rocksdb => rocksdb::RocksDb::<rocksdb::Plain>::NAME,
            #[cfg(feature = "rocksdb")]
            Self::Blobdb => rocksdb::RocksDb::<rocksdb::Blobs>::NAME,
            #[cfg(feature = "rocksdb")]
            Self::BlobdbDirect => rocksdb::RocksDb::<rocksdb::DirectBlobs>::NAME,
            #[cfg(feature = "rocksdb")]
            Self::RocksdbDirectIo => rocksdb::RocksDb::<rocksdb::DirectIo>::NAME,
            #[cfg(feature = "leveldb")]
            Self::Leveldb => leveldb::LevelDb::NAME,
            #[cfg(feature = "fjall")]
            Self::Fjall => fjall::Fjall::<false>::NAME,
            #[cfg(feature = "fjall")]
            Self::FjallSeparated => fjall::Fjall::<true>::NAME,
            #[cfg(feature = "redb")]
            Self::Redb => redb::Redb::NAME,
            #[cfg(feature = "lmdb")]
            Self::Lmdb => lmdb::Lmdb::NAME,
        }
    }
}
