//! Arrays that have several values one after the other. Numbers are little-endian.
//!
//! Concurrency: no state.

use windrow::{Error, Result};

/// Reads values of an array that the Java side has written.
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> Result<u8> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn long(&mut self) -> Result<i64> {
        Ok(i64::from_le_bytes(self.array()?))
    }

    pub(crate) fn length(&mut self) -> Result<usize> {
        Ok(u32::from_le_bytes(self.array()?) as usize)
    }

    /// Bytes behind their length.
    pub(crate) fn bytes(&mut self) -> Result<&'a [u8]> {
        let length = self.length()?;
        let (bytes, rest) = self.0.split_at_checked(length).ok_or_else(ends)?;
        self.0 = rest;
        Ok(bytes)
    }

    pub(crate) fn text(&mut self) -> Result<&'a str> {
        let text = std::str::from_utf8(self.bytes()?);
        text.map_err(|error| Error::invalid_argument(error.to_string()))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk().ok_or_else(ends)?;
        self.0 = rest;
        Ok(*array)
    }
}

fn ends() -> Error {
    Error::invalid_argument("the array ends before its last value")
}

/// Appends bytes behind their length.
///
/// # Errors
/// `InvalidArgument` if an array of Java cannot have so many.
pub(crate) fn push(array: &mut Vec<u8>, bytes: &[u8]) -> Result<()> {
    let length = i32::try_from(bytes.len()).map_err(|_| too_long())?;
    array.extend_from_slice(&length.to_le_bytes());
    array.extend_from_slice(bytes);
    Ok(())
}

/// Several texts as one array.
pub(crate) fn texts<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> Result<Vec<u8>> {
    let mut array = Vec::new();
    for text in texts {
        push(&mut array, text.as_ref().as_bytes())?;
    }
    Ok(array)
}

pub(crate) fn too_long() -> Error {
    Error::invalid_argument("an array of Java has at most 2147483647 bytes")
}
