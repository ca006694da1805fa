//! The numbers in the values of counters and of lists of postings.

use windrow::Result;

use crate::load::errors::wrong;
use crate::{DataSet, MergeOperator};

/// Bytes of the number at the start of a counter.
pub(crate) const NUMBER_BYTES: usize = 8;

/// The number in the counter `value` of `key`.
///
/// # Errors
/// `Corruption` if it is no counter. `buffer` may have any contents.
#[inline]
pub(crate) fn number_in(
    data: &DataSet,
    key: &[u8],
    value: &[u8],
    buffer: &mut Vec<u8>,
) -> Result<u64> {
    let number = value.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
    let number = number.filter(|_| {
        value.len() == NUMBER_BYTES || {
            data.value_of_size(key, 0, value.len(), buffer);
            buffer[NUMBER_BYTES..] == value[NUMBER_BYTES..]
        }
    });
    let number = number.filter(|_| value.len() == data.value_size(key, 0));
    number.ok_or_else(|| wrong(key, "has a value that is no counter"))
}

/// Sets the number of the counter `value`.
#[inline]
pub(crate) fn set_number(value: &mut [u8], number: u64) {
    if let Some(bytes) = value.first_chunk_mut() {
        *bytes = number.to_le_bytes();
    }
}

/// Bytes of one posting.
pub(crate) const POSTING_BYTES: usize = 8;

/// The number of postings in the list `value` of `key`, and the sum of them.
///
/// # Errors
/// `Corruption` if it is no list.
pub(crate) fn postings_in(key: &[u8], value: &[u8]) -> Result<(u64, u64)> {
    let (mut count, mut sum, mut rest) = (0, 0_u64, value);
    while let Some((posting, more)) = rest.split_first_chunk::<POSTING_BYTES>() {
        count += 1;
        sum = sum.wrapping_add(u64::from_le_bytes(*posting));
        rest = match more {
            [] => return Ok((count, sum)),
            [MergeOperator::SEPARATOR, more @ ..] => more,
            _ => break,
        };
    }
    Err(wrong(key, "has a value that is no list of postings"))
}
