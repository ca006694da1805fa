//! The sizes of values.

use clap::ValueEnum;

use crate::data::random::mix;

/// The mixes of value sizes of the Parallax paper: small, medium and large values of 9, 104 and 1004
/// bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "verbatim")]
pub enum Mix {
    /// Small values only
    S,
    /// Medium values only
    M,
    /// Large values only
    L,
    /// Small dominated: 60 % small, 20 % medium, 20 % large
    SD,
    /// Medium dominated: 20 % small, 60 % medium, 20 % large
    MD,
    /// Large dominated: 20 % small, 20 % medium, 60 % large
    LD,
}

impl Mix {
    /// Sizes in bytes, each with its percentage.
    pub fn fractions(self) -> [(usize, usize); 3] {
        let [small, medium, large] = match self {
            Self::S => [100, 0, 0],
            Self::M => [0, 100, 0],
            Self::L => [0, 0, 100],
            Self::SD => [60, 20, 20],
            Self::MD => [20, 60, 20],
            Self::LD => [20, 20, 60],
        };
        [(9, small), (104, medium), (1004, large)]
    }
}

/// The sizes of values: each write draws one of a hundred sizes.
#[derive(Debug, Clone)]
pub struct ValueSizes([usize; 100]);

impl ValueSizes {
    /// All values of `size` bytes.
    pub fn same(size: usize) -> Self {
        Self([size; 100])
    }

    /// The sizes of `mix`.
    pub fn mix(mix: Mix) -> Self {
        let mut sizes = [0; 100];
        let all = mix.fractions().into_iter();
        let all = all.flat_map(|(size, fraction)| std::iter::repeat_n(size, fraction));
        for (place, size) in sizes.iter_mut().zip(all) {
            *place = size;
        }
        Self(sizes)
    }

    /// The size of the value whose tag is `tag`.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "any of the bits will do")]
    pub(crate) fn of(&self, tag: u64) -> usize {
        self.0[mix(!tag) as usize % self.0.len()]
    }

    pub(crate) fn largest(&self) -> usize {
        self.0.iter().copied().max().unwrap_or(0)
    }

    pub(crate) fn smallest(&self) -> usize {
        self.0.iter().copied().min().unwrap_or(0)
    }
    /// The average size of a value.
    pub(crate) fn average(&self) -> usize {
        self.0.iter().sum::<usize>() / self.0.len()
    }
}
