//! Loads that are known by a name, so that one command repeats a whole comparison.

use clap::ValueEnum;
use windrow::{Error, Result};

use crate::WINDROW_BUFFERED;

/// A named list of groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Suite {
    /// `db_bench`'s loads on values of 100 bytes, three times, YCSB A to F with the mixes SD and MD, once,
    /// `db_bench`'s loads on values of 1000 bytes, once, and the reads of 100 bytes once more with caches of
    /// 2 GiB, which hold everything. Where every value is small, engines that keep large ones apart take
    /// part only if --engines names them, and so does windrow-buffered but where the cache is that large
    Standard,
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
/// A cache that holds whatever is read of 100-byte values at the scale of 1, and no bound for the memory
/// of Windrow, which keeps its cache within one.
const CACHE_OF_EVERYTHING: [&str; 4] = ["--cache-bytes", "2G", "--memory-budget", "0"];
/// Engines that do what others do as long as no value is large enough to be kept apart.
const APART: [&str; 3] = ["blobdb", "blobdb-direct", "fjall-separated"];
/// Inserts come last, as in YCSB's own order, and the scans after them.
const YCSB: &str = "ycsb-load,ycsb-a,ycsb-b,ycsb-c,ycsb-f,ycsb-d,ycsb-e";

impl Suite {
    /// Its name on the command line.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Standard => "standard",
        }
    }

    /// Its groups, with `scale` times the data and operations that it is written down with, and with
    /// `settings`, which go before its own but where a group is about one.
    ///
    /// # Errors
    /// `InvalidArgument` for a scale that is none.
    pub(super) fn groups(self, scale: f64, settings: &[String]) -> Result<Vec<Group>> {
        if !(scale > 0.0 && scale <= 1000.0) {
            return Err(Error::invalid_argument(
                "the scale must be above 0 and at most 1000",
            ));
        }
        match self {
            Self::Standard => Ok(standard(scale, settings)),
        }
    }
}

fn standard(scale: f64, settings: &[String]) -> Vec<Group> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "positive numbers far below 2^64"
    )]
    let scaled = |count: u64| ((count as f64 * scale).round() as u64).max(1).to_string();
    let (entries, records, operations) = (scaled(ENTRIES), scaled(RECORDS), scaled(OPERATIONS));
    let group = |name: &str, loads: &'static str, own: &[&str]| {
        let words = std::iter::once(&loads).chain(own);
        let arguments = words.map(|&word| word.to_owned());
        Group {
            name: name.to_owned(),
            rounds: 1,
            without: vec![WINDROW_BUFFERED],
            loads: Some(loads),
            arguments: arguments.chain(settings.iter().cloned()).collect(),
        }
    };
    let sized = |name: &str, loads: &'static str, value_size: &str| {
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
        group(name, loads, &own)
    };
    let mixed = |mix: &str| {
        let own = ["--mix", mix, "--records", &records, "--ops", &operations];
        group(&format!("YCSB with the mix {mix}"), YCSB, &own)
    };
    let mut small = sized("values of 100 bytes", LOADS, "100");
    small.rounds = 3;
    small.without.extend(APART);
    let cached_name = "reads of 100-byte values, with caches of 2 GiB, which hold everything";
    let mut cached = sized(cached_name, CACHED_READS, "100");
    cached.without = APART.to_vec();
    let cache = CACHE_OF_EVERYTHING.map(str::to_owned);
    cached.arguments.extend(cache);
    let large = sized("values of 1000 bytes", LOADS, "1000");
    vec![small, mixed("SD"), mixed("MD"), large, cached]
}
