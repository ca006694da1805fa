//! Layer 6: the public interface: documentation and argument checks, nothing more.

mod batch;
mod bounds;
mod cursor;
mod db;
mod keyspace;
mod snapshot;
mod view;

pub use batch::Batch;
pub use cursor::{Cursor, Entry, Range};
pub use db::Db;
pub use keyspace::Keyspace;
pub use snapshot::Snapshot;
pub use view::View;
