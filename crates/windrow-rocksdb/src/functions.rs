//! The functions of `rocksdb/c.h`, in files by what they are about.
//!
//! Each function turns its arguments into those of the safe modules, runs the work where no panic leaves it, and turns
//! the outcome into what the header promises: a value, or a message in `*errptr`. A function without `errptr` that fails
//! does nothing, and its result is empty. Functions that differ only in whether they name a column family share their body.
//!
//! # Safety argument
//! - Handles: a handle is a `Box` that a `create` or `open` function has given away. A parameter `Option<&T>`,
//!   `Option<&mut T>` or `Option<Box<T>>` has the form of a pointer in C, and null is `None`. The header makes the rest a
//!   duty of the caller: the pointer is null or comes from the function that makes such handles, nobody uses a handle
//!   after its destruction. Functions that take `&mut T` or `Box<T>` run alone with their handle; those that take `&T` may
//!   run in many threads at once, and the `T` there is `Sync`. So `&mut T` is the only reference while a function runs.
//! - The databases of `rocksdb_open`, `rocksdb_transactiondb_open` and `rocksdb_optimistictransactiondb_open` are the same
//!   type here, and so are their base databases.
//! - Snapshots: see [`snapshots`].
//! - Bytes, text and arrays: the caller promises that they have the length that it passes, or end with a zero, and that
//!   nobody changes them during the call. No function keeps them.
//! - `errptr`: see [`windrow_ffi::calls`].
//! - Callbacks: the caller promises functions of the stated types that do not unwind, and a state that may be used by
//!   any thread. A handle keeps them until its destruction, or, where the header gives a handle to options, until the last
//!   copy of these and the last database with them are gone.
//! - A handle that outlives the database it belongs to is no danger: it owns a reference, and its calls return an error.
//!
//! Concurrency: as the handles.

#![expect(unsafe_code, reason = "the border to C")]
#![expect(clippy::too_many_arguments, reason = "the header has them")]
#![expect(
    clippy::unnecessary_box_returns,
    reason = "a handle is a pointer for C"
)]

/// Defines a function for the column family `default`, and one for any, by a function with a [`Place`] behind the first
/// arguments.
macro_rules! for_families {
    ($in_default:ident, $in_family:ident: $body:ident($($first:ident: $first_type:ty),*; $($rest:ident: $rest_type:ty),*) $(-> $result:ty)?) => {
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $in_default($($first: $first_type,)* $($rest: $rest_type),*) $(-> $result)? {
            // SAFETY: the caller promises the bytes.
            unsafe { $body($($first,)* $crate::functions::Place::Default, $($rest),*) }
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $in_family(
            $($first: $first_type,)*
            family: Option<&$crate::functions::FamilyHandle>,
            $($rest: $rest_type),*
        ) $(-> $result)? {
            // SAFETY: the same.
            unsafe { $body($($first,)* $crate::functions::Place::Family(family), $($rest),*) }
        }
    };
}

/// Defines functions that create and destroy handles of one kind, by its default.
macro_rules! handles {
    ($($create:ident, $destroy:ident: $type:ty;)*) => {
        $(#[unsafe(no_mangle)]
        extern "C" fn $create() -> Box<$type> {
            windrow_ffi::handles::give(<$type>::default())
        }

        #[unsafe(no_mangle)]
        extern "C" fn $destroy(handle: Option<Box<$type>>) {
            windrow_ffi::calls::run((), || drop(windrow_ffi::handles::take(handle)));
        })*
    };
}

mod absent;
mod batches;
mod callbacks;
mod data;
mod databases;
mod filters;
mod ignored;
mod iterators;
mod maintenance;
mod measures;
mod multi_get;
mod open_options;
mod read_write;
mod secondaries;
mod snapshots;
mod statistics;
mod transactions;
mod updates;

use std::ffi::{c_char, c_void};
use std::ptr::null_mut;
use std::sync::Arc;

use windrow::{Db, Result, Snapshot};
use windrow_ffi::calls::ErrorPointer;
use windrow_ffi::handles::give;
use windrow_ffi::{allocate, given, release};

use crate::batch::WriteBatch;
use crate::database::Database;
use crate::families::Family;
use crate::options::{OpenOptions, ReadOptions, WriteOptions};
use crate::status;
use crate::updates::Updates;

/// The handles that several threads may read at once.
const _: () = {
    const fn any_thread<T: Send + Sync>() {}
    any_thread::<Database>();
    any_thread::<FamilyHandle>();
    any_thread::<Db>();
    any_thread::<Snapshot>();
    any_thread::<OpenOptions>();
    any_thread::<iterators::Iterator>();
    any_thread::<ReadOptions>();
    any_thread::<WriteOptions>();
    any_thread::<WriteBatch>();
    any_thread::<callbacks::Comparator>();
    any_thread::<Updates>();
};

/// `rocksdb_column_family_handle_t`.
struct FamilyHandle {
    family: Arc<Family>,
}

impl FamilyHandle {
    fn new(family: Arc<Family>) -> Box<Self> {
        give(Self { family })
    }
}

/// The column family of a call.
#[derive(Clone, Copy)]
enum Place<'a> {
    /// `default`.
    Default,
    /// That of a handle.
    Family(Option<&'a FamilyHandle>),
}

impl<'a> Place<'a> {
    /// The family, in `database`.
    fn of(self, database: &'a Database) -> Result<&'a Arc<Family>> {
        match self {
            Self::Default => Ok(&database.shared.default),
            Self::Family(handle) => Ok(&given(handle, "column family")?.family),
        }
    }
}

/// A handle of something that Windrow does without.
#[derive(Default)]
struct Unused {
    /// A handle has an address of its own.
    _address: u8,
}

/// Runs the work of a function with `errptr`.
fn run_with<R>(errptr: ErrorPointer<'_>, fallback: R, work: impl FnOnce() -> Result<R>) -> R {
    errptr.run(fallback, status::text, work)
}

/// Text for C, or null.
fn give_text(text: Option<&str>) -> *mut c_char {
    let copied = text.and_then(|text| allocate(text.as_bytes()).ok());
    copied.unwrap_or(null_mut())
}

/// Calls `free`.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_free(pointer: *mut c_void) {
    // SAFETY: the caller promises memory that this library has returned, or null.
    unsafe { release(pointer) };
}
