//! Sums of 64-bit numbers.
//!
//! Concurrency: no state.

use crate::merge_operator::{MergeError, MergeOperator, Operands};

/// Declares an operator that adds numbers of a type.
macro_rules! add_operator {
    ($(#[$doc:meta])* $operator:ident, $number:ty, $wrapping:literal, $saturating:literal, $combines:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $operator {
            /// A sum beyond the range of the type wraps around.
            Wrapping,
            /// A sum beyond the range of the type stays at its end.
            Saturating,
        }

        impl $operator {
            fn add(self, left: $number, right: $number) -> $number {
                match self {
                    Self::Wrapping => left.wrapping_add(right),
                    Self::Saturating => left.saturating_add(right),
                }
            }

            fn sum(self, base: $number, operands: Operands<'_>) -> Result<$number, MergeError> {
                let mut sum = base;
                for operand in operands {
                    sum = self.add(sum, <$number>::from_le_bytes(number(operand, "an operand")?));
                }
                Ok(sum)
            }
        }

        impl MergeOperator for $operator {
            fn name(&self) -> &str {
                match self {
                    Self::Wrapping => $wrapping,
                    Self::Saturating => $saturating,
                }
            }

            fn full_merge(
                &self,
                _key: &[u8],
                base: Option<&[u8]>,
                operands: Operands<'_>,
                result: &mut Vec<u8>,
            ) -> Result<(), MergeError> {
                let base = base.map_or(Ok([0; 8]), |base| number(base, "the value"))?;
                let sum = self.sum(<$number>::from_le_bytes(base), operands)?;
                result.extend_from_slice(&sum.to_le_bytes());
                Ok(())
            }

            fn partial_merge(
                &self,
                _key: &[u8],
                operands: Operands<'_>,
                result: &mut Vec<u8>,
            ) -> Result<bool, MergeError> {
                let combines: fn(Self, Operands<'_>) -> bool = $combines;
                if !combines(*self, operands.clone()) {
                    return Ok(false);
                }
                result.extend_from_slice(&self.sum(0, operands)?.to_le_bytes());
                Ok(true)
            }
        }
    };
}

add_operator!(
    /// Adds unsigned numbers of 64 bits. A missing value counts as 0.
    ///
    /// ```
    /// # fn main() -> windrow::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// use std::sync::Arc;
    /// use windrow::{Db, Options, operators::AddU64};
    ///
    /// let options = Options::default().with_merge_operator("visits", Arc::new(AddU64::Wrapping));
    /// let db = Db::open(folder.path(), options)?;
    /// let visits = db.keyspace("visits")?;
    /// for _ in 0..3 {
    ///     visits.merge("home", 1_u64.to_le_bytes())?;
    /// }
    /// assert_eq!(visits.get("home")?.as_deref(), Some(&3_u64.to_le_bytes()[..]));
    /// # Ok(())
    /// # }
    /// ```
    AddU64,
    u64,
    "windrow.add_u64.wrapping",
    "windrow.add_u64.saturating",
    |_, _| true
);

add_operator!(
    /// Adds signed numbers of 64 bits. A missing value counts as 0.
    AddI64,
    i64,
    "windrow.add_i64.wrapping",
    "windrow.add_i64.saturating",
    // At an end of the range, +1 and then -1 is not the same as +0. And a sum that stays at an end is not the same
    // as its parts on a base of the other sign.
    |own, operands| own == Self::Wrapping || is_sum_exact(operands)
);

fn number(bytes: &[u8], what: &str) -> Result<[u8; 8], MergeError> {
    bytes.try_into().map_err(|_| {
        MergeError::new(format!(
            "{what} has {} bytes and should have 8",
            bytes.len()
        ))
    })
}

/// Whether these numbers, of which no two have different signs, have a sum within the range. Malformed ones count as 0.
fn is_sum_exact(operands: Operands<'_>) -> bool {
    let (mut sum, mut least, mut greatest) = (Some(0_i64), 0, 0);
    for operand in operands {
        let number = number(operand, "").map_or(0, i64::from_le_bytes);
        sum = sum.and_then(|sum| sum.checked_add(number));
        (least, greatest) = (number.min(least), number.max(greatest));
    }
    sum.is_some() && (least == 0 || greatest == 0)
}
