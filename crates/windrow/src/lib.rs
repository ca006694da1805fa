//! Windrow: an embedded, ordered, persistent key-value store.
//!
//! A [`Db`] is a folder of named [`Keyspace`]s. A [`Batch`] writes to several of them at once. A
//! [`Snapshot`] and a [`Cursor`] read one state.
//!
//! ```
//! # fn main() -> windrow::Result<()> {
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path();
//! use windrow::{Db, Options};
//!
//! let db = Db::open(path, Options::default())?;
//! let planets = db.keyspace("planets")?;
//! planets.insert("earth", "one moon")?;
//! planets.insert("mars", "two moons")?;
//! assert_eq!(planets.get("mars")?.as_deref(), Some(&b"two moons"[..]));
//! for entry in planets.range("e".."f")? {
//!     let (name, moons) = entry?;
//!     assert_eq!((name, moons), (b"earth".to_vec(), b"one moon".to_vec()));
//! }
//! db.close()
//! # }
//! ```
//!
//! Each call is atomic, and so are a [`Batch`] and a [`Transaction`]. A `get` followed by an `insert` is not: use
//! [`Keyspace::update`] or [`Db::transact`].

mod api;
pub mod backup;
mod base;
mod block;
mod cache;
mod codec;
mod compact;
mod compaction_filter;
mod engine;
mod events;
mod filter;
pub mod inspect;
mod latency;
mod log;
mod manifest;
mod memtable;
mod merge_operator;
pub mod operators;
mod options;
mod policy;
mod read;
pub mod runtime;
pub mod simulation;
mod table;
mod value;
pub mod vfs;

pub use api::{
    Batch, BatchEntries, BatchEntry, BatchWrite, Change, ChangeBatch, Changes, Consumer, Cursor,
    Db, Entry, Keyspace, LoadEntry, MergedCursor, PendingPersist, PreparedTransaction, Range,
    Savepoint, Secondary, Snapshot, Transaction, TransactionCursor, TransactionRange, View,
};
pub use base::limits;
pub use base::{
    Error, ErrorKind, Expiry, FileNumber, KeyspaceId, Kind, LevelIoStats, LifetimeStats, Result,
    SegmentId, SequenceNumber,
};
pub use block::PinnedValue;
pub use codec::Compression;
pub use compaction_filter::{Candidate, CompactionFilter, Decision, FilterError};
pub use engine::{
    ConsumerStats, JobStats, KeyspaceStats, LevelStats, Loss, ManifestUse, MemoryUse, Metric,
    MetricKind, Near, PausedFile, RepairReport, RepairedKeyspace, Sample, SampleValue, Scrub,
    ScrubDamage, ScrubProgress, ScrubReport, StallStats, Stats, TableSummary, TableWriter,
    ValueFileReport, ValueFileStats, ValueFileUse, ValueReferences, ValueRelocation, VerifyReport,
};
pub use events::{Event, EventListener, EventValue};
pub use latency::{LatencyStats, Operation};
pub use merge_operator::{MergeError, MergeOperator, Operands};
pub use options::{
    BlockSource, Durability, FileCheck, FilterAllocation, Isolation, KeyspaceOptions,
    MediumInPlace, MediumOrder, Options, Preset, Recovery, Retention, SegmentLimit,
};
pub use policy::StallCause;
pub use read::explain::{ExplainedAnswer, ExplainedSource, ExplainedStep, Explanation};

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
