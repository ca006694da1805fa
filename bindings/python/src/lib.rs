//! The extension module `windrow._windrow`: what the package `windrow` for Python is made of.
//!
//! Each class wraps a handle of the Rust interface. A call turns its arguments into bytes, runs the work without the
//! interpreter's lock, and turns the outcome into objects or an exception. A get looks in memory with the lock. No panic of the
//! engine enters Python: it becomes an error.
//!
//! Invariants:
//! - I1: Whatever may wait (for a device, a lock or another thread) runs detached from the interpreter, also the close of
//!   a database by the last object that refers to it. But an object that nobody has closed or ended frees what it holds, such
//!   as the writes of a transaction and files that are mapped, where Python frees it.
//! - I2: No call touches a database that was opened before a fork of the process, and no object closes one.
//! - I3: Memory that another thread of Python can change is never read while detached.
//!
//! Concurrency: all classes may be used by all threads. What one thread at a time must use is behind a lock.

mod arrays;
mod at_exit;
mod backups;
mod batch;
mod buffers;
mod changes;
mod conversions;
mod database;
mod errors;
mod forks;
mod iteration;
mod iterator;
mod keyspace;
mod leveldb;
mod listener;
mod loading;
mod loads;
mod merged;
mod operators;
mod options;
mod owner;
mod scope;
mod secondary;
mod shared_transaction;
mod snapshot;
mod transaction;
mod view;

/// Windrow's classes. Use the package `windrow`.
#[pyo3::pymodule(gil_used = true)]
mod _windrow {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::arrays::ArrayScan;
    #[pymodule_export]
    use super::at_exit::close_all;
    #[pymodule_export]
    use super::backups::Backups;
    #[pymodule_export]
    use super::batch::Batch;
    #[pymodule_export]
    use super::buffers::Value;
    #[pymodule_export]
    use super::changes::{Change, Changes, Consumer};
    #[pymodule_export]
    use super::database::{Database, destroy, open};
    #[pymodule_export]
    use super::iterator::Iterator;
    #[pymodule_export]
    use super::leveldb::{destroy_leveldb, open_leveldb};
    #[pymodule_export]
    use super::merged::MergedItems;
    #[pymodule_export]
    use super::secondary::Secondary;
    #[pymodule_export]
    use super::snapshot::Snapshot;
    #[pymodule_export]
    use super::transaction::{Savepoint, Transaction};
    #[pymodule_export]
    use super::view::{Entries, Keyspace, View};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let at_exit = module.py().import("atexit")?;
        at_exit.call_method1("register", (module.getattr("_close_at_exit")?,))?;
        super::forks::watch()
    }
}
