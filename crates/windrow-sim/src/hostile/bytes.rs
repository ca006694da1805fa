//! Numbers, checksums and changes of bytes, as `docs/format.md` has them.
//!
//! This is written from the document and has no code in common with the engine: a wrong checksum here would hide everything behind
//! it, which the corpus shows at once, because no change would get past it.

use super::choices::Choices;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// The seed of a checksum for bytes at `offset` of segment `segment` of file `file`.
pub(super) fn seed(file: u64, segment: u64, offset: u64) -> u64 {
    file.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(21)
        ^ segment.wrapping_mul(0xc2b2_ae3d_27d4_eb4f).rotate_left(42)
        ^ offset.wrapping_mul(0x1656_67b1_9e37_79f9)
}

pub(super) fn checksum(seed: u64, bytes: &[u8]) -> [u8; 4] {
    let [a, b, c, d, ..] = xxh3_64_with_seed(bytes, seed).to_le_bytes();
    [a, b, c, d]
}

/// The part of the seed of a value's record that its key makes.
pub(super) fn key_seed(key: &[u8]) -> u64 {
    xxh3_64(key)
}

/// Takes a varint from the front of `bytes`.
pub(crate) fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// Takes `count` bytes from the front.
pub(super) fn take<'a>(bytes: &mut &'a [u8], count: u64) -> Option<&'a [u8]> {
    let (front, rest) = bytes.split_at_checked(usize::try_from(count).ok()?)?;
    *bytes = rest;
    Some(front)
}

/// Takes bytes after their length.
pub(super) fn take_prefixed<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = take_varint(bytes)?;
    take(bytes, length)
}

pub(super) fn put_varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    bytes.push(value.to_le_bytes()[0]);
}

pub(super) fn put_prefixed(bytes: &mut Vec<u8>, content: &[u8]) {
    put_varint(bytes, content.len() as u64);
    bytes.extend_from_slice(content);
}

/// Numbers at which decoders go wrong.
const NUMBERS: [u64; 24] = [
    0,
    1,
    2,
    127,
    128,
    255,
    4096,
    65_535,
    65_536,
    1 << 20,
    (1 << 20) + 1,
    1 << 25,
    (1 << 25) + 1,
    1 << 30,
    0xffff_ffff,
    1 << 32,
    1 << 48,
    (1 << 56) - (1 << 40),
    (1 << 56) - 1,
    1 << 56,
    0x7fff_ffff_ffff_ffff,
    1 << 63,
    u64::MAX - 1,
    u64::MAX,
];

/// A number, most often one of those at which decoders go wrong.
pub(super) fn number(choices: &mut Choices<'_>) -> u64 {
    match choices.below(NUMBERS.len() + 2) {
        0 => choices.u64(),
        1 => u64::from(choices.byte()),
        index => NUMBERS[index - 2],
    }
}

/// Changes `bytes`, whose length stays.
pub(super) fn change_in_place(bytes: &mut [u8], choices: &mut Choices<'_>) {
    if bytes.is_empty() {
        return;
    }
    let at = choices.below(bytes.len());
    let rest = &mut bytes[at..];
    match choices.below(6) {
        0 => rest[0] = choices.byte(),
        1 => rest[0] ^= 1 << choices.below(8),
        2 => {
            let number = number(choices).to_le_bytes();
            let width = [2, 4, 8][choices.below(3)].min(rest.len());
            rest[..width].copy_from_slice(&number[..width]);
        }
        3 => {
            // The varint here gets another value of the same length.
            let length = rest.iter().take_while(|byte| **byte >= 0x80).count() + 1;
            let length = length.min(10).min(rest.len());
            let Some((last, before)) = rest[..length].split_last_mut() else {
                return;
            };
            before.fill(0xff);
            *last = choices.byte() & 0x7f;
        }
        4 => {
            let length = 1 + choices.below(rest.len().min(32));
            let filler = choices.byte();
            rest[..length].fill(filler);
        }
        _ => {
            let length = 1 + choices.below(rest.len().min(32));
            let from = choices.below(bytes.len() - length + 1);
            bytes.copy_within(from..from + length, at);
        }
    }
}

/// Changes `bytes`, also their length.
pub(super) fn change(bytes: &mut Vec<u8>, choices: &mut Choices<'_>) {
    let at = choices.below(bytes.len() + 1);
    match choices.below(6) {
        0 | 1 => change_in_place(bytes, choices),
        2 => {
            let mut rest = &bytes[at..];
            let before = rest.len();
            if take_varint(&mut rest).is_some() {
                let length = before - rest.len();
                let mut other = Vec::new();
                put_varint(&mut other, number(choices));
                bytes.splice(at..at + length, other);
            }
        }
        3 => {
            let end = (at + 1 + choices.below(32)).min(bytes.len());
            bytes.drain(at..end);
        }
        4 => {
            let end = (at + 1 + choices.below(64)).min(bytes.len());
            let times = 1 + choices.below(3);
            let repeated = bytes[at..end].repeat(times);
            bytes.splice(at..at, repeated);
        }
        _ => {
            let length = choices.below(16);
            let inserted: Vec<u8> = (0..length).map(|_| choices.byte()).collect();
            bytes.splice(at..at, inserted);
        }
    }
}
