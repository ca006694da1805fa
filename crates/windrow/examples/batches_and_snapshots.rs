//! A batch of writes to two keyspaces, and a snapshot from before the batch.
//!
//! `cargo run --example batches_and_snapshots`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;

use windrow::{Batch, Db, Keyspace, Options};

/// Moves `amount` between two accounts and writes a line to the journal: all of it or nothing.
fn transfer(db: &Db, from: &str, to: &str, amount: u64, number: u64) -> windrow::Result<()> {
    let accounts = db.keyspace("accounts")?;
    let journal = db.keyspace("journal")?;
    let mut batch = Batch::new();
    let left = balance(&accounts, from)?.saturating_sub(amount);
    batch.insert(&accounts, from, left.to_be_bytes())?;
    let right = balance(&accounts, to)? + amount;
    batch.insert(&accounts, to, right.to_be_bytes())?;
    let line = format!("{from} gives {to} {amount}");
    batch.insert(&journal, number.to_be_bytes(), line)?;
    db.write(&batch)
}

fn balance(accounts: &Keyspace, name: &str) -> windrow::Result<u64> {
    let stored = accounts.get(name)?;
    let stored = stored.and_then(|bytes| bytes.try_into().ok());
    Ok(stored.map_or(0, u64::from_be_bytes))
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let db = Db::open(folder.path(), Options::default())?;
    let accounts = db.keyspace("accounts")?;
    accounts.insert("ada", 100_u64.to_be_bytes())?;
    accounts.insert("grace", 50_u64.to_be_bytes())?;

    let before = db.snapshot();
    transfer(&db, "ada", "grace", 30, 1)?;
    transfer(&db, "grace", "ada", 10, 2)?;

    assert_eq!(balance(&accounts, "ada")?, 80);
    assert_eq!(balance(&accounts, "grace")?, 70);
    // The snapshot keeps one state of all keyspaces readable.
    let then = accounts.at(&before)?;
    assert_eq!(then.get("ada")?, Some(100_u64.to_be_bytes().to_vec()));

    for entry in db.keyspace("journal")?.iter()? {
        println!("{}", entry?.1.escape_ascii());
    }
    db.close()?;
    Ok(())
}
