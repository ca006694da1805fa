//! Filters: no false negative, and false positives close to theory.

use super::*;
use crate::codec::checksum::key_hash;
use proptest::prelude::*;

fn filter_over(keys: u64, bits_per_key: f64) -> Filter {
    let mut builder = FilterBuilder::default();
    for key in 0..keys {
        builder.add(key_hash(&key.to_le_bytes()));
    }
    builder.unit(0, bits_per_key).unwrap()
}

/// The rate of an unbounded Bloom filter.
fn theory(bits_per_key: f64) -> f64 {
    let probes = f64::from(probes_for(bits_per_key));
    (1.0 - (-probes / bits_per_key).exp()).powf(probes)
}

// I1
#[test]
fn no_key_is_rejected_and_few_others_pass() {
    const KEYS: u64 = 100_000;
    // Bounded lines cost more the more bits there are.
    for (bits_per_key, allowance) in [
        (1.5, 1.05),
        (2.5, 1.05),
        (5.0, 1.10),
        (10.0, 1.35),
        (16.0, 3.0),
    ] {
        let filter = filter_over(KEYS, bits_per_key);
        assert!((0..KEYS).all(|key| filter.may_contain(key_hash(&key.to_le_bytes()))));
        let passed = (KEYS..11 * KEYS)
            .filter(|key| filter.may_contain(key_hash(&key.to_le_bytes())))
            .count();
        let rate = passed as f64 / (10 * KEYS) as f64;
        let expected = theory(bits_per_key);
        println!("{bits_per_key} bits: {rate:.5}, theory {expected:.5}");
        assert!(rate < expected * allowance && rate > expected * 0.9);
        assert!((rate / false_positive_rate(bits_per_key) - 1.0).abs() < 0.1);
        let bits = filter.memory_bytes() as f64 * 8.0 / KEYS as f64;
        assert!((bits - bits_per_key).abs() < 0.01);
    }
}

/// Otherwise the statistics of a forged table took centuries.
#[test]
fn a_filter_for_too_many_keys_passes_all() {
    let rate = |keys| units_rate([5120].into_iter(), keys);
    for keys in [u64::MAX, 1 << 40, 800_000] {
        assert!(rate(keys) >= 1.0);
    }
    let almost_all = rate(400_000);
    assert!((0.9999..1.0).contains(&almost_all), "{almost_all}");
    assert!(rate(80_000) < 0.9);
}

#[test]
fn no_bits_or_no_keys_make_no_filter() {
    let mut builder = FilterBuilder::default();
    assert!(builder.unit(0, 10.0).is_none());
    builder.add(1);
    assert!(builder.unit(0, 0.0).is_none());
}

#[test]
fn present_keys_are_distinguished_from_false_positives() {
    for (asked, passed, rates, expected) in [
        (1000, 0, vec![0.01], 0),
        (1000, 10, vec![0.01], 0),
        (1000, 505, vec![0.01], 500),
        (1000, 1000, vec![0.01], 1000),
        // Several segments, and less than what passes by chance.
        (1000, 190, vec![0.1, 0.1], 0),
        (1000, 595, vec![0.1, 0.1], 500),
        (1000, 100, vec![0.1, 0.1], 0),
        // Filters that reject no key, or almost none.
        (1000, 1000, vec![0.01, 1.0], 1000),
        (1000, 910, vec![0.91], 1000),
        (0, 0, vec![0.01], 0),
        (1000, 0, vec![], 0),
    ] {
        let reported = keys_present(f64::from(asked), f64::from(passed), rates.clone());
        assert_eq!(reported, expected, "{passed} of {asked} pass {rates:?}");
    }
}

#[test]
fn units_are_independent() {
    const KEYS: u64 = 100_000;
    let mut builder = FilterBuilder::default();
    let hash = |key: u64| key_hash(&key.to_le_bytes());
    for key in 0..KEYS {
        builder.add(hash(key));
    }
    let units: Vec<Filter> = (0..4)
        .map(|number| builder.unit(number, 3.0).unwrap())
        .collect();
    let mut passed = [0_u32; 5];
    for key in KEYS..6 * KEYS {
        let first = units.iter().take_while(|unit| unit.may_contain(hash(key)));
        for count in &mut passed[..=first.count()] {
            *count += 1;
        }
    }
    // Each unit passes the same fraction of what the units before it passed.
    let single = f64::from(passed[1]) / f64::from(passed[0]);
    assert!((single / theory(3.0) - 1.0).abs() < 0.1);
    for pair in passed.windows(2) {
        let rate = f64::from(pair[1]) / f64::from(pair[0]);
        assert!((rate / single - 1.0).abs() < 0.05, "{passed:?}");
    }
}

proptest! {
    // I1
    #[test]
    fn added_keys_pass(
        hashes in proptest::collection::vec(any::<u64>(), 1..300),
        bits_per_key in 0.1..64.0f64,
        number in 0..4u8,
    ) {
        let mut builder = FilterBuilder::default();
        for &hash in &hashes {
            builder.add(hash);
        }
        let unit = builder.unit(number, bits_per_key).unwrap();
        prop_assert!(hashes.iter().all(|&hash| unit.may_contain(hash)));
        // A line and the shape alone answer as the unit does.
        let shape = unit.shape();
        let stored = shape.encode();
        prop_assert_eq!(UnitShape::decode(&stored, number.into(), shape.lines), Ok(shape));
        for hash in hashes.iter().flat_map(|hash| [*hash, hash ^ 1]) {
            let line = &unit.lines()[line_number(hash, number.into(), shape.lines)];
            prop_assert_eq!(shape.passes(line, hash), unit.may_contain(hash));
        }
        // I2
        let mut lines = unit.lines().to_vec();
        prop_assert!(Filter::new(shape, lines.clone()).is_some());
        lines.push(lines[0]);
        prop_assert!(Filter::new(shape, lines).is_none());
    }

    #[test]
    fn decoding_anything_never_panics(
        bytes in proptest::collection::vec(any::<u8>(), 0..20),
        number in 0..6_usize,
    ) {
        if let Ok(shape) = UnitShape::decode(&bytes, number, 1) {
            shape.passes(&Line::read(&[9; LINE_BYTES]), u64::MAX);
        }
    }
}
