//! Little-endian base-128 integers: seven bits a byte, low bits first, the high bit set on all
//! bytes but the last. Only the shortest form is valid, so that each number has one encoding.

/// The most bytes that a 64-bit integer takes.
pub(crate) const VARINT_BYTES_MAX: usize = 10;

/// Appends `value` to `buffer`.
#[inline]
pub(crate) fn put_varint(buffer: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        buffer.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    buffer.push(value.to_le_bytes()[0]);
}

/// Appends the length of `bytes`, then the bytes.
#[inline]
pub(crate) fn put_bytes(buffer: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(buffer, bytes.len() as u64);
    buffer.extend_from_slice(bytes);
}

/// Decodes an integer at the front of `bytes`: the value and its encoded length. `None` if it is cut
/// off, not in the shortest form, or beyond 64 bits.
#[inline]
pub(crate) fn get_varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let first = *bytes.first()?;
    if first < 0x80 {
        return Some((u64::from(first), 1));
    }
    get_long_varint(bytes)
}

fn get_long_varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0u64;
    for (index, &byte) in bytes.iter().take(VARINT_BYTES_MAX).enumerate() {
        let bits = u64::from(byte & 0x7f);
        if index == VARINT_BYTES_MAX - 1 && bits > 1 {
            return None;
        }
        value |= bits << (7 * index);
        if byte < 0x80 {
            let shortest = index == 0 || byte != 0;
            return shortest.then_some((value, index + 1));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn round_trips(value: u64, shift in 0..64u32) {
            let value = value >> shift;
            let mut buffer = Vec::new();
            put_varint(&mut buffer, value);
            prop_assert_eq!(get_varint(&buffer), Some((value, buffer.len())));
            buffer.pop();
            prop_assert_eq!(get_varint(&buffer), None);
        }

        #[test]
        fn only_the_shortest_form_is_valid(bytes in proptest::collection::vec(any::<u8>(), 0..12)) {
            if let Some((value, length)) = get_varint(&bytes) {
                let mut buffer = Vec::new();
                put_varint(&mut buffer, value);
                prop_assert_eq!(&bytes[..length], &buffer[..]);
            }
        }
    }
}
