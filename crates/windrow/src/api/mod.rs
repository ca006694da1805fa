//! Layer 6: the public interface: documentation and argument checks, nothing more.

mod batch;
mod cursor;
mod db;
mod keyspace;
mod snapshot;
mod view;

pub use batch::Batch;
pub use cursor::{Cursor, Range};
pub use db::Db;
pub use keyspace::Keyspace;
pub use snapshot::Snapshot;
pub use view::{Entry, View};
