//! The entries of a view as the buffers of Arrow arrays, without an object for each entry.
//!
//! A column of bytes is a buffer of offsets, 32-bit and in the byte order of the machine, and a buffer of all values, one
//! after the other.
//!
//! Errors: the rows before an error are a chunk of their own; the next one has the error. A value that cannot be read is
//! passed: its error comes once. After an error of a move each later chunk has it, too.
//!
//! Concurrency: a lock for each scan.

use std::mem;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use windrow::Cursor;

use crate::buffers::Value;
use crate::errors::invalid_argument;
use crate::owner::{Held, Owner, detached};

/// A chunk ends at the row with which a column has this many bytes.
const COLUMN_BYTES: usize = 64 << 20;

/// Values of one column.
struct Column {
    offsets: Vec<i32>,
    bytes: Vec<u8>,
}

impl Default for Column {
    fn default() -> Self {
        Self {
            offsets: vec![0],
            bytes: Vec::new(),
        }
    }
}

impl Column {
    fn push(&mut self, value: &[u8]) -> windrow::Result<()> {
        self.bytes.extend_from_slice(value);
        // A value has at most 1 GiB.
        let end = i32::try_from(self.bytes.len())
            .map_err(|_| windrow::Error::invalid_argument("a column has more than 2 GiB"))?;
        self.offsets.push(end);
        Ok(())
    }

    fn buffers(self) -> (Value, Value) {
        let offsets: Vec<u8> = self
            .offsets
            .iter()
            .flat_map(|offset| offset.to_ne_bytes())
            .collect();
        (Value::new(offsets), Value::new(self.bytes))
    }
}

struct State {
    /// `None` at the end.
    cursor: Option<Box<Cursor>>,
    next: Next,
}

/// How the cursor gets to the next row.
enum Next {
    First,
    Step,
    /// It is there: its value could not be read for the chunk before.
    Stay,
}

impl State {
    fn chunk(&mut self, rows: usize, prefix: usize) -> windrow::Result<(Column, Column)> {
        let (mut keys, mut values) = (Column::default(), Column::default());
        let Some(cursor) = &mut self.cursor else {
            return Ok((keys, values));
        };
        while keys.offsets.len() <= rows
            && keys.bytes.len() < COLUMN_BYTES
            && values.bytes.len() < COLUMN_BYTES
        {
            let moved = match mem::replace(&mut self.next, Next::Step) {
                Next::First => cursor.seek_to_first(),
                Next::Step => cursor.next(),
                Next::Stay => Ok(true),
            };
            let has_rows = keys.offsets.len() > 1;
            let value = match moved {
                Ok(true) => cursor.value(),
                Ok(false) => {
                    self.cursor = None;
                    break;
                }
                // The next move has the error, too.
                Err(_) if has_rows => break,
                Err(error) => return Err(error),
            };
            match value {
                Ok(value) => {
                    keys.push(&cursor.key()[prefix..])?;
                    values.push(value)?;
                }
                Err(_) if has_rows => {
                    self.next = Next::Stay;
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        Ok((keys, values))
    }
}

/// An iterator of chunks: the number of rows, offsets and bytes of the keys, and offsets and bytes of the values.
#[pyclass(frozen, module = "windrow._windrow", name = "_ArrayScan")]
pub(crate) struct ArrayScan {
    state: Held<Mutex<State>>,
    prefix: usize,
    rows: usize,
}

impl ArrayScan {
    pub(crate) fn new(
        py: Python<'_>,
        owner: Arc<Owner>,
        cursor: Cursor,
        prefix: usize,
        rows: usize,
    ) -> PyResult<Self> {
        if rows == 0 {
            return Err(invalid_argument(py, "a chunk has at least one row"));
        }
        let state = State {
            cursor: Some(Box::new(cursor)),
            next: Next::First,
        };
        Ok(Self {
            state: Held::new(owner, Mutex::new(state)),
            prefix,
            rows,
        })
    }
}

type Chunk = (usize, Value, Value, Value, Value);

#[pymethods]
impl ArrayScan {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Chunk>> {
        let state = self.state.get(py)?.lock_py_attached(py);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        let chunk = {
            let state = &mut *state;
            detached(py, || state.chunk(self.rows, self.prefix))
        };
        // A new exception can start the collector of garbage, which may call this scan.
        drop(state);
        let (keys, values) = chunk.map_err(|failure| failure.exception(py))?;
        let rows = keys.offsets.len() - 1;
        if rows == 0 {
            return Ok(None);
        }
        let ((key_offsets, keys), (value_offsets, values)) = (keys.buffers(), values.buffers());
        Ok(Some((rows, key_offsets, keys, value_offsets, values)))
    }
}
