//! A queue: insert at the end, find the first entry, delete it. Shows the cost of a step as tombstones accumulate
//! at the front.
//!
//!     cargo run --release -p windrow-bench --example queue [length] [steps]

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a measurement runs on the real file system, in real time, and prints"
)]

use std::error::Error;
use std::time::Instant;

use windrow::{Db, Options};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: u64| arguments.next().map_or(Ok(default), |text| text.parse());
    let length = number(1_000)?;
    let steps = number(1_000_000)?;
    let folder = tempfile::tempdir()?;
    let db = Db::open(folder.path(), Options::default())?;
    let queue = db.keyspace("queue")?;
    for number in 0..length {
        queue.insert(number.to_be_bytes(), [1; 100])?;
    }
    println!("{:>10} {:>12} {:>12}", "steps", "us per step", "worst us");
    let (mut began, mut worst) = (Instant::now(), 0);
    for step in 0..steps {
        let start = Instant::now();
        queue.insert((length + step).to_be_bytes(), [1; 100])?;
        let first = queue.iter()?.next().transpose()?;
        let Some((key, _)) = first else {
            return Err("the queue is empty".into());
        };
        if key != step.to_be_bytes() {
            return Err("the queue returned another entry than its first".into());
        }
        queue.remove(key)?;
        worst = worst.max(start.elapsed().as_micros());
        let part = (steps / 10).max(1);
        if (step + 1) % part == 0 {
            let mean = began.elapsed().as_secs_f64() * 1e6 / part as f64;
            println!("{:>10} {mean:>12.2} {worst:>12}", step + 1);
            (began, worst) = (Instant::now(), 0);
        }
    }
    Ok(())
}
