//! The functions of `leveldb/c.h`, in files by what they are about.
//!
//! Each function turns its arguments into those of the safe modules, runs the work where no panic leaves it, and turns
//! the outcome into what the header promises: a value, or a message in `*errptr`. A function without `errptr` that fails
//! does nothing, and its result is empty.
//!
//! # Safety argument
//! - Handles: a handle is a `Box` that a `create` or `open` function has given away. A parameter `Option<&T>`,
//!   `Option<&mut T>` or `Option<Box<T>>` has the form of a pointer in C, and null is `None`. The header makes the rest a
//!   duty of the caller: the pointer is null or comes from the function that makes such handles, nobody uses a handle
//!   after its destruction. Functions that take `&mut T` or `Box<T>` run alone with their handle; those that take `&T` may
//!   run in many threads at once, and the `T` there is `Sync`. So `&mut T` is the only reference while a function runs. Functions that can be passed one handle twice compare them first.
//! - Bytes, text and arrays: the caller promises that they have the length that it passes, or end with a zero, and that
//!   nobody changes them during the call. No function keeps them.
//! - `errptr`: see [`windrow_ffi::calls`].
//! - Callbacks: the caller promises functions of the stated types that do not unwind, and a state that may be used by
//!   any thread. A handle keeps them until its destruction, and a comparator until the last database with it is closed.
//! - A handle that outlives the database it belongs to is no danger: it owns a reference, and its calls return an error.
//!
//! Concurrency: as the handles.

#![expect(unsafe_code, reason = "the border to C")]
#![expect(
    clippy::unnecessary_box_returns,
    reason = "a handle is a pointer for C"
)]

mod batches;
mod databases;
mod iterators;
mod policies;
mod read_write;

use std::ffi::c_void;

use windrow::{Result, Snapshot};
use windrow_ffi::calls::ErrorPointer;
use windrow_ffi::release;

use crate::batch::WriteBatch;
use crate::database::Database;
use crate::options::OpenOptions;
use crate::status;

/// The handles that several threads may read at once.
const _: () = {
    const fn any_thread<T: Send + Sync>() {}
    any_thread::<Database>();
    any_thread::<Snapshot>();
    any_thread::<OpenOptions>();
    any_thread::<iterators::Iterator>();
    any_thread::<read_write::ReadOptions>();
    any_thread::<WriteBatch>();
};

/// Runs the work of a function with `errptr`.
fn run_with<R>(errptr: ErrorPointer<'_>, fallback: R, work: impl FnOnce() -> Result<R>) -> R {
    errptr.run(fallback, status::text, work)
}

/// Calls `free`.
#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_free(pointer: *mut c_void) {
    // SAFETY: the caller promises memory that this library has returned, or null.
    unsafe { release(pointer) };
}

/// The version of LevelDB whose interface this is.
#[unsafe(no_mangle)]
extern "C" fn leveldb_major_version() -> i32 {
    1
}

#[unsafe(no_mangle)]
extern "C" fn leveldb_minor_version() -> i32 {
    23
}
