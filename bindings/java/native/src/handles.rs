//! Handles: objects of Rust that Java names by their addresses.
//!
//! # Safety argument
//! Java gets an address only from [`give`] and passes it on only through the class `Handle`, which is final and not
//! public. It notes the kind of each address, so that each method gets those of its kind. It counts the calls that have the
//! address, refuses further ones after a close, and calls `free` once, when there is none. So an address that arrives in a
//! method is that of an object of the right type, which lives until the method ends.
//!
//! Addresses of two other kinds have their own arguments: that of a scratch (`arguments.rs`), and that of a candidate
//! (`filters.rs`).
//!
//! The functions that [`method`] defines have the names by which Java finds them, and no others of the process have these.
//!
//! Concurrency: any thread. What a handle gives is shared, so its type must allow it.

#![expect(unsafe_code, reason = "the border to Java")]

use std::marker::PhantomData;
use std::ops::Deref;

use jni::sys::jlong;
use windrow_ffi::catch;

/// Defines the method `Native.$method`: what `$body` returns, or the exception that its error or panic becomes.
macro_rules! method {
    ($function:ident, $env:ident $(, $argument:ident: $type:ty)*; $result:ty, $body:block) => {
        #[expect(unsafe_code, reason = "the name by which Java finds the method")]
        #[unsafe(no_mangle)]
        extern "system" fn $function<'local>(
            mut unowned: jni::EnvUnowned<'local>,
            _class: jni::objects::JClass<'local>,
            $($argument: $type),*
        ) -> $result {
            let outcome = unowned.with_env(|$env| -> $crate::errors::Outcome<$result> { $body });
            outcome.resolve::<$crate::errors::Throw>()
        }
    };
}
pub(crate) use method;

/// The address of a `T`, as Java passes it.
#[repr(transparent)]
pub(crate) struct Handle<T> {
    address: jlong,
    _target: PhantomData<*const T>,
}

impl<T> Handle<T> {
    /// An address of an array that Java has made of leased ones.
    pub(crate) fn from_array(address: jlong) -> Self {
        Self {
            address,
            _target: PhantomData,
        }
    }
}

impl<T: Send + Sync> Handle<T> {
    /// The object; none for the address 0.
    pub(crate) fn optional(&self) -> Option<&T> {
        (self.address != 0).then(|| &**self)
    }
}

impl<T: Send + Sync> Deref for Handle<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: it comes from `give`, and Java has leased it (the safety argument).
        unsafe { &*(self.address as *const T) }
    }
}

/// Moves `object` to Java, which frees it later.
pub(crate) fn give<T: Send + Sync>(object: T) -> jlong {
    Box::into_raw(Box::new(object)) as jlong
}

/// The address of a part of an object that Java has: it lives as long.
pub(crate) fn part<T: Send + Sync>(part: &T) -> jlong {
    std::ptr::from_ref(part) as jlong
}

/// Drops what Java had. A panic of the drop becomes a sentence.
pub(crate) fn free<T>(address: jlong) -> Result<(), String> {
    // SAFETY: it comes from `give`, and Java frees it once (the safety argument).
    let object = unsafe { Box::from_raw(address as *mut T) };
    catch(|| drop(object))
}
