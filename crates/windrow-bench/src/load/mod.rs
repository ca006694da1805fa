//! The loads: their names and properties.
//!
//! A [`Load`] holds no state. A new load is a variant here and a row in `rows`; the loops of its work are in `work` and in
//! the other files whose names end so.

pub(crate) mod contents;
pub(crate) mod counter_work;
pub(crate) mod errors;
pub(crate) mod job;
pub(crate) mod kinds;
pub(crate) mod machine;
mod mix_work;
pub(crate) mod mixgraph;
pub(crate) mod numbers;
pub(crate) mod outcome;
mod posting_work;
pub(crate) mod range_work;
pub(crate) mod read_work;
pub(crate) mod record_work;
pub(crate) mod records;
pub(crate) mod replay;
mod rows;
pub(crate) mod run;
mod sums;
pub(crate) mod work;

use clap::ValueEnum;

pub(crate) use self::rows::Amount;
use crate::data::ycsb::Workload;
use crate::load::kinds::{Companion, Counting, Keys, Kind, Maintenance, Posting, Work};
use crate::{Feature, MergeOperator, Transactions};

/// A load, named as in `db_bench` or after the workload of YCSB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "lower")]
pub enum Load {
    /// Writes every key once, in order, into a new store.
    FillSeq,
    /// As fillseq, in batches of 1000.
    FillBatch,
    /// Writes N random keys into a new store.
    FillRandom,
    /// As fillrandom, with a day to live for each value.
    FillExpiring,
    /// Writes every key once, in random order, into a new store.
    FillUniqueRandom,
    /// Writes a thousandth of them, each synced, into a new store.
    FillSync,
    /// Writes a thousandth of them, with values of 100,000 bytes, into a new store.
    #[value(name = "fill100K", alias = "fill100k")]
    Fill100K,
    /// Writes random keys into the existing store.
    Overwrite,
    /// Gets random keys, and writes each.
    UpdateRandom,
    /// Gets random keys, and appends to the value of each.
    AppendRandom,
    /// Deletes the keys in order.
    DeleteSeq,
    /// Deletes random keys.
    DeleteRandom,
    /// Walks the store from its first entry.
    ReadSeq,
    /// Walks the store from its last entry.
    ReadReverse,
    /// Walks the whole store once, in one thread, to fill caches.
    ReadToCache,
    /// Gets random keys.
    ReadRandom,
    /// A thousandth of readrandom.
    ReadRandomSmall,
    /// Gets keys that do not exist, between keys that may exist.
    ReadMissing,
    /// Gets random keys of the first hundredth.
    ReadHot,
    /// Gets random keys, a batch at a time.
    MultiReadRandom,
    /// Opens scans, and closes them.
    NewIterator,
    /// Seeks random keys, with `--seek-nexts` steps after each.
    SeekRandom,
    /// Seeks random keys, with 10 steps after each.
    Seek10,
    /// Seeks random keys, with 100 steps after each.
    Seek100,
    /// Seeks random keys, with 10 or `--seek-nexts` steps after each.
    FwdRange,
    /// The same backward.
    RevRange,
    /// Gets random keys, with a companion that writes at a steady rate.
    ReadWhileWriting,
    /// Gets random keys, with a companion that scans the store repeatedly.
    ReadWhileScanning,
    /// multireadrandom with a companion that writes.
    MultiReadWhileWriting,
    /// newiterator with a companion that writes.
    NewIteratorWhileWriting,
    /// seekrandom with a companion that writes.
    SeekRandomWhileWriting,
    /// fwdrange with a companion that writes.
    FwdRangeWhileWriting,
    /// revrange with a companion that writes.
    RevRangeWhileWriting,
    /// Gets and writes random keys, in each thread.
    ReadRandomWriteRandom,
    /// Gets, writes and scans with the distributions of Facebook's stores.
    MixGraph,
    /// Runs the operations of a trace file.
    Replay,
    /// Compacts everything to the last level.
    #[value(alias = "compactall")]
    Compact,
    /// Flushes memtables.
    Flush,
    /// Waits for background work.
    WaitForCompaction,
    /// Shows the counters of the engine.
    Stats,
    /// Shows the levels.
    LevelStats,
    /// 32-bit xxHash of blocks of 4 KiB.
    XxHash,
    /// 64-bit xxHash of blocks of 4 KiB.
    XxHash64,
    /// XXH3 of blocks of 4 KiB.
    Xxh3,
    /// Compresses blocks of 4 KiB with LZ4.
    Compress,
    /// Decompresses blocks of 4 KiB with LZ4.
    Uncompress,
    /// YCSB: inserts all records, in no order of their keys, into a new store.
    #[value(name = "ycsb-load")]
    YcsbLoad,
    /// YCSB A: 50 % reads, 50 % updates, zipfian.
    #[value(name = "ycsb-a")]
    YcsbA,
    /// YCSB B: 95 % reads, 5 % updates, zipfian.
    #[value(name = "ycsb-b")]
    YcsbB,
    /// YCSB C: reads, zipfian.
    #[value(name = "ycsb-c")]
    YcsbC,
    /// YCSB D: 95 % reads of the latest records, 5 % inserts.
    #[value(name = "ycsb-d")]
    YcsbD,
    /// YCSB E: 95 % scans of 1 to 100 entries from a zipfian start, 5 % inserts.
    #[value(name = "ycsb-e")]
    YcsbE,
    /// YCSB F: 50 % reads, 50 % read-modify-writes, zipfian.
    #[value(name = "ycsb-f")]
    YcsbF,
    /// Puts the number 0 at every key in order, into a new store of counters.
    FillCounters,
    /// Gets random counters.
    ReadCounters,
    /// Puts random counters, without a read.
    PutCounters,
    /// Increments random counters by the merge operator.
    MergeCounters,
    /// Increments random counters by a get and a put.
    ReadPutCounters,
    /// Increments random counters by an update in one step.
    UpdateCounters,
    /// Increments two random counters by two gets and two puts.
    Pairs,
    /// The same, each pair in an optimistic transaction.
    OptimisticPairs,
    /// The same, each pair in a locking transaction.
    LockingPairs,
    /// The same, each pair in a locking transaction that is prepared before its commit.
    PreparedPairs,
    /// Appends to random lists by the merge operator, in a new store.
    MergePostings,
    /// Appends to random lists by a get and a put, in a new store.
    AppendPostings,
    /// Gets random lists.
    ReadPostings,
    /// Loads every key in order into a new store, past the write buffer.
    BulkLoad,
    /// Writes every key in order to files outside of a new store, and adds the files in one step.
    Ingest,
    /// Compacts everything with a filter that removes half of the keys.
    CompactFiltered,
    /// Estimates the bytes of files between two random keys.
    #[value(name = "approximatesizerandom")]
    ApproximateSize,
    /// Deletes the middle half of the keys: by one call, or key by key on an engine without such a call.
    DeleteRange,
    /// Scans from keys before the middle half to the first ones behind it.
    SeekAcross,
    /// Takes the first entry of the store, and deletes it.
    PopQueue,
    /// Takes the first entry of each of four parts of the keys in turn, and deletes it.
    PopQueues,
}

impl Load {
    /// The name on the command line and in reports.
    pub fn name(self) -> &'static str {
        self.row().0
    }

    /// The work of its threads.
    pub(crate) fn work(self) -> Work {
        self.row().1
    }

    /// Whether the load starts from an empty store.
    pub fn is_fill(self) -> bool {
        let is_whole = matches!(self, Self::YcsbLoad | Self::FillCounters);
        matches!(self.row().2, Amount::Fill { .. }) || is_whole
    }

    /// The workload of a load on YCSB's records.
    pub(crate) fn workload(self) -> Option<Workload> {
        match self.work() {
            Work::Records(workload) => Some(workload),
            _ => None,
        }
    }

    /// Whether the load is one of YCSB's.
    pub fn is_ycsb(self) -> bool {
        self == Self::YcsbLoad || self.workload().is_some()
    }

    /// What its store holds.
    pub(crate) fn contents(self) -> Kind {
        match self.work() {
            Work::Count(_) => Kind::Counters,
            Work::Post(_) => Kind::Postings,
            _ if self.is_ycsb() => Kind::Records,
            _ => Kind::Entries,
        }
    }

    /// Whether the load takes a store with anything in it, and leaves it as it is.
    pub(crate) fn takes_anything(self) -> bool {
        matches!(self.work(), Work::Store(_) | Work::Machine(_))
    }

    /// What it needs an engine to have.
    pub fn feature(self) -> Option<Feature> {
        match self.work() {
            _ if self == Self::FillExpiring => Some(Feature::Expiry),
            Work::Store(Maintenance::Compact) => Some(Feature::Compaction),
            Work::Count(Counting::Pair(kind)) => kind.map(Transactions::feature),
            Work::Count(Counting::PreparedPair) => Some(Feature::TwoPhaseCommit),
            Work::Count(Counting::Update) => Some(Feature::Updates),
            Work::BulkLoad => Some(Feature::BulkLoads),
            Work::Ingest => Some(Feature::ExternalFiles),
            Work::Filter => Some(Feature::CompactionFilters),
            Work::Size => Some(Feature::ApproximateSizes),
            _ => self.merge_operator().map(|_| Feature::Merges),
        }
    }

    /// The merge operator that it needs.
    pub(crate) fn merge_operator(self) -> Option<MergeOperator> {
        match self.work() {
            Work::Count(Counting::Merge) => Some(MergeOperator::Add),
            Work::Post(Posting::Merge) => Some(MergeOperator::Append),
            _ => None,
        }
    }

    /// Its companion thread.
    pub(crate) fn companion(self) -> Option<Companion> {
        match self {
            Self::ReadWhileWriting
            | Self::MultiReadWhileWriting
            | Self::NewIteratorWhileWriting
            | Self::SeekRandomWhileWriting
            | Self::FwdRangeWhileWriting
            | Self::RevRangeWhileWriting => Some(Companion::Writer),
            Self::ReadWhileScanning => Some(Companion::Scanner),
            _ => None,
        }
    }

    /// Whether its own threads change the store.
    pub(crate) fn changes(self) -> bool {
        match self.work() {
            Work::Write(_)
            | Work::Update
            | Work::Append
            | Work::Delete(_)
            | Work::ReadOrWrite
            | Work::MixGraph
            | Work::Replay
            | Work::BulkLoad
            | Work::Ingest
            | Work::Filter
            | Work::DeleteRange
            | Work::Pop(_)
            | Work::Insert => true,
            Work::Count(counting) => counting != Counting::Read,
            Work::Post(posting) => posting != Posting::Read,
            Work::Records(workload) => workload.writes(),
            _ => false,
        }
    }

    /// Whether the load reads and writes, so its reads may depend on the order of threads.
    pub(crate) fn reads_beside_writes(self) -> bool {
        let mixes = !matches!(
            self.work(),
            Work::Write(_)
                | Work::Delete(_)
                | Work::Insert
                | Work::Replay
                | Work::BulkLoad
                | Work::Ingest
                | Work::Filter
                | Work::DeleteRange
                | Work::Pop(_)
        );
        self.changes() && mixes || self.companion() == Some(Companion::Writer)
    }

    /// Whether its own threads only read the store.
    pub(crate) fn only_reads(self) -> bool {
        !self.changes() && !matches!(self.work(), Work::Store(_) | Work::Machine(_))
    }

    /// Whether the load writes entries of `db_bench`.
    pub(crate) fn writes_indexes(self) -> bool {
        self.changes() && self.contents() == Kind::Entries
            || self.companion() == Some(Companion::Writer)
    }

    /// Whether these keys may exist from another load.
    pub(crate) fn overwrites_indexes(self) -> bool {
        self.writes_indexes() && !self.is_fill()
    }

    /// Whether the load always leaves entries that are not YCSB's records.
    pub(crate) fn puts_indexes(self) -> bool {
        let puts = matches!(
            self.work(),
            Work::Write(_) | Work::Update | Work::Append | Work::BulkLoad | Work::Ingest
        );
        puts || self.companion() == Some(Companion::Writer)
    }

    /// Whether the load writes values of other sizes than the data set's.
    pub(crate) fn writes_other_sizes(self) -> bool {
        matches!(self.work(), Work::Append | Work::MixGraph | Work::Replay)
            || self == Self::Fill100K
    }

    /// Whether the load needs a store with data.
    pub fn needs_data(self) -> bool {
        let takes_anything = matches!(
            self.work(),
            Work::Replay | Work::Store(_) | Work::Machine(_)
        );
        let starts_empty = matches!(
            self,
            Self::Overwrite | Self::UpdateRandom | Self::AppendRandom
        );
        !self.is_fill() && !takes_anything && !starts_empty
    }

    /// Whether the load works on existing data, so what the caches hold matters.
    pub(crate) fn meets_caches(self) -> bool {
        let is_apart = match self.work() {
            Work::Store(maintenance) => maintenance != Maintenance::Compact,
            Work::Machine(_) => true,
            _ => self.is_fill(),
        };
        !is_apart
    }

    /// Whether one thread runs the whole load.
    pub(crate) fn is_alone(self) -> bool {
        let is_alone = matches!(
            self.work(),
            Work::Replay
                | Work::Store(_)
                | Work::BulkLoad
                | Work::Ingest
                | Work::Filter
                | Work::DeleteRange
                | Work::Pop(_)
        );
        self == Self::ReadToCache || is_alone
    }

    /// Whether a duration bounds the load: it is a load of random operations.
    pub(crate) fn ends_by_clock(self) -> bool {
        !matches!(
            self.work(),
            Work::Write(Keys::InOrder | Keys::Shuffled)
                | Work::Delete(Keys::InOrder)
                | Work::Count(Counting::Fill)
                | Work::BulkLoad
                | Work::Ingest
                | Work::Filter
                | Work::DeleteRange
                | Work::Walk(_)
                | Work::Store(_)
                | Work::Insert
        )
    }

    /// The amount of work without a duration.
    pub(crate) fn amount(self) -> Amount {
        self.row().2
    }

    /// The number of first indexes from which the load picks its keys.
    pub(crate) fn indexes(self, num: u64) -> u64 {
        match (self.amount(), self.work()) {
            (Amount::Fill { keys_per_entry }, _) => num.div_ceil(keys_per_entry),
            (_, Work::Read(Keys::Hot)) => num.div_ceil(100),
            _ => num,
        }
    }
}
