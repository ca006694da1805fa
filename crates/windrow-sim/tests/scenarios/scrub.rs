//! A verified mapped block stays trusted for the scrub interval and no longer.

use std::time::Duration;

use windrow::{BlockSource, ErrorKind, Options};
use windrow_sim::{SimDisk, SteppedRuntime};

use crate::common::{kind, on, open};

#[test]
fn the_scrub_notices_a_changed_mapping_after_the_interval() {
    let disk = SimDisk::new();
    let runtime = SteppedRuntime::new(1);
    let mut options = Options::default();
    options.block_source = BlockSource::Mapped;
    options.scrub_interval = Duration::from_secs(60);
    let (db, keyspace) = open(on(options, &disk, &runtime));
    keyspace.insert("key", "value".repeat(20)).unwrap();
    db.flush().unwrap();
    assert!(keyspace.get("key").unwrap().is_some());

    let table = disk.image().files_with("table").pop().unwrap();
    // In the middle of the value.
    disk.damage_mapped(&table, 60, 0xff).unwrap();
    runtime.advance(Duration::from_secs(30));
    runtime.step();
    assert!(keyspace.get("key").is_ok());
    runtime.advance(Duration::from_secs(31));
    runtime.step();
    assert_eq!(kind(keyspace.get("key")), ErrorKind::Corruption);
}
