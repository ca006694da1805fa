//! LevelDB's C interface (`leveldb/c.h`, version 1.23) on Windrow. docs/bindings.md says what each option means here.
//!
//! - [`functions`] has the functions of the header: it turns arguments of C into those of the modules below, and their
//!   errors into messages. It alone has unsafe code.
//! - [`database`], [`iterator`], [`batch`], [`options`] do what LevelDB's classes of these names do.
//! - [`properties`] and [`status`] write what LevelDB writes. `windrow_ffi::key_order` checks custom comparators.
//!
//! A database is a folder of Windrow with the keyspace `default`, as the command `windrow` uses it. LevelDB allows the
//! empty key and Windrow does not: its value is in a second keyspace, which the first write of the empty key makes.
//!
//! Concurrency: as LevelDB: a database may be used by any threads at any time. All other handles may be read by any
//! threads as long as none changes them: functions with a handle that is `const` in the header read it, and the others
//! change it.

mod batch;
mod database;
mod functions;
mod iterator;
mod options;
mod properties;
mod status;
#[cfg(test)]
mod tests;
