//! LevelDB as installed on the system, with the common settings and otherwise its own defaults, except that it may
//! keep its maximum of tables open. With its default of 1000 it would reopen tables all the time in stores of more
//! than 2 GB.
//!
//! On 64-bit systems it maps up to 1000 tables, and copies no block of a mapped table into its cache. It reads other
//! tables with system calls, through its cache.

mod ffi;

use std::path::Path;
use std::time::Duration;

use windrow::Result;
use windrow_bench::{
    BenchArgs, Counters, Engine, Entry, Feature, LevelShape, Scan, wait_until_quiet,
};

use self::ffi::{Batch, Database, Iterator};
use crate::idled::Idled;
use crate::settings::{Reported, Settings, reported};

/// An open LevelDB.
pub(crate) struct LevelDb {
    database: Database,
    settings: Reported,
    idled: Idled,
}

impl LevelDb {
    /// Opens or creates the store in `folder` with the settings of `args`.
    pub(crate) fn open(folder: &Path, args: &BenchArgs) -> Result<Self> {
        let settings = Settings::of(args, Self::NAME)?.uncompressed(Self::NAME)?;
        let file_bytes = file_bytes(settings.file_bytes);
        let database = Database::open(folder, &settings, file_bytes)?;
        Ok(Self {
            database,
            settings: reported(&[
                ("block_size", Some(settings.block_bytes.to_string())),
                (
                    "bloom_bits_per_key",
                    Some(settings.bloom_bits().to_string()),
                ),
                ("cache_bytes", Some(settings.cache_bytes.to_string())),
                ("compression", Some("none".to_owned())),
                ("max_file_size", Some(file_bytes.to_string())),
                ("max_open_files", Some(ffi::OPEN_FILES_MAX.to_string())),
                ("sync", Some(settings.sync.to_string())),
                (
                    "write_buffer_size",
                    Some(settings.memtable_bytes.to_string()),
                ),
                ("version", Some(ffi::version())),
            ]),
            idled: Idled::default(),
        })
    }
}

/// Bytes of a table: the setting within LevelDB's bounds, or LevelDB's default.
fn file_bytes(asked: Option<u64>) -> usize {
    const DEFAULT: usize = 2 << 20;
    const BOUNDS: [usize; 2] = [1 << 20, 1 << 30];
    let asked = asked.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
    asked.map_or(DEFAULT, |bytes| bytes.clamp(BOUNDS[0], BOUNDS[1]))
}

impl Engine for LevelDb {
    const NAME: &'static str = "leveldb";
    const FEATURES: &'static [Feature] = &[Feature::Compaction, Feature::ApproximateSizes];
    const SETTLES_BY_QUIET: bool = true;
    type Scan<'a> = LevelScan<'a>;

    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.database.put(key, value)
    }

    fn put_synced(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.database.put_synced(key, value)
    }

    fn put_batch(&self, entries: &[Entry]) -> Result<()> {
        let mut batch = Batch::new();
        for entry in entries {
            batch.put(&entry.key, &entry.value);
        }
        self.database.write(&mut batch)
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        self.database.delete(key)
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        self.database.get(key, value)
    }

    fn scan(&self) -> Result<LevelScan<'_>> {
        Ok(LevelScan(self.database.iterator()))
    }

    fn settle(&self) -> Result<()> {
        self.database.flush();
        self.idled.set(wait_until_quiet(|| true)?);
        Ok(())
    }

    fn idled(&self) -> Duration {
        self.idled.get()
    }

    fn flush(&self) -> Result<()> {
        self.database.flush();
        Ok(())
    }

    fn compact(&self) -> Result<()> {
        self.database.compact();
        Ok(())
    }

    fn approximate_size(&self, from: &[u8], to: &[u8]) -> Result<u64> {
        Ok(self.database.approximate_size(from, to))
    }

    fn counters(&self) -> Result<Counters> {
        Counters::of_process()
    }

    fn levels(&self) -> Result<Vec<LevelShape>> {
        let stats = self.database.property(c"leveldb.stats");
        Ok(stats.as_deref().map(parse_levels).unwrap_or_default())
    }

    fn settings(&self) -> Reported {
        self.settings.clone()
    }

    fn close(self) -> Result<()> {
        Ok(())
    }
}

/// Parses LevelDB's table of levels: level, files, mebibytes, and more.
fn parse_levels(stats: &str) -> Vec<LevelShape> {
    stats
        .lines()
        .filter_map(|line| {
            let mut columns = line.split_whitespace();
            let level = columns.next()?.parse().ok()?;
            let files = columns.next()?.parse().ok()?;
            let mebibytes: u64 = columns.next()?.parse().ok()?;
            Some(LevelShape {
                level,
                files,
                segments: files,
                bytes: mebibytes << 20,
                ..LevelShape::default()
            })
        })
        .collect()
}

/// LevelDB's iterator as a scan.
pub(crate) struct LevelScan<'a>(Iterator<'a>);

impl Scan for LevelScan<'_> {
    fn seek(&mut self, key: &[u8]) -> Result<bool> {
        self.0.seek(key)
    }

    fn next(&mut self) -> Result<bool> {
        self.0.next()
    }

    fn prev(&mut self) -> Result<bool> {
        self.0.prev()
    }

    fn seek_to_last(&mut self) -> Result<bool> {
        self.0.seek_to_last()
    }

    fn key(&self) -> &[u8] {
        self.0.key()
    }

    fn value(&self) -> Result<&[u8]> {
        Ok(self.0.value())
    }
}

#[cfg(test)]
mod tests {
    use windrow_bench::Load;

    use super::*;

    #[test]
    #[expect(
        clippy::disallowed_methods,
        reason = "LevelDB keeps its files in the system's own file system"
    )]
    fn a_batch_is_one_record_of_the_log() {
        let folder = tempfile::tempdir().unwrap();
        let args = BenchArgs {
            sync: true,
            ..BenchArgs::new(vec![Load::FillBatch])
        };
        let store = LevelDb::open(folder.path(), &args).unwrap();
        let log_bytes = || -> u64 {
            let files = std::fs::read_dir(folder.path()).unwrap();
            let files = files.map(|file| file.unwrap());
            let logs = files.filter(|file| file.path().extension().is_some_and(|end| end == "log"));
            logs.map(|log| log.metadata().unwrap().len()).sum()
        };
        let entries: Vec<Entry> = (0..100_u8)
            .map(|number| Entry {
                key: vec![number],
                value: vec![number],
            })
            .collect();
        store.put_batch(&entries).unwrap();
        // A record has 7 bytes of its own, a batch 12, and each of these entries 5.
        assert_eq!(log_bytes(), 7 + 12 + 100 * 5);
        let mut value = Vec::new();
        for entry in &entries {
            assert!(store.get(&entry.key, &mut value).unwrap());
            assert_eq!(value, entry.value);
        }
        store.put_batch(&[]).unwrap();
    }

    #[test]
    fn tables_have_the_set_size_or_the_default() {
        assert_eq!(file_bytes(None), 2 << 20);
        assert_eq!(file_bytes(Some(8 << 20)), 8 << 20);
        assert_eq!(file_bytes(Some(1)), 1 << 20);
        assert_eq!(file_bytes(Some(u64::MAX)), 1 << 30);
    }

    #[test]
    fn an_iterator_past_the_end_lends_no_entry() {
        let folder = tempfile::tempdir().unwrap();
        let args = BenchArgs::new(vec![Load::FillSeq]);
        let store = LevelDb::open(folder.path(), &args).unwrap();
        store.put(b"1", b"one").unwrap();
        let mut scan = store.scan().unwrap();
        assert!(scan.seek(b"0").unwrap());
        assert_eq!(
            (scan.key(), scan.value().unwrap()),
            (&b"1"[..], &b"one"[..])
        );
        assert!(!scan.next().unwrap());
        let lends = || std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| scan.key().len()));
        assert!(lends().is_err());
    }

    #[test]
    fn levels_come_from_the_property() {
        let stats = "                               Compactions\n\
            Level  Files Size(MB) Time(sec) Read(MB) Write(MB)\n\
            --------------------------------------------------\n\
            \x20 0        2        7         0        0         7\n\
            \x20 1        5       10         1       20        18\n";
        let levels = parse_levels(stats);
        assert_eq!(levels.len(), 2);
        assert_eq!((levels[1].level, levels[1].files), (1, 5));
        assert_eq!(levels[1].bytes, 10 << 20);
    }
}
