//! Reads of mapped tables: how long a verified block is trusted, and reads while pages are not in memory.

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
    // The simulated disk has the page of a table of this length in memory.
    keyspace.insert("key", "value".repeat(20) + "s").unwrap();
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

#[test]
fn many_keys_are_read_as_one_by_one() {
    for source in [BlockSource::Mapped, BlockSource::Buffered] {
        let disk = SimDisk::new();
        let runtime = SteppedRuntime::new(1);
        let mut options = Options::default();
        options.block_source = source;
        options.keyspace.memtable_bytes = 64 << 10;
        let (db, keyspace) = open(on(options, &disk, &runtime));
        for number in 0..600_usize {
            // Small, medium and large values, and a few overwritten and removed ones.
            let value = vec![number.to_le_bytes()[0]; [20, 300, 2000][number % 3]];
            keyspace.insert(format!("{number:05}"), value).unwrap();
            if number % 7 == 0 {
                keyspace
                    .insert(format!("{:05}", number / 2), "new")
                    .unwrap();
                keyspace.remove(format!("{:05}", number / 3)).unwrap();
            }
        }
        db.flush().unwrap();
        // In no order, twice, and between keys that do not exist.
        let keys: Vec<String> = (0..900_usize)
            .map(|number| format!("{:05}", number * 7919 % 700))
            .collect();
        for _ in 0..2 {
            let values = keyspace.multi_get(&keys).unwrap();
            for (key, value) in keys.iter().zip(values) {
                assert!(value == keyspace.get(key).unwrap(), "{key}");
            }
        }
        let error = keyspace.multi_get(&["00001", ""]);
        assert_eq!(kind(error), ErrorKind::InvalidArgument);
    }
}
