//! The native library of the package `windrow` for Java: the methods of its class `Native`.
//!
//! Each method turns its arguments into bytes and numbers, calls the Rust interface, and turns the outcome into an array, a
//! number or an exception. What has many parts (options, batches, the entries of a scan) crosses the border as one array.
//!
//! Invariants:
//! - I1: No panic enters Java: it becomes an exception.
//! - I2: A method uses a handle only while the Java side has leased it: the class `Handle` frees one after the last call
//!   that has it (`handles.rs`).
//! - I3: Arguments are copied at the call, because other threads of Java may change them.
//! - I4: The engine's threads call Java as daemons, and a call leaves neither an exception nor a reference (`functions.rs`).
//!
//! Concurrency: any thread. What one thread at a time must use is behind a lock.

mod arguments;
mod backups;
mod batches;
mod changes;
mod cursors;
mod databases;
mod errors;
mod events;
mod filters;
mod functions;
mod handles;
mod keyspaces;
mod loads;
mod operators;
mod options;
mod packed;
mod release;
mod secondaries;
mod transactions;
mod views;
