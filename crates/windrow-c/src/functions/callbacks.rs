//! Functions of the caller that Windrow calls: merge operators, compaction filters and listeners.
//!
//! Background threads call them, and several threads at once.

use std::ffi::{CString, c_char, c_void};
use std::mem::MaybeUninit;
use std::sync::Arc;

use windrow::{
    Candidate as WindrowCandidate, CompactionFilter, Decision, Event, EventListener, FilterError,
    MergeError, MergeOperator, Operands,
};
use windrow_ffi::{given, not_null, text};

use super::bytes::{Bytes, expiry_of};
use super::calls::{call, call_for, guard};
use super::errors::Error;
use super::options::Options;

/// Frees the state of callbacks. Windrow calls it once, when nothing uses them any more: neither options nor a database.
pub type FreeState = Option<unsafe extern "C" fn(state: *mut c_void)>;

/// What callbacks are given.
struct State {
    pointer: *mut c_void,
    free: FreeState,
}

// SAFETY: the caller promises that all threads may use the state through the callbacks.
unsafe impl Send for State {}
// SAFETY: the same.
unsafe impl Sync for State {}

impl Drop for State {
    fn drop(&mut self) {
        if let Some(free) = self.free {
            // SAFETY: the caller has passed state and function together, and this is the last use.
            unsafe { free(self.pointer) };
        }
    }
}

/// Takes the bytes of a result. It is valid during the call that it is passed to.
#[derive(Debug)]
pub struct Sink {
    result: Vec<u8>,
    failure: Option<String>,
}

impl Sink {
    fn new(result: Vec<u8>) -> Self {
        Self {
            result,
            failure: None,
        }
    }

    /// Why a function that has returned `code` has failed.
    fn failure(self, function: &str, code: i32) -> String {
        let failure = self.failure;
        failure.unwrap_or_else(|| format!("the {function} returned {code}"))
    }
}

/// Appends bytes to a result. Returns false, without effect, for a null sink and for bytes that are none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_sink_append(sink: Option<&mut Sink>, bytes: Bytes) -> bool {
    guard(false, || {
        // SAFETY: the caller promises the bytes.
        let bytes = unsafe { bytes.get() };
        match (sink, bytes) {
            (Some(sink), Ok(bytes)) => {
                sink.result.extend_from_slice(bytes);
                true
            }
            _ => false,
        }
    })
}

/// Says in `message`, text for people, why a function fails. It has no effect on a function that does not. Nothing happens
/// for null and for bytes that are none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_sink_fail(sink: Option<&mut Sink>, message: Bytes) {
    guard((), || {
        // SAFETY: the caller promises the bytes.
        let message = unsafe { message.get() };
        if let (Some(sink), Ok(message)) = (sink, message) {
            sink.failure = Some(String::from_utf8_lossy(message).into_owned());
        }
    });
}

/// The result is in the sink.
pub const WINDROW_MERGE_DONE: i32 = 0;
/// Operands without a base stay as they are: only for `partial_merge`.
pub const WINDROW_MERGE_NOT: i32 = 1;

/// Appends to `result` the value of `key` after all operands, oldest first, were applied to `base`, whose `data` is null if
/// there is no value. Returns `WINDROW_MERGE_DONE`; any other number is an error of this key alone, and loses nothing.
///
/// Any thread calls it, several at once, any number of times for the same operands: the result depends on the arguments
/// only. It must not throw.
pub type FullMerge = Option<
    unsafe extern "C" fn(
        state: *mut c_void,
        key: Bytes,
        base: Bytes,
        operands: *const Bytes,
        count: usize,
        result: *mut Sink,
    ) -> i32,
>;

/// Appends to `result` one operand with the effect of all operands, at least two, oldest first, on any base. Returns
/// `WINDROW_MERGE_DONE`, or `WINDROW_MERGE_NOT` if there is no such operand; any other number is an error. Otherwise as
/// `windrow_full_merge`.
pub type PartialMerge = Option<
    unsafe extern "C" fn(
        state: *mut c_void,
        key: Bytes,
        operands: *const Bytes,
        count: usize,
        result: *mut Sink,
    ) -> i32,
>;

/// A merge operator of the caller.
struct Operator {
    name: String,
    full_merge:
        unsafe extern "C" fn(*mut c_void, Bytes, Bytes, *const Bytes, usize, *mut Sink) -> i32,
    partial_merge: PartialMerge,
    state: State,
}

/// Calls `merge` with all operands and a sink. The result is true if it has set one.
fn merge_into(
    operands: Operands<'_>,
    result: &mut Vec<u8>,
    merge: impl FnOnce(*const Bytes, usize, *mut Sink) -> i32,
) -> Result<i32, MergeError> {
    let operands: Vec<Bytes> = operands.map(Bytes::of).collect();
    let mut sink = Sink::new(std::mem::take(result));
    match merge(operands.as_ptr(), operands.len(), &raw mut sink) {
        code @ (WINDROW_MERGE_DONE | WINDROW_MERGE_NOT) => {
            *result = sink.result;
            Ok(code)
        }
        code => Err(MergeError::new(sink.failure("operator", code))),
    }
}

impl MergeOperator for Operator {
    fn name(&self) -> &str {
        &self.name
    }

    fn full_merge(
        &self,
        key: &[u8],
        base: Option<&[u8]>,
        operands: Operands<'_>,
        result: &mut Vec<u8>,
    ) -> Result<(), MergeError> {
        let (state, key) = (self.state.pointer, Bytes::of(key));
        let base = base.map_or(Bytes::NONE, Bytes::of);
        let code = merge_into(operands, result, |operands, count, sink| {
            // SAFETY: the caller has passed state and function together, and all other arguments outlive the call.
            unsafe { (self.full_merge)(state, key, base, operands, count, sink) }
        })?;
        if code == WINDROW_MERGE_DONE {
            Ok(())
        } else {
            Err(MergeError::new("a full merge must have a result"))
        }
    }

    fn partial_merge(
        &self,
        key: &[u8],
        operands: Operands<'_>,
        result: &mut Vec<u8>,
    ) -> Result<bool, MergeError> {
        let Some(partial_merge) = self.partial_merge else {
            return Ok(false);
        };
        let (state, key) = (self.state.pointer, Bytes::of(key));
        let code = merge_into(operands, result, |operands, count, sink| {
            // SAFETY: as for a full merge.
            unsafe { partial_merge(state, key, operands, count, sink) }
        })?;
        Ok(code == WINDROW_MERGE_DONE)
    }
}

/// Gives a keyspace a merge operator of the caller. The database records its name, of 1 to 255 bytes: every later open that
/// reads or folds its operands must give an operator of this name. Names that begin with `windrow.` are taken.
/// `partial_merge` may be null. Options that are freed, and their copies in open databases, share `state`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_options_set_merge_callbacks(
    options: Option<&mut Options>,
    keyspace: *const c_char,
    name: *const c_char,
    full_merge: FullMerge,
    partial_merge: PartialMerge,
    state: *mut c_void,
    free_state: FreeState,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    let state = State {
        pointer: state,
        free: free_state,
    };
    call(error, || {
        let options = given(options, "options")?;
        // SAFETY: the caller promises text.
        let keyspace = unsafe { text(keyspace, "name of the keyspace")? };
        // SAFETY: the same.
        let name = unsafe { text(name, "name of the operator")? };
        let operator = Operator {
            name: name.to_owned(),
            full_merge: not_null(full_merge, "full_merge")?,
            partial_merge,
            state,
        };
        options.0 = options
            .0
            .clone()
            .with_merge_operator(keyspace, Arc::new(operator));
        Ok(())
    })
}

/// An entry about which a compaction filter decides. It is valid during the call that it is passed to.
#[derive(Debug)]
pub struct Candidate<'a>(&'a WindrowCandidate<'a>);

/// The key; no bytes for null.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_candidate_key(candidate: Option<&Candidate<'_>>) -> Bytes {
    candidate.map_or(Bytes::NONE, |candidate| Bytes::of(candidate.0.key()))
}

/// The bytes of the value, which are known without a read; 0 for null.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_candidate_value_length(candidate: Option<&Candidate<'_>>) -> u64 {
    candidate.map_or(0, |candidate| candidate.0.value_bytes())
}

/// When the entry expires, as `windrow_expires_at` says it; `WINDROW_EXPIRY_ABSENT` for null.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_candidate_expires_at(candidate: Option<&Candidate<'_>>) -> u64 {
    expiry_of(candidate.map(|candidate| candidate.0.expiry()))
}

/// The value. This may read it from another file. After an error the entry stays as it is.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_candidate_value(
    candidate: Option<&Candidate<'_>>,
    value: Option<&mut MaybeUninit<Bytes>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call_for(value, Bytes::NONE, error, || {
        let value = not_null(candidate, "candidate")?.0.value();
        let failed =
            |error: FilterError| windrow::Error::new(windrow::ErrorKind::Io, error.to_string());
        value.map(Bytes::of).map_err(failed)
    })
}

/// The entry stays as it is.
pub const WINDROW_FILTER_KEEP: i32 = 0;
/// The entry is removed.
pub const WINDROW_FILTER_REMOVE: i32 = 1;
/// The entry gets the value that is in the sink.
pub const WINDROW_FILTER_REPLACE: i32 = 2;

/// Decides about an entry that a compaction rewrites. Returns one of `WINDROW_FILTER_...`; any other number is an error, and
/// the entry stays. Any thread calls it, several at once. It may read the database, but not write to it, flush, compact or
/// close it. It must not throw.
pub type Filter = Option<
    unsafe extern "C" fn(
        state: *mut c_void,
        candidate: *const Candidate<'_>,
        replacement: *mut Sink,
    ) -> i32,
>;

/// A compaction filter of the caller.
struct CallerFilter {
    name: String,
    decide: unsafe extern "C" fn(*mut c_void, *const Candidate<'_>, *mut Sink) -> i32,
    state: State,
}

impl CompactionFilter for CallerFilter {
    fn name(&self) -> &str {
        &self.name
    }

    fn decide(&self, candidate: &WindrowCandidate<'_>) -> Result<Decision, FilterError> {
        let candidate = Candidate(candidate);
        let mut sink = Sink::new(Vec::new());
        // SAFETY: the caller has passed state and function together, and all other arguments outlive the call.
        match unsafe { (self.decide)(self.state.pointer, &raw const candidate, &raw mut sink) } {
            WINDROW_FILTER_KEEP => Ok(Decision::Keep),
            WINDROW_FILTER_REMOVE => Ok(Decision::Remove),
            WINDROW_FILTER_REPLACE => Ok(Decision::Replace(sink.result)),
            code => Err(FilterError::new(sink.failure("filter", code))),
        }
    }
}

/// Gives a keyspace a compaction filter of the caller, which removes or replaces values that compactions come across. The
/// database records nothing of it. `name` is for people.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_options_set_compaction_filter(
    options: Option<&mut Options>,
    keyspace: *const c_char,
    name: *const c_char,
    filter: Filter,
    state: *mut c_void,
    free_state: FreeState,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    let state = State {
        pointer: state,
        free: free_state,
    };
    call(error, || {
        let options = given(options, "options")?;
        // SAFETY: the caller promises text.
        let keyspace = unsafe { text(keyspace, "name of the keyspace")? };
        // SAFETY: the same.
        let name = unsafe { text(name, "name of the filter")? };
        let filter = CallerFilter {
            name: name.to_owned(),
            decide: not_null(filter, "filter")?,
            state,
        };
        options.0 = options
            .0
            .clone()
            .with_compaction_filter(keyspace, Arc::new(filter));
        Ok(())
    })
}

/// Receives an event as a JSON object, whose member `event` names it: `flush_ended`, `compaction_ended`,
/// `expired_files_dropped`, `garbage_collection_ended`, `stall_began`, `stall_ended`, `consumer_fell_behind`, `no_space`,
/// `space_resumed`, and others that docs/watching.md describes. The text is valid during the call. The thread that causes an
/// event makes the call, which may be a writer: return soon. The listener may read the database, but not write to it, flush,
/// compact or close it. It must not throw.
pub type Listener = Option<unsafe extern "C" fn(state: *mut c_void, event: *const c_char)>;

/// A listener of the caller.
struct CallerListener {
    listener: unsafe extern "C" fn(*mut c_void, *const c_char),
    state: State,
}

impl EventListener for CallerListener {
    fn on_event(&self, event: &Event) {
        let text = serde_json::to_string(event).unwrap_or_default();
        let text = CString::new(text).unwrap_or_default();
        // SAFETY: the caller has passed state and function together, and the text outlives the call.
        unsafe { (self.listener)(self.state.pointer, text.as_ptr()) };
    }
}

/// Notifies `listener` of the events of the database. A later call replaces it.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_options_set_listener(
    options: Option<&mut Options>,
    listener: Listener,
    state: *mut c_void,
    free_state: FreeState,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    let state = State {
        pointer: state,
        free: free_state,
    };
    call(error, || {
        let options = given(options, "options")?;
        let listener = CallerListener {
            listener: not_null(listener, "listener")?,
            state,
        };
        options.0 = options.0.clone().with_listener(Arc::new(listener));
        Ok(())
    })
}
