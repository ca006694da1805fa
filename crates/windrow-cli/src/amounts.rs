//! Amounts that several commands compute with: whole numbers, and the sizes of values.
//!
//! Concurrency: none; no state.

use windrow::simulation::ValueSize;
use windrow_bench::Mix;

/// The default bytes of a key under a [`Mix`], as in the Parallax paper.
pub(crate) const MIX_KEY_BYTES: u64 = 24;

/// The whole part of a number that is not negative.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the number is not negative, and the cast saturates"
)]
pub(crate) fn whole(number: f64) -> u64 {
    number as u64
}

/// The sizes of `mix` that have values.
pub(crate) fn mix_sizes(mix: Mix) -> Vec<ValueSize> {
    let fractions = mix.fractions().into_iter();
    let present = fractions.filter(|(_, fraction)| *fraction > 0);
    let sizes = present.map(|(bytes, fraction)| ValueSize {
        fraction: fraction as f64,
        bytes: bytes as u64,
    });
    sizes.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixes_have_only_sizes_with_values() {
        assert_eq!(mix_sizes(Mix::M).len(), 1);
        let large = mix_sizes(Mix::LD);
        let sizes: Vec<_> = large
            .iter()
            .map(|it| (it.bytes, whole(it.fraction)))
            .collect();
        assert_eq!(sizes, [(9, 20), (104, 20), (1004, 60)]);
    }

    #[test]
    fn whole_numbers_are_rounded_down_and_saturate() {
        assert_eq!((whole(0.0), whole(2.9), whole(1e30)), (0, 2, u64::MAX));
    }
}
