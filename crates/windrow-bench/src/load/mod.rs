//! The loads: their names and properties.
//!
//! A [`Load`] holds no state. A new load is a variant and a row here; the loops of its work are in `work`,
//! `read_work` and `record_work`.

pub(crate) mod contents;
pub(crate) mod errors;
pub(crate) mod job;
pub(crate) mod kinds;
pub(crate) mod machine;
mod mix_work;
pub(crate) mod mixgraph;
pub(crate) mod outcome;
pub(crate) mod read_work;
pub(crate) mod record_work;
pub(crate) mod records;
pub(crate) mod replay;
pub(crate) mod run;
pub(crate) mod work;

use clap::ValueEnum;

use crate::data::ycsb::Workload;
use crate::load::kinds::{Companion, Direction, Keys, Machine, Maintenance, Work};

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
}

/// The number of operations of a load.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Amount {
    /// A fill: one operation per this number of keys.
    Fill { keys_per_entry: u64 },
    /// Writes: one operation per key.
    Writes,
    /// Deletes: one operation per key.
    Deletes,
    /// Reads, also with writes: one operation per this number of keys.
    Reads { keys_per_op: u64 },
    /// A fixed number, which only `ops` changes.
    Fixed(u64),
    /// A fixed number.
    Always(u64),
    /// One operation per key, which no argument changes.
    Whole,
    /// One operation per line.
    Unknown,
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

    fn row(self) -> (&'static str, Work, Amount) {
        use Amount::{Always, Deletes, Fill, Fixed, Reads, Unknown, Whole, Writes};
        use Work::{Delete, Read, Records, Seek, Store, Walk, Write};
        const ALL: Amount = Fill { keys_per_entry: 1 };
        const THOUSANDTH: Amount = Fill {
            keys_per_entry: 1000,
        };
        const GETS: Amount = Reads { keys_per_op: 10 };
        const SEEKS: Amount = Reads { keys_per_op: 50 };
        const STEPS: Amount = Reads { keys_per_op: 1 };
        // The amounts of db_bench: 5 GB and 1 GB.
        const HASHES: Amount = Fixed(1_280_000);
        const BLOCKS: Amount = Fixed(262_144);
        match self {
            Self::FillSeq => ("fillseq", Write(Keys::InOrder), ALL),
            Self::FillBatch => ("fillbatch", Write(Keys::InOrder), ALL),
            Self::FillRandom => ("fillrandom", Write(Keys::Random), ALL),
            Self::FillUniqueRandom => ("filluniquerandom", Write(Keys::Shuffled), ALL),
            Self::FillSync => ("fillsync", Write(Keys::Random), THOUSANDTH),
            Self::Fill100K => ("fill100K", Write(Keys::Random), THOUSANDTH),
            Self::Overwrite => ("overwrite", Write(Keys::Random), Writes),
            Self::UpdateRandom => ("updaterandom", Work::Update, Writes),
            Self::AppendRandom => ("appendrandom", Work::Append, Writes),
            Self::DeleteSeq => ("deleteseq", Delete(Keys::InOrder), Deletes),
            Self::DeleteRandom => ("deleterandom", Delete(Keys::Random), Deletes),
            Self::ReadSeq => ("readseq", Walk(Direction::Forward), STEPS),
            Self::ReadReverse => ("readreverse", Walk(Direction::Backward), STEPS),
            Self::ReadToCache => ("readtocache", Walk(Direction::Forward), Whole),
            Self::ReadRandom => ("readrandom", Read(Keys::Random), GETS),
            Self::ReadRandomSmall => (
                "readrandomsmall",
                Read(Keys::Random),
                Reads {
                    keys_per_op: 10_000,
                },
            ),
            Self::ReadMissing => ("readmissing", Read(Keys::Missing), GETS),
            Self::ReadHot => ("readhot", Read(Keys::Hot), GETS),
            Self::MultiReadRandom => ("multireadrandom", Work::MultiRead, GETS),
            Self::NewIterator => ("newiterator", Work::Open, SEEKS),
            Self::SeekRandom => ("seekrandom", Seek(None, None), SEEKS),
            Self::Seek10 => ("seek10", Seek(Some(10), Some(Direction::Forward)), SEEKS),
            Self::Seek100 => ("seek100", Seek(Some(100), Some(Direction::Forward)), SEEKS),
            Self::FwdRange => ("fwdrange", Seek(None, Some(Direction::Forward)), SEEKS),
            Self::RevRange => ("revrange", Seek(None, Some(Direction::Backward)), SEEKS),
            Self::ReadWhileWriting => ("readwhilewriting", Read(Keys::Random), GETS),
            Self::ReadWhileScanning => ("readwhilescanning", Read(Keys::Random), GETS),
            Self::MultiReadWhileWriting => ("multireadwhilewriting", Work::MultiRead, GETS),
            Self::NewIteratorWhileWriting => ("newiteratorwhilewriting", Work::Open, SEEKS),
            Self::SeekRandomWhileWriting => ("seekrandomwhilewriting", Seek(None, None), SEEKS),
            Self::FwdRangeWhileWriting => (
                "fwdrangewhilewriting",
                Seek(None, Some(Direction::Forward)),
                SEEKS,
            ),
            Self::RevRangeWhileWriting => (
                "revrangewhilewriting",
                Seek(None, Some(Direction::Backward)),
                SEEKS,
            ),
            Self::ReadRandomWriteRandom => ("readrandomwriterandom", Work::ReadOrWrite, GETS),
            Self::MixGraph => ("mixgraph", Work::MixGraph, GETS),
            Self::Replay => ("replay", Work::Replay, Unknown),
            Self::Compact => ("compact", Store(Maintenance::Compact), Always(1)),
            Self::Flush => ("flush", Store(Maintenance::Flush), Always(1)),
            Self::WaitForCompaction => ("waitforcompaction", Store(Maintenance::Settle), Always(1)),
            Self::Stats => ("stats", Store(Maintenance::Show), Always(0)),
            Self::LevelStats => ("levelstats", Store(Maintenance::Show), Always(0)),
            Self::XxHash => ("xxhash", Work::Machine(Machine::Hash32), HASHES),
            Self::XxHash64 => ("xxhash64", Work::Machine(Machine::Hash64), HASHES),
            Self::Xxh3 => ("xxh3", Work::Machine(Machine::Hash3), HASHES),
            Self::Compress => ("compress", Work::Machine(Machine::Compress), BLOCKS),
            Self::Uncompress => ("uncompress", Work::Machine(Machine::Decompress), BLOCKS),
            Self::YcsbLoad => ("ycsb-load", Work::Insert, Whole),
            Self::YcsbA => ("ycsb-a", Records(Workload::A), GETS),
            Self::YcsbB => ("ycsb-b", Records(Workload::B), GETS),
            Self::YcsbC => ("ycsb-c", Records(Workload::C), GETS),
            Self::YcsbD => ("ycsb-d", Records(Workload::D), GETS),
            Self::YcsbE => ("ycsb-e", Records(Workload::E), SEEKS),
            Self::YcsbF => ("ycsb-f", Records(Workload::F), GETS),
        }
    }

    /// Whether the load starts from an empty store.
    pub fn is_fill(self) -> bool {
        matches!(self.row().2, Amount::Fill { .. }) || self == Self::YcsbLoad
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
            | Work::Insert => true,
            Work::Records(workload) => workload.writes(),
            _ => false,
        }
    }

    /// Whether the load reads and writes, so its reads may depend on the order of threads.
    pub(crate) fn reads_beside_writes(self) -> bool {
        let mixes = !matches!(
            self.work(),
            Work::Write(_) | Work::Delete(_) | Work::Insert | Work::Replay
        );
        self.changes() && mixes || self.companion() == Some(Companion::Writer)
    }

    /// Whether its own threads only read the store.
    pub(crate) fn only_reads(self) -> bool {
        !self.changes() && !matches!(self.work(), Work::Store(_) | Work::Machine(_))
    }

    /// Whether the load writes keys of indexes, which are not YCSB's records.
    pub(crate) fn writes_indexes(self) -> bool {
        self.changes() && !self.is_ycsb() || self.companion() == Some(Companion::Writer)
    }

    /// Whether these keys may exist from another load.
    pub(crate) fn overwrites_indexes(self) -> bool {
        self.writes_indexes() && !self.is_fill()
    }

    /// Whether the load always leaves entries that are not YCSB's records.
    pub(crate) fn puts_indexes(self) -> bool {
        matches!(self.work(), Work::Write(_) | Work::Update | Work::Append)
            || self.companion() == Some(Companion::Writer)
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
        self == Self::ReadToCache || matches!(self.work(), Work::Replay | Work::Store(_))
    }

    /// Whether a duration bounds the load: it is a load of random operations.
    pub(crate) fn ends_by_clock(self) -> bool {
        !matches!(
            self.work(),
            Work::Write(Keys::InOrder | Keys::Shuffled)
                | Work::Delete(Keys::InOrder)
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
