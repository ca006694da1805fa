//! The functions of `windrow.h`, in files by what they are about.
//!
//! Each function turns its arguments into those of the public interface of `windrow`, runs the work where no panic leaves
//! it, and turns the outcome into a code and an error.
//!
//! # Safety argument
//! - Handles: a handle is a `Box` that a function has given away. A parameter `Option<&T>`, `Option<&mut T>` or
//!   `Option<Box<T>>` has the form of a pointer in C, and null is `None`. The header makes the rest a duty of the caller: the
//!   pointer is null or comes from the function that makes such handles, nobody uses a handle after its release, and one
//!   thread at a time uses a handle unless its comment allows more. Functions that all threads may call take `&T`, and the
//!   `T` there is `Sync`; all other functions take `&mut T`, or `&T` of a handle that one thread uses.
//! - Bytes and text: the caller promises that they have the length that it passes, or end with a zero, and that nobody
//!   changes them during the call. No function keeps them.
//! - Results: a parameter `Option<&mut MaybeUninit<T>>` is null, or points to space for a `T`; it is written and never read.
//! - Callbacks: the caller promises a function of the stated type that does not unwind, and a state that it may be called
//!   with from all threads that its comment names.
//! - A handle that outlives the database it belongs to is no danger: it owns a reference, and its calls return an error.
//!
//! Concurrency: as the handles.

#![expect(unsafe_code, reason = "the border to C")]
#![expect(
    clippy::unnecessary_box_returns,
    reason = "a handle is a pointer for C"
)]
#![expect(
    clippy::missing_safety_doc,
    reason = "the header has the rules for all functions at its top"
)]

pub mod backups;
pub mod batches;
pub mod bytes;
pub mod callbacks;
mod calls;
pub mod changes;
pub mod cursors;
pub mod databases;
pub mod errors;
pub mod keyspace_options;
pub mod keyspaces;
pub mod loads;
pub mod options;
pub mod reports;
pub mod secondaries;
pub mod snapshots;
pub mod transactions;

use std::ffi::c_char;

/// The handles that any thread may use.
const _: () = {
    const fn any_thread<T: Send + Sync>() {}
    any_thread::<backups::Backups>();
    any_thread::<changes::Change>();
    any_thread::<changes::Consumer>();
    any_thread::<databases::Database>();
    any_thread::<keyspaces::Keyspace>();
    any_thread::<secondaries::Secondary>();
    any_thread::<snapshots::Snapshot>();
    any_thread::<bytes::Value>();
    any_thread::<errors::Error>();
};

/// The version of Windrow, for example "0.1.0". Valid forever.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}
