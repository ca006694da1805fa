//! Loads for callgrind.

use super::*;
use std::hint::black_box;

const N: u64 = 200_000;
const OPS: u64 = 100_000;

fn key(number: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key.copy_from_slice(format!("{number:016}").as_bytes());
    key
}

fn mix(n: u64) -> u64 {
    key_hash(&n.to_le_bytes())
}

#[inline(never)]
fn measured_get(table: &Table, keys: &[[u8; 16]], out: &mut Vec<u8>) -> u64 {
    let mut counters = ReadCounters::default();
    let mut found_count = 0;
    for key in keys {
        if let Some(found) = table
            .get(key, key_hash(key), 1 << 50, &mut counters)
            .unwrap()
        {
            out.clear();
            out.extend_from_slice(found.value());
            found_count += 1;
        }
    }
    black_box(counters);
    found_count
}

#[inline(never)]
fn measured_seek<C: Cursor>(cursor: &mut C, keys: &[[u8; 16]]) -> u64 {
    let mut sum = 0;
    for key in keys {
        cursor.seek(key, 1 << 50).unwrap();
        sum += cursor.value().len() as u64;
    }
    sum
}

#[inline(never)]
fn measured_next<C: Cursor>(cursor: &mut C) -> u64 {
    let mut sum = 0;
    cursor.seek_to_first().unwrap();
    while cursor.is_valid() {
        sum += (cursor.value().len() + cursor.key().len()) as u64;
        cursor.next().unwrap();
    }
    sum
}

#[inline(never)]
fn measured_prev<C: Cursor>(cursor: &mut C) -> u64 {
    let mut sum = 0;
    cursor.seek_to_last().unwrap();
    while cursor.is_valid() {
        sum += (cursor.value().len() + cursor.key().len()) as u64;
        cursor.prev().unwrap();
    }
    sum
}

#[inline(never)]
fn measured_write(entries: &[Owned]) -> (FileMeta, Vec<u8>) {
    write(entries, &plain())
}

#[test]
#[ignore = "a measurement"]
#[expect(clippy::disallowed_methods, reason = "the step is chosen outside")]
fn cost() {
    let step = std::env::var("STEP").unwrap();
    let entries: Vec<Owned> = (0..N)
        .map(|n| Owned::new(&key(n * 5), 1 + mix(n) % 1_000_000, Some(&[b'v'; 100])))
        .collect();
    let (meta, bytes) = measured_write(&entries);
    println!(
        "file {} per entry {}",
        bytes.len(),
        bytes.len() as f64 / N as f64
    );
    let source = if step.ends_with("buf") {
        BlockSource::Buffered
    } else {
        BlockSource::Mapped
    };
    let mut c = context(source);
    c.cache = Arc::new(BlockCache::new(100 << 20));
    let table = Arc::new(
        Table::open(
            MemoryFile::holding(bytes),
            file_name(meta.number),
            &meta,
            c,
            LoadedUnits::ALL,
            None,
        )
        .unwrap(),
    );
    scan(&mut table.cursor(0)).unwrap();
    let hits: Vec<_> = (0..OPS).map(|n| key(mix(n) % N * 5)).collect();
    let misses: Vec<_> = (0..OPS).map(|n| key(mix(n) % N * 5 + 1)).collect();
    let mut out = Vec::with_capacity(200);
    let mut cursor = table.cursor(0);
    match step.trim_end_matches("buf") {
        "hit" => assert_eq!(measured_get(&table, &hits, &mut out), OPS),
        "miss" => assert_eq!(measured_get(&table, &misses, &mut out), 0),
        "seek" => {
            black_box(measured_seek(&mut cursor, &hits));
        }
        "next" => {
            black_box(measured_next(&mut cursor));
        }
        "prev" => {
            black_box(measured_prev(&mut cursor));
        }
        "write" => {}
        _ => panic!(),
    }
}
