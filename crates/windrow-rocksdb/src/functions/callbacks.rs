//! Functions of the caller: comparators, merge operators, prefix extractors, loggers.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::io::Write as _;
use std::ptr::null;
use std::sync::Arc;

use windrow_ffi::calls::{
    CompareFunction, Destructor, NameFunction, State, StateFunction, key_order, run,
};
use windrow_ffi::handles::{give, take};
use windrow_ffi::key_order::KeyOrder;
use windrow_ffi::{allocate, bytes, release};

use crate::log::Logger;
use crate::merge::Operator;
use crate::prefix::Prefix;

/// `rocksdb_comparator_t`.
pub(super) struct Comparator {
    pub(super) order: Option<Arc<KeyOrder>>,
    /// Whether keys have timestamps, which Windrow does not support.
    pub(super) has_timestamps: bool,
    destructor: Destructor,
}

/// The name is not used: all databases have the same order.
#[unsafe(no_mangle)]
extern "C" fn rocksdb_comparator_create(
    state: *mut c_void,
    destructor: Option<StateFunction>,
    compare: Option<CompareFunction>,
    _name: Option<NameFunction>,
) -> Box<Comparator> {
    give(Comparator {
        // SAFETY: the caller promises it.
        order: compare.map(|compare| unsafe { key_order(state, compare) }),
        has_timestamps: false,
        // SAFETY: the same.
        destructor: unsafe { Destructor::new(state, destructor) },
    })
}

type CompareTimestampsFunction = CompareFunction;

type CompareWithoutTimestampsFunction =
    unsafe extern "C" fn(*mut c_void, *const c_char, usize, u8, *const c_char, usize, u8) -> c_int;

/// An open with it is an error.
#[unsafe(no_mangle)]
extern "C" fn rocksdb_comparator_with_ts_create(
    state: *mut c_void,
    destructor: Option<StateFunction>,
    _compare: Option<CompareFunction>,
    _compare_timestamps: Option<CompareTimestampsFunction>,
    _compare_without: Option<CompareWithoutTimestampsFunction>,
    _name: Option<NameFunction>,
    _timestamp_bytes: usize,
) -> Box<Comparator> {
    give(Comparator {
        order: None,
        has_timestamps: true,
        // SAFETY: the caller promises it.
        destructor: unsafe { Destructor::new(state, destructor) },
    })
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_comparator_destroy(comparator: Option<Box<Comparator>>) {
    run((), || {
        if let Some(comparator) = take(comparator) {
            comparator.destructor.run();
        }
    });
}

/// A destructor that runs when the last function with the state is gone.
pub(super) struct Owned(Option<Destructor>);

impl Owned {
    pub(super) fn new(destructor: Destructor) -> Self {
        Self(Some(destructor))
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        if let Some(destructor) = self.0.take() {
            destructor.run();
        }
    }
}

type FullMergeFunction = unsafe extern "C" fn(
    *mut c_void,
    *const c_char,
    usize,
    *const c_char,
    usize,
    *const *const c_char,
    *const usize,
    c_int,
    *mut u8,
    *mut usize,
) -> *mut c_char;

type PartialMergeFunction = unsafe extern "C" fn(
    *mut c_void,
    *const c_char,
    usize,
    *const *const c_char,
    *const usize,
    c_int,
    *mut u8,
    *mut usize,
) -> *mut c_char;

type DeleteValueFunction = unsafe extern "C" fn(*mut c_void, *const c_char, usize);

/// `rocksdb_mergeoperator_t`.
pub(super) struct MergeOperatorHandle {
    pub(super) operator: Arc<Operator>,
}

/// The functions of a merge operator with their state.
struct MergeFunctions {
    state: State,
    full: Option<FullMergeFunction>,
    partial: Option<PartialMergeFunction>,
    delete_value: Option<DeleteValueFunction>,
    _destructor: Owned,
}

impl MergeFunctions {
    fn full(&self, key: &[u8], base: Option<&[u8]>, operands: &[&[u8]]) -> Option<Vec<u8>> {
        let function = self.full?;
        let (pointers, lengths, count) = arrays(operands)?;
        let (base, base_length) = base.map_or((null(), 0), |base| (base.as_ptr(), base.len()));
        let (mut success, mut length) = (0, 0);
        // SAFETY: the caller has passed state and function together; the bytes are there during the call.
        let merged = unsafe {
            function(
                self.state.get(),
                key.as_ptr().cast(),
                key.len(),
                base.cast(),
                base_length,
                pointers.as_ptr(),
                lengths.as_ptr(),
                count,
                &raw mut success,
                &raw mut length,
            )
        };
        // SAFETY: the function has returned it.
        unsafe { self.take(merged, length, success) }
    }

    fn partial(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        let function = self.partial?;
        let (pointers, lengths, count) = arrays(operands)?;
        let (mut success, mut length) = (0, 0);
        // SAFETY: as in `full`.
        let merged = unsafe {
            function(
                self.state.get(),
                key.as_ptr().cast(),
                key.len(),
                pointers.as_ptr(),
                lengths.as_ptr(),
                count,
                &raw mut success,
                &raw mut length,
            )
        };
        // SAFETY: the function has returned it.
        unsafe { self.take(merged, length, success) }
    }

    /// Copies a result and frees it.
    ///
    /// # Safety
    /// The pointer is null, or a result of `length` bytes.
    unsafe fn take(&self, merged: *mut c_char, length: usize, success: u8) -> Option<Vec<u8>> {
        // SAFETY: the caller promises the bytes.
        let copied = unsafe { bytes(merged, length) }.map(<[u8]>::to_vec);
        match self.delete_value {
            // SAFETY: the result is one of these functions.
            Some(delete) if !merged.is_null() => unsafe {
                delete(self.state.get(), merged, length);
            },
            Some(_) => {}
            // SAFETY: without a function the header demands memory of `malloc`.
            None => unsafe { release(merged.cast()) },
        }
        copied.ok().filter(|_| success != 0)
    }
}

/// Pointers and lengths for C.
fn arrays(operands: &[&[u8]]) -> Option<(Vec<*const c_char>, Vec<usize>, c_int)> {
    let pointers = operands.iter().map(|operand| operand.as_ptr().cast());
    let lengths = operands.iter().map(|operand| operand.len());
    let count = c_int::try_from(operands.len()).ok()?;
    Some((pointers.collect(), lengths.collect(), count))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_mergeoperator_create(
    state: *mut c_void,
    destructor: Option<StateFunction>,
    full: Option<FullMergeFunction>,
    partial: Option<PartialMergeFunction>,
    delete_value: Option<DeleteValueFunction>,
    name: Option<NameFunction>,
) -> Option<Box<MergeOperatorHandle>> {
    run(None, || {
        // SAFETY: the caller promises it, here and below.
        let name = unsafe { name_of(state, name) };
        let functions = Arc::new(MergeFunctions {
            // SAFETY: see above.
            state: unsafe { State::new(state) },
            full,
            partial,
            delete_value,
            // SAFETY: see above.
            _destructor: Owned::new(unsafe { Destructor::new(state, destructor) }),
        });
        let other = Arc::clone(&functions);
        let operator = Operator {
            name,
            full: Box::new(move |key, base, operands| functions.full(key, base, operands)),
            partial: Box::new(move |key, operands| other.partial(key, operands)),
        };
        Some(give(MergeOperatorHandle {
            operator: Arc::new(operator),
        }))
    })
}

/// # Safety
/// The function may be called with the state, and returns text or null.
pub(super) unsafe fn name_of(state: *mut c_void, name: Option<NameFunction>) -> String {
    // SAFETY: the caller promises it.
    let text = name.map_or(null(), |name| unsafe { name(state) });
    if text.is_null() {
        return String::new();
    }
    // SAFETY: it is not null, and the caller promises text.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_string_lossy().into_owned()
}

/// A handle that no options have taken.
#[unsafe(no_mangle)]
extern "C" fn rocksdb_mergeoperator_destroy(operator: Option<Box<MergeOperatorHandle>>) {
    run((), || drop(take(operator)));
}

type TransformFunction =
    unsafe extern "C" fn(*mut c_void, *const c_char, usize, *mut usize) -> *mut c_char;

type InDomainFunction = unsafe extern "C" fn(*mut c_void, *const c_char, usize) -> u8;

/// `rocksdb_slicetransform_t`.
pub(super) struct SliceTransform {
    pub(super) prefix: Arc<Prefix>,
}

impl SliceTransform {
    fn new(prefix: Prefix) -> Box<Self> {
        give(Self {
            prefix: Arc::new(prefix),
        })
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_slicetransform_create(
    state: *mut c_void,
    destructor: Option<StateFunction>,
    transform: Option<TransformFunction>,
    in_domain: Option<InDomainFunction>,
    _name: Option<NameFunction>,
) -> Box<SliceTransform> {
    // SAFETY: the caller promises it, here and below.
    let owned = Owned::new(unsafe { Destructor::new(state, destructor) });
    // SAFETY: see above.
    let state = unsafe { State::new(state) };
    SliceTransform::new(Prefix::Custom(Box::new(move |key| {
        let _ = &owned;
        let (pointer, length) = (key.as_ptr().cast(), key.len());
        // SAFETY: the caller has passed state and function together; the bytes are there during the call.
        let is_in_domain =
            in_domain.is_none_or(|function| unsafe { function(state.get(), pointer, length) } != 0);
        let transform = transform.filter(|_| is_in_domain)?;
        let mut prefix_length = 0;
        // SAFETY: the same.
        let prefix = unsafe { transform(state.get(), pointer, length, &raw mut prefix_length) };
        // SAFETY: the function returns a part of the key, or bytes that it keeps.
        unsafe { bytes(prefix, prefix_length) }
            .ok()
            .map(<[u8]>::to_vec)
    })))
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_slicetransform_create_fixed_prefix(length: usize) -> Box<SliceTransform> {
    SliceTransform::new(Prefix::Fixed(length))
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_slicetransform_create_noop() -> Box<SliceTransform> {
    SliceTransform::new(Prefix::WholeKey)
}

/// A handle that no options have taken.
#[unsafe(no_mangle)]
extern "C" fn rocksdb_slicetransform_destroy(transform: Option<Box<SliceTransform>>) {
    run((), || drop(take(transform)));
}

/// `rocksdb_logger_t`.
pub(super) struct LoggerHandle {
    pub(super) logger: Arc<Logger>,
}

impl LoggerHandle {
    fn new(write: Box<dyn Fn(&str) + Send + Sync>) -> Box<Self> {
        give(Self {
            logger: Arc::new(Logger::new(write)),
        })
    }
}

/// The level of all that this library logs: a warning.
const LEVEL: c_uint = 2;

type LogFunction = unsafe extern "C" fn(*mut c_void, c_uint, *mut c_char, usize);

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_logger_create_callback_logger(
    level: c_int,
    log: Option<LogFunction>,
    state: *mut c_void,
) -> Box<LoggerHandle> {
    let log = log.filter(|_| c_uint::try_from(level).is_ok_and(|level| level <= LEVEL));
    // SAFETY: the caller promises it.
    let state = unsafe { State::new(state) };
    LoggerHandle::new(Box::new(move |line| {
        let (Some(log), Ok(text)) = (log, allocate(line.as_bytes())) else {
            return;
        };
        // SAFETY: the caller has passed state and function together; the text is there during the call.
        unsafe { log(state.get(), LEVEL, text, line.len()) };
        // SAFETY: it was allocated above.
        unsafe { release(text.cast()) };
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_logger_create_stderr_logger(
    level: c_int,
    prefix: *const c_char,
) -> Box<LoggerHandle> {
    let prefix = if prefix.is_null() {
        String::new()
    } else {
        // SAFETY: it is not null, and the caller promises text.
        let prefix = unsafe { CStr::from_ptr(prefix) };
        prefix.to_string_lossy().into_owned()
    };
    let is_on = c_uint::try_from(level).is_ok_and(|level| level <= LEVEL);
    LoggerHandle::new(Box::new(move |line| {
        if is_on {
            // Nobody could be informed of a failure.
            drop(writeln!(std::io::stderr(), "{prefix}{line}"));
        }
    }))
}

/// Options keep the logger.
#[unsafe(no_mangle)]
extern "C" fn rocksdb_logger_destroy(logger: Option<Box<LoggerHandle>>) {
    run((), || drop(take(logger)));
}
