//! Layer 6: the public interface: documentation and argument checks, nothing more.

mod backup;
mod batch;
mod bounds;
mod bulk_load;
mod changes;
mod cursor;
mod db;
mod ends;
mod keyspace;
mod merged_cursor;
mod pending_persist;
mod prepared;
mod scrub;
mod secondary;
mod snapshot;
mod transaction;
mod view;

pub use batch::{Batch, BatchEntries, BatchEntry, BatchWrite};
pub use bulk_load::LoadEntry;
pub use changes::{Change, ChangeBatch, Changes, Consumer};
pub use cursor::{Cursor, Entry, Range};
pub use db::Db;
pub use keyspace::Keyspace;
pub use merged_cursor::MergedCursor;
pub use pending_persist::PendingPersist;
pub use prepared::PreparedTransaction;
pub use secondary::Secondary;
pub use snapshot::Snapshot;
pub use transaction::{Savepoint, Transaction, TransactionCursor, TransactionRange};
pub use view::View;
