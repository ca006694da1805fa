//! Samples the room that updates over a fixed set of keys take: once a second the bytes on disk over
//! the live bytes.
//!
//!     cargo run --release -p windrow-bench --example space [keys] [updates per key]

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a measurement runs on the real file system, in real time, and prints"
)]

use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use windrow::{Db, KeyspaceOptions, Options};

const VALUE_BYTES: usize = 100;

/// What may be on disk beyond `max_space_amp`: logs and what merges have not yet replaced.
const SLACK_BYTES: u64 = 256 << 20;

/// Position `step` of a walk over `0..keys` in an order that jumps about.
fn key(step: u64, keys: u64) -> [u8; 16] {
    let mixed = step.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let number = (u128::from(mixed) * u128::from(keys)) >> 64;
    number.to_be_bytes()
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: u64| arguments.next().map_or(Ok(default), |text| text.parse());
    let keys = number(5_000_000)?;
    let updates = number(6)?;
    let folder = tempfile::tempdir()?;
    let db = Db::open(folder.path(), Options::default())?;
    let keyspace = db.keyspace("space")?;
    for number in 0..keys {
        keyspace.insert(u128::from(number).to_be_bytes(), [1; VALUE_BYTES])?;
    }
    db.wait_idle()?;
    let live = keys * (16 + VALUE_BYTES as u64);
    let allowed = KeyspaceOptions::default().max_space_amp * live as f64 + SLACK_BYTES as f64;
    let done = AtomicBool::new(false);
    let worst = std::thread::scope(|scope| -> Result<u64, Box<dyn Error>> {
        let sampler = scope.spawn(|| {
            let mut worst = 0;
            while !done.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_secs(1));
                let bytes = db.stats().disk_bytes;
                worst = worst.max(bytes);
                println!(
                    "{:8.3} of the live bytes on disk",
                    bytes as f64 / live as f64
                );
            }
            worst
        });
        for step in 0..updates * keys {
            keyspace.insert(key(step, keys), [2; VALUE_BYTES])?;
        }
        done.store(true, Ordering::Relaxed);
        sampler.join().map_err(|_| "the sampler panicked".into())
    })?;
    println!(
        "most: {:.3} of the live bytes; {:.0} MiB of {:.0} MiB allowed",
        worst as f64 / live as f64,
        worst as f64 / f64::from(1 << 20),
        allowed / f64::from(1 << 20),
    );
    if worst as f64 > allowed {
        return Err("more than allowed was on disk".into());
    }
    Ok(())
}
