//! Functions of Java that the engine calls: those of merge operators and compaction filters.
//!
//! Any thread may call them. One of the engine becomes a daemon of the virtual machine at its first call, so that the machine
//! does not wait for it, and leaves the machine when it ends. Arguments and results are arrays and numbers; the class
//! `Functions` of Java catches whatever an object of the caller throws. So a call leaves no exception behind, also in a
//! thread of Java that is in a method of this library.
//!
//! # Safety argument
//! The number of a method is used with the class from which it comes, which lives as long, and with the arguments of its
//! signature: each function that calls it is beside its signature (`operators.rs`, `filters.rs`).
//!
//! Concurrency: any thread. No lock is held during a call.

#![expect(unsafe_code, reason = "the border to Java")]

use std::ffi::{CString, c_void};
use std::ptr;
use std::thread;

use jni::objects::{Global, JByteArray, JClass, JObject, JStaticMethodID, JValue};
use jni::signature::{MethodSignature, ReturnType};
use jni::strings::JNIStr;
use jni::sys::{JNI_OK, JNI_VERSION_1_8, JavaVMAttachArgs, jvalue};
use jni::{Env, JavaVM, jni_str};

use crate::arguments::Bytes;
use crate::errors::{Failure, Outcome};

/// A static method of the class `Functions`, with the object of the caller that is its first argument.
pub(crate) struct Function {
    class: Global<JClass<'static>>,
    object: Global<JObject<'static>>,
    method: JStaticMethodID,
}

/// A further argument.
pub(crate) enum Argument<'a> {
    Bytes(Option<&'a [u8]>),
    Long(i64),
}

/// What a function returns: the first byte of its array says which. The numbers are those of the class `Functions`.
pub(crate) enum Returned {
    Value(Vec<u8>),
    Nothing,
    Removal,
}

impl Function {
    /// The method of this name and signature, for the object of a caller.
    pub(crate) fn new(
        env: &mut Env<'_>,
        object: &JObject<'_>,
        name: &JNIStr,
        signature: MethodSignature<'_, '_>,
    ) -> Outcome<Self> {
        let class = env.find_class(jni_str!("io/windrow/Functions"))?;
        Ok(Self {
            method: env.get_static_method_id(&class, name, signature)?,
            class: env.new_global_ref(&class)?,
            object: env.new_global_ref(object)?,
        })
    }

    /// Calls it. The error is a sentence: what the object has thrown, or why there was no call.
    pub(crate) fn call(&self, arguments: &[Argument<'_>]) -> Result<Returned, String> {
        let called = JavaVM::singleton().map_err(Failure::Java).and_then(|vm| {
            attach(&vm)?;
            vm.attach_current_thread(|env| self.call_attached(env, arguments))
        });
        called.map_err(Failure::into_sentence)?
    }

    fn call_attached(
        &self,
        env: &mut Env<'_>,
        arguments: &[Argument<'_>],
    ) -> Outcome<Result<Returned, String>> {
        let mut values = vec![JValue::Object(self.object.as_obj()).as_jni()];
        for argument in arguments {
            values.push(passed(env, argument)?);
        }
        // SAFETY: the module's safety argument.
        let returned = unsafe {
            env.call_static_method_unchecked(&self.class, self.method, ReturnType::Array, &values)
        };
        let returned = returned?.l()?;
        // SAFETY: all methods of the class return arrays of bytes.
        let returned = unsafe { JByteArray::from_raw(env, returned.into_raw()) };
        decoded(env, &returned)
    }
}

/// An argument as Java has it. The frame of the call has the reference.
fn passed(env: &mut Env<'_>, argument: &Argument<'_>) -> Outcome<jvalue> {
    Ok(match argument {
        Argument::Bytes(None) => JValue::Object(&JObject::null()).as_jni(),
        Argument::Bytes(Some(bytes)) => {
            let array = env.byte_array_from_slice(bytes)?;
            JValue::Object(&array).as_jni()
        }
        Argument::Long(number) => JValue::Long(*number).as_jni(),
    })
}

fn decoded(env: &Env<'_>, returned: &JByteArray<'_>) -> Outcome<Result<Returned, String>> {
    let length = returned.len(env)?;
    let code = Bytes::of_region(env, returned, 0, 1)?;
    let rest = || Bytes::of_region(env, returned, 1, length - 1).map(|bytes| bytes.to_vec());
    Ok(match code.first() {
        Some(0) => Ok(Returned::Value(rest()?)),
        Some(1) => Ok(Returned::Nothing),
        Some(2) => Ok(Returned::Removal),
        _ => Err(String::from_utf8_lossy(&rest()?).into_owned()),
    })
}

/// A thread of the engine that the virtual machine knows. It leaves the machine at its end.
struct Attached(JavaVM);

thread_local! {
    static ATTACHED: std::cell::OnceCell<Attached> = const { std::cell::OnceCell::new() };
}

/// Makes this thread a daemon of the virtual machine, if the machine does not know it.
#[expect(
    clippy::multiple_unsafe_ops_per_block,
    reason = "one call through the table of the machine"
)]
fn attach(vm: &JavaVM) -> Outcome<()> {
    if vm.is_thread_attached()? {
        return Ok(());
    }
    let name = CString::new(thread::current().name().unwrap_or("windrow")).unwrap_or_default();
    let mut arguments = JavaVMAttachArgs {
        version: JNI_VERSION_1_8,
        name: name.as_ptr().cast_mut(),
        group: ptr::null_mut(),
    };
    let mut env: *mut c_void = ptr::null_mut();
    // SAFETY: the machine lives as long as the process, and copies the arguments.
    let attached = unsafe {
        ((**vm.get_raw()).v1_4.AttachCurrentThreadAsDaemon)(
            vm.get_raw(),
            &raw mut env,
            (&raw mut arguments).cast(),
        )
    };
    if attached != JNI_OK {
        let message = format!("the virtual machine takes no thread: {attached}");
        return Err(windrow::Error::new(windrow::ErrorKind::Io, message).into());
    }
    ATTACHED.with(|kept| kept.set(Attached(vm.clone())).ok());
    Ok(())
}

impl Drop for Attached {
    #[expect(
        clippy::multiple_unsafe_ops_per_block,
        reason = "one call through the table of the machine"
    )]
    fn drop(&mut self) {
        // SAFETY: this thread was attached, and has no frame of Java.
        unsafe { ((**self.0.get_raw()).v1_4.DetachCurrentThread)(self.0.get_raw()) };
    }
}
