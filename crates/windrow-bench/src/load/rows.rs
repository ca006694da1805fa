//! The table of loads: name, work and number of operations of each.

use crate::data::ycsb::Workload;
use crate::load::kinds::{Counting, Direction, Keys, Machine, Maintenance, Posting, Work};
use crate::{Load, Transactions};

/// The number of operations of a load.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Amount {
    /// A fill: one operation per this number of keys.
    Fill { keys_per_entry: u64 },
    /// Writes: one operation per key.
    Writes,
    /// Deletes: one operation per key.
    Deletes,
    /// Deletes: one operation per this number of keys.
    Pops { keys_per_op: u64 },
    /// One operation per key of the middle half, which no argument changes.
    Half,
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
    pub(super) fn row(self) -> (&'static str, Work, Amount) {
        use Amount::{Always, Deletes, Fill, Fixed, Half, Pops, Reads, Unknown, Whole, Writes};
        use Work::{Count, Delete, Post, Read, Records, Seek, Store, Walk, Write};
        const ALL: Amount = Fill { keys_per_entry: 1 };
        const THOUSANDTH: Amount = Fill {
            keys_per_entry: 1000,
        };
        const GETS: Amount = Reads { keys_per_op: 10 };
        const SEEKS: Amount = Reads { keys_per_op: 50 };
        const STEPS: Amount = Reads { keys_per_op: 1 };
        const POPS: Amount = Pops { keys_per_op: 5 };
        // The amounts of db_bench: 5 GB and 1 GB.
        const HASHES: Amount = Fixed(1_280_000);
        const BLOCKS: Amount = Fixed(262_144);
        match self {
            Self::FillSeq => ("fillseq", Write(Keys::InOrder), ALL),
            Self::FillBatch => ("fillbatch", Write(Keys::InOrder), ALL),
            Self::FillRandom => ("fillrandom", Write(Keys::Random), ALL),
            Self::FillExpiring => ("fillexpiring", Write(Keys::Random), ALL),
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
            Self::FillCounters => ("fillcounters", Count(Counting::Fill), Whole),
            Self::ReadCounters => ("readcounters", Count(Counting::Read), GETS),
            Self::PutCounters => ("putcounters", Count(Counting::Put), Writes),
            Self::MergeCounters => ("mergecounters", Count(Counting::Merge), Writes),
            Self::ReadPutCounters => ("readputcounters", Count(Counting::ReadPut), Writes),
            Self::UpdateCounters => ("updatecounters", Count(Counting::Update), Writes),
            Self::Pairs => ("pairs", Count(Counting::Pair(None)), Writes),
            Self::OptimisticPairs => {
                const OPTIMISTIC: Counting = Counting::Pair(Some(Transactions::Optimistic));
                ("optimisticpairs", Count(OPTIMISTIC), Writes)
            }
            Self::LockingPairs => {
                const LOCKING: Counting = Counting::Pair(Some(Transactions::Locking));
                ("lockingpairs", Count(LOCKING), Writes)
            }
            Self::PreparedPairs => ("preparedpairs", Count(Counting::PreparedPair), Writes),
            Self::MergePostings => ("mergepostings", Post(Posting::Merge), ALL),
            Self::AppendPostings => ("appendpostings", Post(Posting::ReadPut), ALL),
            Self::ReadPostings => ("readpostings", Post(Posting::Read), GETS),
            Self::BulkLoad => ("bulkload", Work::BulkLoad, ALL),
            Self::Ingest => ("ingest", Work::Ingest, ALL),
            Self::CompactFiltered => ("compactfiltered", Work::Filter, Whole),
            Self::ApproximateSize => ("approximatesizerandom", Work::Size, GETS),
            Self::DeleteRange => ("deleterange", Work::DeleteRange, Half),
            Self::SeekAcross => ("seekacross", Work::SeekAcross, SEEKS),
            Self::PopQueue => ("popqueue", Work::Pop(1), POPS),
            Self::PopQueues => ("popqueues", Work::Pop(4), POPS),
        }
    }
}
