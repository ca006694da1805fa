//! A time series with retention: every measurement lives for a while, and whole files of old ones go without being read.
//!
//! `cargo run --example time_series`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]
#![expect(
    clippy::disallowed_methods,
    reason = "an example is no part of the engine"
)]

use std::error::Error;
use std::thread;
use std::time::Duration;

use windrow::{Batch, Db, KeyspaceOptions, Options};

/// A month in earnest.
const RETENTION: Duration = Duration::from_millis(500);

const SENSORS: u64 = 50;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let db = Db::open(folder.path(), Options::default())?;
    // All values of the keyspace live that long. Keys begin with the time, so what expires together is together.
    let mut options = KeyspaceOptions::default();
    options.default_ttl = Some(RETENTION);
    options.memtable_bytes = 64 << 10;
    let series = db.keyspace_with("measurements", options)?;
    let mut written = 0_u64;
    for time in 0..1000_u64 {
        let mut batch = Batch::new();
        for sensor in 0..SENSORS {
            let key = [time.to_be_bytes(), sensor.to_be_bytes()].concat();
            batch.insert(&series, key, format!("{}", time * sensor % 97))?;
            written += 1;
        }
        db.write(&batch)?;
        thread::sleep(Duration::from_millis(1));
    }
    let (oldest, _) = series.first_key_value()?.ok_or("everything has expired")?;
    let oldest = u64::from_be_bytes(oldest[..8].try_into()?);
    println!("the oldest of 1000 times that are left is {oldest}");
    assert!(oldest > 0);
    db.flush()?;
    thread::sleep(RETENTION + Duration::from_millis(10));
    db.wait_idle()?;
    let stats = db.stats();
    let files: usize = stats.keyspaces[0]
        .levels
        .iter()
        .map(|level| level.files)
        .sum();
    println!(
        "{} of {written} measurements have expired; {files} tables are left, and compactions have read {} bytes",
        stats.entries_expired, stats.compaction_bytes_read,
    );
    assert!(series.is_empty()?);
    assert_eq!((stats.entries_expired, files), (written, 0));
    Ok(())
}
