//! Compaction filters that are written in Java.
//!
//! # Safety argument
//! Java gets the address of a candidate for the time of one call. Its class `Candidate` passes it on only from the thread of
//! this call, and forgets it before the call ends.
//!
//! Concurrency: any thread calls a filter, also one of the engine.

use jni::objects::{JByteArray, JObject};
use jni::sys::jlong;
use jni::{Env, jni_sig, jni_str};
use windrow::{Candidate, CompactionFilter, Decision, Error, ErrorKind, FilterError};

use crate::errors::Outcome;
use crate::functions::{Argument, Function, Returned};
use crate::handles::method;
use crate::views::milliseconds;

/// An object of the interface `CompactionFilter` of Java.
pub(crate) struct Filter {
    name: String,
    decide: Function,
}

impl Filter {
    pub(crate) fn new(env: &mut Env<'_>, name: &str, object: &JObject<'_>) -> Outcome<Self> {
        Ok(Self {
            name: name.to_owned(),
            decide: Function::new(
                env,
                object,
                jni_str!("decide"),
                jni_sig!("(Lio/windrow/CompactionFilter;[BJJJ)[B"),
            )?,
        })
    }
}

impl CompactionFilter for Filter {
    fn name(&self) -> &str {
        &self.name
    }

    fn decide(&self, candidate: &Candidate<'_>) -> Result<Decision, FilterError> {
        let bytes = jlong::try_from(candidate.value_bytes()).unwrap_or(jlong::MAX);
        let returned = self.decide.call(&[
            Argument::Bytes(Some(candidate.key())),
            Argument::Long(bytes),
            Argument::Long(milliseconds(Some(candidate.expiry()))),
            Argument::Long(std::ptr::from_ref(candidate) as jlong),
        ]);
        Ok(match returned.map_err(FilterError::new)? {
            Returned::Value(value) => Decision::Replace(value),
            Returned::Nothing => Decision::Keep,
            Returned::Removal => Decision::Remove,
        })
    }
}

// The value of a candidate.
method!(Java_io_windrow_Native_candidateValue, env, address: jlong; JByteArray<'local>, {
    #[expect(unsafe_code, reason = "the border to Java")]
    // SAFETY: the candidate lives during the call of the filter, which this thread is in (the safety argument).
    let candidate = unsafe { &*(address as *const Candidate<'_>) };
    let value = candidate.value();
    let value = value.map_err(|error| Error::new(ErrorKind::Io, error.to_string()))?;
    Ok(env.byte_array_from_slice(value)?)
});
