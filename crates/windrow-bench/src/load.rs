//! The loads and what sets them apart.

use clap::ValueEnum;

/// A load, named as in `db_bench`.
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
        }
    }

    /// Whether the load starts from an empty store.
    pub fn is_fill(self) -> bool {
        matches!(self, Self::FillSeq | Self::FillRandom)
    }

    /// Whether the load makes sense only on a store that holds something.
    pub fn needs_data(self) -> bool {
        !self.is_fill() && self != Self::Overwrite
    }

    /// How many operations the load runs over `num` keys when `ops` was or was not asked for.
    ///
    /// Fills always write `num` entries. By default the other writing loads and the walk do as
    /// many, gets a tenth of that, and seeks a fiftieth.
    pub fn operations(self, num: u64, ops: Option<u64>) -> u64 {
        let default = match self {
            Self::FillSeq | Self::FillRandom => return num,
            Self::Overwrite | Self::DeleteRandom | Self::ReadSeq => num,
            Self::ReadRandom | Self::ReadMissing | Self::ReadWhileWriting => num.div_ceil(10),
            Self::SeekRandom | Self::Seek10 | Self::Seek100 => num.div_ceil(50),
        };
        ops.unwrap_or(default)
    }
}
