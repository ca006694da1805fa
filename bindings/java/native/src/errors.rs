//! Errors and panics as exceptions of the class `WindrowException`.
//!
//! Concurrency: no state.

use std::any::Any;

use jni::errors::{Error as JavaError, ErrorPolicy};
use jni::objects::{JByteArray, JString, JThrowable, JValue};
use jni::{Env, jni_sig, jni_str};
use windrow::ErrorKind;

/// Why a method has failed.
#[derive(Debug)]
pub(crate) enum Failure {
    Engine(windrow::Error),
    Java(JavaError),
    /// In a thread of its own: a sentence.
    Panic(String),
}

/// What a method returns.
pub(crate) type Outcome<T> = Result<T, Failure>;

impl From<windrow::Error> for Failure {
    fn from(error: windrow::Error) -> Self {
        Self::Engine(error)
    }
}

impl From<JavaError> for Failure {
    fn from(error: JavaError) -> Self {
        Self::Java(error)
    }
}

impl Failure {
    /// What has failed, for errors of another kind.
    pub(crate) fn into_sentence(self) -> String {
        match self {
            Self::Engine(error) => error.to_string(),
            Self::Java(error) => error.to_string(),
            Self::Panic(sentence) => sentence,
        }
    }
}

/// The code of a failure that no kind of errors describes: a panic, or a call of the virtual machine that failed.
const INTERNAL: i32 = 0;

/// The code of a kind: its number in the enumeration `ErrorCode` of Java.
fn code(kind: ErrorKind) -> i32 {
    match kind {
        ErrorKind::InvalidArgument => 1,
        ErrorKind::NotFound => 2,
        ErrorKind::AlreadyExists => 3,
        ErrorKind::Locked => 4,
        ErrorKind::NoSpace => 5,
        ErrorKind::Io => 6,
        ErrorKind::Corruption => 7,
        ErrorKind::Unsupported => 8,
        ErrorKind::Poisoned => 9,
        ErrorKind::Closed => 10,
        ErrorKind::ReadOnly => 11,
        ErrorKind::Conflict => 12,
        ErrorKind::Deadlock => 13,
        ErrorKind::TimedOut => 14,
        ErrorKind::Merge => 15,
        ErrorKind::FellBehind => 16,
        _ => INTERNAL,
    }
}

/// Throws an exception and returns the value that Java ignores.
pub(crate) struct Throw;

impl<T: Default> ErrorPolicy<T, Failure> for Throw {
    type Captures<'local: 'method, 'method> = ();

    fn on_error<'local: 'method, 'method>(
        env: &mut Env<'local>,
        (): &mut (),
        failure: Failure,
    ) -> jni::errors::Result<T> {
        let thrown = match failure {
            Failure::Engine(error) => throw_error(env, &error),
            Failure::Java(JavaError::JavaException) => return Ok(T::default()),
            failure => throw(env, INTERNAL, &failure.into_sentence(), Details::default()),
        };
        ignore_thrown(thrown)
    }

    fn on_panic<'local: 'method, 'method>(
        env: &mut Env<'local>,
        (): &mut (),
        payload: Box<dyn Any + Send>,
    ) -> jni::errors::Result<T> {
        let text = payload
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned());
        let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
        let text = text.unwrap_or_else(|| "a panic without a message".to_owned());
        let message = format!("Windrow has a bug: {text}");
        ignore_thrown(throw(env, INTERNAL, &message, Details::default()))
    }
}

/// The interface reports a thrown exception as an error.
fn ignore_thrown<T: Default>(thrown: jni::errors::Result<()>) -> jni::errors::Result<T> {
    match thrown {
        Ok(()) | Err(JavaError::JavaException) => Ok(T::default()),
        Err(error) => Err(error),
    }
}

/// What an exception has beside its message.
#[derive(Default)]
struct Details<'a> {
    file: Option<String>,
    offset: Option<u64>,
    conflict: Option<(&'a str, &'a [u8])>,
}

fn throw_error(env: &mut Env<'_>, error: &windrow::Error) -> jni::errors::Result<()> {
    let details = Details {
        file: error.file().map(|file| file.display().to_string()),
        offset: error.offset(),
        conflict: error.conflict(),
    };
    throw(env, code(error.kind()), &error.to_string(), details)
}

fn throw(
    env: &mut Env<'_>,
    code: i32,
    message: &str,
    details: Details<'_>,
) -> jni::errors::Result<()> {
    let message = JString::from_str(env, message)?;
    let file = match details.file {
        Some(file) => JString::from_str(env, file)?,
        None => JString::default(),
    };
    let offset = details.offset.and_then(|offset| i64::try_from(offset).ok());
    let (keyspace, key) = match details.conflict {
        Some((keyspace, key)) => (
            JString::from_str(env, keyspace)?,
            env.byte_array_from_slice(key)?,
        ),
        None => (JString::default(), JByteArray::default()),
    };
    let exception = env.new_object(
        jni_str!("io/windrow/WindrowException"),
        jni_sig!("(ILjava/lang/String;Ljava/lang/String;JLjava/lang/String;[B)V"),
        &[
            JValue::Int(code),
            JValue::Object(&message),
            JValue::Object(&file),
            JValue::Long(offset.unwrap_or(-1)),
            JValue::Object(&keyspace),
            JValue::Object(&key),
        ],
    )?;
    let exception = env.cast_local::<JThrowable>(exception)?;
    env.throw(exception)
}
