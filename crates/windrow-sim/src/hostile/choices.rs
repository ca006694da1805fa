//! Choices that bytes make: those of a fuzzer, or those of a seed.
//!
//! Every row of bytes is valid. Behind its end each choice is the first one, so short rows make simple cases.

use crate::Random;

/// Bytes that make choices, one after the other.
#[derive(Debug, Clone)]
pub(super) struct Choices<'a> {
    rest: &'a [u8],
}

impl<'a> Choices<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(super) fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.rest.split_first() else {
            return 0;
        };
        self.rest = rest;
        *first
    }

    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        std::array::from_fn(|_| self.byte())
    }

    pub(super) fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.bytes())
    }

    pub(super) fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.bytes())
    }

    /// A number below `bound`, which is at least 1.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        let chosen = match bound {
            0..=1 => 0,
            2..=0x100 => usize::from(self.byte()),
            0x101..=0x1_0000 => usize::from(u16::from_le_bytes(self.bytes())),
            _ => usize::try_from(self.u32()).unwrap_or(0),
        };
        chosen % bound.max(1)
    }

    /// One of `choices`; `None` if there are none.
    pub(super) fn pick<'c, T>(&mut self, choices: &'c [T]) -> Option<&'c T> {
        choices.get(self.below(choices.len()))
    }

    /// Whether one of `whole` cases, which is not the first one, is chosen.
    pub(super) fn is_one_in(&mut self, whole: usize) -> bool {
        self.below(whole) == whole - 1
    }
}

/// Bytes that choose at random.
pub fn random_choices(seed: u64, count: usize) -> Vec<u8> {
    Random::new(seed).bytes(count)
}
