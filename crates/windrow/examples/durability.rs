//! What an acknowledged write survives, and what is done about errors.
//!
//! `cargo run --example durability`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;

use windrow::{Db, Durability, ErrorKind, Options};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let db = Db::open(folder.path(), Options::default())?;
    let orders = db.keyspace("orders")?;

    // Buffered, the default: safe from the end of this process, not yet from a power failure.
    for number in 0..100_u32 {
        orders.insert(number.to_be_bytes(), "coffee")?;
    }
    // Everything acknowledged so far becomes safe from a power failure, too.
    db.persist()?;
    // One write that must not be lost: synced before it is acknowledged, with all before it.
    orders.insert_with(100_u32.to_be_bytes(), "the good coffee", Durability::Sync)?;
    println!("{} syncs of the log", db.stats().wal_syncs);

    // A database is open once.
    let second = Db::open(folder.path(), Options::default());
    assert_eq!(
        second.err().map(|error| error.kind()),
        Some(ErrorKind::Locked)
    );

    // The kind of an error says what to do; its text is for people.
    if let Err(error) = orders.insert("", "no key") {
        match error.kind() {
            ErrorKind::InvalidArgument => println!("mend the call: {error}"),
            ErrorKind::NoSpace => println!("free space, then try again: {error}"),
            ErrorKind::Poisoned => println!("reopen the database: {error}"),
            _ => return Err(error.into()),
        }
    }

    // Every byte of every table, checked against its checksum and the manifest.
    db.flush()?;
    let report = db.verify()?;
    assert!(report.is_sound());
    println!("{} entries in {} blocks", report.entries, report.blocks);
    db.close()?;
    Ok(())
}
