//! RocksDB through its Rust binding, with its own defaults beside the common settings; as it is, and
//! as BlobDB: with large values in files of their own, and collection of what is dead in them.
//!
//! RocksDB 11 can write large values to their files at once ("direct write") instead of through the
//! log and the memtable; its C interface has the option, the Rust binding does not offer it.

use std::path::Path;

use rocksdb::{
    BlockBasedOptions, Cache, DB, DBCompressionType, DBRawIterator, Options, WaitForCompactOptions,
    WriteBatch, WriteOptions,
};
use windrow::{Error, ErrorKind, Result};
use windrow_bench::{Answer, BenchArgs, Counters, Engine, Entry, LevelShape, ProcessIo, Scan};

use crate::settings::{BLOCK_BYTES, Settings};

/// An open RocksDB, or BlobDB.
pub(crate) struct RocksDb<const IS_BLOB: bool> {
    db: DB,
    write_options: WriteOptions,
}

impl<const IS_BLOB: bool> RocksDb<IS_BLOB> {
    /// Opens or creates the store in `folder` with the settings of `args`.
    pub(crate) fn open(folder: &Path, args: &BenchArgs, min_blob_bytes: u64) -> Result<Self> {
        let settings = Settings::of(args, Self::NAME)?;
        let mut table = BlockBasedOptions::default();
        table.set_block_size(BLOCK_BYTES);
        table.set_block_cache(&Cache::new_lru_cache(settings.cache_bytes));
        if settings.bits_per_key > 0.0 {
            table.set_bloom_filter(settings.bits_per_key, false);
        }
        let mut options = Options::default();
        options.create_if_missing(true);
        options.set_block_based_table_factory(&table);
        options.set_write_buffer_size(settings.memtable_bytes);
        let compression = if settings.compressed {
            DBCompressionType::Lz4
        } else {
            DBCompressionType::None
        };
        options.set_compression_type(compression);
        if IS_BLOB {
            options.set_enable_blob_files(true);
            options.set_min_blob_size(min_blob_bytes);
            options.set_blob_compression_type(compression);
            options.set_enable_blob_gc(true);
        }
        if let Some(ratio) = args.policy.size_ratio {
            options.set_max_bytes_for_level_multiplier(ratio);
        }
        if let Some(bytes) = args.policy.base_bytes {
            options.set_max_bytes_for_level_base(bytes);
        }
        if let Some(bytes) = args.policy.file_bytes {
            options.set_target_file_size_base(bytes);
        }
        let mut write_options = WriteOptions::default();
        write_options.set_sync(settings.sync);
        let db = DB::open(&options, folder).map_err(failed)?;
        Ok(Self { db, write_options })
    }
}

impl<const IS_BLOB: bool> Engine for RocksDb<IS_BLOB> {
    const NAME: &'static str = if IS_BLOB { "blobdb" } else { "rocksdb" };
    type Scan<'a> = RocksScan<'a>;

    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.db
            .put_opt(key, value, &self.write_options)
            .map_err(failed)
    }

    fn put_synced(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let mut options = WriteOptions::default();
        options.set_sync(true);
        self.db.put_opt(key, value, &options).map_err(failed)
    }

    fn put_batch(&self, entries: &[Entry]) -> Result<()> {
        let mut batch = WriteBatch::default();
        for entry in entries {
            batch.put(&entry.key, &entry.value);
        }
        self.db
            .write_opt(batch, &self.write_options)
            .map_err(failed)
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        self.db.delete_opt(key, &self.write_options).map_err(failed)
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let found = self.db.get_pinned(key).map_err(failed)?;
        if let Some(found) = &found {
            value.extend_from_slice(found);
        }
        Ok(found.is_some())
    }

    fn multi_get(&self, keys: &[Vec<u8>], answers: &mut [Answer]) -> Result<()> {
        for (answer, found) in answers.iter_mut().zip(self.db.multi_get(keys)) {
            let found = found.map_err(failed)?;
            answer.is_found = found.is_some();
            answer.value = found.unwrap_or_default();
        }
        Ok(())
    }

    fn scan(&self) -> Result<RocksScan<'_>> {
        Ok(RocksScan(self.db.raw_iterator()))
    }

    fn settle(&self) -> Result<()> {
        self.db.flush().map_err(failed)?;
        self.db
            .wait_for_compact(&WaitForCompactOptions::default())
            .map_err(failed)
    }

    fn flush(&self) -> Result<()> {
        self.db.flush().map_err(failed)
    }

    fn compact(&self) -> Result<()> {
        self.db.compact_range(None::<&[u8]>, None::<&[u8]>);
        Ok(())
    }

    fn counters(&self) -> Result<Counters> {
        let io = ProcessIo::now()?;
        Ok(Counters {
            written_bytes: io.written_bytes,
            read_bytes: io.read_bytes,
            ..Counters::default()
        })
    }

    fn levels(&self) -> Result<Vec<LevelShape>> {
        let mut levels: Vec<LevelShape> = Vec::new();
        for file in self.db.live_files().map_err(failed)? {
            let number = usize::try_from(file.level).unwrap_or(0);
            while levels.len() <= number {
                levels.push(LevelShape {
                    level: levels.len() as u64,
                    ..LevelShape::default()
                });
            }
            let level = &mut levels[number];
            level.files += 1;
            level.segments += 1;
            level.bytes += file.size as u64;
            level.entries += file.num_entries;
        }
        Ok(levels)
    }

    fn close(self) -> Result<()> {
        Ok(())
    }
}

/// RocksDB's iterator as a scan.
pub(crate) struct RocksScan<'a>(DBRawIterator<'a>);

impl RocksScan<'_> {
    fn landed(&self) -> Result<bool> {
        let valid = self.0.valid();
        if !valid {
            self.0.status().map_err(failed)?;
        }
        Ok(valid)
    }
}

impl Scan for RocksScan<'_> {
    fn seek(&mut self, key: &[u8]) -> Result<bool> {
        self.0.seek(key);
        self.landed()
    }

    fn next(&mut self) -> Result<bool> {
        self.0.next();
        self.landed()
    }

    fn prev(&mut self) -> Result<bool> {
        self.0.prev();
        self.landed()
    }

    fn seek_to_last(&mut self) -> Result<bool> {
        self.0.seek_to_last();
        self.landed()
    }

    fn key(&self) -> &[u8] {
        self.0.key().unwrap_or_default()
    }

    fn value(&self) -> Result<&[u8]> {
        Ok(self.0.value().unwrap_or_default())
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "the shape that map_err wants"
)]
fn failed(error: rocksdb::Error) -> Error {
    Error::new(ErrorKind::Io, format!("RocksDB: {error}"))
}
