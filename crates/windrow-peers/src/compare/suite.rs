//! Named lists of loads. One command repeats a whole comparison.

use clap::ValueEnum;
use windrow::{Error, Result};
use windrow_bench::Mix;

use crate::engines::WINDROW_BUFFERED;
use crate::run::RunArgs;

/// A named list of groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Suite {
    /// All suites in memory, one after the other
    Standard,
    /// `db_bench`'s loads on values of 100 bytes, three times. Engines that only separate large values
    /// take part if --engines names them
    Small,
    /// YCSB A to F with the mixes SD and MD, three times
    Ycsb,
    /// `db_bench`'s loads on values of 1000 bytes, once
    Large,
    /// Reads of values of 100 bytes with caches of 2 GiB, which hold everything, once, on the engines of
    /// the suite small
    Cached,
    /// Transactions, merges, range deletes, bulk loads, values that expire, compaction filters and queues, three times.
    /// An engine without a feature leaves out its loads
    Features,
    /// `db_bench`'s loads, mixgraph and YCSB A to F on data of four times --memory, which must be among the settings,
    /// three times. Caches are dropped before each load, and a load of random operations ends after --duration
    /// [default: 30]
    Beyond,
}

/// Runs of the same loads and settings.
#[derive(Debug, Clone)]
pub(super) struct Group {
    /// Its name in the campaign.
    pub(super) name: String,
    /// Rounds of every engine.
    pub(super) rounds: u32,
    /// Engines that would repeat what another does in these loads. They take part only if named.
    pub(super) without: Vec<&'static str>,
    /// The loads of the suite.
    pub(super) loads: Option<&'static str>,
    /// Whether an engine leaves out the loads for which it lacks a feature.
    pub(super) leaves_out: bool,
    /// Settings without the engine, and loads if they are not of the suite. The last of two equal settings counts.
    pub(super) arguments: Vec<String>,
}

/// Entries and operations at the scale 1.
const ENTRIES: f64 = 5e6;
const RECORDS: f64 = 2e6;
const OPERATIONS: f64 = 5e5;
/// The longest duration of a load that reads, in seconds. All engines do the same writes.
const SECONDS: &str = "20";

/// The seconds after which a load of a queue ends.
const QUEUE_SECONDS: &str = "20";

/// The reads follow the overwrites: about one in seven keys of `readrandom` was never written. `readtocache` walks over
/// everything, for any number of reads.
const LOADS: &str = "fillseq,fillrandom,overwrite,readtocache,readrandom,readmissing,seekrandom,seek10,\
                     seek100,readwhilewriting";
/// The reads alone, of each key once, after two walks. The first walk fills the cache.
const CACHED_READS: &str = "filluniquerandom,readtocache,readtocache,readrandom,readmissing,seekrandom,\
                            seek10,seek100,readwhilewriting";
/// The most entries per second that the writer beside readers puts.
const WRITE_RATE: &str = "50000";
/// A cache of this many GiB holds all data of 100-byte values at the scale 1.
const CACHE_OF_EVERYTHING: f64 = 2.0;
/// Settings in the names of groups. The command line cannot change them.
const OWN_SETTINGS: [&str; 2] = ["--value-size", "--mix"];
/// Engines that do the same as others if no value is large enough for separation.
const SEPARATING: [&str; 3] = ["blobdb", "blobdb-direct", "fjall-separated"];
/// The engine that bypasses the page cache. It would gain nothing in memory.
const BYPASSING: &str = "rocksdb-direct-io";
/// Engines with transactions that otherwise do the same as others.
const TRANSACTIONAL: [&str; 4] = [
    "rocksdb-optimistic",
    "rocksdb-locking",
    "fjall-optimistic",
    "fjall-single-writer",
];
/// Counters of the suite features, and operations on them, at the scale 1.
const COUNTERS: f64 = 5e5;
const INCREMENTS: f64 = 2e5;
/// Counters that threads increment at the same time, at any scale.
const HOT_COUNTERS: &str = "1000";
/// Merges, each read with the ones before it.
const MERGES: f64 = 1e6;
/// Lists of postings.
const LISTS: f64 = 5e3;
/// Entries of bulk loads, and of stores of which half is deleted.
const RANGE_ENTRIES: f64 = 2e6;
const QUEUE_ENTRIES: f64 = 8e5;
/// The calls without a transaction come first, and each kind of transaction is beside them.
const TRANSACTION_LOADS: &str =
    "fillcounters,readputcounters,updatecounters,pairs,optimisticpairs,lockingpairs,preparedpairs";
/// The first gets are those of plain values.
const COUNTER_LOADS: &str =
    "fillcounters,putcounters,readcounters,readputcounters,mergecounters,readcounters";
const POSTING_LOADS: &str = "appendpostings,readpostings,mergepostings,readpostings";
/// The hot keys are beside the deleted range.
const RANGE_LOADS: &str = "fillbatch,readhot,seek10,deleterange,readhot,seekacross";
const BULK_LOADS: &str = "fillseq,readrandom,bulkload,readrandom,ingest,readrandom";
/// Beside the same loads on values that stay.
const EXPIRY_LOADS: &str = "fillrandom,readrandom,fillexpiring,readrandom,seek10";
/// The compaction without a decision is beside the one that removes half of the keys.
const FILTER_LOADS: &str = "fillbatch,approximatesizerandom,compact,compactfiltered,readrandom";
const QUEUE_LOADS: &str = "fillbatch,popqueue,fillbatch,popqueues";
/// Data over memory in the suite beyond.
const BEYOND: f64 = 4.0;
/// The fill writes everything, for any time, so all engines read the same data. mixgraph writes values of other sizes,
/// so it is the last.
const BEYOND_LOADS: &str = "filluniquerandom,overwrite,readrandom,readmissing,seekrandom,seek10,seek100,readseq,\
                            readwhilewriting,readhot,mixgraph";
/// Seconds of each load beyond memory.
const BEYOND_SECONDS: &str = "30";
/// The largest memtable and cache beyond memory: the defaults.
const BUFFER_BYTES_MAX: u64 = 64 << 20;
/// Inserts come late, as in YCSB's own order, and scans last.
const YCSB: &str = "ycsb-load,ycsb-a,ycsb-b,ycsb-c,ycsb-f,ycsb-d,ycsb-e";

impl Suite {
    /// Its groups, with `scale` times its data and operations. `settings` replace its own, except in a group that
    /// examines the setting.
    ///
    /// # Errors
    /// `InvalidArgument` for a wrong scale, and for a setting in the names of groups.
    pub(super) fn groups(self, scale: f64, settings: &[String]) -> Result<Vec<Group>> {
        if !(scale > 0.0 && scale <= 1000.0) {
            return Err(Error::invalid_argument(
                "the scale must be above 0 and at most 1000",
            ));
        }
        for own in OWN_SETTINGS {
            let is_own = |word: &String| {
                let name = word.split('=').next().unwrap_or_default();
                name.replace('_', "-") == own
            };
            if settings.iter().any(is_own) {
                return Err(Error::invalid_argument(format!(
                    "a suite has its own {own}: name the loads instead of the suite"
                )));
            }
        }
        let sizes = Sizes { scale, settings };
        Ok(match self {
            Self::Standard => [sizes.small(), sizes.ycsb(), sizes.large(), sizes.cached()].concat(),
            Self::Small => sizes.small(),
            Self::Ycsb => sizes.ycsb(),
            Self::Large => sizes.large(),
            Self::Cached => sizes.cached(),
            Self::Features => sizes.features(),
            Self::Beyond => sizes.beyond()?,
        })
    }
}

/// The sizes of the groups, and their common settings.
struct Sizes<'a> {
    scale: f64,
    settings: &'a [String],
}

impl Sizes<'_> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "positive numbers far below 2^64"
    )]
    fn scaled(&self, count: f64) -> String {
        let scaled = (count * self.scale).round() as u64;
        scaled.max(1).to_string()
    }

    fn group(&self, name: &str, rounds: u32, loads: &'static str, own: &[&str]) -> Group {
        let arguments = own.iter().map(|&word| word.to_owned());
        Group {
            name: name.to_owned(),
            rounds,
            without: [&TRANSACTIONAL[..], &[BYPASSING]].concat(),
            loads: Some(loads),
            leaves_out: false,
            arguments: arguments.chain(self.settings.iter().cloned()).collect(),
        }
    }

    /// `db_bench`'s loads on values of one size.
    fn sized(&self, name: &str, rounds: u32, loads: &'static str, value_size: &str) -> Group {
        let (entries, operations) = (self.scaled(ENTRIES), self.scaled(OPERATIONS));
        let own = [
            "--num",
            &entries,
            "--reads",
            &operations,
            "--read-duration",
            SECONDS,
            "--write-rate",
            WRITE_RATE,
            "--value-size",
            value_size,
        ];
        self.group(name, rounds, loads, &own)
    }

    fn small(&self) -> Vec<Group> {
        let mut group = self.sized("values of 100 bytes", 3, LOADS, "100");
        group.without.extend(SEPARATING);
        vec![group]
    }

    fn ycsb(&self) -> Vec<Group> {
        let (records, operations) = (self.scaled(RECORDS), self.scaled(OPERATIONS));
        let mixed = |mix| {
            let own = ["--mix", mix, "--records", &records, "--ops", &operations];
            self.group(&format!("YCSB with the mix {mix}"), 3, YCSB, &own)
        };
        ["SD", "MD"].map(mixed).to_vec()
    }

    fn large(&self) -> Vec<Group> {
        vec![self.sized("values of 1000 bytes", 1, LOADS, "1000")]
    }

    fn cached(&self) -> Vec<Group> {
        let cache = (CACHE_OF_EVERYTHING * self.scale.max(1.0)).ceil();
        let name =
            format!("reads of 100-byte values, with caches of {cache} GiB, which hold everything");
        let mut group = self.sized(&name, 1, CACHED_READS, "100");
        group.without.extend(SEPARATING);
        // Windrow bounds its cache by its memory budget.
        let cache = format!("{cache}G");
        let own = ["--cache-bytes", &cache, "--memory-budget", "0"];
        group.arguments.extend(own.map(str::to_owned));
        vec![group]
    }

    /// Loads on what engines have beyond puts, gets, deletes and scans.
    fn features(&self) -> Vec<Group> {
        let counters = self.scaled(COUNTERS);
        let (increments, merges) = (self.scaled(INCREMENTS), self.scaled(MERGES));
        let (entries, queued) = (self.scaled(RANGE_ENTRIES), self.scaled(QUEUE_ENTRIES));
        let (lists, gets) = (self.scaled(LISTS), self.scaled(OPERATIONS));
        let transactions = |name: &str, own: &[&str]| {
            let common = ["--num", &counters, "--ops", &increments, "--threads", "4"];
            let common = [&common[..], own].concat();
            let mut group = self.group(name, 3, TRANSACTION_LOADS, &common);
            group.without.retain(|name| !TRANSACTIONAL.contains(name));
            group
        };
        let counting = |name: &str, own: &[&str]| {
            let common = ["--num", HOT_COUNTERS, "--ops", &merges, "--value-size", "8"];
            self.group(name, 3, COUNTER_LOADS, &[&common[..], own].concat())
        };
        let mut groups = vec![
            transactions("transactions on all of the keys", &[]),
            transactions(
                "transactions on 1,000 hot keys",
                &["--hot-keys", HOT_COUNTERS],
            ),
            counting("1,000 counters", &[]),
            counting("1,000 counters, read before any flush", &["--unsettled"]),
            self.group(
                "lists of postings",
                3,
                POSTING_LOADS,
                &["--num", &lists, "--writes", &merges, "--reads", &gets],
            ),
            self.group(
                "half of the keys deleted",
                3,
                RANGE_LOADS,
                // A scan of an engine that passes all tombstones takes a second.
                &[
                    "--num",
                    &entries,
                    "--reads",
                    &gets,
                    "--duration",
                    QUEUE_SECONDS,
                ],
            ),
            self.group(
                "bulk loads",
                3,
                BULK_LOADS,
                &["--num", &entries, "--reads", &gets],
            ),
            self.group(
                "values that expire",
                3,
                EXPIRY_LOADS,
                &["--num", &entries, "--reads", &gets],
            ),
            self.group(
                "a compaction filter that removes half of the keys",
                3,
                FILTER_LOADS,
                &["--num", &entries, "--reads", &gets],
            ),
            self.group(
                "one queue, and four in turn",
                3,
                QUEUE_LOADS,
                // Each pop of an engine that passes all tombstones costs more than the one before.
                &["--num", &queued, "--duration", QUEUE_SECONDS],
            ),
        ];
        for group in &mut groups {
            group.leaves_out = true;
            group.without.extend(SEPARATING);
            group.without.push(WINDROW_BUFFERED);
        }
        groups
    }

    /// Loads on data that is larger than the memory of the settings.
    fn beyond(&self) -> Result<Vec<Group>> {
        let words = ["--engine", "windrow", "fillseq"].map(str::to_owned);
        let run = RunArgs::parsed(&[&words[..], self.settings].concat())?;
        let Some(memory) = run.bench.memory else {
            return Err(Error::invalid_argument(
                "the suite beyond needs --memory SIZE behind it: its data is four times as large",
            ));
        };
        let entries = |bytes: u64| self.scaled(memory as f64 * BEYOND / bytes as f64);
        let values = Mix::SD.fractions().into_iter();
        let value_bytes = values.map(|(size, percent)| size * percent).sum::<usize>() as u64 / 100;
        let (entries, records) = (entries(16 + 200), entries(24 + value_bytes));
        let buffer = (memory / 16).min(BUFFER_BYTES_MAX).to_string();
        let budget = (memory / 2).to_string();
        let common = [
            "--drop-caches",
            "--duration",
            BEYOND_SECONDS,
            "--write-rate",
            WRITE_RATE,
            "--memtable-bytes",
            &buffer,
            "--cache-bytes",
            &buffer,
            "--memory-budget",
            &budget,
        ];
        let plain = ["--num", &entries, "--value-size", "200"];
        let plain = [&plain[..], &common].concat();
        let name = "values of 200 bytes beyond memory";
        let mut plain = self.group(name, 3, BEYOND_LOADS, &plain);
        plain.without = [&TRANSACTIONAL[..], &SEPARATING].concat();
        // The bench keeps the state of each record, and bounds new ones by the operations.
        let ycsb = ["--mix", "SD", "--records", &records, "--ops", &records];
        let ycsb = [&ycsb[..], &common].concat();
        let mut ycsb = self.group("YCSB with the mix SD beyond memory", 3, YCSB, &ycsb);
        ycsb.without = TRANSACTIONAL.to_vec();
        Ok(vec![plain, ycsb])
    }
}
