//! The bytes of pointers.

use proptest::prelude::*;

use super::super::pointer::{RECORD_BYTES_MAX, RECORD_BYTES_MIN};
use super::*;
use crate::base::limits::{POINTER_BYTES_MAX, VALUE_BYTES_MAX};

fn encoded(pointer: &ValuePointer) -> Vec<u8> {
    let mut bytes = Vec::new();
    pointer.encode(&mut bytes);
    bytes
}

const LARGEST: ValuePointer = ValuePointer {
    file: FileNumber(u64::MAX),
    offset: u64::MAX - RECORD_BYTES_MAX as u64,
    record_bytes: RECORD_BYTES_MAX as u64,
    value_bytes: VALUE_BYTES_MAX as u64,
};

proptest! {
    #[test]
    fn pointers_round_trip(
        file: u64,
        offset in 0..1u64 << 60,
        record_bytes in RECORD_BYTES_MIN as u64..=RECORD_BYTES_MAX as u64,
        value_bytes in 0..=VALUE_BYTES_MAX as u64,
        shift in 0..60u32,
    ) {
        let pointer = ValuePointer {
            file: FileNumber(file >> shift),
            offset: offset >> shift,
            record_bytes,
            value_bytes,
        };
        let mut bytes = encoded(&pointer);
        prop_assert!(bytes.len() <= POINTER_BYTES_MAX);
        prop_assert_eq!(ValuePointer::decode(&bytes), Ok(pointer));
        bytes.push(0);
        prop_assert!(ValuePointer::decode(&bytes).is_err());
        for length in 0..bytes.len() - 1 {
            prop_assert!(ValuePointer::decode(&bytes[..length]).is_err());
        }
    }

    /// Whatever decodes is what was encoded (I1).
    #[test]
    fn arbitrary_bytes_are_a_pointer_or_an_error(
        bytes in proptest::collection::vec(any::<u8>(), 0..40),
    ) {
        if let Ok(pointer) = ValuePointer::decode(&bytes) {
            prop_assert_eq!(encoded(&pointer), bytes);
            prop_assert!(pointer.record_bytes <= RECORD_BYTES_MAX as u64);
            prop_assert!(pointer.value_bytes <= VALUE_BYTES_MAX as u64);
        }
    }
}

// I1
#[test]
fn impossible_lengths_are_refused() {
    assert_eq!(encoded(&LARGEST).len(), POINTER_BYTES_MAX);
    assert_eq!(ValuePointer::decode(&encoded(&LARGEST)), Ok(LARGEST));
    let changes: [fn(&mut ValuePointer); 6] = [
        |pointer| pointer.record_bytes = 0,
        |pointer| pointer.record_bytes = RECORD_BYTES_MIN as u64 - 1,
        |pointer| pointer.record_bytes += 1,
        |pointer| pointer.record_bytes = u64::MAX,
        |pointer| pointer.value_bytes += 1,
        |pointer| pointer.offset += 1,
    ];
    for change in changes {
        let mut pointer = LARGEST;
        change(&mut pointer);
        assert!(ValuePointer::decode(&encoded(&pointer)).is_err());
    }
}
