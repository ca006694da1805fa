//! What an acknowledged write survives, and how to handle errors.
//!
//! `cargo run --example durability`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;

use windrow::{Db, Durability, ErrorKind, Options};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let db = Db::open(folder.path(), Options::default())?;
    let orders = db.keyspace("orders")?;

    // Buffered, the default: the writes survive the end of this process, but not a power failure.
    for number in 0..100_u32 {
        orders.insert(number.to_be_bytes(), "coffee")?;
    }
    // Now all acknowledged writes survive a power failure, too.
    db.persist()?;
    // Sync: the log is synced before the write is acknowledged. This makes all earlier writes durable, too.
    orders.insert_with(100_u32.to_be_bytes(), "the good coffee", Durability::Sync)?;
    println!("{} syncs of the log", db.stats().wal_syncs);

    // A second open fails while the database is open.
    let second = Db::open(folder.path(), Options::default());
    assert_eq!(
        second.err().map(|error| error.kind()),
        Some(ErrorKind::Locked)
    );

    // The kind of an error says what to do. Its text is for people.
    if let Err(error) = orders.insert("", "no key") {
        match error.kind() {
            ErrorKind::InvalidArgument => println!("fix the call: {error}"),
            ErrorKind::NoSpace => println!("free space, then try again: {error}"),
            ErrorKind::Poisoned => println!("reopen the database: {error}"),
            _ => return Err(error.into()),
        }
    }

    // Compares every byte of every table with checksums and the manifest.
    db.flush()?;
    let report = db.verify()?;
    assert!(report.is_sound());
    println!("{} entries in {} blocks", report.entries, report.blocks);
    db.close()?;
    Ok(())
}
