//! Counters and postings by operands, beside inserts and beside reads followed by inserts.
//!
//! `cargo run --release -p windrow-bench --example operands -- DIR [KEYS [OPERATIONS [ROUNDS]]]`
//!
//! Each round runs every kind of work once on its own keyspace, so a disturbance meets all of them. A line has the
//! median and the least of all rounds.

#![expect(clippy::print_stdout, reason = "it reports to a terminal")]
#![expect(clippy::disallowed_methods, reason = "it measures with the real clock")]

use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use windrow::operators::{AddU64, Append};
use windrow::{Db, Keyspace, Options};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// A generator of keys: the same for each kind of work.
struct Keys {
    state: u64,
    count: u64,
}

impl Keys {
    fn new(seed: u64, count: u64) -> Self {
        Self { state: seed, count }
    }

    fn next(&mut self) -> [u8; 16] {
        self.state = self
            .state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let number = (self.state >> 33) % self.count;
        let mut key = *b"counter/00000000";
        key[8..].copy_from_slice(&number.to_be_bytes());
        key
    }
}

fn number(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_le_bytes)
}

/// One kind of work: its name and its operation.
type Work = (
    &'static str,
    fn(&Keyspace, [u8; 16], &mut Vec<u8>) -> windrow::Result<()>,
);

const WORK: [Work; 5] = [
    ("insert", |map, key, _| map.insert(key, 1_u64.to_le_bytes())),
    ("merge", |map, key, _| map.merge(key, 1_u64.to_le_bytes())),
    ("get and insert", |map, key, buffer| {
        map.get_into(key, buffer)?;
        map.insert(key, (number(buffer) + 1).to_le_bytes())
    }),
    ("merge and get", |map, key, buffer| {
        map.merge(key, 1_u64.to_le_bytes())?;
        map.get_into(key, buffer).map(drop)
    }),
    ("insert and get", |map, key, buffer| {
        map.insert(key, 1_u64.to_le_bytes())?;
        map.get_into(key, buffer).map(drop)
    }),
];

/// Seconds of `operations` operations.
fn time(operations: u64, mut work: impl FnMut() -> windrow::Result<()>) -> Outcome<f64> {
    let start = Instant::now();
    for _ in 0..operations {
        work()?;
    }
    Ok(start.elapsed().as_secs_f64())
}

fn report(name: &str, operations: u64, mut seconds: Vec<f64>) {
    seconds.sort_by(f64::total_cmp);
    let nanos = |seconds: f64| seconds * 1e9 / operations as f64;
    let (median, least) = (seconds[seconds.len() / 2], seconds[0]);
    println!(
        "{name:<36}{:>8.0} ns{:>8.0} ns at least",
        nanos(median),
        nanos(least)
    );
}

fn counters(path: &std::path::Path, keys: u64, operations: u64, rounds: usize) -> Outcome<()> {
    let mut options = Options::default();
    for (name, _) in WORK {
        options = options.with_merge_operator(name, Arc::new(AddU64::Wrapping));
    }
    let db = Db::open(path, options)?;
    let maps: Vec<_> = WORK
        .iter()
        .map(|(name, _)| db.keyspace(name))
        .collect::<windrow::Result<_>>()?;
    let mut buffer = Vec::new();
    // Of the work, of the first gets after it, and of later ones.
    let mut seconds = vec![[const { Vec::new() }; 3]; WORK.len()];
    for round in 0..rounds {
        for (index, ((_, work), seconds)) in WORK.iter().zip(&mut seconds).enumerate() {
            let [written, reads @ ..] = seconds;
            let mut drawn = Keys::new(round as u64, keys);
            written.push(time(operations, || {
                work(&maps[index], drawn.next(), &mut buffer)
            })?);
            for read in reads {
                let mut drawn = Keys::new(round as u64 + 1000, keys);
                read.push(time(operations, || {
                    maps[index].get_into(drawn.next(), &mut buffer).map(drop)
                })?);
            }
        }
    }
    println!("{keys} keys, {operations} operations, {rounds} rounds");
    for ((name, _), seconds) in WORK.iter().zip(seconds) {
        let [work, first, later] = seconds;
        report(name, operations, work);
        report(&format!("  first gets after \"{name}\""), operations, first);
        report(&format!("  later gets after \"{name}\""), operations, later);
    }
    db.close()?;
    Ok(())
}

/// Postings of `words` words, of which each document has 80.
fn postings(path: &std::path::Path, is_merged: bool, documents: u32, words: u64) -> Outcome<()> {
    let options = Options::default().with_merge_operator("postings", Arc::new(Append::new("")));
    let db = Db::open(path, options)?;
    let map = db.keyspace("postings")?;
    let mut drawn = Keys::new(1, words);
    let mut list = Vec::new();
    let start = Instant::now();
    for document in 0..documents {
        for _ in 0..80 {
            let word = drawn.next();
            if is_merged {
                map.merge(word, document.to_be_bytes())?;
            } else {
                map.get_into(word, &mut list)?;
                list.extend_from_slice(&document.to_be_bytes());
                map.insert(word, &list)?;
            }
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    db.flush()?;
    db.wait_idle()?;
    let mut bytes = 0;
    for entry in map.iter()? {
        bytes += entry?.1.len() as u64;
    }
    let written = db.stats().lifetime;
    println!(
        "postings by {}: {:.1} MiB; {:.1} s; callers wrote {:.1} MiB, the engine {:.1} MiB",
        if is_merged { "merge" } else { "get and insert" },
        bytes as f64 / f64::from(1 << 20),
        seconds,
        written.user_bytes as f64 / f64::from(1 << 20),
        written.written_bytes() as f64 / f64::from(1 << 20)
    );
    db.close()?;
    Ok(())
}

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("the first argument is a folder")?;
    let folder = std::path::Path::new(&folder);
    let mut number = |default: u64| -> Outcome<u64> {
        arguments
            .next()
            .map_or(Ok(default), |text| Ok(text.parse()?))
    };
    let (keys, operations, rounds) = (number(1000)?, number(1_000_000)?, number(7)?);
    counters(
        &folder.join("counters"),
        keys,
        operations,
        usize::try_from(rounds)?,
    )?;
    for is_merged in [true, false] {
        let name = if is_merged { "merged" } else { "read" };
        postings(&folder.join(name), is_merged, 20_000, 5_000)?;
    }
    Ok(())
}
