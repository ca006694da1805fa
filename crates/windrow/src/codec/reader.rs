//! A bounded reader over untrusted bytes: every step checks the remaining length.

use super::varint::get_varint;

/// The reason and the offset of a failed decoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DecodeError {
    /// What was expected or found.
    pub(crate) what: &'static str,
    /// The offset in the decoded bytes.
    pub(crate) offset: usize,
    /// Whether the bytes are sound but need a newer version or a feature that is off.
    pub(crate) unsupported: bool,
}

impl DecodeError {
    /// The bytes at `offset` are damaged.
    pub(crate) fn damaged(offset: usize, what: &'static str) -> Self {
        Self {
            what,
            offset,
            unsupported: false,
        }
    }

    /// The bytes at `offset` come from a newer version of the format.
    pub(crate) fn unsupported(offset: usize, what: &'static str) -> Self {
        Self {
            what,
            offset,
            unsupported: true,
        }
    }

    /// Turns this into an [`Error`](crate::Error) for bytes that begin at `base` of `file`.
    pub(crate) fn in_file(self, file: &str, base: u64) -> crate::Error {
        let offset = base + self.offset as u64;
        if self.unsupported {
            crate::Error::new(
                crate::ErrorKind::Unsupported,
                format!(
                    "{file} needs a newer version of Windrow or a feature that is off: {} at offset \
                     {offset}",
                    self.what
                ),
            )
        } else {
            crate::Error::corruption(file, offset, self.what)
        }
    }
}

/// Reads little-endian fields from the front of a byte string.
#[derive(Debug, Clone)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0 }
    }

    /// The number of bytes that were read.
    pub(crate) fn position(&self) -> usize {
        self.position
    }

    /// The remaining bytes.
    pub(crate) fn rest(&self) -> &'a [u8] {
        &self.bytes[self.position..]
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.position == self.bytes.len()
    }

    /// An error at the present position.
    pub(crate) fn error(&self, what: &'static str) -> DecodeError {
        DecodeError::damaged(self.position, what)
    }

    /// An error that says that the bytes come from a newer version.
    pub(crate) fn unsupported(&self, what: &'static str) -> DecodeError {
        DecodeError::unsupported(self.position, what)
    }

    pub(crate) fn array<const N: usize>(
        &mut self,
        what: &'static str,
    ) -> Result<[u8; N], DecodeError> {
        let bytes = self
            .rest()
            .first_chunk::<N>()
            .ok_or_else(|| self.error(what))?;
        self.position += N;
        Ok(*bytes)
    }

    pub(crate) fn u8(&mut self, what: &'static str) -> Result<u8, DecodeError> {
        self.array::<1>(what).map(|[byte]| byte)
    }

    pub(crate) fn u32(&mut self, what: &'static str) -> Result<u32, DecodeError> {
        self.array(what).map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self, what: &'static str) -> Result<u64, DecodeError> {
        self.array(what).map(u64::from_le_bytes)
    }

    pub(crate) fn varint(&mut self, what: &'static str) -> Result<u64, DecodeError> {
        let (value, length) = get_varint(self.rest()).ok_or_else(|| self.error(what))?;
        self.position += length;
        Ok(value)
    }

    /// A variable-length integer that must be at most `max`.
    pub(crate) fn varint_at_most(
        &mut self,
        max: u64,
        what: &'static str,
    ) -> Result<u64, DecodeError> {
        let start = self.clone();
        let value = self.varint(what)?;
        if value > max {
            Err(start.error(what))
        } else {
            Ok(value)
        }
    }

    pub(crate) fn bytes(
        &mut self,
        length: usize,
        what: &'static str,
    ) -> Result<&'a [u8], DecodeError> {
        let bytes = self.rest().get(..length).ok_or_else(|| self.error(what))?;
        self.position += length;
        Ok(bytes)
    }

    /// Bytes after their length, which must be at most `max`.
    pub(crate) fn prefixed_bytes(
        &mut self,
        max: usize,
        what: &'static str,
    ) -> Result<&'a [u8], DecodeError> {
        let start = self.clone();
        let length = self.varint_at_most(max as u64, what)?;
        let length = usize::try_from(length).map_err(|_| start.error(what))?;
        self.bytes(length, what).map_err(|_| start.error(what))
    }

    /// Checks that everything was read.
    pub(crate) fn finish(self, what: &'static str) -> Result<(), DecodeError> {
        if self.is_empty() {
            Ok(())
        } else {
            Err(self.error(what))
        }
    }
}
