//! Compaction filters, and factories that make them.
//!
//! Windrow asks about one key after the other, from any thread, and does not say where a compaction begins or ends. RocksDB
//! promises a filter of a factory one thread and one compaction, but not how many keys that has. So each key gets a filter
//! of its own.

use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::Arc;

use windrow::Decision;
use windrow_ffi::bytes;
use windrow_ffi::calls::{Destructor, NameFunction, State, StateFunction, run};
use windrow_ffi::handles::{give, take};

use super::callbacks::{Owned, name_of};
use crate::filter::{Context, Filter};

type FilterFunction = unsafe extern "C" fn(
    *mut c_void,
    c_int,
    *const c_char,
    usize,
    *const c_char,
    usize,
    *mut *mut c_char,
    *mut usize,
    *mut u8,
) -> u8;

type CreateFilterFunction =
    unsafe extern "C" fn(*mut c_void, *const Context) -> Option<Box<FilterHandle>>;

/// The level that filters see: it is not known.
const LEVEL: c_int = -1;

/// The function of a filter with its state.
struct FilterFunctions {
    state: State,
    filter: Option<FilterFunction>,
    _destructor: Owned,
}

impl FilterFunctions {
    fn decide(&self, key: &[u8], value: &[u8]) -> Decision {
        let Some(function) = self.filter else {
            return Decision::Keep;
        };
        let (mut new_value, mut new_length, mut is_changed) = (null_mut(), 0, 0);
        // SAFETY: the caller has passed state and function together; the bytes are there during the call.
        let is_removed = unsafe {
            function(
                self.state.get(),
                LEVEL,
                key.as_ptr().cast(),
                key.len(),
                value.as_ptr().cast(),
                value.len(),
                &raw mut new_value,
                &raw mut new_length,
                &raw mut is_changed,
            )
        };
        if is_removed != 0 {
            return Decision::Remove;
        }
        if is_changed == 0 {
            return Decision::Keep;
        }
        // SAFETY: the function has set it to bytes that stay with their owner.
        match unsafe { bytes(new_value, new_length) } {
            Ok(value) => Decision::Replace(value.to_vec()),
            Err(_) => Decision::Keep,
        }
    }
}

/// `rocksdb_compactionfilter_t`.
pub(super) struct FilterHandle {
    functions: Arc<FilterFunctions>,
    pub(super) filter: Arc<Filter>,
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_compactionfilter_create(
    state: *mut c_void,
    destructor: Option<StateFunction>,
    filter: Option<FilterFunction>,
    name: Option<NameFunction>,
) -> Option<Box<FilterHandle>> {
    run(None, || {
        // SAFETY: the caller promises it, here and below.
        let name = unsafe { name_of(state, name) };
        let functions = Arc::new(FilterFunctions {
            // SAFETY: see above.
            state: unsafe { State::new(state) },
            filter,
            // SAFETY: see above.
            _destructor: Owned::new(unsafe { Destructor::new(state, destructor) }),
        });
        let asked = Arc::clone(&functions);
        let decide = Box::new(move |_, key: &[u8], value: &[u8]| asked.decide(key, value));
        Some(give(FilterHandle {
            functions,
            filter: Arc::new(Filter::new(name, decide)),
        }))
    })
}

/// Options keep the filter, and databases with it.
#[unsafe(no_mangle)]
extern "C" fn rocksdb_compactionfilter_destroy(filter: Option<Box<FilterHandle>>) {
    run((), || drop(take(filter)));
}

/// No effect: snapshots go on seeing what a filter changes.
#[unsafe(no_mangle)]
extern "C" fn rocksdb_compactionfilter_set_ignore_snapshots(
    _filter: Option<&FilterHandle>,
    _value: u8,
) {
}

/// `rocksdb_compactionfilterfactory_t`.
pub(super) struct FilterFactory {
    pub(super) filter: Arc<Filter>,
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_compactionfilterfactory_create(
    state: *mut c_void,
    destructor: Option<StateFunction>,
    create: Option<CreateFilterFunction>,
    name: Option<NameFunction>,
) -> Option<Box<FilterFactory>> {
    run(None, || {
        // SAFETY: the caller promises it, here and below.
        let name = unsafe { name_of(state, name) };
        // SAFETY: see above.
        let owned = Owned::new(unsafe { Destructor::new(state, destructor) });
        // SAFETY: see above.
        let state = unsafe { State::new(state) };
        let decide = move |context: Context, key: &[u8], value: &[u8]| {
            let _ = &owned;
            // SAFETY: the caller has passed state and function together; the context is there during the call.
            let made = create.and_then(|create| unsafe { create(state.get(), &raw const context) });
            take(made).map_or(Decision::Keep, |filter| filter.functions.decide(key, value))
        };
        Some(give(FilterFactory {
            filter: Arc::new(Filter::new(name, Box::new(decide))),
        }))
    })
}

/// A handle that no options have taken.
#[unsafe(no_mangle)]
extern "C" fn rocksdb_compactionfilterfactory_destroy(factory: Option<Box<FilterFactory>>) {
    run((), || drop(take(factory)));
}

/// Never: Windrow compacts level by level.
#[unsafe(no_mangle)]
extern "C" fn rocksdb_compactionfiltercontext_is_full_compaction(_context: Option<&Context>) -> u8 {
    0
}

/// Whether a compaction that the program has asked for runs with the factory.
#[unsafe(no_mangle)]
extern "C" fn rocksdb_compactionfiltercontext_is_manual_compaction(
    context: Option<&Context>,
) -> u8 {
    u8::from(context.is_some_and(|context| context.is_manual))
}
