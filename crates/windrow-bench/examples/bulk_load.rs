//! A bulk load beside the same entries as inserts in the order of their keys (as `fillseq`): seconds until the work of
//! the store is done, and bytes written for each byte of keys and values.
//!
//! `cargo run --release -p windrow-bench --example bulk_load -- DIR [ENTRIES [VALUE_BYTES [ROUNDS]]]`
//!
//! Each round runs every kind of work once in a new database, so a disturbance meets all of them. A line has the median
//! of all rounds.

#![expect(clippy::print_stdout, reason = "it reports to a terminal")]
#![expect(
    clippy::disallowed_methods,
    reason = "it measures with the real clock and removes its own folder"
)]

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use windrow::{Db, Keyspace, Options};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The memory of the sort of unsorted entries.
const SORT_BYTES: usize = 64 << 20;

/// The entries of all kinds of work.
#[derive(Debug, Clone, Copy)]
struct Entries {
    count: u64,
    value_bytes: usize,
}

impl Entries {
    fn key(number: u64) -> [u8; 16] {
        let mut key = *b"entries/00000000";
        key[8..].copy_from_slice(&number.to_be_bytes());
        key
    }

    /// Half of it compresses.
    fn value(self, number: u64) -> Vec<u8> {
        let mut value = vec![0; self.value_bytes];
        let mut state = number;
        for word in value[..self.value_bytes / 2].chunks_mut(8) {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            word.copy_from_slice(&(state >> 7).to_be_bytes()[..word.len()]);
        }
        value
    }

    fn in_order(self) -> impl Iterator<Item = ([u8; 16], Vec<u8>)> {
        (0..self.count).map(move |number| (Self::key(number), self.value(number)))
    }

    /// Each entry once, in no order: the step has no factor in common with the count.
    fn in_no_order(self) -> impl Iterator<Item = ([u8; 16], Vec<u8>)> {
        let step = (0x9e37_79b9 % self.count.max(2)) | 1;
        let step = (step..)
            .step_by(2)
            .find(|step| are_coprime(*step, self.count));
        let step = step.unwrap_or(1);
        (0..self.count).map(move |number| {
            let number = number.wrapping_mul(step) % self.count;
            (Self::key(number), self.value(number))
        })
    }
}

fn are_coprime(mut left: u64, mut right: u64) -> bool {
    while right > 0 {
        (left, right) = (right, left % right);
    }
    left == 1
}

/// One kind of work: its name and what it does.
type Work = (&'static str, fn(&Keyspace, Entries) -> windrow::Result<()>);

const WORK: [Work; 3] = [
    ("inserts in order", |map, entries| {
        entries
            .in_order()
            .try_for_each(|(key, value)| map.insert(key, value))
    }),
    ("bulk load", |map, entries| {
        map.bulk_load(entries.in_order()).map(drop)
    }),
    ("bulk load, unsorted", |map, entries| {
        let source = entries.in_no_order().map(Ok::<_, windrow::Error>);
        map.try_bulk_load_unsorted(source, SORT_BYTES, |_| ())
            .map(drop)
    }),
];

/// Seconds of the calls, seconds until the store is idle and durable, and the write amplification.
fn run(folder: &Path, entries: Entries, work: Work) -> Outcome<[f64; 3]> {
    drop(std::fs::remove_dir_all(folder));
    let db = Db::open(folder, Options::default())?;
    let map = db.keyspace("entries")?;
    let start = Instant::now();
    work.1(&map, entries)?;
    let called = start.elapsed().as_secs_f64();
    db.flush()?;
    db.wait_idle()?;
    let done = start.elapsed().as_secs_f64();
    let amplification = db.stats().write_amplification();
    if map.iter()?.count() as u64 != entries.count {
        return Err(format!("{}: entries are missing", work.0).into());
    }
    db.close()?;
    Ok([called, done, amplification])
}

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments
        .next()
        .ok_or("the folder of the database is missing")?;
    let folder = Path::new(&folder).join("bulk_load");
    let mut number = |default: u64| arguments.next().map_or(Ok(default), |text| text.parse());
    let (count, value_bytes, rounds) = (number(2_000_000)?, number(100)?, number(3)?);
    let entries = Entries {
        count,
        value_bytes: usize::try_from(value_bytes)?,
    };
    let mut measured = WORK.map(|_| Vec::new());
    for _ in 0..rounds {
        for (work, own) in WORK.into_iter().zip(&mut measured) {
            own.push(run(&folder, entries, work)?);
        }
    }
    drop(std::fs::remove_dir_all(&folder));
    let bytes = count as f64 * (16.0 + value_bytes as f64) / 1e6;
    println!("{count} entries, {bytes:.0} MB");
    for (work, own) in WORK.iter().zip(measured) {
        let median = |part: usize| {
            let mut values: Vec<f64> = own.iter().map(|round| round[part]).collect();
            values.sort_by(f64::total_cmp);
            values[values.len() / 2]
        };
        let (called, done, amplification) = (median(0), median(1), median(2));
        println!(
            "{:<20} {called:>7.2} s called, {done:>7.2} s until idle, {:>7.1} MB/s, {amplification:.3} written per byte",
            work.0,
            bytes / done,
        );
    }
    Ok(())
}
