//! Option sets that make small databases have everything that large ones have.

use crate::filtered::{FILTERED, MarkFilter};
use crate::history::{FIRST_KEYSPACE, KEYSPACES_MAX, keyspace_name};
use crate::model::SEPARATOR;
use crate::{SimDisk, SteppedRuntime};
use std::sync::Arc;
use std::time::Duration;
use windrow::operators::Append;
use windrow::{
    BlockSource, Compression, Db, Durability, Keyspace, KeyspaceOptions, MediumInPlace,
    MediumOrder, Options, Result, SegmentLimit,
};

/// A named set of options.
#[derive(Debug, Clone)]
pub struct Setting {
    /// Its name in reports.
    pub name: &'static str,
    options: Options,
    /// The options of the first keyspace, if they differ from the database's.
    first_keyspace: Option<KeyspaceOptions>,
}

impl Setting {
    /// All option sets. Each reaches a part of the engine that the others do not.
    pub fn all() -> Vec<Self> {
        let set = |name, change: fn(&mut Options)| {
            let mut options = tiny();
            change(&mut options);
            Self {
                name,
                options,
                first_keyspace: None,
            }
        };
        // The database's options would stop writers at this many runs.
        let mut own = tiny().keyspace;
        own.level0_runs = 64;
        own.base_bytes = 256 << 10;
        let own_options = Self {
            first_keyspace: Some(own),
            ..set("own-options", |options| options.keyspace.level0_runs = 1)
        };
        vec![
            own_options,
            set("tiny", |_| {}),
            set("buffered", |options| {
                options.keyspace.medium_from = 0;
                options.keyspace.large_from = 100;
                options.keyspace.segment_limit = SegmentLimit::Fixed(12);
                options.block_source = BlockSource::Buffered;
                options.cache_bytes = 2 << 10;
                options.keyspace.bits_per_key = 3.5;
                options.keyspace.level0_runs = 4;
                options.keyspace.size_ratio = 4.0;
            }),
            set("compressed", |options| {
                options.job_log_bytes = 16 << 10;
                options.keyspace.medium_order = MediumOrder::Written;
                options.keyspace.segment_limit = SegmentLimit::Fixed(2);
                options.keyspace.max_space_amp = f64::INFINITY;
                options.keyspace.compression = Compression::Lz4;
                options.keyspace.bits_per_key = 0.0;
                options.keyspace.block_bytes = 1 << 10;
            }),
            set("one-run", |options| {
                options.keyspace.medium_in_place = MediumInPlace::LevelBeforeLast;
                options.keyspace.segment_limit = SegmentLimit::Fixed(12);
                options.keyspace.max_space_amp = f64::INFINITY;
                options.keyspace.level0_runs = 1;
                options.keyspace.size_ratio = 10.0;
                options.keyspace.block_bytes = 128;
                options.reserve_bytes = 0;
            }),
            set("many-runs", |options| {
                options.keyspace.medium_in_place = MediumInPlace::Never;
                options.keyspace.max_space_amp = 2.0;
                options.keyspace.level0_runs = 12;
                options.keyspace.file_bytes = 64 << 10;
                options.keyspace.base_bytes = 256 << 10;
            }),
            set("synced", |options| {
                options.keyspace.medium_from = u64::MAX;
                options.keyspace.large_from = u64::MAX;
                options.durability = Durability::Sync;
                options.keyspace.segment_limit = SegmentLimit::Fixed(1);
                options.keyspace.memtable_bytes = 16 << 10;
                options.max_wal_bytes = 16 << 10;
            }),
            set("garnering", |options| {
                options.keyspace.scaling = 0.6;
                options.keyspace.segment_limit = SegmentLimit::Scaled;
                options.keyspace.max_space_amp = 2.0;
                options.compaction_bytes_per_second = 64 << 10;
            }),
            set("unlogged", |options| {
                options.log = false;
                options.keyspace.segment_limit = SegmentLimit::Fixed(12);
                options.keyspace.max_space_amp = f64::INFINITY;
            }),
            set("scrubbed", |options| {
                options.scrub_interval = Duration::from_nanos(1);
                options.job_log_bytes = 4 << 10;
                options.latency_interval = 4;
                options.open_files_max = 16;
                options.background_threads = 4;
                options.keyspace.file_bytes = 1 << 10;
                options.keyspace.segment_limit = SegmentLimit::Fixed(12);
                options.keyspace.max_space_amp = f64::INFINITY;
            }),
        ]
    }

    /// Those with a log.
    pub fn logged() -> Vec<Self> {
        let mut settings = Self::all();
        settings.retain(Self::has_log);
        settings
    }

    /// Whether databases keep a log.
    pub fn has_log(&self) -> bool {
        self.options.log
    }

    /// The set called `name`.
    pub fn named(name: &str) -> Option<Self> {
        Self::all().into_iter().find(|setting| setting.name == name)
    }

    /// Opens the keyspace `name` of `db` with its options in this set.
    pub fn keyspace(&self, db: &Db, name: &str) -> Result<Keyspace> {
        match &self.first_keyspace {
            Some(own) if name == FIRST_KEYSPACE => db.keyspace_with(name, own.clone()),
            _ => db.keyspace_with(name, self.options.keyspace.clone()),
        }
    }

    /// The options, on a simulated disk with a stepped runtime.
    pub fn on(&self, disk: &SimDisk, runtime: &SteppedRuntime) -> Options {
        self.appending_to((0..KEYSPACES_MAX).map(keyspace_name), disk, runtime)
    }

    /// [`on`](Self::on), with the merge operator of all histories for the keyspaces `names`.
    pub fn appending_to(
        &self,
        names: impl IntoIterator<Item = String>,
        disk: &SimDisk,
        runtime: &SteppedRuntime,
    ) -> Options {
        let names = names.into_iter();
        let appending = names.fold(self.options.clone(), |options, name| {
            options.with_merge_operator(name, Arc::new(Append::new([SEPARATOR])))
        });
        appending
            .with_compaction_filter(FILTERED, Arc::new(MarkFilter))
            .with_vfs(Arc::new(disk.clone()))
            .with_runtime(Arc::new(runtime.clone()))
    }
}

/// `options` without job log, status file, latencies and scrubs. Then only the database itself uses the disk and the clock, and
/// a test of crashes or faults spends its steps on it.
#[must_use]
pub fn unobserved(mut options: Options) -> Options {
    options.job_log_bytes = 0;
    options.status_interval = Duration::ZERO;
    options.full_scrub_interval = Duration::ZERO;
    options.latency_interval = 0;
    options
}

/// A few kilobytes of data fill several levels.
fn tiny() -> Options {
    let mut options = unobserved(Options::default());
    options.max_wal_bytes = 32 << 10;
    options.cache_bytes = 64 << 10;
    options.reserve_bytes = 32 << 10;
    options.keyspace.memtable_bytes = 4 << 10;
    options.keyspace.block_bytes = 256;
    options.keyspace.file_bytes = 2 << 10;
    options.keyspace.base_bytes = 4 << 10;
    options.keyspace.size_ratio = 2.0;
    options.keyspace.level0_runs = 2;
    options.keyspace.medium_from = 80;
    options.keyspace.large_from = 150;
    options.keyspace.max_space_amp = 1.15;
    options.keyspace.segment_limit = SegmentLimit::Fixed(3);
    options
}
