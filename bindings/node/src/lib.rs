//! The addon of the package `windrow` for Node: what the classes in JavaScript are made of.
//!
//! Each function turns its arguments into bytes on the thread of JavaScript, runs the work on a thread of libuv, and turns
//! the outcome into a promise. Many keys, entries or writes cross the border as one buffer (`packed`), because each
//! object that crosses it costs more than a read. No panic of the engine enters JavaScript: it becomes an error.
//!
//! Invariants:
//! - I1: Whatever may wait (for a device, a lock or another thread) runs on a thread of libuv, or on that of a locking
//!   transaction or of a wait for a change, except `getSync`, and the close of a database that nobody has closed. `getNear`
//!   answers from memory.
//! - I2: A close of a database waits for the calls that began before it, and later calls are errors.
//! - I3: No memory that JavaScript can change is read on another thread.
//!
//! Concurrency: Node calls a function on the thread of its environment. Each thread of workers has an environment of its
//! own, with its own objects; `registry` is what they have in common.

mod answers;
mod backups;
mod border;
mod calls;
mod changes;
mod database;
mod errors;
mod input;
mod iterator;
mod options;
mod owner;
mod packed;
mod registry;
mod secondary;
mod shared;
mod snapshot;
mod transaction;
mod waiting;
mod work;
mod writes;
