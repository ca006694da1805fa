//! The interface of merge operators.
//!
//! Concurrency: an operator is called from any number of threads at once.

use std::fmt;

/// How the operands of a keyspace change the values of its keys.
///
/// [`Keyspace::merge`](crate::Keyspace::merge) writes an operand without a read. Whoever needs the value folds the
/// operands into it: a read for its result, a flush or a compaction for what it writes. They may fold the same operands
/// at any time, any number of times, and on several threads. So both functions depend on their arguments only, and an
/// operator with this name must give the same results for as long as the data lives.
///
/// An error or a panic of an operator loses nothing. A read of the key returns the error, and flushes and compactions
/// keep its operands as they are. Other keys are not affected. With `panic = "abort"` a panic ends the process.
///
/// [`operators`](crate::operators) has ready ones.
///
/// ```
/// use windrow::{MergeError, MergeOperator, Operands};
///
/// /// Keeps the longest word.
/// struct Longest;
///
/// impl MergeOperator for Longest {
///     fn name(&self) -> &str {
///         "example.longest"
///     }
///
///     fn full_merge(
///         &self,
///         _key: &[u8],
///         base: Option<&[u8]>,
///         operands: Operands<'_>,
///         result: &mut Vec<u8>,
///     ) -> Result<(), MergeError> {
///         let words = base.into_iter().chain(operands);
///         result.extend_from_slice(words.max_by_key(|word| word.len()).unwrap_or_default());
///         Ok(())
///     }
///
///     fn partial_merge(
///         &self,
///         key: &[u8],
///         operands: Operands<'_>,
///         result: &mut Vec<u8>,
///     ) -> Result<bool, MergeError> {
///         // The longest of some words is itself a word to compare with others.
///         self.full_merge(key, None, operands, result).map(|()| true)
///     }
/// }
///
/// # fn main() -> windrow::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// use std::sync::Arc;
/// use windrow::{Db, Options};
///
/// let options = Options::default().with_merge_operator("words", Arc::new(Longest));
/// let db = Db::open(folder.path(), options)?;
/// let words = db.keyspace("words")?;
/// words.merge("w", "wind")?;
/// words.merge("w", "windrow")?;
/// words.merge("w", "winter")?;
/// assert_eq!(words.get("w")?.as_deref(), Some(&b"windrow"[..]));
/// # Ok(())
/// # }
/// ```
pub trait MergeOperator: Send + Sync {
    /// The name, of 1 to 255 bytes, which the database records. It stands for the operator and for the form of its
    /// operands. Names that begin with `windrow.` are those of [`operators`](crate::operators).
    fn name(&self) -> &str;

    /// Appends to `result`, which is empty, the value of `key` after all `operands`, at least one, were applied to
    /// `base`, or to no value. It has at most 1 GiB.
    ///
    /// # Errors
    /// If there is no such value, for example because an operand is malformed.
    fn full_merge(
        &self,
        key: &[u8],
        base: Option<&[u8]>,
        operands: Operands<'_>,
        result: &mut Vec<u8>,
    ) -> Result<(), MergeError>;

    /// Appends to `result`, which is empty, one operand with the effect of all `operands`, at least two, in their
    /// order and on any base. Returns whether it did. The default is never to do so: then operands stay until their
    /// base is known.
    ///
    /// # Errors
    /// As [`full_merge`](Self::full_merge).
    fn partial_merge(
        &self,
        key: &[u8],
        operands: Operands<'_>,
        result: &mut Vec<u8>,
    ) -> Result<bool, MergeError> {
        let _ = (key, operands, result);
        Ok(false)
    }
}

/// The operands of a key, oldest first.
#[derive(Debug, Clone)]
pub struct Operands<'a>(std::slice::Iter<'a, &'a [u8]>);

impl<'a> Operands<'a> {
    /// The operands in `oldest_first`.
    pub fn new(oldest_first: &'a [&'a [u8]]) -> Self {
        Self(oldest_first.iter())
    }
}

impl<'a> Iterator for Operands<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        self.0.next().copied()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl DoubleEndedIterator for Operands<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.0.next_back().copied()
    }
}

impl ExactSizeIterator for Operands<'_> {}

/// Why an operator could not fold operands.
#[derive(Debug)]
pub struct MergeError(String);

impl MergeError {
    /// An error that says `message`.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl fmt::Display for MergeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for MergeError {}
