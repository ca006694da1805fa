//! What engines have beyond puts, gets, deletes and scans.

/// A feature that an engine has or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feature {
    /// A full compaction.
    Compaction,
    /// Transactions that find conflicts at their commit.
    OptimisticTransactions,
    /// Transactions that lock what they read or write.
    LockingTransactions,
    /// A read and a write of one key in one step.
    Updates,
    /// Merge operators.
    Merges,
    /// Deletes of all keys of a range by one call.
    RangeDeletes,
    /// Loads of sorted entries past the write buffer.
    BulkLoads,
    /// Values that expire.
    Expiry,
    /// Transactions that are durable before their commit.
    TwoPhaseCommit,
    /// Filters that compactions ask what becomes of an entry.
    CompactionFilters,
    /// Files that are written outside of a store and added to it in one step.
    ExternalFiles,
    /// Estimates of the bytes in a range of keys.
    ApproximateSizes,
}

impl Feature {
    /// Its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Compaction => "full compaction",
            Self::OptimisticTransactions => "optimistic transactions",
            Self::LockingTransactions => "locking transactions",
            Self::Updates => "updates in one step",
            Self::Merges => "merge operators",
            Self::RangeDeletes => "range deletes",
            Self::BulkLoads => "bulk loads",
            Self::Expiry => "values that expire",
            Self::TwoPhaseCommit => "two-phase commit",
            Self::CompactionFilters => "compaction filters",
            Self::ExternalFiles => "ingestion of external files",
            Self::ApproximateSizes => "approximate sizes",
        }
    }
}

/// A kind of transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transactions {
    /// They find conflicts at their commit.
    Optimistic,
    /// They lock what they read or write, or the whole store.
    Locking,
}

impl Transactions {
    /// The feature of an engine that has them.
    pub fn feature(self) -> Feature {
        match self {
            Self::Optimistic => Feature::OptimisticTransactions,
            Self::Locking => Feature::LockingTransactions,
        }
    }
}

/// The merge operator of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MergeOperator {
    /// Adds numbers of 8 bytes, little-endian, without a check for overflow.
    Add,
    /// Appends bytes, with [`SEPARATOR`](Self::SEPARATOR) between two operands.
    Append,
}

impl MergeOperator {
    /// The byte between two appended operands.
    pub const SEPARATOR: u8 = b',';
}
