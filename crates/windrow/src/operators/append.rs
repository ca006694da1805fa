//! Appended bytes.
//!
//! Concurrency: no state.

use crate::merge_operator::{MergeError, MergeOperator, Operands};

/// Appends each operand to the value, with a separator between two. A missing value becomes the first operand.
///
/// ```
/// # fn main() -> windrow::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// use std::sync::Arc;
/// use windrow::{Db, Options, operators::Append};
///
/// let options = Options::default().with_merge_operator("log", Arc::new(Append::new(", ")));
/// let db = Db::open(folder.path(), options)?;
/// let log = db.keyspace("log")?;
/// log.merge("today", "rose")?;
/// log.merge("today", "read")?;
/// assert_eq!(log.get("today")?.as_deref(), Some(&b"rose, read"[..]));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Append {
    separator: Vec<u8>,
    name: String,
}

const PREFIX: &str = "windrow.append.";

fn hex_digit(value: u8) -> char {
    char::from_digit(u32::from(value), 16).unwrap_or('0')
}

impl Append {
    /// With `separator`, which may be empty, between two operands. It is part of the name.
    pub fn new(separator: impl AsRef<[u8]>) -> Self {
        let separator = separator.as_ref().to_vec();
        let mut name = PREFIX.to_owned();
        for byte in &separator {
            name.extend([byte >> 4, byte & 15].map(hex_digit));
        }
        Self { separator, name }
    }

    pub(super) fn from_name(name: &str) -> Option<Self> {
        let hex = name.strip_prefix(PREFIX)?;
        let pair = |start| u8::from_str_radix(hex.get(start..start + 2)?, 16).ok();
        let separator: Option<Vec<u8>> = (0..hex.len()).step_by(2).map(pair).collect();
        Some(Self::new(separator?)).filter(|it| it.name == name)
    }

    fn join<'a>(&self, parts: impl Iterator<Item = &'a [u8]>, result: &mut Vec<u8>) {
        for (index, part) in parts.enumerate() {
            if index > 0 {
                result.extend_from_slice(&self.separator);
            }
            result.extend_from_slice(part);
        }
    }
}

impl MergeOperator for Append {
    fn name(&self) -> &str {
        &self.name
    }

    fn full_merge(
        &self,
        _key: &[u8],
        base: Option<&[u8]>,
        operands: Operands<'_>,
        result: &mut Vec<u8>,
    ) -> Result<(), MergeError> {
        self.join(base.into_iter().chain(operands), result);
        Ok(())
    }

    fn partial_merge(
        &self,
        _key: &[u8],
        operands: Operands<'_>,
        result: &mut Vec<u8>,
    ) -> Result<bool, MergeError> {
        self.join(operands, result);
        Ok(true)
    }
}
