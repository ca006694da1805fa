//! The keys and values of a run.

use std::collections::BTreeMap;

use clap::ValueEnum;
use windrow::{Result, limits};

use super::args;
use crate::{DataSet, Mix, ValueSizes};

fn data(key_size: usize, value_size: usize) -> Result<DataSet> {
    DataSet::new(1000, key_size, ValueSizes::same(value_size), 1)
}

#[test]
fn keys_are_padded_decimal_numbers() {
    let mut key = Vec::new();
    let data = data(16, 100).unwrap();
    data.key(42, &mut key);
    assert_eq!(key, b"0000000000000042");
    data.missing_key(42, &mut key);
    assert_eq!(key, b"0000000000000042.");
    self::data(20, 100).unwrap().key(7, &mut key);
    assert_eq!(key, b"00000000000000070000");
    self::data(3, 100).unwrap().key(999, &mut key);
    assert_eq!(key, b"999");
    for (key_size, value_size) in [
        (0, 100),
        (2, 100),
        (limits::KEY_BYTES_MAX, 100),
        (16, limits::VALUE_BYTES_MAX + 1),
    ] {
        assert!(self::data(key_size, value_size).is_err());
    }
}

#[test]
fn values_are_checked_byte_by_byte() {
    for value_size in [0, 1, 2, 5, 8, 9, 100, 5000] {
        let data = data(16, value_size).unwrap();
        let (mut key, mut value) = (Vec::new(), Vec::new());
        data.key(5, &mut key);
        data.value(&key, 7, &mut value);
        assert_eq!(value.len(), value_size);
        let checked = data.check(&key, &value).unwrap();
        assert_eq!(
            checked.generation,
            if value_size < 2 {
                checked.generation
            } else {
                7
            }
        );
        for position in 2..value.len() {
            value[position] ^= 1;
            assert!(data.check(&key, &value).is_err(), "byte {position}");
            value[position] ^= 1;
        }
        value.push(0);
        assert!(data.check(&key, &value).is_err());
    }
}

#[test]
fn values_have_the_requested_compression_ratio() {
    let left = |line: &str| {
        let data = args(&format!("fillseq {line}")).data_set().unwrap();
        let block = data.block(64 << 10);
        lz4_flex::block::compress(block).len() as f64 / block.len() as f64
    };
    for ratio in [0.0, 0.2, 0.5, 1.0] {
        let left = left(&format!("--compression_ratio={ratio}"));
        // Each piece also has a token and an offset.
        assert!(left >= ratio && left < ratio + 0.1, "{left} for {ratio}");
    }
    assert!((left("") - left("--compression-ratio 0.5")).abs() < 1e-9);
    for wrong in ["1.1", "-0.1", "nan"] {
        let line = format!("fillseq --compression-ratio={wrong}");
        assert!(args(&line).data_set().is_err(), "{wrong}");
    }
}

#[test]
fn keys_map_back_to_their_records() {
    for key_size in [5, 16, 24] {
        let data = data(key_size, 100).unwrap();
        let mut key = Vec::new();
        for record in 0..1000 {
            data.record_key(record, &mut key);
            assert_eq!(key.len(), key_size);
            assert_eq!(data.record_of(&key), Some(record));
        }
        key[0] = b'x';
        assert_eq!(data.record_of(&key), None);
        assert_eq!(data.record_of(b"0"), None);
    }
}

#[test]
fn random_indexes_cover_the_key_space() {
    let data = DataSet::new(100, 16, ValueSizes::same(0), 9).unwrap();
    let mut met = [false; 100];
    for step in 0..5000 {
        met[usize::try_from(data.random_index(4, step)).unwrap()] = true;
    }
    assert!(met.iter().all(|&met| met));
}

#[test]
fn mixes_have_their_fractions() {
    for mix in Mix::value_variants() {
        let data = DataSet::new(20_000, 24, ValueSizes::mix(*mix), 1).unwrap();
        let (mut key, mut value) = (Vec::new(), Vec::new());
        let mut counts = BTreeMap::new();
        for index in 0..20_000 {
            data.key(index, &mut key);
            data.value(&key, 3, &mut value);
            assert_eq!(data.check(&key, &value).unwrap().generation, 3);
            *counts.entry(value.len()).or_insert(0.0) += 1.0 / 200.0;
        }
        for (size, fraction) in mix.fractions() {
            let percent: f64 = counts.remove(&size).unwrap_or(0.0);
            assert!(
                (percent - fraction as f64).abs() < 2.0,
                "{mix:?} {size}: {percent}"
            );
        }
        assert!(counts.is_empty());
    }
}
