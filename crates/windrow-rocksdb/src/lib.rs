//! RocksDB's C interface (`rocksdb/c.h`, version 11.8) on Windrow. docs/bindings.md says which functions there are, and what
//! each option means here.
//!
//! - [`functions`] has the functions of the header: it turns arguments of C into those of the modules below, and their
//!   errors into messages. It alone has unsafe code.
//! - [`database`], [`families`] with [`family_ids`], [`iterator`], [`batch`], [`transaction`], [`updates`], [`cache`] and
//!   [`options`] do what RocksDB's classes of these names do; [`merge`], [`prefix`] and [`filter`] call the functions of the program.
//! - [`origin`] says where the newest state of a database is, for secondaries too.
//! - [`dynamic_options`] changes options of open databases.
//! - [`properties`], [`statistics`], [`log`] and [`status`] write what RocksDB writes.
//!
//! A database is a folder of Windrow, and a column family a keyspace of it. The keyspace `rocksdb.families` has the ids of
//! the families. What Windrow lacks is an error that begins with `Not implemented`; options that only tune RocksDB are
//! accepted, and the log of the open names them.
//!
//! Concurrency: as RocksDB: a database may be used by any threads at any time, a transaction by one at a time. All other
//! handles may be read by any threads as long as none changes them: functions with a handle that is `const` in the header
//! read it, and the others change it.

mod batch;
mod cache;
mod database;
mod dynamic_options;
mod families;
mod family_ids;
mod filter;
mod functions;
mod iterator;
mod log;
mod merge;
mod options;
mod origin;
mod prefix;
mod properties;
mod statistics;
mod status;
#[cfg(test)]
mod tests;
mod transaction;
mod updates;
