//! The handles that C callers have: what a function gives away, borrows, and takes back.
//!
//! A handle that was released, or is of another type, is undefined behaviour in C, and a release build does not look. A build
//! with debug assertions keeps a list of all handles that callers have, and ends the process at the first wrong one: the
//! program is broken, and an error could be overlooked. The list knows addresses, so a handle that was released is
//! found until another one of its type has its address. A new handle at the address of one in the list says that the memory of
//! that one went away without a function that takes it.
//!
//! Invariant: a function uses a handle from C only after [`check`] or [`take`]. A type without a size has no address of its
//! own, so its handles are not in the list; nor are the snapshots of RocksDB's interface, which are memory of `malloc`.
//!
//! Concurrency: the list has a lock, which no other one is taken under, and which is not held when the process ends.

#![expect(
    clippy::disallowed_types,
    reason = "no model replaces the locks of this crate"
)]

use std::any::{TypeId, type_name};
use std::collections::BTreeMap;
use std::process::abort;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What a C caller passes for a handle.
pub trait Handle {
    /// The type of the handle.
    type Target: 'static;

    /// Where it is.
    fn target(&self) -> &Self::Target;
}

impl<T: 'static> Handle for &T {
    type Target = T;

    fn target(&self) -> &T {
        self
    }
}

impl<T: 'static> Handle for &mut T {
    type Target = T;

    fn target(&self) -> &T {
        self
    }
}

impl<T: 'static> Handle for Box<T> {
    type Target = T;

    fn target(&self) -> &T {
        self
    }
}

/// Makes a handle for the caller.
pub fn give<T: 'static>(value: T) -> Box<T> {
    let handle = Box::new(value);
    if is_listed::<T>() {
        let left = locked().insert(address(&*handle), Kind::of::<T>());
        if let Some(left) = left {
            let name = left.short_name();
            fail(&format!(
                "the {name} {handle:p} was freed, but not by its function"
            ));
        }
    }
    handle
}

/// A handle that the caller lends, or null.
pub fn check<H: Handle>(handle: Option<H>) -> Option<H> {
    if let Some(handle) = &handle
        && is_listed::<H::Target>()
    {
        let found = locked().get(&address(handle.target())).copied();
        expect(handle.target(), found);
    }
    handle
}

/// A handle that the caller gives back, or null.
pub fn take<T: 'static>(handle: Option<Box<T>>) -> Option<Box<T>> {
    if let Some(handle) = &handle
        && is_listed::<T>()
    {
        let found = locked().remove(&address(&**handle));
        expect(&**handle, found);
    }
    handle
}

/// The handles that callers have, by their address.
static LIST: Mutex<BTreeMap<usize, Kind>> = Mutex::new(BTreeMap::new());

fn locked() -> MutexGuard<'static, BTreeMap<usize, Kind>> {
    LIST.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A type of handles.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Kind {
    id: TypeId,
    name: &'static str,
}

impl Kind {
    fn of<T: 'static>() -> Self {
        Self {
            id: TypeId::of::<T>(),
            name: type_name::<T>(),
        }
    }

    /// The name without its modules.
    fn short_name(&self) -> &'static str {
        self.name.rsplit("::").next().unwrap_or(self.name)
    }
}

fn is_listed<T>() -> bool {
    cfg!(debug_assertions) && size_of::<T>() > 0
}

fn address<T>(handle: &T) -> usize {
    std::ptr::from_ref(handle).addr()
}

/// Ends the process if what is `found` in the list for a handle is not its type.
fn expect<T: 'static>(handle: &T, found: Option<Kind>) {
    let expected = Kind::of::<T>();
    let what = match found {
        Some(found) if found == expected => return,
        Some(found) => format!("is of the type {}", found.short_name()),
        None => "was released, or never was a handle".to_owned(),
    };
    let name = expected.short_name();
    fail(&format!(
        "what the program passes as a {name}, {handle:p}, {what}"
    ));
}

#[expect(
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "the program is broken, in a build for its developers"
)]
fn fail(what: &str) {
    eprintln!("windrow: {what}");
    abort();
}
