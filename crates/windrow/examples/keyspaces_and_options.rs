//! Options of a database and of each keyspace.
//!
//! `cargo run --example keyspaces_and_options`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;

use windrow::{BlockSource, Compression, Db, KeyspaceOptions, Options};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let mut options = Options::default();
    options.block_source = BlockSource::Buffered;
    options.cache_bytes = 16 << 20;
    let db = Db::open(folder.path(), options)?;

    // Large texts and few reads: compression and larger blocks.
    let mut archive_options = KeyspaceOptions::default();
    archive_options.compression = Compression::Lz4;
    archive_options.block_bytes = 16 << 10;
    let archive = db.keyspace_with("archive", archive_options)?;

    // Small entries and many reads of absent keys: more filter bits.
    let mut sessions_options = KeyspaceOptions::default();
    sessions_options.bits_per_key = 14.0;
    let sessions = db.keyspace_with("sessions", sessions_options)?;

    for number in 0..2_000 {
        let key = format!("{number:06}");
        archive.insert(&key, "the same old story ".repeat(20))?;
        sessions.insert(&key, "open")?;
    }
    db.flush()?;
    db.wait_idle()?;
    assert_eq!(sessions.get("missing")?, None);

    for keyspace in &db.stats().keyspaces {
        let bytes: u64 = keyspace.levels.iter().map(|level| level.bytes).sum();
        let entries: u64 = keyspace.levels.iter().map(|level| level.entries).sum();
        println!("{}: {entries} entries in {bytes} bytes", keyspace.name);
    }
    assert_eq!(db.keyspace_names(), ["archive", "sessions"]);

    // The check reports all faults at once, before any file changes.
    let mut wrong = KeyspaceOptions::default();
    wrong.size_ratio = 1.0;
    wrong.level0_runs = 0;
    if let Err(error) = wrong.validate() {
        println!("{error}");
    }
    db.close()?;
    Ok(())
}
