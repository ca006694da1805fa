//! What transactions cost: the time of a transaction beside the same calls without it, of `update` beside a get and an
//! insert, and of threads that change the same keys.
//!
//! `cargo run --release -p windrow-bench --example transactions`

#![expect(clippy::print_stdout, reason = "prints its table")]

use std::error::Error;
use std::thread;
use std::time::Duration;

use windrow::runtime::{Runtime, Threads};
use windrow::{Db, Durability, Isolation, Keyspace, Options, Result};

const KEYS: u64 = 1_000_000;
const VALUE: [u8; 100] = [7; 100];
/// Rounds in turn, so that a disturbance meets both sides of a comparison.
const ROUNDS: usize = 5;
const STEPS: u64 = 100_000;
const THREADS: u64 = 4;
const HOT_KEYS: u64 = 1000;

/// A key in an order that looks random.
fn key(step: u64) -> [u8; 16] {
    let number = step.wrapping_mul(0x9E37_79B9_7F4A_7C15) % KEYS;
    let mut key = *b"key-000000000000";
    for (digit, place) in key[4..].iter_mut().rev().zip(0..) {
        *digit += u8::try_from(number / 10_u64.pow(place) % 10).unwrap_or(0);
    }
    key
}

/// The best time of [`STEPS`] calls of each, over some rounds in turn. Each round has its own keys.
fn compare(
    mut one: impl FnMut(u64) -> Result<()>,
    mut other: impl FnMut(u64) -> Result<()>,
) -> Result<[Duration; 2]> {
    let clock = Threads::default();
    let mut best = [Duration::MAX; 2];
    for round in 0..ROUNDS as u64 {
        let calls: [&mut dyn FnMut(u64) -> Result<()>; 2] = [&mut one, &mut other];
        for (turn, (call, best)) in (0..).zip(calls.into_iter().zip(&mut best)) {
            let first = (2 * round + turn) * STEPS;
            let start = clock.now();
            (first..first + STEPS).try_for_each(call)?;
            *best = (*best).min(clock.now().saturating_sub(start));
        }
    }
    Ok(best)
}

fn show(name: &str, [plain, other]: [Duration; 2]) {
    let each = |time: Duration| time.as_secs_f64() * 1e6 / STEPS as f64;
    println!(
        "{name:<44} {:>8.2} {:>8.2} {:>7.2}",
        each(plain),
        each(other),
        plain.as_secs_f64() / other.as_secs_f64()
    );
}

/// Increments the numbers at `keys` in a locking transaction.
fn increment_locked<K: AsRef<[u8]>>(db: &Db, keyspace: &Keyspace, keys: &[K]) -> Result<()> {
    db.transact_locking(Durability::Buffered, |transaction| {
        for key in keys {
            let old = transaction.get_for_update(keyspace, key)?;
            transaction.insert(keyspace, key, incremented(old.as_deref()))?;
        }
        Ok(())
    })
}

/// Increments the numbers at `keys` in an optimistic transaction.
fn increment<K: AsRef<[u8]>>(
    db: &Db,
    keyspace: &Keyspace,
    keys: &[K],
    isolation: Isolation,
) -> Result<()> {
    db.transact_with(isolation, Durability::Buffered, |transaction| {
        for key in keys {
            let old = transaction.get(keyspace, key)?;
            transaction.insert(keyspace, key, incremented(old.as_deref()))?;
        }
        Ok(())
    })
}

/// Another hot key for each one.
fn other(key: &[u8]) -> [u8; 8] {
    let number = key.first_chunk().map_or(0, |it| u64::from_be_bytes(*it));
    (number.wrapping_mul(7919) % HOT_KEYS).to_be_bytes()
}

fn incremented(old: Option<&[u8]>) -> Vec<u8> {
    let old = old.and_then(|bytes| bytes.try_into().ok());
    (old.map_or(0, u64::from_le_bytes) + 1)
        .to_le_bytes()
        .to_vec()
}

/// Changes per second of all threads together.
fn hot_keys(keyspace: &Keyspace, change: impl Fn(&[u8]) -> Result<()> + Sync) -> Result<f64> {
    let clock = Threads::default();
    let start = clock.now();
    thread::scope(|scope| {
        let change = &change;
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                scope.spawn(move || {
                    (0..STEPS / THREADS).try_for_each(|step| {
                        let hot = (thread * STEPS + step).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
                        change(&(hot % HOT_KEYS).to_be_bytes())
                    })
                })
            })
            .collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().unwrap_or(Ok(())))
    })?;
    let rate = STEPS as f64 / clock.now().saturating_sub(start).as_secs_f64();
    let mut sum = 0;
    for entry in keyspace.iter()? {
        sum += entry?
            .1
            .first_chunk()
            .map_or(0, |bytes| u64::from_le_bytes(*bytes));
    }
    assert_eq!(sum % STEPS, 0, "an increment was lost");
    Ok(rate)
}

fn main() -> std::result::Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let db = Db::open(folder.path(), Options::default())?;
    let data = db.keyspace("data")?;
    for step in 0..KEYS {
        data.insert(key(step), VALUE)?;
    }
    db.wait_idle()?;
    println!(
        "{:<44} {:>8} {:>8} {:>7}",
        "microseconds", "plain", "with", "ratio"
    );
    let pair = |step: u64| (key(2 * step), key(2 * step + 1));
    let plain = |step: u64| {
        let (one, two) = pair(step);
        data.get(one)?;
        data.get(two)?;
        data.insert(one, VALUE)?;
        data.insert(two, VALUE)
    };
    for isolation in [Isolation::Serializable, Isolation::Snapshot] {
        let with = |step: u64| {
            let (one, two) = pair(step);
            let transaction = db.transaction_with(isolation);
            transaction.get(&data, one)?;
            transaction.get(&data, two)?;
            transaction.insert(&data, one, VALUE)?;
            transaction.insert(&data, two, VALUE)?;
            transaction.commit()
        };
        let name = format!("two reads and two writes, {isolation:?}");
        show(&name, compare(plain, with)?);
    }
    let locking = |step: u64| {
        let (one, two) = pair(step);
        let transaction = db.locking_transaction();
        transaction.get_for_update(&data, one)?;
        transaction.get_for_update(&data, two)?;
        transaction.insert(&data, one, VALUE)?;
        transaction.insert(&data, two, VALUE)?;
        transaction.commit()
    };
    show(
        "two reads and two writes, locking",
        compare(plain, locking)?,
    );
    let plain = |step: u64| {
        data.get(key(step))?;
        data.insert(key(step), VALUE)
    };
    let update = |step: u64| data.update(key(step), |_| Some(VALUE.to_vec())).map(drop);
    show("get and insert, update", compare(plain, update)?);

    println!("\nthousands of increments per second, {THREADS} threads, {HOT_KEYS} keys");
    let hot = db.keyspace("hot")?;
    let rate = hot_keys(&hot, |key| {
        hot.update(key, |old| Some(incremented(old))).map(drop)
    })?;
    println!("{:<44} {:>8.1}", "update", rate / 1e3);
    for isolation in [Isolation::Serializable, Isolation::Snapshot] {
        let rate = hot_keys(&hot, |key| increment(&db, &hot, &[key], isolation))?;
        println!(
            "{:<44} {:>8.1}",
            format!("transact, {isolation:?}"),
            rate / 1e3
        );
    }
    let rate = hot_keys(&hot, |key| increment_locked(&db, &hot, &[key]))?;
    println!("{:<44} {:>8.1}", "transact_locking", rate / 1e3);
    // In any order, so that deadlocks happen.
    let pairs = db.keyspace("pairs")?;
    let rate = hot_keys(&pairs, |key| {
        increment(&db, &pairs, &[key, &other(key)], Isolation::Serializable)
    })?;
    println!(
        "{:<44} {:>8.1}",
        "two keys, transact, Serializable",
        rate / 1e3
    );
    let rate = hot_keys(&pairs, |key| {
        increment_locked(&db, &pairs, &[key, &other(key)])
    })?;
    println!("{:<44} {:>8.1}", "two keys, transact_locking", rate / 1e3);
    Ok(())
}
