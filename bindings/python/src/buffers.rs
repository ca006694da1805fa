//! Bytes that come from Python, and bytes that Python reads in place.
//!
//! # Safety argument
//! A call reads its arguments while it is detached from the interpreter, so other threads of Python run meanwhile. Nobody
//! can change a `bytes` object or a [`Value`]. So these are read in place, also behind a `memoryview` of one; the reference
//! that the buffer holds keeps them there. Every other object is copied first: a reader that meets a writer would be a
//! data race, and what reaches the disk would not have the checksum that was computed.
//!
//! A [`Value`] lends its bytes for reading only. They stay in place until it is freed, and each buffer holds a reference
//! to it.
//!
//! Concurrency: any thread.

#![expect(unsafe_code, reason = "the buffer protocol is made of pointers")]

use std::ffi::c_int;
use std::fmt::Write as _;
use std::mem::MaybeUninit;
use std::slice;

use pyo3::Borrowed;
use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView};

/// Bytes that a caller passes.
pub(crate) enum Input<'py> {
    Bytes(Bound<'py, PyBytes>),
    /// A part of an object that nobody can change.
    Part(PyUntypedBuffer),
}

impl Input<'_> {
    pub(crate) fn as_slice(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes.as_bytes(),
            Self::Part(buffer) if buffer.len_bytes() == 0 => &[],
            // SAFETY: the bytes are contiguous, and nobody can change them: see `part`.
            Self::Part(buffer) => unsafe {
                slice::from_raw_parts(buffer.buf_ptr().cast(), buffer.len_bytes())
            },
        }
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for Input<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(bytes) = object.cast::<PyBytes>() {
            return Ok(Self::Bytes(bytes.to_owned()));
        }
        let view = PyMemoryView::from(&object).map_err(|_| {
            let mut message = String::from("bytes or another object with a buffer are expected");
            if let Ok(name) = object.get_type().name() {
                // A string can be written to.
                let _: Result<(), _> = write!(message, ", not {name}");
            }
            PyTypeError::new_err(message)
        })?;
        let owner = view.getattr("obj")?;
        if (owner.is_exact_instance_of::<PyBytes>() || owner.is_instance_of::<Value>())
            && let Some(part) = part(&view)?
        {
            return Ok(Self::Part(part));
        }
        let copy = object.py().get_type::<PyBytes>().call1((view,))?;
        Ok(Self::Bytes(copy.cast_into::<PyBytes>()?))
    }
}

/// The bytes of a view of an object that nobody can change, if they are contiguous.
fn part(view: &Bound<'_, PyMemoryView>) -> PyResult<Option<PyUntypedBuffer>> {
    let buffer = PyUntypedBuffer::get(view)?;
    Ok((buffer.readonly() && buffer.is_c_contiguous()).then_some(buffer))
}

/// Bytes for the buffer protocol: `memoryview(value)` and `bytes(value)`, and `NumPy` and Arrow read them in place.
#[pyclass(frozen, module = "windrow")]
pub(crate) struct Value(Box<dyn AsRef<[u8]> + Send + Sync>);

impl Value {
    pub(crate) fn new(bytes: impl AsRef<[u8]> + Send + Sync + 'static) -> Self {
        Self(Box::new(bytes))
    }

    fn bytes(&self) -> &[u8] {
        (*self.0).as_ref()
    }
}

#[pymethods]
impl Value {
    fn __len__(&self) -> usize {
        self.bytes().len()
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.bytes())
    }

    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let bytes = slf.get().bytes();
        let length = isize::try_from(bytes.len())?;
        let pointer = bytes.as_ptr().cast_mut().cast();
        // SAFETY: Python passes a view to fill in. The bytes outlive it, because it holds a reference to `slf`.
        let code = unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), pointer, length, 1, flags) };
        if code == 0 {
            Ok(())
        } else {
            Err(PyErr::fetch(slf.py()))
        }
    }
}

/// Seconds that a caller passes, as a time to live.
pub(crate) struct Seconds(pub(crate) std::time::Duration);

impl<'a, 'py> FromPyObject<'a, 'py> for Seconds {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let seconds: f64 = object.extract()?;
        Ok(Self(std::time::Duration::try_from_secs_f64(seconds)?))
    }
}

/// Values up to this many bytes are copied at once; longer ones detached, because they may come from the disk.
const COPIED_AT_ONCE: usize = 4096;

/// A value that is in memory as a `bytes` object, if it is short. It runs no other code of Python, so the engine may call it.
pub(crate) fn near_bytes<'py>(py: Python<'py>, value: &[u8]) -> Option<Bound<'py, PyBytes>> {
    (value.len() <= COPIED_AT_ONCE).then(|| PyBytes::new(py, value))
}

/// A value as a `bytes` object, by one copy.
pub(crate) fn to_bytes<'py>(py: Python<'py>, value: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    if value.len() <= COPIED_AT_ONCE {
        return Ok(PyBytes::new(py, value));
    }
    let length = isize::try_from(value.len())?;
    // SAFETY: a null pointer asks for an object whose bytes are not set.
    let object = unsafe { ffi::PyBytes_FromStringAndSize(std::ptr::null(), length) };
    // SAFETY: it is a new reference, or null with an exception.
    let object = unsafe { Bound::from_owned_ptr_or_err(py, object)? };
    // SAFETY: it is a `bytes` object.
    let pointer = unsafe { ffi::PyBytes_AsString(object.as_ptr()) };
    // SAFETY: it has `value.len()` bytes, which nobody else knows yet, and bytes that are not set may be called so.
    let space =
        unsafe { slice::from_raw_parts_mut(pointer.cast::<MaybeUninit<u8>>(), value.len()) };
    py.detach(|| {
        // SAFETY: both have the same length, and one of them is new.
        unsafe {
            (&raw mut *space)
                .cast::<u8>()
                .copy_from_nonoverlapping(value.as_ptr(), value.len());
        };
    });
    Ok(object.cast_into::<PyBytes>()?)
}
