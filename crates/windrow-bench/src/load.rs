//! The loads and what sets them apart.

use clap::ValueEnum;

use crate::ycsb::Workload;

/// A load, named as in `db_bench` or after the workload of YCSB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "lower")]
pub enum Load {
    /// Writes every key once, in order, into a new store.
    FillSeq,
    /// Writes as many keys as there are, each picked at random, into a new store.
    FillRandom,
    /// Writes random keys into the store as it is.
    Overwrite,
    /// Gets random keys.
    ReadRandom,
    /// Gets keys that do not exist but sort between those that may.
    ReadMissing,
    /// Walks the store from its first entry.
    ReadSeq,
    /// Seeks random keys.
    SeekRandom,
    /// Seeks random keys, each followed by 10 steps.
    Seek10,
    /// Seeks random keys, each followed by 100 steps.
    Seek100,
    /// Deletes random keys.
    DeleteRandom,
    /// Gets random keys beside one writer at a steady rate.
    ReadWhileWriting,
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
    /// YCSB F: 50 % reads, 50 % reads that are followed by a write, zipfian.
    #[value(name = "ycsb-f")]
    YcsbF,
}

impl Load {
    /// The name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::FillSeq => "fillseq",
            Self::FillRandom => "fillrandom",
            Self::Overwrite => "overwrite",
            Self::ReadRandom => "readrandom",
            Self::ReadMissing => "readmissing",
            Self::ReadSeq => "readseq",
            Self::SeekRandom => "seekrandom",
            Self::Seek10 => "seek10",
            Self::Seek100 => "seek100",
            Self::DeleteRandom => "deleterandom",
            Self::ReadWhileWriting => "readwhilewriting",
            Self::YcsbLoad => "ycsb-load",
            Self::YcsbA => "ycsb-a",
            Self::YcsbB => "ycsb-b",
            Self::YcsbC => "ycsb-c",
            Self::YcsbD => "ycsb-d",
            Self::YcsbE => "ycsb-e",
            Self::YcsbF => "ycsb-f",
        }
    }

    /// Whether the load starts from an empty store.
    pub fn is_fill(self) -> bool {
        matches!(self, Self::FillSeq | Self::FillRandom | Self::YcsbLoad)
    }

    /// What the load does, if it works on YCSB's records.
    pub(crate) fn workload(self) -> Option<Workload> {
        match self {
            Self::YcsbA => Some(Workload::A),
            Self::YcsbB => Some(Workload::B),
            Self::YcsbC => Some(Workload::C),
            Self::YcsbD => Some(Workload::D),
            Self::YcsbE => Some(Workload::E),
            Self::YcsbF => Some(Workload::F),
            _ => None,
        }
    }

    /// Whether the load is one of YCSB's.
    pub fn is_ycsb(self) -> bool {
        self == Self::YcsbLoad || self.workload().is_some()
    }

    /// Whether the load writes the keys of indexes, which are none of YCSB's records.
    pub(crate) fn writes_indexes(self) -> bool {
        matches!(
            self,
            Self::FillSeq
                | Self::FillRandom
                | Self::Overwrite
                | Self::DeleteRandom
                | Self::ReadWhileWriting
        )
    }

    /// Whether these keys may be there already, from another load.
    pub(crate) fn overwrites_indexes(self) -> bool {
        self.writes_indexes() && !self.is_fill()
    }

    /// Whether the load makes sense only on a store that holds something.
    pub fn needs_data(self) -> bool {
        !self.is_fill() && self != Self::Overwrite
    }

    /// How many operations the load runs over `num` keys when `ops` was or was not asked for.
    ///
    /// Fills always write `num` entries. By default the other writing loads and the walk do as
    /// many, gets and YCSB's loads a tenth of that, and seeks and scans a fiftieth.
    pub fn operations(self, num: u64, ops: Option<u64>) -> u64 {
        let default = match self {
            Self::FillSeq | Self::FillRandom | Self::YcsbLoad => return num,
            Self::Overwrite | Self::DeleteRandom | Self::ReadSeq => num,
            Self::ReadRandom
            | Self::ReadMissing
            | Self::ReadWhileWriting
            | Self::YcsbA
            | Self::YcsbB
            | Self::YcsbC
            | Self::YcsbD
            | Self::YcsbF => num.div_ceil(10),
            Self::SeekRandom | Self::Seek10 | Self::Seek100 | Self::YcsbE => num.div_ceil(50),
        };
        ops.unwrap_or(default)
    }
}
