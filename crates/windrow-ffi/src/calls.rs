//! What the C interfaces of other engines share: errors in `errptr`, functions of the caller with their state, bytes that
//! a handle lends, arrays, and functions that set one option.
//!
//! # Safety argument
//! - [`ErrorPointer`] has the form of a pointer in C and no constructor, so each comes from a caller in C. The caller
//!   promises null, or a pointer to null or to memory of `malloc`.
//! - A [`Destructor`] and an order of [`key_order`] are made of a state and a function which the caller has passed together. The caller
//!   promises that the function does not unwind, and that any thread may use the state.
//! - [`Lent`] is an address, which this file never reads.
//!
//! Concurrency: as the handles of the interfaces.

#![expect(unsafe_code, reason = "the border to C")]

use std::ffi::{c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr::{null, null_mut, slice_from_raw_parts};
use std::slice;
use std::sync::Arc;

use windrow::{Error, Result};

use crate::key_order::KeyOrder;
use crate::{allocate, catch, release};

/// The parameter `errptr`.
#[repr(transparent)]
#[derive(Debug)]
pub struct ErrorPointer<'a>(Option<&'a mut *mut c_char>);

impl ErrorPointer<'_> {
    /// Runs the work of a function. An error becomes a message by `text`, and the outcome is `fallback`.
    pub fn run<R>(
        self,
        fallback: R,
        text: fn(&Error) -> String,
        work: impl FnOnce() -> Result<R>,
    ) -> R {
        let message = match catch(work) {
            Ok(Ok(outcome)) => return outcome,
            Ok(Err(error)) => text(&error),
            Err(panic) => format!("IO error: {panic}"),
        };
        self.report(&message);
        fallback
    }

    /// Puts a message into `*errptr`, in the place of an earlier one. If there is no memory for it, the caller does not learn of the
    /// error: the caller frees the message, so it cannot be one of this library.
    pub fn report(self, message: &str) {
        if let Some(errptr) = self.0 {
            // SAFETY: null, or memory of `malloc` that belongs to this function now.
            unsafe { release((*errptr).cast()) };
            *errptr = allocate(message.as_bytes()).unwrap_or(null_mut());
        }
    }
}

/// Runs the work of a function without `errptr`. The outcome of a panic is `fallback`.
pub fn run<R>(fallback: R, work: impl FnOnce() -> R) -> R {
    catch(work).unwrap_or(fallback)
}

/// A function of the caller that takes its state.
pub type StateFunction = unsafe extern "C" fn(*mut c_void);

/// The state of functions of the caller.
#[derive(Debug, Clone, Copy)]
pub struct State(*mut c_void);

// SAFETY: the caller promises that any thread may use it.
unsafe impl Send for State {}
// SAFETY: the same.
unsafe impl Sync for State {}

impl State {
    /// # Safety
    /// Any thread may use the state.
    pub unsafe fn new(state: *mut c_void) -> Self {
        Self(state)
    }

    /// What the caller has passed.
    pub fn get(self) -> *mut c_void {
        self.0
    }
}

/// What to call when a handle is destroyed.
#[derive(Debug)]
pub struct Destructor {
    state: State,
    function: Option<StateFunction>,
}

impl Destructor {
    /// # Safety
    /// The function may be called once with the state, by any thread.
    pub unsafe fn new(state: *mut c_void, function: Option<StateFunction>) -> Self {
        Self {
            state: State(state),
            function,
        }
    }

    /// Calls it.
    pub fn run(self) {
        if let Some(function) = self.function {
            // SAFETY: the caller has passed both together for this call.
            unsafe { function(self.state.0) };
        }
    }
}

/// The comparing function of a comparator.
pub type CompareFunction =
    unsafe extern "C" fn(*mut c_void, *const c_char, usize, *const c_char, usize) -> c_int;

/// The name of a comparator, a filter policy or an operator.
pub type NameFunction = unsafe extern "C" fn(*mut c_void) -> *const c_char;

/// The order of a comparator of the caller.
///
/// # Safety
/// The function may be called with the state until the last copy of the order is gone.
pub unsafe fn key_order(state: *mut c_void, compare: CompareFunction) -> Arc<KeyOrder> {
    let state = State(state);
    Arc::new(KeyOrder::new(Box::new(move |first, second| {
        let state = state.get();
        let (first_bytes, second_bytes) = (first.as_ptr().cast(), second.as_ptr().cast());
        // SAFETY: the caller has passed state and function together; the bytes are there during the call.
        let order = unsafe { compare(state, first_bytes, first.len(), second_bytes, second.len()) };
        order.cmp(&0)
    })))
}

/// Bytes of a handle that nobody changes before its next move.
#[derive(Debug, Clone, Copy)]
pub struct Lent(*const [u8]);

// SAFETY: the bytes are only read until the next move, during which no other function of the handle runs.
unsafe impl Send for Lent {}
// SAFETY: the same.
unsafe impl Sync for Lent {}

impl Lent {
    /// No bytes: a null pointer.
    pub const NONE: Self = Self(slice_from_raw_parts(null(), 0));

    /// The address of `bytes`.
    pub fn new(bytes: &[u8]) -> Self {
        Self(bytes)
    }

    /// Passes the bytes to C.
    pub fn give(self, length: Option<&mut MaybeUninit<usize>>) -> *const c_char {
        if let Some(length) = length {
            length.write(self.0.len());
        }
        self.0.cast()
    }
}

/// The elements of an array of the caller; none for null, and for a length that no array has.
///
/// # Safety
/// A pointer that is not null points to `length` elements, which nobody changes while the result is in use.
pub unsafe fn elements<'a, T>(pointer: *const T, length: usize) -> &'a [T] {
    if !is_array(pointer, length) {
        return &[];
    }
    // SAFETY: it is not null, and the caller promises the elements.
    unsafe { slice::from_raw_parts(pointer, length) }
}

/// The elements of an array that this function may write; none for null, and for a length that no array has.
///
/// # Safety
/// A pointer that is not null points to `length` elements that nobody else uses while the result is in use.
pub unsafe fn outputs<'a, T>(pointer: *mut T, length: usize) -> &'a mut [MaybeUninit<T>] {
    if !is_array(pointer, length) {
        return &mut [];
    }
    // SAFETY: it is not null, and the caller promises the elements.
    unsafe { slice::from_raw_parts_mut(pointer.cast(), length) }
}

/// Whether there may be an array with elements at the pointer.
pub fn is_array<T>(pointer: *const T, length: usize) -> bool {
    !pointer.is_null() && length > 0 && length <= isize::MAX as usize / size_of::<T>().max(1)
}

/// Defines functions of C that set one option.
#[macro_export]
macro_rules! setters {
    ($($(#[$comment:meta])* $name:ident($options:ident: $type:ty, $value:ident: $value_type:ty) $body:block)*) => {
        $($(#[$comment])*
        #[unsafe(no_mangle)]
        extern "C" fn $name($options: Option<&mut $type>, $value: $value_type) {
            if let Some($options) = $crate::handles::check($options) {
                $crate::calls::run((), || $body);
            }
        })*
    };
}
