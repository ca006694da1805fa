//! A database with a key, and later with another one.
//!
//! `cargo run --release -p windrow-encryption --example encrypted`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use windrow::vfs::OsVfs;
use windrow::{Db, Options};
use windrow_encryption::{EncryptedVfs, Key, KeyRing};

fn open(folder: &Path, keys: KeyRing) -> Result<(EncryptedVfs, Db), Box<dyn Error>> {
    let vfs = EncryptedVfs::new(Arc::new(OsVfs), Arc::new(keys));
    let options = Options::default().with_vfs(Arc::new(vfs.clone()));
    Ok((vfs, Db::open(folder, options)?))
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let folder = folder.path();
    // They belong into a safe place: without its key a database is lost.
    let (spring, autumn) = (Key::random()?, Key::random()?);

    let (_, db) = open(folder, KeyRing::new("spring", spring.clone()))?;
    let keyspace = db.keyspace("main")?;
    for number in 0..100_000_u32 {
        keyspace.insert(number.to_be_bytes(), "a secret")?;
    }
    db.close()?;

    // A new key for new files; the files that exist keep theirs.
    let both = KeyRing::new("autumn", autumn.clone()).with_older("spring", spring.clone());
    let (vfs, db) = open(folder, both)?;
    println!("files by key: {:?}", vfs.files_by_key(folder)?);
    let keyspace = db.keyspace("main")?;
    for number in 0..100_000_u32 {
        keyspace.insert(number.to_be_bytes(), "another secret")?;
    }
    keyspace.compact_range::<&[u8]>(..)?;
    db.close()?;

    // The last manifest of the old key goes with the next open. What is left is `LOG`, which the database does not need.
    let both = KeyRing::new("autumn", autumn.clone()).with_older("spring", spring.clone());
    open(folder, both)?.1.close()?;
    println!("files by key: {:?}", vfs.files_by_key(folder)?);

    let (_, db) = open(folder, KeyRing::new("autumn", autumn))?;
    let secret = db.keyspace("main")?.get(7_u32.to_be_bytes())?;
    assert_eq!(secret.as_deref(), Some(&b"another secret"[..]));
    db.close()?;

    let refused = open(folder, KeyRing::new("spring", spring)).map(drop);
    println!(
        "with the old key alone: {}",
        refused.err().ok_or("it should be refused")?
    );
    Ok(())
}
