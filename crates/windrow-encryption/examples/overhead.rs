//! What encryption costs: the same work on files in clear and on encrypted ones, in turns.
//!
//! `cargo run --release -p windrow-encryption --example overhead`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]
#![expect(clippy::disallowed_methods, reason = "a measurement needs a clock")]

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use windrow::vfs::{OsVfs, Vfs};
use windrow::{Db, Durability, Options};
use windrow_encryption::{EncryptedVfs, Key, KeyRing};

const ENTRIES: u64 = 1_000_000;
const SYNCED: u64 = 300;
const ROUNDS: usize = 3;
const WORK: [&str; 4] = ["puts", "puts with sync", "gets", "entries of a scan"];

/// The entries per second of each kind of [`WORK`].
fn measure(folder: &Path, vfs: Arc<dyn Vfs>) -> Result<[f64; 4], Box<dyn Error>> {
    let mut options = Options::default().with_vfs(vfs);
    options.cache_bytes = 256 << 20;
    let db = Db::open(folder, options)?;
    let keyspace = db.keyspace("main")?;
    let key = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
    let per_second = |count: u64, start: Instant| count as f64 / start.elapsed().as_secs_f64();

    let start = Instant::now();
    for number in 0..ENTRIES {
        keyspace.insert(key(number), [7; 100])?;
    }
    db.flush()?;
    db.wait_idle()?;
    let puts = per_second(ENTRIES, start);
    let start = Instant::now();
    for number in 0..SYNCED {
        keyspace.insert_with(key(number), [8; 100], Durability::Sync)?;
    }
    let synced = per_second(SYNCED, start);
    let start = Instant::now();
    for number in 0..ENTRIES {
        keyspace.get(key(number.wrapping_mul(7919) % ENTRIES))?;
    }
    let gets = per_second(ENTRIES, start);
    let start = Instant::now();
    let mut count = 0;
    for entry in keyspace.iter()? {
        entry?;
        count += 1;
    }
    let scanned = per_second(count, start);
    db.close()?;
    Ok([puts, synced, gets, scanned])
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut clear = Vec::new();
    let mut encrypted = Vec::new();
    for _ in 0..ROUNDS {
        let folder = tempfile::tempdir()?;
        clear.push(measure(folder.path(), Arc::new(OsVfs))?);
        let folder = tempfile::tempdir()?;
        let keys = KeyRing::new("only", Key::random()?);
        let vfs = EncryptedVfs::new(Arc::new(OsVfs), Arc::new(keys));
        encrypted.push(measure(folder.path(), Arc::new(vfs))?);
    }
    println!("| per second | in clear | encrypted | ratio |\n|---|---|---|---|");
    for (place, work) in WORK.iter().enumerate() {
        let [clear, encrypted] = [&clear, &encrypted]
            .map(|rounds| median(rounds.iter().map(|round| round[place]).collect()));
        println!(
            "| {work} | {clear:.0} | {encrypted:.0} | {:.2} |",
            encrypted / clear
        );
    }
    Ok(())
}
