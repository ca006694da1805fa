//! Windrow: an embedded, ordered, persistent key-value store.

mod api;
mod base;
mod block;
mod cache;
mod codec;
mod compact;
mod engine;
mod filter;
pub mod inspect;
mod log;
mod manifest;
mod memtable;
mod options;
mod policy;
mod read;
pub mod runtime;
mod table;
pub mod vfs;

pub use api::{Batch, Cursor, Db, Entry, Keyspace, Range, Snapshot, View};
pub use base::limits;
pub use base::{Error, ErrorKind, FileNumber, KeyspaceId, Kind, Result, SegmentId, SequenceNumber};
pub use block::PinnedValue;
pub use codec::Compression;
pub use engine::{KeyspaceStats, LevelStats, Stats, VerifyReport};
pub use options::{BlockSource, Durability, KeyspaceOptions, Options, Preset};
