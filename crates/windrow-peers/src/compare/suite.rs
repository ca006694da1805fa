//! Loads that are known by a name, so that one command repeats a whole comparison.

use clap::ValueEnum;
use windrow::{Error, Result};

/// A named list of groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Suite {
    /// All of the others, one after the other
    Standard,
    /// `db_bench`'s loads on values of 100 bytes, three times. All are small, so engines that keep large
    /// ones apart take part only if --engines names them
    Small,
    /// YCSB A to F with the mixes SD and MD, three times
    Ycsb,
    /// `db_bench`'s loads on values of 1000 bytes, once
    Large,
    /// The reads of values of 100 bytes with caches of 2 GiB, which hold everything, once, on the engines
    /// of the small ones
    Cached,
}

/// Runs of the same loads and settings.
#[derive(Debug, Clone)]
pub(super) struct Group {
    /// The name that they have in the campaign.
    pub(super) name: String,
    /// Times that every engine runs.
    pub(super) rounds: u32,
    /// Engines that take no part unless somebody names them: in these loads they do what others do.
    pub(super) without: Vec<&'static str>,
    /// The loads, where the suite says them.
    pub(super) loads: Option<&'static str>,
    /// Loads and settings, without the engine; of a setting that is given twice the last holds.
    pub(super) arguments: Vec<String>,
}

/// What is written in full size, and how often what was written is read.
const ENTRIES: u64 = 5_000_000;
const RECORDS: u64 = 2_000_000;
const OPERATIONS: u64 = 500_000;
/// Seconds after which loads that read end, wherever they are; the writes are the same for every engine.
const SECONDS: &str = "20";

/// The reads are of what the overwrites leave: about one key in seven of those that `readrandom` asks for
/// was never written. `readtocache` walks over everything, whatever the number of reads.
const LOADS: &str = "fillseq,fillrandom,overwrite,readtocache,readrandom,readmissing,seekrandom,seek10,\
                     seek100,readwhilewriting";
/// The reads alone, of each key once, and behind two walks, of which the first fills the cache.
const CACHED_READS: &str = "filluniquerandom,readtocache,readtocache,readrandom,readmissing,seekrandom,\
                            seek10,seek100,readwhilewriting";
/// Entries per second that the writer beside readers puts, if it can.
const WRITE_RATE: &str = "50000";
/// A cache of so many GiB holds whatever is read of 100-byte values at the scale of 1.
const CACHE_OF_EVERYTHING: f64 = 2.0;
/// What a group has its name from, so that a setting cannot be about it.
const OWN_SETTINGS: [&str; 2] = ["--value-size", "--mix"];
/// Engines that do what others do as long as no value is large enough to be kept apart.
const APART: [&str; 3] = ["blobdb", "blobdb-direct", "fjall-separated"];
/// Inserts come last, as in YCSB's own order, and the scans after them.
const YCSB: &str = "ycsb-load,ycsb-a,ycsb-b,ycsb-c,ycsb-f,ycsb-d,ycsb-e";

impl Suite {
    /// Its groups, with `scale` times the data and operations that it is written down with, and with
    /// `settings`, which go before its own but where a group is about one.
    ///
    /// # Errors
    /// `InvalidArgument` for a scale that is none, and for a setting that its groups have their names from.
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
        })
    }
}

/// How large the groups are, and their common settings.
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
    fn scaled(&self, count: u64) -> String {
        let scaled = (count as f64 * self.scale).round() as u64;
        scaled.max(1).to_string()
    }

    fn group(&self, name: &str, rounds: u32, loads: &'static str, own: &[&str]) -> Group {
        let words = std::iter::once(&loads).chain(own);
        let arguments = words.map(|&word| word.to_owned());
        Group {
            name: name.to_owned(),
            rounds,
            without: Vec::new(),
            loads: Some(loads),
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
        group.without = APART.to_vec();
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
        group.without = APART.to_vec();
        // Windrow keeps its cache within the bound of its memory.
        let cache = format!("{cache}G");
        let own = ["--cache-bytes", &cache, "--memory-budget", "0"];
        group.arguments.extend(own.map(str::to_owned));
        vec![group]
    }
}
